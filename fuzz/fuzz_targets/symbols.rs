//! Any bytes as an ELF file: its functions, their names, where they are defined, and what they call.

#![no_main]

use std::path::Path;
use teeperf_symbols::{Functions, Lines, Search, called_from_bytes, demangle, tail_callers_from_bytes};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let path = Path::new("file");
    let search = Search { debug_folders: Vec::new(), ..Search::default() };
    let mut starts = vec![0, 0x1000, u64::MAX];
    if let Ok(functions) = Functions::from_bytes(path, bytes.to_vec(), &search) {
        let mut last = None;
        for found in functions.iter() {
            assert!(last < Some(found.start), "sorted, one for each address");
            last = Some(found.start);
            if found.size > 0 {
                let at = functions.at(found.start).expect("a function is found at its start");
                assert_eq!(at.start, found.start);
            }
            if starts.len() < 100 {
                demangle(&found.name);
                starts.push(found.start);
            }
        }
    }
    if let Ok(called) = called_from_bytes(path, bytes.to_vec(), &search, &starts) {
        assert_eq!(called.len(), starts.len());
    }
    let _ = tail_callers_from_bytes(path, bytes.to_vec(), &search);
    if let Ok(lines) = Lines::from_bytes(path, bytes.to_vec(), &search)
        && let Ok(found) = lines.definitions(&starts)
    {
        assert_eq!(found.len(), starts.len());
        let sites = lines.call_sites(&starts).unwrap_or_default();
        assert!(sites.iter().all(|site| site.caller < starts.len()));
        if let Ok(inlined) = lines.inlined(&starts) {
            assert_eq!(inlined.len(), starts.len());
        }
    }
});
