//! Futures: a call for each time that one is polled, on the stack of whoever polls it. In between nothing is on a
//! stack, as other futures run there.

use crate::{Scope, Site};
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

/// Sites of an async function.
#[derive(Clone, Copy, Debug)]
pub struct Sites {
    /// Its own: the first time that a future of it is polled.
    pub first: Site,
    /// Each further time.
    pub again: Site,
}

/// A future whose polls are recorded, and how long it waits between them. [`future!`](crate::future) makes one.
#[derive(Debug)]
#[must_use = "futures do nothing unless they are awaited"]
pub struct Polled<F> {
    sites: Sites,
    /// The moment at which it was polled last, if it was.
    since: Option<u64>,
    future: F,
}

impl<F: Future> Polled<F> {
    /// One that was not polled yet.
    pub fn new(sites: Sites, future: F) -> Self {
        Self { sites, since: None, future }
    }
}

impl<F: Future> Future for Polled<F> {
    type Output = F::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        // SAFETY: of what is pinned only `future` is, which is not moved from here on, and is dropped in its place.
        let this = unsafe { self.get_unchecked_mut() };
        let site = match this.since {
            None => this.sites.first,
            Some(since) => {
                runtime::wait(this.sites.first, since);
                this.sites.again
            }
        };
        let call = Scope::at(site);
        // SAFETY: as above.
        let polled = unsafe { Pin::new_unchecked(&mut this.future) }.poll(context);
        drop(call);
        if polled.is_pending() {
            this.since = Some(runtime::now());
        }
        polled
    }
}

/// What the runtime of Linux programs is told beside calls.
#[cfg(all(not(test), feature = "on", target_os = "linux", target_arch = "x86_64"))]
mod runtime {
    use crate::Site;

    // SAFETY: so `teeperf-stub` has both (x86_64/waits.rs), which this crate is linked with. They follow no address.
    unsafe extern "C" {
        safe fn teeperf_now() -> u64;
        safe fn teeperf_wait(function: usize, since: u64);
    }

    /// The present time, in whatever the recording has as its units; 0 when there is none.
    #[inline]
    pub(super) fn now() -> u64 {
        teeperf_now()
    }

    /// The function goes on that was polled at a time.
    #[inline]
    pub(super) fn wait(site: Site, since: u64) {
        teeperf_wait(site.address(), since);
    }
}

/// The other runtimes have no words for waits.
#[cfg(not(all(not(test), feature = "on", target_os = "linux", target_arch = "x86_64")))]
mod runtime {
    use crate::Site;

    pub(super) fn now() -> u64 {
        0
    }

    pub(super) fn wait(_: Site, _: u64) {}
}

#[cfg(test)]
mod tests {
    use super::Polled;
    use crate::live::scope::tests::of;
    use std::future::poll_fn;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::pin::{Pin, pin};
    use std::task::{Context, Poll, Waker};

    /// Polls it; says whether it is done.
    fn poll(future: Pin<&mut impl Future>) -> bool {
        future.poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    /// Waits so many times, then panics, or is done.
    fn turns(mut count: u32, panics: bool) -> impl Future {
        poll_fn(move |_| {
            assert!(count > 0 || !panics, "as was asked for");
            count = count.wrapping_sub(1);
            if count == u32::MAX { Poll::Ready(()) } else { Poll::Pending }
        })
    }

    #[test]
    fn each_poll_is_a_call_and_in_between_is_none() {
        let mut future = pin!(crate::future!("turns", turns(2, false)));
        let polls = [0; 3].map(|_| of(|| _ = poll(future.as_mut())));
        let sites = polls.each_ref().map(|calls| calls[0].0);
        for (calls, site) in polls.iter().zip(sites) {
            assert_eq!(calls[..], [(site, true), (site, false)]);
        }
        assert!(sites[0] != sites[1] && sites[1] == sites[2]);
    }

    #[test]
    fn a_poll_that_panics_returns() {
        let mut future = pin!(crate::future!("panics", turns(0, true)));
        let calls =
            of(|| assert!(catch_unwind(AssertUnwindSafe(|| poll(future.as_mut()))).is_err()));
        assert_eq!(calls.iter().map(|call| call.1).collect::<Vec<_>>(), [true, false]);
    }

    #[test]
    fn it_can_go_to_another_thread() {
        fn is_send<T: Send>(_: &T) {}
        is_send(&crate::future!("sent", std::future::ready(1)));
        fn is_unpin<T: Unpin>() {}
        is_unpin::<Polled<std::future::Ready<()>>>();
    }
}
