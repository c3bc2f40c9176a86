//! The code that the kernel puts into each process, for calls such as clock_gettime(2): the vDSO (vdso(7)), an ELF file that no file system
//! has.

use crate::image::Image;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::OnceLock;

/// How maps name it.
pub const VDSO: &str = "[vdso]";

/// Most bytes that it has: it comes to two or three pages.
const MAX_BYTES: u64 = 1 << 20;

/// That of the kernel that runs, as this process has it; nothing where there is none.
pub fn bytes() -> Option<Vec<u8>> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    let line = maps.lines().find(|line| line.ends_with(VDSO))?;
    let (begin, end) = line.split_once(' ')?.0.split_once('-')?;
    let address = |text| u64::from_str_radix(text, 16).ok();
    let (begin, end) = (address(begin)?, address(end)?);
    let length = end.checked_sub(begin).filter(|&length| length <= MAX_BYTES)?;
    let mut bytes = vec![0; length as usize];
    File::open("/proc/self/mem").ok()?.read_exact_at(&mut bytes, begin).ok()?;
    Some(bytes)
}

/// Its build-id, which stays as long as the kernel runs.
pub fn build_id() -> Option<&'static [u8]> {
    static OWN: OnceLock<Option<Vec<u8>>> = OnceLock::new();
    let read = || Image::from_bytes(Path::new(VDSO), bytes()?).ok()?.build_id;
    OWN.get_or_init(read).as_deref()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Frames, Functions, Search, Unwinding};

    /// Guards: it is opened by its name, if it is that of the build; tables for unwinding are there.
    #[test]
    fn it_is_that_of_this_process() {
        let (Some(_), Some(id)) = (bytes(), build_id()) else { return };
        let path = Path::new(VDSO);
        let search = |id: &[u8]| Search { build_id: Some(id.to_vec()), ..Search::nowhere_else() };
        let functions = Functions::open(path, &search(id)).unwrap();
        assert_eq!(functions.build_id(), Some(id));
        assert!(Frames::open(path, &search(id)).is_ok());
        assert!(Unwinding::open(path, &search(id)).unwrap().eh_frame.is_some());
        if cfg!(target_arch = "x86_64") {
            assert!(functions.named("__vdso_clock_gettime").is_some());
        }
        assert!(Functions::open(path, &search(&[1; 20])).is_err());
        assert!(Functions::open(path, &Search::nowhere_else()).is_err());
    }
}
