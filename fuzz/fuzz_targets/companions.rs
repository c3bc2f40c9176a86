//! Any bytes as an ELF file, and any bytes as the file that has a part of its debug information: one that the compiler split off,
//! a package of these, or one to which `dwz` moved what several programs have in common.

#![no_main]

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use teeperf_symbols::{Functions, Lines, Search, Unpacked};

/// Where the compiler wrote it, where packages are looked for, and what `dwz` was told.
const NAMES: [&str; 3] = ["/seed/a.dwo", "/seed/p.dwp", "/seed/alt"];

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((size, rest)) = bytes.split_first_chunk() else { return };
    let size = usize::from(u16::from_le_bytes(*size)).min(rest.len());
    let (program, companion) = rest.split_at(size);
    let mut unpacked = Unpacked::default();
    for name in NAMES {
        unpacked.add(name.into(), file(companion));
    }
    let search = Search { unpacked: Some(Arc::new(unpacked)), ..Search::nowhere_else() };
    let path = Path::new("/seed/p");
    let Ok(functions) = Functions::from_bytes(path, program.to_vec(), &search) else { return };
    let starts: Vec<u64> = functions.iter().map(|found| found.start).take(100).collect();
    let Ok(lines) = Lines::from_bytes(path, program.to_vec(), &search) else { return };
    if let Ok(inlined) = lines.inlined(&starts) {
        assert_eq!(inlined.len(), starts.len());
    }
    if let Ok(found) = lines.definitions(&starts) {
        assert_eq!(found.len(), starts.len());
    }
    let _ = lines.companions();
    let _ = lines.missing();
});

fn file(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().expect("there is a folder for temporary files");
    file.write_all(bytes).expect("there is room");
    file
}
