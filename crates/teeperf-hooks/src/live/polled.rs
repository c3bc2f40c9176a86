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

/// A future whose polls are recorded. [`future!`](crate::future) makes one.
#[derive(Debug)]
#[must_use = "futures do nothing unless they are awaited"]
pub struct Polled<F> {
    sites: Sites,
    is_polled: bool,
    future: F,
}

impl<F: Future> Polled<F> {
    /// One that was not polled yet.
    pub fn new(sites: Sites, future: F) -> Self {
        Self { sites, is_polled: false, future }
    }
}

impl<F: Future> Future for Polled<F> {
    type Output = F::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        // SAFETY: of what is pinned only `future` is, which is not moved from here on, and is dropped in its place.
        let (this, future) = unsafe {
            let this = self.get_unchecked_mut();
            (&mut this.is_polled, (Pin::new_unchecked(&mut this.future), this.sites))
        };
        let (future, sites) = future;
        let site = if core::mem::replace(this, true) { sites.again } else { sites.first };
        let _scope = Scope::at(site);
        future.poll(context)
    }
}
