//! A trusted application in Rust, without the standard library: it answers to some of the demo's commands as
//! the demo does (`demo_ta.h`), and its calls are known in number.
#![no_std]

mod tee;
mod work;

use core::ffi::c_void;
use core::panic::PanicInfo;

use tee::{Param, TeeResult};

const CALLS: u32 = 0;
const COMPUTE: u32 = 1;
const PANIC: u32 = 4;

#[unsafe(no_mangle)]
extern "C" fn TA_CreateEntryPoint() -> TeeResult {
    tee::SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn TA_DestroyEntryPoint() {}

#[unsafe(no_mangle)]
extern "C" fn TA_OpenSessionEntryPoint(
    _types: u32,
    _params: *mut Param,
    _session: *mut *mut c_void,
) -> TeeResult {
    teeperf_hooks::scope!();
    tee::SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn TA_CloseSessionEntryPoint(_session: *mut c_void) {}

/// # Safety
///
/// `params` leads to four parameters of these types, as OP-TEE hands them over.
#[unsafe(no_mangle)]
unsafe extern "C" fn TA_InvokeCommandEntryPoint(
    _session: *mut c_void,
    command: u32,
    types: u32,
    params: *mut Param,
) -> TeeResult {
    teeperf_hooks::scope!();
    if types != tee::VALUE_INOUT {
        return tee::BAD_PARAMETERS;
    }
    // SAFETY: the types say that the first is a value.
    let value = unsafe { &mut (*params).value };
    match command {
        CALLS => value.a = work::calls(value.a),
        COMPUTE => value.a = work::compute(value.a),
        PANIC => work::panics(value.a),
        _ => return tee::NOT_SUPPORTED,
    }
    tee::SUCCESS
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    tee::panic(tee::BAD_STATE)
}
