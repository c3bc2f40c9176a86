//! Where functions are defined: file and line.

use crate::image::Image;
use crate::information::{Information, Missing};
use crate::sections::with_section;
use crate::{Error, Search, calls, definitions, inlined};
use std::cell::RefCell;
use std::path::{Path, PathBuf};

/// The line table of an executable or shared library.
///
/// Opening it looks at headers alone; the tables are read when they are asked, and held only
/// while they are. What the compiler split off (`-gsplit-dwarf`) and what `dwz` has moved to a
/// file shared by several programs is read where it is needed; see [`Lines::missing`].
///
/// Sections of more than 64 MiB are mapped into memory. If such a file is cut short while it
/// is read, the process ends with `SIGBUS`; linkers and package managers put a new file in
/// the old one's place, which does no harm.
pub struct Lines {
    /// The file that has debug information, if there is one.
    image: Option<Image>,
    /// The file that was asked for.
    program: PathBuf,
    search: Search,
    missing: RefCell<Missing>,
}

/// Where a function is defined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// Path of the source file as the compiler saw it, made absolute with the compiler's
    /// working directory; cut behind 4096 bytes.
    pub file: String,
    /// Line, from 1, where it is known.
    pub line: Option<u32>,
}

/// A place in a function's code from which it calls another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallSite {
    /// Which of the functions asked for calls, by its place among them.
    pub caller: usize,
    /// Name of what is called, as the linker knows it where that is known.
    pub callee: String,
    /// Where the call stands in the source, where that is known.
    pub location: Option<Location>,
}

impl Lines {
    /// The line table of the file at `path`, or of its debug file.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, is no ELF executable or shared library, is malformed, or
    /// is not of the build that `search` asks for. That it has no debug information is none.
    pub fn open(path: &Path, search: &Search) -> Result<Self, Error> {
        Ok(Self::of(search.open(path)?, search))
    }

    /// The same of a file that is in memory. `path` is for errors, and to look for a debug
    /// file beside it.
    ///
    /// # Errors
    ///
    /// As for [`Lines::open`].
    pub fn from_bytes(path: &Path, bytes: Vec<u8>, search: &Search) -> Result<Self, Error> {
        Ok(Self::of(search.check(Image::from_bytes(path, bytes)?)?, search))
    }

    fn of(image: Image, search: &Search) -> Self {
        let program = image.path.clone();
        let image = with_section(image, ".debug_line", search);
        Self { image, program, search: search.clone(), missing: RefCell::default() }
    }

    /// Which of the files were not here that have a part of the debug information that was asked for, in a line that names
    /// this file and what to do; nothing where all were.
    pub fn missing(&self) -> Option<String> {
        self.missing.borrow().text(&self.program)
    }

    /// Other files that have a part of this one's debug information, as far as they are here: each is known to be that, wherever
    /// a path leads that a hostile program names.
    ///
    /// # Errors
    ///
    /// When the tables cannot be read.
    pub fn companions(&self) -> Result<Vec<PathBuf>, Error> {
        let Some(image) = &self.image else { return Ok(Vec::new()) };
        let all = Information::of(image, &self.program, &self.search, false)?;
        let companions = all.companions();
        self.missing.borrow_mut().add(all.missing());
        Ok(companions)
    }

    /// The file that the line table is in; nothing when there is none.
    pub fn path(&self) -> Option<&Path> {
        self.image.as_ref().map(|image| image.path.as_path())
    }

    /// Where the functions that start at these addresses are defined, in the same order. The
    /// tables are read for each call: ask for all at once.
    ///
    /// # Errors
    ///
    /// When the tables cannot be read. What is wrong in a part of them is passed over.
    pub fn definitions(&self, starts: &[u64]) -> Result<Vec<Option<Location>>, Error> {
        let found = self.read(starts, |all| definitions::find(all, starts))?;
        Ok(found.unwrap_or_else(|| vec![None; starts.len()]))
    }

    /// The highest line of the code of functions, which start at these addresses and have so many bytes, in the file that they are
    /// defined in, in the same order; of what was inlined into them as well.
    ///
    /// # Errors
    ///
    /// When the tables cannot be read. What is wrong in a part of them is passed over.
    pub fn last_lines(&self, functions: &[(u64, u64)]) -> Result<Vec<Option<u32>>, Error> {
        let starts: Vec<u64> = functions.iter().map(|function| function.0).collect();
        let found = self.read(&starts, |all| definitions::last_lines(all, functions))?;
        Ok(found.unwrap_or_else(|| vec![None; functions.len()]))
    }

    /// From where the functions that start at these addresses call others, as far as compilers say it: where they
    /// optimise, and of calls that are not made through pointers.
    ///
    /// # Errors
    ///
    /// When the tables cannot be read. What is wrong in a part of them is passed over.
    pub fn call_sites(&self, starts: &[u64]) -> Result<Vec<CallSite>, Error> {
        let found = self.read(starts, |all| {
            let sites = calls::find(all, starts)?;
            // A call stands before the address that it returns to.
            let places: Vec<u64> =
                sites.iter().map(|site| site.returns_to.wrapping_sub(1)).collect();
            let locations = definitions::find(all, &places)?;
            let told = sites.into_iter().zip(locations).map(|(site, location)| CallSite {
                caller: site.caller,
                callee: site.callee,
                location,
            });
            Ok(told.collect())
        })?;
        Ok(found.unwrap_or_default())
    }

    /// Reads the tables, if there are any and something is asked of them.
    fn read<T>(
        &self,
        starts: &[u64],
        find: impl FnOnce(&Information) -> Result<T, gimli::Error>,
    ) -> Result<Option<T>, Error> {
        let Some(image) = self.image.as_ref().filter(|_| !starts.is_empty()) else {
            return Ok(None);
        };
        let all = Information::of(image, &self.program, &self.search, false)?;
        let found = find(&all);
        self.missing.borrow_mut().add(all.missing());
        found.map(Some).map_err(|source| Error::Dwarf { path: image.path.clone(), source })
    }

    /// Names of the functions that the compiler inlined into those that start at these addresses, in the same order; each
    /// once, at whatever depth. Of files without debug information there are none.
    ///
    /// # Errors
    ///
    /// As for [`Lines::definitions`].
    pub fn inlined(&self, starts: &[u64]) -> Result<Vec<Vec<String>>, Error> {
        let found = self.read(starts, |all| inlined::find(all, starts))?;
        Ok(found.unwrap_or_else(|| vec![Vec::new(); starts.len()]))
    }
}
