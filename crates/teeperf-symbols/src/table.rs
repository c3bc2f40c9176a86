//! From symbol tables to a table in which every address belongs to one function at most.

use crate::Error;
use crate::image::{Image, Section};
use object::Endianness;
use object::elf;
use object::pod::slice_from_all_bytes;
use object::read::elf::{FileHeader, Sym};
use std::cmp::{Ordering, Reverse};
use std::ops::Range;

/// Longest name that is believed. What is longer keeps its beginning; without a limit, a
/// table whose names have no end would take time without end.
const MAX_NAME: usize = 1 << 14;

/// What a symbol stands for. The first is the best where several have one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Function,
    /// `STT_GNU_IFUNC`. At its address is the function that chooses, which mostly has a
    /// symbol of its own.
    Indirect,
    /// A stub of the procedure linkage table; the name is that of the function it leads to.
    Plt,
    /// `STT_NOTYPE` in code: assembler that does not declare its functions.
    Label,
}

/// How far a symbol is seen. The first is the best.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Binding {
    Global,
    Weak,
    Local,
}

/// A function: addresses `start..end`, and where its name stands in the strings of its table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) start: u64,
    /// Equal to `start` as long as the size is not known.
    pub(crate) end: u64,
    pub(crate) name: u32,
    pub(crate) kind: Kind,
    pub(crate) binding: Binding,
}

/// Functions by address.
#[derive(Debug, Default)]
pub(crate) struct Table {
    /// Sorted by start; no two have the same.
    pub(crate) entries: Vec<Entry>,
    /// Where each stretch of addresses begins, sorted, and the entry that it belongs to:
    /// of functions that overlap, the one that starts last.
    starts: Vec<u64>,
    owners: Vec<Option<u32>>,
    /// Names of functions, zero behind each.
    pub(crate) strings: Vec<u8>,
    /// The same for stubs, which may come from another file.
    pub(crate) plt_strings: Vec<u8>,
}

impl Table {
    /// Sorts, chooses one name for each address, gives every symbol an extent.
    pub(crate) fn new(
        mut entries: Vec<Entry>,
        strings: Vec<u8>,
        plt_strings: Vec<u8>,
        code: &Code,
    ) -> Self {
        entries.sort_unstable_by_key(|entry| entry.start);
        let mut table = Self { entries, strings, plt_strings, ..Self::default() };
        table.choose_names();
        table.drop_labels_in_functions();
        table.give_extents(code);
        table.lay_out();
        table
    }

    /// The entry that an address belongs to.
    pub(crate) fn at(&self, address: u64) -> Option<&Entry> {
        let after = self.starts.partition_point(|&start| start <= address);
        let owner = self.owners.get(after.checked_sub(1)?)?;
        owner.map(|index| &self.entries[index as usize])
    }

    /// The name, without the version that the linker writes behind it.
    pub(crate) fn name(&self, entry: &Entry) -> &[u8] {
        let strings = if entry.kind == Kind::Plt { &self.plt_strings } else { &self.strings };
        name_in(strings, entry.name)
    }

    /// Keeps one entry for each address: see [`Self::better`].
    fn choose_names(&mut self) {
        let mut kept = 0;
        for at in 0..self.entries.len() {
            let entry = self.entries[at];
            if kept > 0 && self.entries[kept - 1].start == entry.start {
                let before = self.entries[kept - 1];
                let best = if self.better(&entry, &before).is_lt() { entry } else { before };
                self.entries[kept - 1] = best;
            } else {
                self.entries[kept] = entry;
                kept += 1;
            }
        }
        self.entries.truncate(kept);
    }

    /// Less when `a` names the address better. A total order of what stands in the table,
    /// so the choice does not depend on the order of symbols in the file.
    fn better(&self, a: &Entry, b: &Entry) -> Ordering {
        let of = |entry: &Entry| (entry.kind, entry.start == entry.end, entry.binding);
        of(a).cmp(&of(b)).then_with(|| {
            let (a_name, b_name) = (self.name(a), self.name(b));
            let by_name = a_name.len().cmp(&b_name.len()).then_with(|| a_name.cmp(b_name));
            by_name.then_with(|| Reverse(a.end).cmp(&Reverse(b.end)))
        })
    }

    /// A label inside a function is a part of it.
    fn drop_labels_in_functions(&mut self) {
        let mut covered = 0;
        self.entries.retain(|entry| {
            let keep = entry.kind != Kind::Label || entry.start >= covered;
            covered = covered.max(entry.end);
            keep
        });
    }

    /// A symbol without size reaches to the next one, at most to its section's end.
    fn give_extents(&mut self, code: &Code) {
        let mut next = u64::MAX;
        for entry in self.entries.iter_mut().rev() {
            let limit = code.end_of(entry.start).unwrap_or(entry.start);
            entry.end = match entry.end == entry.start {
                true => next.min(limit),
                false => entry.end.min(limit),
            };
            next = entry.start;
        }
    }

