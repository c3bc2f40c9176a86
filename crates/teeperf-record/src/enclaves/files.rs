//! What files put into an enclave.

use super::{Module, Placed, Process};
use crate::sgx::GivenModule;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use teeperf_symbols::{Loaded, Part};

/// Most parts of a file.
const MOST_PARTS: usize = 64;

/// Code of a file that a runtime tells of; nothing where it lies outside of the enclave. Of a file that cannot be read it is the whole
/// enclave.
pub(super) fn module(
    process: &Process,
    placed: &Placed,
    enclave: &Range<u64>,
    problems: &mut Vec<String>,
) -> Option<Module> {
    let path = process.absolute(&placed.path);
    match Loaded::open(&process.path(&path)) {
        Ok(file) => of(&file, path, placed.bias, enclave),
        Err(error) => {
            if !enclave.contains(&placed.bias) {
                return None;
            }
            problems.push(format!(
                "the enclave at {:#x} has {} in it, of which there will be no functions: {error}",
                enclave.start,
                String::from_utf8_lossy(&path)
            ));
            let code =
                Part { address: enclave.start, length: enclave.end - enclave.start, offset: 0 };
            Some(Module { path, code: vec![code], data: Vec::new(), build_id: Vec::new() })
        }
    }
}

/// What the user names of this enclave.
pub(super) fn named(
    named: &[GivenModule],
    enclave: &Range<u64>,
    problems: &mut Vec<String>,
) -> Vec<Module> {
    let modules = named.iter().filter_map(|named| {
        let base = named.base.unwrap_or(enclave.start);
        if !enclave.contains(&base) {
            return None;
        }
        let path = std::path::absolute(&named.path).unwrap_or_else(|_| named.path.clone());
        let file = Loaded::open(&path).map_err(|error| problems.push(format!("--module: {error}")));
        let file = file.ok()?;
        let bias = base.wrapping_sub(file.first());
        of(&file, path.as_os_str().as_bytes().to_vec(), bias, enclave)
    });
    modules.collect()
}

fn of(file: &Loaded, path: Vec<u8>, bias: u64, enclave: &Range<u64>) -> Option<Module> {
    let within = |parts: &mut dyn Iterator<Item = Part>| -> Vec<Part> {
        parts
            .map(|part| Part { address: part.address.wrapping_add(bias), ..part })
            .filter(|part| {
                let end = part.address.checked_add(part.length);
                enclave.contains(&part.address) && end.is_some_and(|end| end <= enclave.end)
            })
            .take(MOST_PARTS)
            .collect()
    };
    let (code, data) = (within(&mut file.code()), within(&mut file.data()));
    let build_id = file.build_id().unwrap_or_default().to_vec();
    (!code.is_empty()).then_some(Module { path, code, data, build_id })
}
