//! Any text as a compiler's assembly, of which hooks are taken out, and into which late ones are put.

#![no_main]

use teeperf_select::assembly::late::{self, Late};
use teeperf_select::told::Told;
use teeperf_select::{Selection, assembly};

libfuzzer_sys::fuzz_target!(|text: &[u8]| {
    let selection: Selection = "only file:a.c\nexclude f\nmin-size 3\n".parse().unwrap();
    Told::default().add(text);
    for drop_line_info in [false, true] {
        let paths = |path: &str| vec![format!("/{path}")];
        let options = assembly::Options { selection: &selection, drop_line_info, paths: &paths };
        let _ = assembly::filter(text, &options);
        for counts_itself in [false, true] {
            let late = Late { counts_itself, with_library: counts_itself };
            let _ = late::insert(text, &options, late);
        }
    }
});
