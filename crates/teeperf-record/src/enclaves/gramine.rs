//! Gramine: `struct debug_map`, a list that begins in `g_debug_map` and has all files of the process, in the enclave and outside
//! (gramineproject/gramine, `pal/include/host/linux-common/debug_map.h`). Builds for debugging alone keep it for what is inside.
//!
//! ```text
//!  0  8  the file's name
//!  8  8  what is added to its addresses
//! 16  8  next
//! ```
//!
//! Beside it, at an address that is always the same, `struct enclave_dbginfo` says where the enclave is
//! (`pal/src/host/linux-sgx/gdb_integration/sgx_gdb.h`): an exit of a thread tells that too, so it is not needed.

use super::{Placed, Process, Runtime, Unreadable, walk};
use std::ops::Range;

/// See the module.
#[derive(Debug)]
pub(super) struct Gramine;

/// Longest name: it ends before a zero.
const MOST_NAME: u64 = 4096;

impl Runtime for Gramine {
    fn variable(&self) -> &'static str {
        "g_debug_map"
    }

    fn library(&self) -> &'static str {
        "gramine/sgx/loader"
    }

    fn files(
        &self,
        process: &Process,
        variable: u64,
        enclave: &Range<u64>,
    ) -> Result<Vec<Placed>, Unreadable> {
        let list = "the list of files of Gramine cannot be read";
        let [first] = process.numbers(list, variable)?;
        let mut all = Vec::new();
        let endless = process.nonsense("the list of files of Gramine has no end", variable);
        walk(first, endless, |at| {
            let [name, bias, next] = process.numbers(list, at)?;
            // A program that is not relocated has a bias of 0, and its enclave begins there.
            if enclave.contains(&bias) {
                let what = "the name of a file of Gramine cannot be read";
                let path = process.text(what, name, MOST_NAME)?;
                // Such as [vdso].
                if !path.starts_with(b"[") {
                    all.push(Placed { path, bias });
                }
            }
            Ok(next)
        })?;
        Ok(all)
    }
}
