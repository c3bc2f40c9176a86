//! What the compiler split off a unit (`-gsplit-dwarf`; DWARF 5, section 7.3.2, and GNU's form before it): in a file of its
//! own (`.dwo`), or in a package of such (`.dwp`) beside the program.
//!
//! The paths stand in the program, and may be anything: a file is taken for what it is only if its identifier is the
//! unit's. It is looked into once, whatever paths lead to it.

use super::abbreviations::Tables;
use super::missing::Missing;
use crate::image::Image;
use crate::sections::{self, Shared, Slice};
use crate::{Error, Search};
use gimli::{
    DebugInfo, Dwarf, DwarfPackage, DwarfSections, DwoId, EndianReader, IndexSectionId, Reader,
    RunTimeEndian, Section, SectionId, Unit, UnitHeader, UnitType,
};
use object::Endianness;
use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;
use std::fs;
use std::ops::Range;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Most bytes of such files that are held at once.
const MOST_HELD: u64 = 4 << 30;
/// Longest path that is followed; no system opens longer ones.
const MAX_PATH: usize = 4096;

/// Where a program's split-off debug information is, and what was read of it.
pub(super) struct Split {
    /// The program, and the file that has its debug information where that is another.
    files: Vec<PathBuf>,
    machine: u16,
    endian: Endianness,
    search: Search,
    /// Whether files are kept that may be asked for again.
    is_kept: bool,
    package: OnceCell<Option<Package>>,
    objects: RefCell<HashMap<FileId, Arc<Object>>>,
    /// Files that had what was asked for.
    used: RefCell<BTreeSet<PathBuf>>,
}

/// Device and number of a file.
type FileId = (u64, u64);

/// What a unit says of what was split off it.
pub(crate) struct Wanted {
    pub(crate) id: DwoId,
    pub(crate) folder: Option<Slice>,
    pub(crate) name: Option<Slice>,
}

struct Package {
    place: PathBuf,
    sections: DwarfPackage<Slice>,
    tables: RefCell<Tables>,
}

/// A `.dwo` file, by the identifiers of its units.
struct Object {
    units: HashMap<u64, Range<usize>>,
    /// Nothing once nobody will ask for it again.
    sections: Mutex<Option<Held>>,
    bytes: u64,
}

/// The sections of such a file.
type Held = (DwarfSections<Shared>, Tables);

impl Split {
    /// That of a program, whose debug information is in `image`.
    pub(super) fn new(image: &Image, program: &Path, search: &Search, is_kept: bool) -> Self {
        let mut files = vec![program.to_owned()];
        if image.path != program {
            files.push(image.path.clone());
        }
        Self {
            files,
            machine: image.machine,
            endian: image.endian,
            // Identifiers of units tell whether a file belongs to it.
            search: Search { build_id: None, ..search.clone() },
            is_kept,
            package: OnceCell::new(),
            objects: RefCell::default(),
            used: RefCell::default(),
        }
    }

    /// What was split off a unit of `parent`.
    pub(super) fn of(
        &self,
        wanted: &Wanted,
        parent: &Dwarf<Slice>,
        missing: &mut Missing,
    ) -> Option<Arc<Dwarf<Slice>>> {
        if let Some(package) = self.package.get_or_init(|| self.package())
            && let Some(found) = package.unit(wanted.id, parent)
        {
            self.used.borrow_mut().insert(package.place.clone());
            return Some(Arc::new(found));
        }
        let Some(recorded) = wanted.path() else {
            missing.split("a file".into(), "it does not name".into());
            return None;
        };
        let mut why = None;
        for place in self.places(&recorded, wanted) {
            match self.object(&place) {
                Ok(Some(object)) => match self.unit(&object, &place, wanted.id, parent) {
                    Ok(Some(found)) => {
                        self.used.borrow_mut().insert(place);
                        return Some(Arc::new(found));
                    }
                    Ok(None) => why = Some("is of another build".to_owned()),
                    Err(error) => why = Some(format!("cannot be read ({error})")),
                },
                Ok(None) => {}
                Err(error) => {
                    why.get_or_insert(format!("cannot be read ({error})"));
                }
            }
        }
        missing.split(recorded, why.unwrap_or_else(|| "is not here".into()));
        None
    }

    /// The files that had what was asked for.
    pub(super) fn used(&self) -> BTreeSet<PathBuf> {
        self.used.borrow().clone()
    }

