//! From the first addresses of functions to file and line, through DWARF's line programs.
//!
//! The definition's line is that of the *first* row at the function's first address: in
//! optimised code a second row for the same address tells the line of the first statement,
//! and that is what a lookup by address, as debuggers do it, would give. So this runs the
//! line programs itself, one after the other, of those units that have a function asked for,
//! and keeps what was asked for and nothing else, however large the program.

use crate::Location;
use crate::information::{Information, concerns};
use crate::sections::Slice;
use gimli::{
    Dwarf, Error, IncompleteLineProgram, LineProgramHeader, LineRow, Reader, Unit, UnitHeader,
    UnitRef,
};
use std::collections::{HashMap, HashSet};

/// Longest path given, bytes; what is longer is cut. No system opens more: PATH_MAX is as much.
const MAX_PATH: usize = 4096;

/// Where the functions that start at these addresses are defined, in the same order. The
/// size of all sections limits how long a hostile file can keep this at work.
pub(crate) fn find(
    information: &Information,
    starts: &[u64],
) -> Result<Vec<Option<Location>>, Error> {
    let mut wanted = starts.to_vec();
    wanted.sort_unstable();
    wanted.dedup();
    let found = vec![None; wanted.len()];
    let ends = Vec::new();
    let last = Vec::new();
    let seen = HashSet::new();
    let (dwarf, work) = (&*information.dwarf, 8 * information.bytes);
    let mut search = Search { dwarf, wanted, found, ends, last, seen, work };
    let end = search.units();
    if search.found.iter().all(Option::is_none) {
        end?;
    }
    let Search { wanted, found, .. } = search;
    let place = |start| wanted.binary_search(start).ok();
    Ok(starts.iter().map(|start| found[place(start)?].clone()).collect())
}

/// The highest lines of the code of functions that start at these addresses and have so many bytes, of the file that they are
/// defined in, in the same order: of what was inlined into them as well.
pub(crate) fn last_lines(
    information: &Information,
    functions: &[(u64, u64)],
) -> Result<Vec<Option<u32>>, Error> {
    let mut sorted: Vec<(u64, u64)> = functions.to_vec();
    sorted.sort_unstable();
    sorted.dedup_by_key(|function| function.0);
    let ends = sorted.iter().map(|(start, size)| start.saturating_add(*size)).collect();
    let wanted: Vec<u64> = sorted.iter().map(|function| function.0).collect();
    let found = vec![None; wanted.len()];
    let last = vec![None; wanted.len()];
    let seen = HashSet::new();
    let (dwarf, work) = (&*information.dwarf, 8 * information.bytes);
    let mut search = Search { dwarf, wanted, found, ends, last, seen, work };
    search.units()?;
    let Search { wanted, last, .. } = search;
    let line = |start: &u64| last[wanted.binary_search(start).ok()?].map(|row: Row| row.line)?;
    Ok(functions.iter().map(|(start, _)| line(start)).collect())
}

struct Search<'d> {
    dwarf: &'d Dwarf<Slice>,
    /// First addresses asked for, sorted.
    wanted: Vec<u64>,
    /// Where they are defined, as far as it was found.
    found: Vec<Option<Location>>,
    /// Where these end, and the highest lines of their code with the file that they are in; empty where nobody asks.
    ends: Vec<u64>,
    last: Vec<Option<Row>>,
    /// Offsets of line programs that have run: units may share one.
    seen: HashSet<usize>,
    /// Bytes of headers, rows and ranges that may still be looked at. An honest file has fewer
    /// of them than bytes; in another, units may all name the same tables.
    work: u64,
}

/// A row of the line table, as far as it matters here.
#[derive(Clone, Copy)]
struct Row {
    file: u64,
    line: Option<u32>,
}

/// Rows of one address: the first and the last that tell a line.
struct Here {
    address: u64,
    first: Row,
    last: Row,
}