    /// Fills `starts` and `owners`: a sweep with a stack of functions not yet ended.
    fn lay_out(&mut self) {
        let mut open: Vec<u32> = Vec::new();
        for at in 0..self.entries.len() {
            let start = self.entries[at].start;
            self.close(&mut open, start);
            open.push(at as u32);
            self.begin(start, Some(at as u32));
        }
        self.close(&mut open, u64::MAX);
    }

    /// Ends what ends at or before `limit`; what lies around it goes on.
    fn close(&mut self, open: &mut Vec<u32>, limit: u64) {
        while let Some(&top) = open.last() {
            let end = self.entries[top as usize].end;
            if end > limit {
                return;
            }
            open.pop();
            while open.last().is_some_and(|&below| self.entries[below as usize].end <= end) {
                open.pop();
            }
            self.begin(end, open.last().copied());
        }
    }

    fn begin(&mut self, start: u64, owner: Option<u32>) {
        if self.starts.last() == Some(&start) {
            self.starts.pop();
            self.owners.pop();
        }
        self.starts.push(start);
        self.owners.push(owner);
    }
}

/// The addresses that code runs from, one range for each section, sorted.
pub(crate) struct Code(Vec<Range<u64>>);

impl Code {
    pub(crate) fn of(image: &Image) -> Self {
        let mut ranges: Vec<_> = image.sections.iter().filter_map(Section::code).collect();
        ranges.sort_unstable_by_key(|range| range.start);
        Self(ranges)
    }

    /// From the first of it to the last.
    pub(crate) fn extent(&self) -> Range<u64> {
        let end = self.0.iter().map(|range| range.end).max().unwrap_or(0);
        self.0.first().map_or(0, |first| first.start)..end
    }

    /// End of the section that an address is in.
    pub(crate) fn end_of(&self, address: u64) -> Option<u64> {
        let after = self.0.partition_point(|range| range.start <= address);
        let range = self.0.get(after.checked_sub(1)?)?;
        range.contains(&address).then_some(range.end)
    }
}

/// The functions of a symbol table section, and the strings their names stand in.
pub(crate) fn functions(
    image: &Image,
    symbols: &Section,
    code: &Code,
) -> Result<(Vec<Entry>, Vec<u8>), Error> {
    let bytes = image.content(symbols)?;
    let strings = strings(image, symbols)?;
    let entries = match image.is_64 {
        true => entries::<elf::FileHeader64<Endianness>>(image, symbols, &bytes, code, &strings)?,
        false => entries::<elf::FileHeader32<Endianness>>(image, symbols, &bytes, code, &strings)?,
    };
    Ok((entries, strings))
}

/// The strings that the names of a symbol table's section stand in.
pub(crate) fn strings(image: &Image, symbols: &Section) -> Result<Vec<u8>, Error> {
    match image.sections.get(symbols.link as usize) {
        Some(strings) if strings.kind == elf::SHT_STRTAB => image.content(strings),
        _ => {
            let what = "the symbol table names no section for its names";
            Err(Error::malformed(&image.path, symbols.offset, what))
        }
    }
}

fn entries<Elf: FileHeader<Endian = Endianness>>(
    image: &Image,
    section: &Section,
    bytes: &[u8],
    code: &Code,
    strings: &[u8],
) -> Result<Vec<Entry>, Error> {
    let what = "the symbol table's size is no multiple of a symbol's";
    let symbols = slice_from_all_bytes::<Elf::Sym>(bytes)
        .map_err(|()| Error::malformed(&image.path, section.offset, what))?;
    let endian = image.endian;
    let is_arm = image.machine == elf::EM_ARM;
    let mut entries = Vec::new();
    for symbol in symbols {
        let kind = match symbol.st_type() {
            elf::STT_FUNC => Kind::Function,
            elf::STT_GNU_IFUNC => Kind::Indirect,
            elf::STT_NOTYPE => Kind::Label,
            _ => continue,
        };
        if matches!(symbol.st_shndx(endian), elf::SHN_UNDEF | elf::SHN_ABS) {
            continue;
        }
        let mut start: u64 = symbol.st_value(endian).into();
        if is_arm && kind != Kind::Label {
            // ELF for the Arm Architecture, section 5.5.3: bit 0 tells Thumb code.
            start &= !1;
        }
        let name = symbol.st_name(endian);
        if code.end_of(start).is_none() || !names_a_function(kind, name_in(strings, name)) {
            continue;
        }
        let size: u64 = symbol.st_size(endian).into();
        let binding = match symbol.st_bind() {
            elf::STB_LOCAL => Binding::Local,
            elf::STB_WEAK => Binding::Weak,
            _ => Binding::Global,
        };
        entries.push(Entry { start, end: start.saturating_add(size), name, kind, binding });
    }
    Ok(entries)
}

