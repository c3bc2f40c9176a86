//! Intel's SGX SDK: `debug_enclave_info_t`, a list that begins in `g_debug_enclave_info_list` (intel/linux-sgx,
//! `common/inc/internal/se_debugger_lib.h`, `psw/urts/linux/debugger_support.cpp`, and what its plug-in for gdb reads of it).
//!
//! ```text
//!  0  8  next
//!  8  8  where the file lies
//! 16  8  threads
//! 24  4  kind
//! 28  4  bytes of the file's name
//! 32  8  the file's name, as the program gave it
//! ```

use super::{MOST, Placed, Process, Runtime, Unreadable};
use std::ops::Range;

/// See the module.
pub(super) struct Intel;

impl Runtime for Intel {
    fn variable(&self) -> &'static str {
        "g_debug_enclave_info_list"
    }

    fn library(&self) -> &'static str {
        "libsgx_urts"
    }

    fn files(
        &self,
        process: &Process,
        variable: u64,
        enclave: &Range<u64>,
    ) -> Result<Vec<Placed>, Unreadable> {
        let list = "the list of enclaves of Intel's runtime cannot be read";
        let [mut at] = process.numbers(list, variable)?;
        for _ in 0..MOST {
            if at == 0 {
                return Ok(Vec::new());
            }
            let [next, bias, _, kind, name] = process.numbers(list, at)?;
            if enclave.contains(&bias) {
                let what = "the name of an enclave's file cannot be read";
                return Ok(vec![Placed { path: process.text(what, name, kind >> 32)?, bias }]);
            }
            at = next;
        }
        Err(process.nonsense("the list of enclaves of Intel's runtime has no end", variable))
    }
}
