//! When a recording was paused from outside. Threads say in gap words what they left out, but
//! only once they go on, and only from their first call on: how long a pause was that came before
//! or that never ended, the recorder alone can say.

use std::time::Duration;

/// Times are those since the recording's start.
#[derive(Debug)]
pub(crate) struct Pauses {
    /// Since when it has been paused.
    since: Option<Duration>,
    /// In pauses that are over.
    over: Duration,
}

impl Pauses {
    /// Of a recording that begins now.
    pub(crate) fn new(begins_paused: bool) -> Self {
        Self { since: begins_paused.then_some(Duration::ZERO), over: Duration::ZERO }
    }

    /// Whether it is paused.
    pub(crate) fn is_paused(&self) -> bool {
        self.since.is_some()
    }

    /// Takes a change; what is to be said of it. Nothing: it is none.
    pub(crate) fn turn(&mut self, is_paused: bool, at: Duration) -> Option<String> {
        match (self.since, is_paused) {
            (None, true) => {
                self.since = Some(at);
                Some(format!("recording was paused after {}", seconds(at)))
            }
            (Some(since), false) => {
                self.since = None;
                let long = at.saturating_sub(since);
                self.over += long;
                let (at, long) = (seconds(at), seconds(long));
                Some(format!(
                    "recording was resumed after {at}, of which it was paused the last {long}"
                ))
            }
            _ => None,
        }
    }

    /// What is to be said of a pause that the recording's end has cut off.
    pub(crate) fn end(&self, at: Duration) -> Option<String> {
        let since = self.since?;
        Some(if since.is_zero() {
            "recording was paused from its start to its end".into()
        } else {
            let long = seconds(at.saturating_sub(since));
            format!(
                "recording was paused after {} and not resumed: its last {long} are left out",
                seconds(since)
            )
        })
    }

    /// In all pauses up to then.
    pub(crate) fn in_all(&self, at: Duration) -> Duration {
        self.over + self.since.map_or(Duration::ZERO, |since| at.saturating_sub(since))
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.3} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_pause_is_told_when_it_begins_and_when_it_ends() {
        let mut pauses = Pauses::new(true);
        assert_eq!(
            pauses.turn(false, ms(700)).unwrap(),
            "recording was resumed after 0.700 s, of which it was paused the last 0.700 s"
        );
        assert_eq!(pauses.end(ms(800)), None);
        assert_eq!(pauses.turn(true, ms(1_000)).unwrap(), "recording was paused after 1.000 s");
        assert_eq!(pauses.turn(true, ms(1_100)), None, "it was paused before");
        assert_eq!(pauses.in_all(ms(1_500)), ms(1_200));
        assert_eq!(
            pauses.end(ms(1_500)).unwrap(),
            "recording was paused after 1.000 s and not resumed: its last 0.500 s are left out"
        );
        assert!(pauses.turn(false, ms(2_000)).is_some());
        assert_eq!(pauses.turn(false, ms(2_100)), None, "it was resumed before");
        assert_eq!(pauses.in_all(ms(9_000)), ms(1_700));
    }

    #[test]
    fn a_recording_that_nobody_resumes_is_one_pause() {
        let pauses = Pauses::new(true);
        assert_eq!(pauses.end(ms(300)).unwrap(), "recording was paused from its start to its end");
        assert_eq!(pauses.in_all(ms(300)), ms(300));
        assert_eq!(Pauses::new(false).end(ms(300)), None);
    }
}