/// Not the marks between code and data of Arm and RISC-V (`$a`, `$t`, `$d`, `$x…`), and not
/// what assemblers make up for themselves.
fn names_a_function(kind: Kind, name: &[u8]) -> bool {
    !name.is_empty() && (kind != Kind::Label || !(name[0] == b'$' || name.starts_with(b".L")))
}

/// The name at an offset of a table of strings, up to the zero behind it or to the `@` that
/// the linker puts before a version.
pub(crate) fn name_in(strings: &[u8], at: u32) -> &[u8] {
    let rest = strings.get(at as usize..).unwrap_or_default();
    let rest = &rest[..rest.len().min(MAX_NAME)];
    let end = rest.iter().position(|&byte| byte == 0 || byte == b'@').unwrap_or(rest.len());
    &rest[..end]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CODE: Range<u64> = 100..200;

    fn entry((start, size, kind, binding, name): (u64, u64, u8, u8, u32)) -> Entry {
        let kind = [Kind::Function, Kind::Indirect, Kind::Label][kind as usize];
        let binding = [Binding::Global, Binding::Weak, Binding::Local][binding as usize];
        Entry { start, end: start + size, name, kind, binding }
    }

    fn table(entries: &[Entry]) -> Table {
        let strings = b"a\0bb\0cc\0\xFF\0long_name@@VER_1\0".to_vec();
        Table::new(entries.to_vec(), strings, Vec::new(), &Code(vec![CODE]))
    }

    fn any_entry() -> impl Strategy<Value = Entry> {
        let name = prop::sample::select(vec![0u32, 2, 5, 8, 10]);
        (CODE, 0u64..30, 0u8..3, 0u8..3, name).prop_map(entry)
    }

    proptest! {
        #[test]
        fn every_address_belongs_to_the_last_that_starts_before_and_reaches_it(
            entries in prop::collection::vec(any_entry(), 0..12),
        ) {
            let table = table(&entries);
            for address in CODE.start - 5..CODE.end + 40 {
                let reaches = |e: &&Entry| e.start <= address && address < e.end;
                let slow = table.entries.iter().rfind(reaches);
                prop_assert_eq!(table.at(address).map(|e| e.start), slow.map(|e| e.start));
            }
            for pair in table.entries.windows(2) {
                prop_assert!(pair[0].start < pair[1].start);
            }
        }

        #[test]
        fn the_order_in_the_file_does_not_matter(
            entries in prop::collection::vec(any_entry(), 0..12).prop_shuffle(),
            seed: u64,
        ) {
            let mut other = entries.clone();
            other.sort_by_key(|e| (e.start ^ seed, e.name ^ seed as u32));
            let list = |table: Table| -> Vec<_> {
                table.entries.iter().map(|e| (e.start, e.end, table.name(e).to_vec())).collect()
            };
            prop_assert_eq!(list(table(&entries)), list(table(&other)));
        }
    }

    #[test]
    fn the_better_name_wins() {
        let names = |entries: &[_]| {
            let entries: Vec<_> = entries.iter().copied().map(entry).collect();
            let table = table(&entries);
            table
                .entries
                .iter()
                .map(|e| (e.start, e.end, table.name(e).to_vec()))
                .collect::<Vec<_>>()
        };
        // Global before local, though longer; the version is no part of it.
        let of_two = names(&[(110, 4, 0, 2, 0), (110, 4, 0, 0, 10)]);
        assert_eq!(of_two, [(110, 114, b"long_name".to_vec())]);
        // Shortest, then first in the alphabet.
        assert_eq!(names(&[(110, 4, 0, 0, 5), (110, 4, 0, 0, 2)]), [(110, 114, b"bb".to_vec())]);
        // A function before an ifunc before a label; one with a size before one without.
        assert_eq!(names(&[(110, 4, 1, 0, 0), (110, 4, 0, 2, 5)]), [(110, 114, b"cc".to_vec())]);
        assert_eq!(names(&[(110, 0, 0, 0, 0), (110, 4, 0, 2, 5)]), [(110, 114, b"cc".to_vec())]);
    }

    #[test]
    fn what_has_no_size_reaches_to_the_next_or_to_the_sections_end() {
        let entries = [(110, 0, 0, 0, 0), (120, 0, 2, 0, 2), (190, 99, 0, 0, 5)].map(entry);
        let ends: Vec<u64> = table(&entries).entries.iter().map(|e| e.end).collect();
        assert_eq!(ends, [120, 190, 200]);
    }

    #[test]
    fn a_label_inside_a_function_is_no_function() {
        let entries = [(110, 20, 0, 0, 0), (115, 0, 2, 0, 2), (130, 0, 2, 0, 5)].map(entry);
        let starts: Vec<u64> = table(&entries).entries.iter().map(|e| e.start).collect();
        assert_eq!(starts, [110, 130]);
    }
}
