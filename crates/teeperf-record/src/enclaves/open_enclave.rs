//! Open Enclave: `oe_debug_enclave_t`, a list that begins in `oe_debug_enclaves_list`, and for each enclave one of `oe_debug_module_t`
//! (openenclave/openenclave, `include/openenclave/internal/debugrt/{host,common}.h`).
//!
//! ```text
//!  0  8  magic
//!  8  8  version
//! 16  8  next
//! 24  8  the file's name
//! 32  8  bytes of it
//! 40  8  where the file lies
//! 48  8  bytes there
//! 80  8  of an enclave: its other modules
//! ```

use super::{NO_MORE, Placed, Process, Runtime, Unreadable, walk};
use std::ops::Range;

/// See the module.
#[derive(Debug)]
pub(super) struct OpenEnclave;

const ENCLAVE: u64 = 0xabc5_40ee_14fa_48ce;
const MODULE: u64 = 0xf67a_e623_0a18_a2ce;

const LIST: &str = "the list of enclaves of Open Enclave cannot be read";
const ENDLESS: &str = "the list of enclaves of Open Enclave has no end";

impl Runtime for OpenEnclave {
    fn variable(&self) -> &'static str {
        "oe_debug_enclaves_list"
    }

    fn library(&self) -> &'static str {
        // It is linked into programs.
        "liboehost"
    }

    fn files(
        &self,
        process: &Process,
        variable: u64,
        enclave: &Range<u64>,
    ) -> Result<Vec<Placed>, Unreadable> {
        let [first] = process.numbers(LIST, variable)?;
        let mut all = Vec::new();
        walk(first, process.nonsense(ENDLESS, variable), |at| {
            let (next, placed) = entry(process, at, ENCLAVE)?;
            if !enclave.contains(&placed.bias) {
                return Ok(next);
            }
            all.push(placed);
            let [modules] = process.numbers(LIST, at.wrapping_add(80))?;
            walk(modules, process.nonsense(ENDLESS, modules), |at| {
                let (next, placed) = entry(process, at, MODULE)?;
                all.push(placed);
                Ok(next)
            })?;
            Ok(NO_MORE)
        })?;
        Ok(all)
    }
}

/// What both kinds begin with: the next one's address, and the file.
fn entry(process: &Process, at: u64, magic: u64) -> Result<(u64, Placed), Unreadable> {
    let [found, _version, next, name, length, bias] = process.numbers(LIST, at)?;
    if found != magic {
        return Err(process.nonsense("an entry of Open Enclave's lists is none", at));
    }
    let what = "the name of an enclave's file cannot be read";
    Ok((next, Placed { path: process.text(what, name, length)?, bias }))
}
