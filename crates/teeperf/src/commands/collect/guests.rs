//! Who is connected to a collector, and who gives way where there is no place: somebody who says nothing keeps nobody out.

use std::net::IpAddr;
use std::time::{Duration, Instant};
use teeperf_edit::greeting::Stream;

/// Most connections beside those that send.
const MOST_UNKNOWN: usize = 64;
/// A sender that was let in and has not begun gives way after so long.
const BEGINS: Duration = Duration::from_secs(10);

/// How many there may be.
pub(super) struct Limits {
    /// Those that send.
    pub(super) senders: usize,
    /// Connections of one address of another machine.
    pub(super) per_address: usize,
    /// After so long of silence a sender gives way.
    pub(super) idle: Duration,
}

/// One connection.
struct Guest {
    number: u64,
    /// Nothing for this machine.
    address: Option<IpAddr>,
    /// It was let in; before, nobody knows what it wants.
    sends: bool,
    /// Its recording has begun.
    has_begun: bool,
    /// When it connected, was let in, or last sent a packet.
    since: Instant,
    handle: Box<dyn Stream>,
    is_cut: bool,
}

/// All there are.
#[derive(Default)]
pub(super) struct Guests {
    all: Vec<Guest>,
    last: u64,
}

impl Guests {
    /// Those that send, or may.
    pub(super) fn sending(&self) -> usize {
        self.all.iter().filter(|guest| guest.sends && !guest.is_cut).count()
    }

    /// Takes somebody in who connects; gives a number, or why not.
    pub(super) fn come(
        &mut self,
        address: Option<IpAddr>,
        handle: Box<dyn Stream>,
        limits: &Limits,
    ) -> Result<u64, String> {
        let of_address = self.all.iter().filter(|guest| guest.address == address).count();
        if address.is_some() && of_address >= limits.per_address {
            return Err(format!("{of_address} connections are from there already"));
        }
        // Each has a thread, until that has seen that it is cut.
        if self.all.len() >= limits.senders.saturating_add(2 * MOST_UNKNOWN) {
            return Err("there are too many connections".into());
        }
        let unknown = |guest: &&mut Guest| !guest.sends && !guest.is_cut;
        if self.all.iter_mut().filter(unknown).count() >= MOST_UNKNOWN
            && let Some(oldest) = self.all.iter_mut().find(unknown)
        {
            oldest.cut();
        }
        self.last += 1;
        let (number, since) = (self.last, Instant::now());
        let guest =
            Guest { number, address, sends: false, has_begun: false, since, handle, is_cut: false };
        self.all.push(guest);
        Ok(number)
    }

    /// Lets somebody send; or says that there is no place. Another that has been silent for too long gives its own.
    pub(super) fn let_in(&mut self, number: u64, limits: &Limits) -> Result<(), String> {
        if self.sending() >= limits.senders {
            let is_silent = |guest: &&mut Guest| {
                let most = if guest.has_begun { limits.idle } else { BEGINS };
                guest.sends && !guest.is_cut && guest.since.elapsed() >= most
            };
            let silent = self.all.iter_mut().filter(is_silent);
            let silent = silent.min_by_key(|guest| (guest.has_begun, guest.since));
            silent.ok_or_else(|| format!("{} send already", limits.senders))?.cut();
        }
        self.change(number, |guest| guest.sends = true);
        Ok(())
    }

    /// Its recording has begun, or goes on.
    pub(super) fn has_sent(&mut self, number: u64) {
        self.change(number, |guest| guest.has_begun = true);
    }

    /// Whether it had to give way.
    pub(super) fn is_cut(&self, number: u64) -> bool {
        self.all.iter().any(|guest| guest.number == number && guest.is_cut)
    }

    /// It is gone.
    pub(super) fn go(&mut self, number: u64) {
        self.all.retain(|guest| guest.number != number);
    }

    fn change(&mut self, number: u64, change: impl FnOnce(&mut Guest)) {
        if let Some(guest) = self.all.iter_mut().find(|guest| guest.number == number) {
            guest.since = Instant::now();
            change(guest);
        }
    }
}

impl Guest {
    fn cut(&mut self) {
        self.is_cut = true;
        // One that is gone has no connection.
        let _ = self.handle.cut();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    fn limits(senders: usize, idle: u64) -> Limits {
        Limits { senders, per_address: 3, idle: Duration::from_millis(idle) }
    }

    /// Somebody of this address, or of this machine; and what it sees of the connection.
    fn come(guests: &mut Guests, of: Option<IpAddr>) -> (Result<u64, String>, UnixStream) {
        let (own, other) = UnixStream::pair().unwrap();
        (guests.come(of, Box::new(other), &limits(2, 0)), own)
    }

    #[test]
    fn who_says_nothing_keeps_nobody_out() {
        let mut guests = Guests::default();
        let (_, mut first) = come(&mut guests, None);
        let others: Vec<_> = (0..MOST_UNKNOWN).map(|_| come(&mut guests, None)).collect();
        assert!(others.iter().all(|(came, _)| came.is_ok()));
        assert_eq!(first.read(&mut [0]).unwrap(), 0, "the oldest was cut");
        for _ in 0..2 * MOST_UNKNOWN {
            let _ = come(&mut guests, None);
        }
        assert!(come(&mut guests, None).0.unwrap_err().contains("too many"), "threads are bounded");
    }

    #[test]
    fn one_address_does_not_have_all() {
        let mut guests = Guests::default();
        let far: Option<IpAddr> = Some("192.0.2.1".parse().unwrap());
        for wanted in [true, true, true, false] {
            assert_eq!(come(&mut guests, far).0.is_ok(), wanted);
        }
        assert!(come(&mut guests, Some("192.0.2.2".parse().unwrap())).0.is_ok());
        guests.go(1);
        assert!(come(&mut guests, far).0.is_ok());
    }

    #[test]
    fn a_silent_sender_gives_way_and_a_busy_one_does_not() {
        let mut guests = Guests::default();
        let [(a, _a), (b, _b), (c, _c)] = [(); 3].map(|()| come(&mut guests, None));
        let [a, b, c] = [a, b, c].map(Result::unwrap);
        for number in [a, b] {
            guests.let_in(number, &limits(2, 0)).unwrap();
        }
        let refused = guests.let_in(c, &limits(2, 0)).unwrap_err();
        assert_eq!(refused, "2 send already", "neither had time to begin");
        guests.has_sent(a);
        assert!(guests.let_in(c, &limits(2, 60_000)).is_err());
        guests.let_in(c, &limits(2, 0)).unwrap();
        assert!(guests.is_cut(a) && !guests.is_cut(b) && guests.sending() == 2);
    }
}
