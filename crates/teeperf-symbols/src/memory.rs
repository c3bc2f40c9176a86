//! Maps of code that are no file's.

/// Whether a map is of memory and of no file, by what the system calls it: as perf has it
/// (`tools/perf/util/map.c`), and names that programs give memory. In a memfd there may be a file's
/// code, which a build-id tells.
pub fn is_memory(path: &[u8], build_id: &[u8]) -> bool {
    const BEGIN: [&[u8]; 5] = [b"/dev/zero", b"/anon_hugepage", b"[stack", b"/SYSV", b"[anon:"];
    matches!(path, b"" | b"//anon" | b"[heap]")
        || BEGIN.iter().any(|begin| path.starts_with(begin))
        || (path.starts_with(b"/memfd:") && build_id.is_empty())
}

#[cfg(test)]
mod tests {
    use super::is_memory;

    #[test]
    fn memory_is_known_by_what_it_is_called() {
        for path in ["", "//anon", "/dev/zero (deleted)", "/anon_hugepage (deleted)", "[heap]"] {
            assert!(is_memory(path.as_bytes(), b""), "{path}");
        }
        for path in ["[stack]", "[stack:77]", "/SYSV00000000 (deleted)", "[anon:code]"] {
            assert!(is_memory(path.as_bytes(), b""), "{path}");
        }
        for path in ["/usr/bin/a", "[vdso]", "[vsyscall]", "/dev/sgx_enclave", "/anon", "[heap"] {
            assert!(!is_memory(path.as_bytes(), b""), "{path}");
        }
        let doubled = b"/memfd:doublemapper (deleted)";
        assert!(is_memory(doubled, b"") && !is_memory(doubled, b"id"));
    }
}