impl Search<'_> {
    /// Looks into all units.
    fn units(&mut self) -> Result<(), Error> {
        let mut units = self.dwarf.units();
        // What is wrong in one unit says nothing of the next.
        while let Some(header) = units.next()? {
            self.unit(header);
        }
        Ok(())
    }

    /// Looks for what was asked for in one unit; nothing when something is wrong in it.
    fn unit(&mut self, header: UnitHeader<Slice>) -> Option<()> {
        let unit = self.dwarf.unit(header).ok()?;
        let program = unit.line_program.as_ref()?;
        self.spend(program.header().header_length() as u64)?;
        let unit_ref = UnitRef::new(self.dwarf, &unit);
        let concerned = concerns(unit_ref, &self.wanted, &mut self.work).unwrap_or(true);
        if concerned && self.seen.insert(program.header().offset().0) {
            self.run(&unit, program.clone())?;
        }
        Some(())
    }

    fn spend(&mut self, work: u64) -> Option<()> {
        self.work = self.work.checked_sub(work)?;
        Some(())
    }

    /// Runs a line program to its end, or to what is wrong in it.
    fn run(&mut self, unit: &Unit<Slice>, program: IncompleteLineProgram<Slice>) -> Option<()> {
        let mut files = Files { dwarf: self.dwarf, unit, paths: HashMap::new() };
        let mut rows = program.rows();
        // Where the present sequence stands, and the first address asked for not below it.
        let mut sequence: Option<(Here, usize)> = None;
        let mut is_left_out = false;
        while let Some((header, row)) = rows.next_row().ok()? {
            self.spend(1)?;
            let (address, this) = (row.address(), Row::of(row));
            if sequence.is_none() {
                // Linkers put what they left out at address 0.
                is_left_out = address == 0;
            }
            if !row.end_sequence() && !is_left_out {
                self.note_last(address, this);
            }
            match &mut sequence {
                None => {
                    let at = self.wanted.partition_point(|&start| start < address);
                    sequence = Some((Here { address, first: this, last: this }, at));
                }
                Some((here, _)) if address <= here.address && !row.end_sequence() => {
                    here.last = this;
                    if here.first.line.is_none() {
                        here.first = this;
                    }
                }
                Some((here, at)) => {
                    if !is_left_out {
                        *at = self.settle(here, address, *at, header, &mut files);
                    }
                    *here = Here { address, first: this, last: this };
                }
            }
            if row.end_sequence() {
                sequence = None;
            }
        }
        Some(())
    }

    /// Notes a row of a function's code, of which the first tells the file.
    fn note_last(&mut self, address: u64, row: Row) {
        let Some(at) = self.wanted.partition_point(|&start| start <= address).checked_sub(1) else {
            return;
        };
        let Some(last) = self.last.get_mut(at).filter(|_| address < self.ends[at]) else { return };
        match last {
            Some(last) if last.file == row.file => last.line = last.line.max(row.line),
            Some(_) => {}
            None => *last = Some(row),
        }
    }

    /// Notes the rows at `here` for what was asked for from there to `end`, from the `at`th
    /// address on; gives the first that lies beyond.
    fn settle(
        &mut self,
        here: &Here,
        end: u64,
        mut at: usize,
        header: &LineProgramHeader<Slice>,
        files: &mut Files<'_>,
    ) -> usize {
        while let Some(&start) = self.wanted.get(at)
            && start < end
        {
            let row = if start == here.address { here.first } else { here.last };
            if self.found[at].is_none() {
                let file = files.path(header, row.file);
                self.found[at] = file.map(|file| Location { file, line: row.line });
            }
            at += 1;
        }
        at
    }
}

impl Row {
    fn of(row: &LineRow) -> Self {
        let line = row.line().and_then(|line| u32::try_from(line.get()).ok());
        Self { file: row.file_index(), line }
    }
}

/// Paths of a line program's files.
struct Files<'u> {
    dwarf: &'u Dwarf<Slice>,
    unit: &'u Unit<Slice>,
    paths: HashMap<u64, Option<String>>,
}

impl Files<'_> {
    fn path(&mut self, header: &LineProgramHeader<Slice>, index: u64) -> Option<String> {
        if let Some(path) = self.paths.get(&index) {
            return path.clone();
        }
        let path = self.render(header, index);
        self.paths.insert(index, path.clone());
        path
    }

    /// Working directory of the compiler, directory, file name; each of the last two may be
    /// absolute.
    fn render(&self, header: &LineProgramHeader<Slice>, index: u64) -> Option<String> {
        let file = header.file(index)?;
        let text = |value| self.dwarf.attr_string(self.unit, value).ok();
        let mut path = self.unit.comp_dir.as_ref().map_or_else(String::new, lossy);
        if let Some(directory) = file.directory(header) {
            push(&mut path, &lossy(&text(directory)?));
        }
        push(&mut path, &lossy(&text(file.path_name())?));
        cut(&mut path);
        Some(path)
    }
}

fn lossy(text: &Slice) -> String {
    text.to_string_lossy().map_or_else(|_| String::new(), |text| text.into_owned())
}

pub(crate) fn cut(path: &mut String) {
    let mut end = MAX_PATH.min(path.len());
    while !path.is_char_boundary(end) {
        end -= 1;
    }
    path.truncate(end);
}

pub(crate) fn push(path: &mut String, part: &str) {
    if part.starts_with('/') {
        path.clear();
    } else if !path.is_empty() && !path.ends_with('/') {
        path.push('/');
    }
    path.push_str(part);
}
