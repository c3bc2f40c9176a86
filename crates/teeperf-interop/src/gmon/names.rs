//! Which function an address belongs to: by an ELF file, or, without one, by where calls led.
//!
//! As in gprof, a function reaches to the next one, whatever its symbol says: what lies between is
//! padding, and parts of histograms reach into it. Where there is more between, it is something else that
//! has no name.

use std::path::Path;

use teeperf_profile::model::{Code, Function, Place};
use teeperf_symbols::{Functions, Lines, Search};

use super::{Gmon, Layout};

/// Most bytes between functions that are taken for padding.
const PADDING: u64 = 64;

/// The function that each image has, from which on its places are told.
const ANCHOR: &str = "teeperf_anchor";

/// Functions by address.
pub struct Names {
    extents: Vec<Extent>,
    elf: Option<Elf>,
}

struct Elf {
    path: String,
    build_id: Vec<u8>,
    layout: Layout,
    lines: Option<Lines>,
}

/// A function, from its first address up to the next function or some other thing.
pub(super) struct Extent {
    pub(super) start: u64,
    pub(super) end: u64,
    /// Bytes that are its own.
    pub(super) size: u64,
    name: String,
}

/// How numbers stand in the file of an image, if it can be read and is of one.
pub(super) fn layout_of_image(path: &Path) -> Option<Layout> {
    let functions = Functions::open(path, &Search::default()).ok()?;
    functions.named(ANCHOR).is_some().then(|| layout(&functions))
}

fn layout(functions: &Functions) -> Layout {
    Layout { little_endian: functions.is_little_endian(), wide: functions.is_64_bit() }
}

impl Names {
    /// Of an ELF file, or its debug file.
    ///
    /// # Errors
    ///
    /// When it cannot be read, or is no executable or shared library.
    pub fn open(path: &Path) -> Result<Self, teeperf_symbols::Error> {
        let search = Search::default();
        let functions = Functions::open(path, &search)?;
        let mut extents: Vec<Extent> = functions
            .iter()
            .map(|symbol| Extent {
                start: symbol.start,
                end: symbol.start.saturating_add(symbol.size),
                size: symbol.size,
                name: teeperf_symbols::demangle(&symbol.name).into_owned(),
            })
            .collect();
        let mut next = u64::MAX;
        for extent in extents.iter_mut().rev() {
            if extent.end > next || next - extent.end <= PADDING {
                extent.end = next;
            }
            next = extent.start;
        }
        let elf = Elf {
            path: path.display().to_string(),
            build_id: functions.build_id().unwrap_or_default().to_vec(),
            layout: layout(&functions),
            // Without lines, functions have no source file.
            lines: Lines::open(path, &search).ok(),
        };
        Ok(Self { extents, elf: Some(elf) })
    }

    /// Of the addresses that calls led to; they are the names too. What was called by none but counts
    /// among the samples is taken for a part of the function before it.
    pub fn of_calls(gmon: &Gmon, bias: u64) -> Self {
        let mut starts: Vec<u64> = gmon.arcs.iter().map(|arc| arc.to.wrapping_sub(bias)).collect();
        starts.sort_unstable();
        starts.dedup();
        let ends = starts.iter().skip(1).copied().chain([u64::MAX]);
        let extents = starts.iter().zip(ends).map(|(&start, end)| Extent {
            start,
            end,
            size: 0,
            name: format!("{start:#x}"),
        });
        Self { extents: extents.collect(), elf: None }
    }

    /// The ELF file's path, and how numbers stand in it.
    pub fn program(&self) -> Option<(&str, Layout)> {
        self.elf.as_ref().map(|elf| (elf.path.as_str(), elf.layout))
    }

    /// Whether it is of an image, which has [`ANCHOR`].
    pub(super) fn is_image(&self) -> bool {
        self.extents.iter().any(|extent| extent.name == ANCHOR)
    }

    pub(super) fn build_id(&self) -> &[u8] {
        self.elf.as_ref().map_or(&[], |elf| &elf.build_id)
    }

    pub(super) fn extents(&self) -> &[Extent] {
        &self.extents
    }

    /// Index of the function that an address belongs to.
    pub(super) fn at(&self, address: u64) -> Option<usize> {
        let at = self.extents.partition_point(|extent| extent.start <= address).checked_sub(1)?;
        let end = self.extents[at].end;
        (address < end || end == u64::MAX).then_some(at)
    }

    /// The functions of these indices, and why some have no source file though there are lines.
    pub(super) fn functions(&self, wanted: &[usize]) -> (Vec<Function>, Option<String>) {
        let (path, module) = match &self.elf {
            Some(elf) => {
                let name = Path::new(&elf.path).file_name().unwrap_or_default();
                (elf.path.as_str(), name.to_string_lossy().into_owned())
            }
            None => ("", String::new()),
        };
        let (path, build_id) = (path.into(), self.build_id().into());
        let starts: Vec<u64> = wanted.iter().map(|&at| self.extents[at].start).collect();
        let lines = self.elf.as_ref().and_then(|elf| elf.lines.as_ref());
        let (locations, warning) = match lines.map(|lines| lines.definitions(&starts)) {
            Some(Ok(found)) => (found, None),
            Some(Err(error)) => (Vec::new(), Some(error.to_string())),
            None => (Vec::new(), None),
        };
        let mut locations = locations.into_iter();
        let describe = |&at: &usize| {
            let Extent { start: address, size, ref name, .. } = self.extents[at];
            let location = locations.next().flatten();
            Function {
                name: name.clone(),
                module: module.clone(),
                line: location.as_ref().and_then(|location| location.line),
                file: location.map(|location| location.file),
                place: Some(Place {
                    path: std::sync::Arc::clone(&path),
                    build_id: std::sync::Arc::clone(&build_id),
                    address,
                    size,
                    code: Code::Process,
                }),
            }
        };
        (wanted.iter().map(describe).collect(), warning)
    }
}
