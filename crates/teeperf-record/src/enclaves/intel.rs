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

use super::{NO_MORE, Placed, Process, Runtime, Unreadable, walk};
use std::ops::Range;

/// See the module.
#[derive(Debug)]
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
        let [first] = process.numbers(list, variable)?;
        let mut all = Vec::new();
        let endless =
            process.nonsense("the list of enclaves of Intel's runtime has no end", variable);
        walk(first, endless, |at| {
            let [next, bias, _, kind, name] = process.numbers(list, at)?;
            if enclave.contains(&bias) {
                let what = "the name of an enclave's file cannot be read";
                all.push(Placed { path: process.text(what, name, kind >> 32)?, bias });
                return Ok(NO_MORE);
            }
            Ok(next)
        })?;
        Ok(all)
    }
}
