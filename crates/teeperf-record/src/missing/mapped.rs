//! Mappings of a process that say whether it is recorded: proc_pid_maps(5).

/// A file whose code a process has mapped.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Code {
    /// Device and number, as the list has them.
    pub(super) file: (Vec<u8>, u64),
    pub(super) path: Vec<u8>,
}

/// Code and recorders' memory in a list of mappings.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Mapped {
    /// Whether there is memory of a recorder's: the process has attached, or was forked from one that has.
    pub(super) has_recorder: bool,
    /// Whether there is the library that answers hooks of libraries, where the program has none.
    pub(super) has_runtime: bool,
    pub(super) code: Vec<Code>,
}

/// Most files of one process.
const MOST: usize = 4096;

pub(super) fn read(maps: &[u8]) -> Mapped {
    let mut mapped = Mapped::default();
    for line in maps.split(|&byte| byte == b'\n') {
        let Some((fields, path)) = split(line) else { continue };
        mapped.has_recorder |= path.starts_with(b"/memfd:teeperf-");
        mapped.has_runtime |= path.ends_with(b"/libteeperf.so");
        let [_, rights, _, device, number] = fields;
        let is_code = rights.get(2) == Some(&b'x') && path.starts_with(b"/");
        let number = std::str::from_utf8(number).ok().and_then(|number| number.parse().ok());
        let Some(number) = number.filter(|_| is_code && mapped.code.len() < MOST) else { continue };
        let code = Code { file: (device.to_vec(), number), path: unescaped(path) };
        if mapped.code.last() != Some(&code) {
            mapped.code.push(code);
        }
    }
    mapped
}

/// A path as the file system has it: the list spells out line ends.
pub(crate) fn unescaped(path: &[u8]) -> Vec<u8> {
    const LINE_END: &[u8] = b"\\012";
    let mut out = Vec::with_capacity(path.len());
    let mut rest = path;
    while let [first, more @ ..] = rest {
        let is_line_end = rest.starts_with(LINE_END);
        out.push(if is_line_end { b'\n' } else { *first });
        rest = if is_line_end { &rest[LINE_END.len()..] } else { more };
    }
    out
}

/// Five fields, and the path behind spaces.
fn split(line: &[u8]) -> Option<([&[u8]; 5], &[u8])> {
    let mut rest = line;
    let mut fields = [&[][..]; 5];
    for field in &mut fields {
        let end = rest.iter().position(|&byte| byte == b' ')?;
        (*field, rest) = (&rest[..end], &rest[end + 1..]);
    }
    let start = rest.iter().position(|&byte| byte != b' ')?;
    Some((fields, &rest[start..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_may_have_line_ends() {
        assert_eq!(unescaped(b"/a\\012b\\01"), b"/a\nb\\01");
        assert_eq!(unescaped(b"\\012"), b"\n");
    }

    #[test]
    fn code_and_memory_of_a_recorder_are_found() {
        let maps = b"1-2 r--p 00000000 08:01 7                          /bin/a b\n\
            2-3 r-xp 00001000 08:01 7                          /bin/a b\n\
            4-5 rw-p 00000000 00:00 0                          [heap]\n\
            5-6 r-xp 00000000 00:00 0                          [vdso]\n\
            6-7 rw-p 00000000 00:00 0 \n";
        let code = vec![Code { file: (b"08:01".to_vec(), 7), path: b"/bin/a b".to_vec() }];
        assert_eq!(read(maps), Mapped { code: code.clone(), ..Mapped::default() });
        let line = b"7-8 rw-s 00000000 00:01 9     /memfd:teeperf-heirs (deleted)\n";
        let mapped = Mapped { has_recorder: true, code: code.clone(), ..Mapped::default() };
        assert_eq!(read(&[&maps[..], line].concat()), mapped);
        let line = b"7-8 r--p 00000000 08:01 9     /a/libteeperf.so\n";
        let mapped = Mapped { has_runtime: true, code, ..Mapped::default() };
        assert_eq!(read(&[&maps[..], line].concat()), mapped);
        for cut in 0..maps.len() {
            read(&maps[..cut]);
        }
    }
}
