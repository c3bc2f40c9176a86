//! What differs between processors: system calls, the thread block, the counter. One file
//! for each; nothing outside knows which.

#[cfg(target_arch = "x86_64")]
mod x86_64;
#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::*;
