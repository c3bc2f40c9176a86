//! What differs from one place to the next. One file each; nothing outside knows which. None of
//! it allocates or takes a lock: hooks call it anywhere.

#[cfg(not(all(feature = "object", feature = "threads")))]
mod alone;
#[cfg(all(feature = "object", feature = "apart"))]
mod apart;
#[cfg(not(feature = "object"))]
mod hosted;
#[cfg(all(feature = "object", feature = "threads"))]
mod local;
#[cfg(feature = "object")]
mod object;
#[cfg(all(feature = "object", not(any(feature = "threads", feature = "apart"))))]
mod single;
#[cfg(all(feature = "object", feature = "threads"))]
mod threads;

#[cfg(not(all(feature = "object", feature = "threads")))]
pub(crate) use alone::*;
#[cfg(all(feature = "object", feature = "apart"))]
pub(crate) use apart::*;
#[cfg(not(feature = "object"))]
pub(crate) use hosted::*;
#[cfg(feature = "object")]
pub(crate) use object::*;
#[cfg(all(feature = "object", not(any(feature = "threads", feature = "apart"))))]
pub(crate) use single::*;
#[cfg(all(feature = "object", feature = "threads"))]
pub(crate) use threads::*;