    /// Where packages are looked for.
    fn package_places(&self) -> Vec<PathBuf> {
        let mut places = Vec::new();
        for file in &self.files {
            let mut name = file.as_os_str().to_owned();
            name.push(".dwp");
            places.push(name.into());
            if let Ok(real) = fs::canonicalize(file)
                && real != *file
            {
                let mut name = real.into_os_string();
                name.push(".dwp");
                places.push(name.into());
            }
        }
        for folder in &self.search.debug_folders {
            let below = self.files[0].strip_prefix("/").unwrap_or(&self.files[0]);
            let mut name = folder.join(below).into_os_string();
            name.push(".dwp");
            places.push(name.into());
        }
        places
    }

    /// Where a file is looked for: where the compiler wrote it, below the program's folder, beside the program, and below
    /// each folder of debug files.
    fn places(&self, recorded: &Path, wanted: &Wanted) -> Vec<PathBuf> {
        let mut places = vec![recorded.to_owned()];
        let name = wanted.name.as_ref().and_then(path_of);
        for folder in self.files.iter().filter_map(|file| file.parent()) {
            places.extend(name.as_ref().map(|name| folder.join(name)));
            places.extend(recorded.file_name().map(|name| folder.join(name)));
        }
        if let Ok(below) = recorded.strip_prefix("/") {
            places.extend(self.search.debug_folders.iter().map(|folder| folder.join(below)));
        }
        let mut seen = Vec::new();
        places.retain(|place| {
            let is_new = !seen.contains(place);
            seen.push(place.clone());
            is_new
        });
        places
    }

    fn image(&self, place: &Path) -> Result<Image, Error> {
        let image = self.search.companion(place)?;
        if image.machine != self.machine || image.endian != self.endian {
            let what = "an ELF file of another processor than the program";
            return Err(Error::NotAModule { path: place.to_owned(), what });
        }
        Ok(image)
    }

    fn package(&self) -> Option<Package> {
        let read = |place: PathBuf| {
            let image = self.image(&place).ok()?;
            let endian = sections::endian(&image);
            // All of them: the index tells of parts of each.
            let read = |id: SectionId| {
                let name = id.dwo_name().unwrap_or_default();
                let bytes =
                    sections::one(&image, name).map_err(|_| gimli::Error::MissingUnitDie)?;
                Ok::<_, gimli::Error>(EndianReader::new(bytes, endian))
            };
            let empty = EndianReader::new(Shared::default(), endian);
            let sections = DwarfPackage::load(read, empty).ok()?;
            let tables = RefCell::new(Tables::new(&sections.debug_abbrev));
            Some(Package { place, sections, tables })
        };
        self.package_places().into_iter().find_map(read)
    }

    /// The `.dwo` file at a place; nothing where there is none.
    fn object(&self, place: &Path) -> Result<Option<Arc<Object>>, Error> {
        let Ok(about) = fs::metadata(self.search.companion_place(place)) else { return Ok(None) };
        let id = (about.dev(), about.ino());
        if let Some(known) = self.objects.borrow().get(&id) {
            return Ok(Some(known.clone()));
        }
        let mut objects = self.objects.borrow_mut();
        if !self.is_kept {
            objects.values().for_each(|object| *lock(&object.sections) = None);
        }
        let held = objects.values().filter(|object| lock(&object.sections).is_some());
        let room = MOST_HELD.saturating_sub(held.map(|object| object.bytes).sum());
        let object = match self.image(place) {
            Ok(image) => Object::read(&image, room),
            // It is not looked at again.
            Err(error) if matches!(error, Error::NotAModule { .. } | Error::Malformed { .. }) => {
                objects.insert(id, Arc::new(Object::none()));
                return Err(error);
            }
            Err(error) => return Err(error),
        }?;
        let object = Arc::new(object);
        objects.insert(id, object.clone());
        Ok(Some(object))
    }

    /// A unit of a file; nothing where it is not in there.
    fn unit(
        &self,
        object: &Object,
        place: &Path,
        id: DwoId,
        parent: &Dwarf<Slice>,
    ) -> Result<Option<Dwarf<Slice>>, Error> {
        let Some(range) = object.units.get(&id.0) else { return Ok(None) };
        let mut held = lock(&object.sections);
        if held.is_none() {
            *held = Object::read(&self.image(place)?, MOST_HELD)?.into_sections();
        }
        let Some((sections, tables)) = &mut *held else { return Ok(None) };
        let endian = match self.endian {
            Endianness::Little => RunTimeEndian::Little,
            Endianness::Big => RunTimeEndian::Big,
        };
        let mut dwarf = borrowed(sections, endian);
        dwarf.make_dwo(parent);
        Ok(narrowed(dwarf, range, 0, tables))
    }
}

