//! As much of the GlobalPlatform API as is used here; libutee has the functions.

/// What functions of the API answer.
pub(crate) type TeeResult = u32;

pub(crate) const SUCCESS: TeeResult = 0;
pub(crate) const BAD_PARAMETERS: TeeResult = 0xffff_0006;
pub(crate) const BAD_STATE: TeeResult = 0xffff_0007;
pub(crate) const NOT_SUPPORTED: TeeResult = 0xffff_000a;

/// Types of four parameters: a value that goes in and out, and no others.
pub(crate) const VALUE_INOUT: u32 = 3;

/// A parameter.
#[repr(C)]
pub(crate) union Param {
    memref: Memref,
    pub(crate) value: Value,
}

/// Memory of the client's; none is used here, but it is what makes a parameter as large as it is.
#[derive(Clone, Copy)]
#[repr(C)]
struct Memref {
    buffer: *mut u8,
    size: usize,
}

/// Two numbers.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Value {
    pub(crate) a: u32,
    pub(crate) b: u32,
}

unsafe extern "C" {
    safe fn TEE_Panic(code: TeeResult) -> !;
}

/// Ends the application.
pub(crate) fn panic(code: TeeResult) -> ! {
    TEE_Panic(code)
}
