//! A thread that is traced.

use super::timer::Timer;
use std::fs::File;
use std::os::unix::fs::FileExt;
use teeperf_aex::sampler::{first, next_random, period};

/// See the module.
#[derive(Debug)]
pub(super) struct Thread {
    pub(super) tid: u32,
    /// Its process.
    pub(super) pid: u32,
    /// It has begun to run: the next stop is not its first.
    pub(super) has_begun: bool,
    /// Its name was looked at since it runs: at its beginning it has that of who made it.
    pub(super) is_named: bool,
    /// It stands with its group.
    pub(super) stands: bool,
    /// Processor time that its samples so far stand for.
    since: u64,
    /// When the next sample is due, of its processor time.
    due: u64,
    random: u64,
    timer: Option<Timer>,
    times: Option<File>,
}

/// Periods without a sample, behind which a signal has been lost.
const LOST: u64 = 8;

impl Thread {
    /// Of this process. Its timer does not run yet.
    pub(super) fn new(tid: u32, pid: u32, has_begun: bool, random: u64) -> Self {
        Self {
            tid,
            pid,
            has_begun,
            is_named: false,
            stands: false,
            since: 0,
            due: 0,
            random: random ^ u64::from(tid) << 32,
            timer: None,
            times: None,
        }
    }

    /// It is sampled from here on. Whether the kernel says when.
    pub(super) fn begin(&mut self, mean: u64) -> bool {
        self.times = File::open(format!("/proc/{}/task/{}/schedstat", self.pid, self.tid)).ok();
        let now = self.processor_time().unwrap_or(0);
        self.random = next_random(self.random);
        let first = first(mean.max(1), self.random);
        // As if a period had begun before the thread.
        self.since = now.wrapping_sub(mean.max(1) - first);
        self.due = now.saturating_add(first);
        self.timer = Timer::of(self.tid).ok();
        if let Some(timer) = &self.timer {
            timer.arm(first);
        }
        self.timer.is_some()
    }

    /// Draws the next period.
    pub(super) fn arm(&mut self, mean: u64, is_constant: bool) {
        self.random = next_random(self.random);
        let period = if is_constant { mean } else { period(mean, self.random) };
        self.due = self.since.saturating_add(period);
        if let Some(timer) = &self.timer {
            timer.arm(period);
        }
    }

    /// Whether its timer has asked it to stop, and it was not sampled since.
    pub(super) fn is_due(&self) -> bool {
        self.timer.as_ref().is_some_and(Timer::is_due)
    }

    /// Processor time since its sample before, of a thread that stands: it is exact then.
    pub(super) fn take_period(&mut self) -> u64 {
        let now = self.processor_time().unwrap_or(self.since);
        now.wrapping_sub(std::mem::replace(&mut self.since, now))
    }

    /// Whether it is to be stopped though its timer has not said so.
    pub(super) fn is_late(&self, mean: u64) -> bool {
        let late = if self.timer.is_some() { LOST * mean } else { 0 };
        let is_due = self.processor_time().is_some_and(|now| now > self.due.saturating_add(late));
        is_due && self.runs()
    }

    /// Whether it runs, or would: what waits is not to be woken for nothing.
    fn runs(&self) -> bool {
        let stat = std::fs::read(format!("/proc/{}/task/{}/stat", self.pid, self.tid));
        let stat = stat.unwrap_or_default();
        let end = stat.iter().rposition(|&byte| byte == b')').unwrap_or(0);
        stat.get(end + 2) == Some(&b'R')
    }

    /// Nanoseconds: the first number of schedstat. Of a thread that runs it is some milliseconds old.
    fn processor_time(&self) -> Option<u64> {
        let mut text = [0; 64];
        let length = self.times.as_ref()?.read_at(&mut text, 0).ok()?;
        let digits = text[..length].split(|&byte| byte == b' ').next()?;
        std::str::from_utf8(digits).ok()?.parse().ok()
    }
}