impl Wanted {
    /// Where the compiler wrote it.
    fn path(&self) -> Option<PathBuf> {
        let name = path_of(self.name.as_ref()?)?;
        match self.folder.as_ref().and_then(path_of) {
            Some(folder) => Some(folder.join(name)),
            None => Some(name),
        }
    }
}

impl Package {
    fn unit(&self, id: DwoId, parent: &Dwarf<Slice>) -> Option<Dwarf<Slice>> {
        let row = self.sections.cu_index.find(id.0)?;
        let parts = || self.sections.cu_index.sections(row).ok();
        let mut abbreviations = parts()?.filter(|part| part.section == IndexSectionId::DebugAbbrev);
        let base = abbreviations.next().map_or(0, |part| part.offset as usize);
        let dwarf = self.sections.cu_sections(row, parent).ok()?;
        let mut tables = self.tables.borrow_mut();
        let units = units(&dwarf, base, &mut tables);
        narrowed(dwarf, units.get(&id.0)?, base, &mut tables)
    }
}

impl Object {
    /// One that has nothing.
    fn none() -> Self {
        Self { units: HashMap::new(), sections: Mutex::new(None), bytes: 0 }
    }

    fn into_sections(self) -> Option<Held> {
        self.sections.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Of so many bytes at most.
    fn read(image: &Image, room: u64) -> Result<Self, Error> {
        let sections = sections::of(image, |id| id.dwo_name())?;
        let endian = sections::endian(image);
        let dwarf = borrowed(&sections, endian);
        let bytes = image.length;
        if bytes > room {
            let what = "it and others like it are too large to be held";
            return Err(Error::malformed(&image.path, 0, what));
        }
        let mut tables = Tables::new(&dwarf.debug_abbrev);
        let units = units(&dwarf, 0, &mut tables);
        Ok(Self { units, sections: Mutex::new(Some((sections, tables))), bytes })
    }
}

fn lock(held: &Mutex<Option<Held>>) -> MutexGuard<'_, Option<Held>> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

fn borrowed(sections: &DwarfSections<Shared>, endian: RunTimeEndian) -> Dwarf<Slice> {
    let mut dwarf = sections.borrow(|bytes| EndianReader::new(bytes.clone(), endian));
    dwarf.file_type = gimli::DwarfFileType::Dwo;
    dwarf
}

/// Where each unit stands, by its identifier.
fn units(dwarf: &Dwarf<Slice>, base: usize, tables: &mut Tables) -> HashMap<u64, Range<usize>> {
    let mut found = HashMap::new();
    let mut units = dwarf.units();
    while let Ok(Some(header)) = units.next() {
        let Some(id) = id_of(dwarf, base, &header, tables) else { continue };
        let begin = header.offset().0;
        found.entry(id.0).or_insert(begin..begin.saturating_add(header.length_including_self()));
    }
    found
}

fn id_of(
    dwarf: &Dwarf<Slice>,
    base: usize,
    header: &UnitHeader<Slice>,
    tables: &mut Tables,
) -> Option<DwoId> {
    match header.type_() {
        UnitType::SplitCompilation(id) => Some(id),
        // GNU's form has it in the first entry.
        UnitType::Compilation if header.version() < 5 => {
            let table = tables.of(dwarf, base, header)?;
            Unit::new_with_abbreviations(dwarf, header.clone(), table).ok()?.dwo_id
        }
        _ => None,
    }
}

/// Of units that stand in one file only one: who asks takes the first.
fn narrowed(
    mut dwarf: Dwarf<Slice>,
    unit: &Range<usize>,
    base: usize,
    tables: &mut Tables,
) -> Option<Dwarf<Slice>> {
    let mut bytes = dwarf.debug_info.reader().clone();
    bytes.skip(unit.start).ok()?;
    bytes.truncate(unit.len()).ok()?;
    dwarf.debug_info = DebugInfo::from(bytes);
    let header = dwarf.units().next().ok()??;
    let table = tables.of(&dwarf, base, &header)?;
    dwarf.abbreviations_cache.set::<Slice>(header.debug_abbrev_offset(), table);
    Some(dwarf)
}

fn path_of(text: &Slice) -> Option<PathBuf> {
    let bytes = text.to_slice().ok()?;
    let is_path = (1..=MAX_PATH).contains(&bytes.len());
    is_path.then(|| OsString::from_vec(bytes.into_owned()).into())
}
