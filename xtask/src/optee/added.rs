//! What teeperf adds to a trusted application, as the linker's map of it has it.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

/// Bytes of code at most.
const MOST_CODE: u64 = 16384;
/// What is ours: the library, and the file that is compiled with the application.
const OURS: [&str; 2] = ["libteeperf_tee.a(", "teeperf_ta.o"];

/// Bytes.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Added {
    pub(super) code: u64,
    pub(super) data: u64,
}

impl Added {
    /// To the application that was linked with this map.
    pub(super) fn of(map: &Path) -> Result<Self> {
        let text = fs::read_to_string(map).with_context(|| map.display().to_string())?;
        Ok(Self::named_in(&text))
    }

    /// An error where there is none, or too much.
    pub(super) fn check(&self) -> Result<()> {
        ensure!(self.code > 0 && self.code <= MOST_CODE, "{} bytes of code", self.code);
        Ok(())
    }

    fn named_in(map: &str) -> Self {
        let mut added = Self::default();
        // Before that stands what was left out.
        let (_, linked) = map.split_once("Linker script and memory map").unwrap_or_default();
        let mut section = "";
        for line in linked.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let (size, file) = match words[..] {
                // A long name has a line of its own.
                [name] => {
                    section = name;
                    continue;
                }
                [_, size, file] => (size, file),
                [name, _, size, file] => {
                    section = name;
                    (size, file)
                }
                _ => continue,
            };
            let size = size.strip_prefix("0x").and_then(|hex| u64::from_str_radix(hex, 16).ok());
            if !OURS.iter().any(|ours| file.contains(ours)) {
                continue;
            }
            match (section.split('.').nth(1), size) {
                (Some("text"), Some(size)) => added.code += size,
                (Some("data" | "bss" | "rodata" | "tbss" | "tdata"), Some(size)) => {
                    added.data += size;
                }
                _ => {}
            }
        }
        added
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_linked_counts_and_not_what_was_left_out() {
        let map = "Discarded input sections\n\n .text.a 0x0 0x99 lib/libteeperf_tee.a(tee.o)\n\
                   Linker script and memory map\n\n\
                   \u{20}.text.a        0x100       0x10 lib/libteeperf_tee.a(tee.o)\n\
                   \u{20}.text.with_a_long_name\n                0x110       0x4 out/teeperf_ta.o\n\
                   \u{20}.text          0x120       0x40 out/demo_ta.o\n\
                   \u{20}.bss.b         0x200       0x8 lib/libteeperf_tee.a(tee.o)\n\
                   \u{20}.debug_info    0x0         0x77 lib/libteeperf_tee.a(tee.o)\n";
        assert_eq!(Added::named_in(map), Added { code: 0x14, data: 8 });
    }
}
