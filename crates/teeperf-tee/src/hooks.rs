//! The functions that compilers call at each entry and exit (`-finstrument-functions`: gcc's manual,
//! "Program Instrumentation Options").

use crate::platform;

/// On 32-bit Arm the lowest bit of a function's address says that it is Thumb code.
pub(crate) const ADDRESS: usize = if cfg!(target_arch = "arm") { !1 } else { !0 };

/// A function was entered.
#[cfg_attr(feature = "object", unsafe(no_mangle))]
pub extern "C" fn __cyg_profile_func_enter(function: usize, _call_site: usize) {
    platform::thread().event(function & ADDRESS, 0);
}

/// A function is about to be left.
#[cfg_attr(feature = "object", unsafe(no_mangle))]
pub extern "C" fn __cyg_profile_func_exit(function: usize, _call_site: usize) {
    platform::thread().event(function & ADDRESS, 1);
}
