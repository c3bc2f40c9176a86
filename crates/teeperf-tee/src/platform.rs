//! What differs from one place to the next. One file each; nothing outside knows which. None of
//! it allocates or takes a lock: hooks call it anywhere.

#[cfg(not(feature = "object"))]
mod hosted;
#[cfg(feature = "object")]
mod object;

#[cfg(not(feature = "object"))]
pub(crate) use hosted::*;
#[cfg(feature = "object")]
pub(crate) use object::*;
