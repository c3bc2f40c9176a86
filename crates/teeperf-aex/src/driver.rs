//! What a host tells the driver of enclaves, `/dev/sgx_enclave`: `ioctl`s of Linux's `asm/sgx.h`, looked at after they are done.

use crate::debug_read::DebugRead;
use crate::enclaves::{Enclave, Enclaves};
use crate::layout::{Secs, u64_at};

/// `SGX_IOC_ENCLAVE_CREATE`.
pub const CREATE: u64 = 0x4008_a400;
/// `SGX_IOC_ENCLAVE_ADD_PAGES`.
pub const ADD_PAGES: u64 = 0xc030_a401;
/// `SGX_IOC_ENCLAVE_INIT`.
pub const INIT: u64 = 0x4008_a402;

/// `struct sgx_enclave_add_pages`.
const ADDED_BYTES: usize = 48;
/// Page type in the flags of SECINFO: PT_TCS.
const TCS_PAGE: u64 = 1;

/// An `ioctl` was done, without an error. Its structures are read where the host has them, by `memory`. Gives the
/// enclave that is whole with it.
pub fn seen(
    enclaves: &Enclaves,
    memory: &impl DebugRead,
    file: i32,
    request: u64,
    argument: u64,
) -> Option<Enclave> {
    match request {
        CREATE => {
            let mut source = [0; 8];
            let mut secs = [0; Secs::BYTES];
            memory.read_all(argument, &mut source).ok()?;
            memory.read_all(u64::from_le_bytes(source), &mut secs).ok()?;
            enclaves.created(file, Secs::of(&secs)?);
            None
        }
        ADD_PAGES => {
            // source, offset, length, SECINFO, flags, and how many bytes were added, of which the kernel alone decides
            let mut added = [0; ADDED_BYTES];
            let mut flags = [0; 8];
            memory.read_all(argument, &mut added).ok()?;
            memory.read_all(u64_at(&added, 24), &mut flags).ok()?;
            if u64::from_le_bytes(flags) >> 8 & 0xff == TCS_PAGE {
                enclaves.threads_added(file, u64_at(&added, 8), u64_at(&added, 40));
            }
            None
        }
        INIT => enclaves.initialised(file),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::debug_read::MemoryFile;

    #[test]
    fn an_enclave_is_told_by_three_requests() {
        let (enclaves, memory) = (Enclaves::new(), MemoryFile::of_this_process().unwrap());
        let mut secs = [0u64; 7];
        (secs[0], secs[1], secs[2], secs[6]) = (1 << 20, 1 << 30, 1, 2);
        let create = [(&raw const secs) as u64];
        let [regular, tcs] = [[0x203u64], [0x100]];
        let added =
            |secinfo: &[u64; 1], offset| [0, offset, 0x3000, secinfo.as_ptr() as u64, 1, 0x1000];
        let ask = |file, request, argument: &[u64]| {
            seen(&enclaves, &memory, file, request, argument.as_ptr() as u64)
        };
        assert_eq!(ask(7, CREATE, &create), None);
        assert_eq!(ask(7, ADD_PAGES, &added(&regular, 0x3000)), None);
        assert_eq!(ask(7, ADD_PAGES, &added(&tcs, 0x6000)), None);
        assert_eq!(ask(8, INIT, &[0]), None);
        assert_eq!(ask(7, 0xa403, &[0]), None);
        let enclave = ask(7, INIT, &[0]).unwrap();
        assert_eq!(
            (enclave.secs.base, enclave.secs.size, enclave.secs.is_debug),
            (1 << 30, 1 << 20, true)
        );
        // A page of three was added, and only that which is a TCS's.
        assert_eq!(enclave.threads, 1);
        assert!(enclaves.of_tcs((1 << 30) + 0x6000).is_some());
        assert!(enclaves.of_tcs((1 << 30) + 0x7000).is_none());
    }

    #[test]
    fn pointers_to_nowhere_tell_nothing() {
        let (enclaves, memory) = (Enclaves::new(), MemoryFile::of_this_process().unwrap());
        for request in [CREATE, ADD_PAGES, INIT] {
            assert_eq!(seen(&enclaves, &memory, 7, request, 8), None);
            assert_eq!(seen(&enclaves, &memory, 7, request, [8u64; 6].as_ptr() as u64), None);
        }
    }
}
