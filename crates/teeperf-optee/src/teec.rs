//! Types of the TEE Client API: TEE Client API Specification 1.0, section 4.3. What is of the
//! implementation lies behind what is of the specification, and is not looked at.

use std::ffi::c_void;

/// `TEEC_Result`.
pub(crate) type Outcome = u32;
/// `TEEC_SUCCESS`.
pub(crate) const SUCCESS: Outcome = 0;
/// `TEEC_ERROR_CANCEL`.
pub(crate) const CANCEL: Outcome = 0xFFFF_0002;
/// `TEEC_ERROR_BAD_PARAMETERS`.
pub(crate) const BAD_PARAMETERS: Outcome = 0xFFFF_0006;
/// `TEEC_ERROR_TARGET_DEAD`.
pub(crate) const TARGET_DEAD: Outcome = 0xFFFF_3024;
/// `TEEC_ERROR_GENERIC`.
pub(crate) const GENERIC: Outcome = 0xFFFF_0000;
/// `TEEC_ORIGIN_TRUSTED_APP`: where a result comes from.
pub(crate) const OF_APPLICATION: u32 = 4;
/// `TEEC_NONE`: a slot that is free.
pub(crate) const NONE: u32 = 0;
/// `TEEC_MEMREF_WHOLE`.
pub(crate) const MEMREF_WHOLE: u32 = 0xC;
/// `TEEC_MEM_INPUT` and `TEEC_MEM_OUTPUT`.
pub(crate) const BOTH_WAYS: u32 = 3;
/// Slots of an operation.
pub(crate) const SLOTS: usize = 4;

/// `TEEC_UUID`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Uuid {
    pub(crate) time_low: u32,
    pub(crate) time_mid: u16,
    pub(crate) time_hi_and_version: u16,
    pub(crate) clock_seq_and_node: [u8; 8],
}

/// As in the names of applications' files.
impl std::fmt::Display for Uuid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { time_low, time_mid, time_hi_and_version, clock_seq_and_node } = self;
        write!(f, "{time_low:08x}-{time_mid:04x}-{time_hi_and_version:04x}-")?;
        for (at, byte) in clock_seq_and_node.iter().enumerate() {
            let line = if at == 2 { "-" } else { "" };
            write!(f, "{line}{byte:02x}")?;
        }
        Ok(())
    }
}

/// `TEEC_RegisteredMemoryReference`, as a member of `TEEC_Parameter`, which it fills.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parameter {
    pub(crate) parent: *mut SharedMemory,
    pub(crate) size: usize,
    pub(crate) offset: usize,
}

/// `TEEC_Operation`.
#[repr(C)]
pub(crate) struct Operation {
    pub(crate) started: u32,
    pub(crate) types: u32,
    pub(crate) parameters: [Parameter; SLOTS],
    /// The implementation's, and more.
    pub(crate) implementation: [u64; 8],
}

impl Operation {
    /// Without parameters.
    pub(crate) fn empty() -> Self {
        let none = Parameter { parent: std::ptr::null_mut(), size: 0, offset: 0 };
        Self { started: 0, types: 0, parameters: [none; SLOTS], implementation: [0; 8] }
    }
}

/// `TEEC_SharedMemory`.
#[repr(C)]
pub(crate) struct SharedMemory {
    pub(crate) buffer: *mut c_void,
    pub(crate) size: usize,
    pub(crate) flags: u32,
    /// The implementation's, and more.
    pub(crate) implementation: [u64; 16],
}
