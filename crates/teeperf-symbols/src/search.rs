//! Where files are looked for, and the symbols of stripped ones.
//!
//! A file is the one at its path, below another root if one was named, or in an archive; the vDSO is that of this process. Where it is known of which build it has to be, and
//! that one is not there, it may be kept by its build-id: in folders of debug files, by perf (`~/.debug`), by debuginfod's client.
//! Rules for debug files are those of GDB ("Debugging Information in Separate Files"): by build-id below a folder of debug
//! files, then by the name in `.gnu_debuglink`.

use crate::error::hex;
use crate::image::Image;
use crate::{Debuginfod, Error, Functions, Unpacked, vdso};
use object::Endianness;
use std::env;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How to look for files and their symbols.
#[derive(Clone, Debug)]
pub struct Search {
    /// Folders that hold separate debug files, as `/usr/lib/debug` does.
    pub debug_folders: Vec<PathBuf>,
    /// Folders of files by build-id.
    pub kept: Kept,
    /// Files of images that do not say where theirs lies, but at most its name: see [`Search::image`].
    pub images: Vec<PathBuf>,
    /// Build-id that the file must have, where one is known.
    pub build_id: Option<Vec<u8>>,
    /// Folder in which the files of another machine stand, by the paths that they have there.
    pub root: Option<PathBuf>,
    /// Folder that has the `kallsyms` of the kernel that was sampled, where perf kept it beside its file.
    pub kernel: Option<PathBuf>,
    /// What an archive has, where that is what is read.
    pub unpacked: Option<Arc<Unpacked>>,
    /// Servers that are asked for what is found nowhere else; none unless the user allows it.
    pub servers: Option<Arc<Debuginfod>>,
}

/// Folders in which other programs keep files by build-id.
#[derive(Clone, Debug, Default)]
pub struct Kept {
    /// perf's (perf-buildid-cache(1)): `.build-id/ab/cdef…/elf`, `debug`, `vdso` and `kallsyms`.
    pub perf: Option<PathBuf>,
    /// That of debuginfod's client (debuginfod_find_debuginfo(3), "CACHE"): `abcdef…/executable` and `debuginfo`.
    pub debuginfod: Option<PathBuf>,
}

impl Kept {
    /// Those of the user.
    fn of_user() -> Self {
        let folder = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let home = folder("HOME");
        let cache = folder("XDG_CACHE_HOME").or_else(|| Some(home.as_ref()?.join(".cache")));
        Self {
            perf: home.map(|home| home.join(".debug")),
            debuginfod: folder("DEBUGINFOD_CACHE_PATH")
                .or_else(|| Some(cache?.join("debuginfod_client"))),
        }
    }

    /// Where a file of perf's is.
    fn of_perf(&self, build_id: &[u8], name: &str) -> Option<PathBuf> {
        Some(self.perf.as_ref()?.join(by_build_id(build_id)?).join(name))
    }

    /// Where a file of debuginfod's is.
    fn of_debuginfod(&self, build_id: &[u8], name: &str) -> Option<PathBuf> {
        Some(self.debuginfod.as_ref()?.join(hex(build_id)).join(name))
    }
}

/// `.build-id/ab/cdef…`.
fn by_build_id(build_id: &[u8]) -> Option<PathBuf> {
    let (first, rest) = build_id.split_first()?;
    Some(format!(".build-id/{first:02x}/{}", hex(rest)).into())
}

impl Default for Search {
    /// `/usr/lib/debug`, the folders of this user, any build-id.
    fn default() -> Self {
        Self {
            debug_folders: vec!["/usr/lib/debug".into()],
            kept: Kept::of_user(),
            images: Vec::new(),
            build_id: None,
            root: None,
            kernel: None,
            unpacked: None,
            servers: None,
        }
    }
}

/// Where the debug file of the file at `path` is, if both are there and belong together.
pub fn debug_file(path: &Path, search: &Search) -> Option<PathBuf> {
    let image = search.open(path).ok()?;
    search.debug_file(&image).map(|found| found.path)
}

impl Search {
    /// In no folder but those of the paths themselves.
    pub fn nowhere_else() -> Self {
        Self { debug_folders: Vec::new(), kept: Kept::default(), ..Self::default() }
    }

    /// Opens the file itself, and checks that it is the build asked for.
    pub(crate) fn open(&self, path: &Path) -> Result<Image, Error> {
        if is_vdso(path) && self.build_id.is_none() {
            // Each kernel has another.
            return Err(Error::NotAFile { path: path.to_owned() });
        }
        let there = self.open_at(path).and_then(|image| self.check(image));
        let Some(build_id) = self.build_id.as_ref().filter(|_| there.is_err()) else {
            return there;
        };
        // It is known what it has to be: wherever that is found.
        let is_elsewhere = self.place(path).is_none_or(|place| place != path);
        let own = is_elsewhere.then(|| path.to_owned());
        let places = own.into_iter().chain(self.kept_files(path, build_id));
        let found = places.filter_map(|place| open(path, &place).ok());
        let mut found = found.filter(|image| image.build_id.as_ref() == Some(build_id));
        found.next().map_or(there, Ok)
    }

    /// Opens what stands for a file, such as `/proc/kallsyms`, that has no build-id. Nothing where it would be this machine's in the place of
    /// another's.
    pub fn text(&self, path: &Path) -> Option<File> {
        let place = self.place(path).filter(|_| self.is_elsewhere())?;
        File::open(place).ok()
    }

    /// Whether files are those of another machine.
    pub fn is_elsewhere(&self) -> bool {
        self.root.is_some() || self.unpacked.is_some()
    }

    /// The kernel's symbols as perf keeps them, of a build.
    pub fn kept_kernel(&self, build_id: &[u8]) -> Option<File> {
        File::open(self.kept.of_perf(build_id, "kallsyms")?).ok()
    }

    /// By what path the file at `path` is opened; nothing where an archive does not have it.
    fn place(&self, path: &Path) -> Option<PathBuf> {
        if let Some(unpacked) = &self.unpacked {
            return unpacked.place(path);
        }
        let below = self.root.as_ref().zip(path.strip_prefix("/").ok());
        Some(below.map_or_else(|| path.to_owned(), |(root, path)| root.join(path)))
    }

    fn open_at(&self, path: &Path) -> Result<Image, Error> {
        match self.place(path) {
            Some(place) => open(path, &place),
            None => Err(Error::NotInArchive { path: path.to_owned() }),
        }
    }

    /// Where a file of a build may be kept.
    fn kept_files(&self, path: &Path, build_id: &[u8]) -> impl Iterator<Item = PathBuf> {
        let name = by_build_id(build_id);
        let folders = self.debug_folders.iter().filter_map(move |f| Some(f.join(name.as_ref()?)));
        let perf = self.kept.of_perf(build_id, if is_vdso(path) { "vdso" } else { "elf" });
        let kept = folders.chain(perf).chain(self.kept.of_debuginfod(build_id, "executable"));
        kept.chain(self.of_servers(if is_vdso(path) { None } else { Some("executable") }, build_id))
    }

    /// Of the files that were named for images, the one of this name, with or without what stands behind
    /// its last point; else the only one that there is, if it has a function `marker`. Of a file that
    /// cannot be read nothing is said.
    pub fn image(&self, name: &Path, marker: &str) -> Option<(PathBuf, Functions)> {
        let is_named = |path: &&PathBuf| {
            !name.as_os_str().is_empty()
                && (path.file_name() == name.file_name() || path.file_stem() == name.file_stem())
        };
        let path = self.images.iter().find(is_named).or(match &self.images[..] {
            [only] => Some(only),
            _ => None,
        })?;
        // Whoever named it meant one of this machine's.
        let here = Self { root: None, unpacked: None, ..self.clone() };
        let functions = Functions::open(path, &here).ok()?;
        functions.named(marker).is_some().then(|| (path.clone(), functions))
    }

    /// Checks that it is the build asked for.
    pub(crate) fn check(&self, image: Image) -> Result<Image, Error> {
        match &self.build_id {
            Some(expected) if image.build_id.as_ref() != Some(expected) => Err(Error::BuildId {
                path: image.path,
                expected: expected.clone(),
                found: image.build_id,
            }),
            _ => Ok(image),
        }
    }

    /// The debug file that belongs to `image`, if there is one. What is found but does not
    /// belong to it, or cannot be read, is passed over: there may be a better one.
    pub(crate) fn debug_file(&self, image: &Image) -> Option<Image> {
        self.by_build_id(image).or_else(|| self.by_debuglink(image))
    }

    /// `<folder>/.build-id/ab/cdef….debug`, and where else it may be kept.
    fn by_build_id(&self, image: &Image) -> Option<Image> {
        let build_id = image.build_id.as_ref()?;
        let packed = self.unpacked.as_ref().and_then(|unpacked| unpacked.debug_file(build_id));
        let packed = packed.map(Path::to_owned).into_iter();
        packed
            .chain(self.debug_files_of_build(build_id))
            .filter_map(|place| self.candidate(&place))
            .find(|found| found.build_id == image.build_id && found.machine == image.machine)
    }

    /// Where the debug file of a build may be.
    pub(crate) fn debug_files_of_build(&self, build_id: &[u8]) -> impl Iterator<Item = PathBuf> {
        let name = by_build_id(build_id).map(|name| {
            let mut name = name.into_os_string();
            name.push(".debug");
            name
        });
        let folders = self.debug_folders.iter().filter_map(move |f| Some(f.join(name.as_ref()?)));
        let perf = self.kept.of_perf(build_id, "debug");
        let kept = folders.chain(perf).chain(self.kept.of_debuginfod(build_id, "debuginfo"));
        kept.chain(self.of_servers(Some("debuginfo"), build_id))
    }

    /// What servers have of a build. They are asked when all that stands before it is of no use.
    fn of_servers(
        &self,
        kind: Option<&'static str>,
        build_id: &[u8],
    ) -> impl Iterator<Item = PathBuf> {
        let (servers, build_id) = (self.servers.clone(), build_id.to_vec());
        kind.into_iter().filter_map(move |kind| servers.as_ref()?.find(kind, &build_id))
    }

    /// Opens what compilers and `dwz` write beside programs. As for debug files, what it says itself tells whether it belongs to one.
    pub(crate) fn companion(&self, path: &Path) -> Result<Image, Error> {
        Image::of_any_kind(path, &self.companion_place(path))
    }

    /// By what path such a file is opened: of an archive, below another root, or here.
    pub(crate) fn companion_place(&self, path: &Path) -> PathBuf {
        let elsewhere = self.place(path).filter(|place| place.exists());
        elsewhere.unwrap_or_else(|| path.to_owned())
    }

    /// Beside the file, in `.debug` beside it, and at the same place below each folder.
    fn by_debuglink(&self, image: &Image) -> Option<Image> {
        let section = image.section(b".gnu_debuglink")?;
        let content = image.read(section.offset, section.size.min(4096)).ok()?;
        let (name, crc) = debuglink(&content, image.endian == Endianness::Little)?;
        // A link names a file, never a folder: it must not lead out of those searched.
        let name = Path::new(OsStr::from_bytes(name));
        if name.components().count() != 1 || name.file_name() != Some(name.as_os_str()) {
            return None;
        }
        let folder = image.path.parent()?;
        // Of another machine's files only their paths are known.
        let folder = std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
        let below = folder.strip_prefix("/").unwrap_or(&folder);
        let mut places = vec![folder.join(name), folder.join(".debug").join(name)];
        places.extend(self.debug_folders.iter().map(|debug| debug.join(below).join(name)));
        places.into_iter().filter_map(|place| self.candidate(&place)).find(|found| {
            found.machine == image.machine && found.checksum().is_ok_and(|sum| sum == crc)
        })
    }

    /// What may be a debug file: of an archive, below another root, or here. Whether it is, its checksum or build-id says.
    fn candidate(&self, path: &Path) -> Option<Image> {
        self.open_at(path).or_else(|_| Image::open(path)).ok()
    }
}

/// Opens what stands at `place` for the code at `path`.
fn open(path: &Path, place: &Path) -> Result<Image, Error> {
    match is_vdso(place).then(vdso::bytes).flatten() {
        Some(bytes) => Image::from_bytes(path, bytes),
        None => Image::at(path, place),
    }
}

fn is_vdso(path: &Path) -> bool {
    path == Path::new(vdso::VDSO)
}

/// Name and checksum of a `.gnu_debuglink` section: the name, a zero byte, padding to four
/// bytes, CRC-32 of the whole debug file.
fn debuglink(content: &[u8], little: bool) -> Option<(&[u8], u32)> {
    let end = content.iter().position(|&byte| byte == 0)?;
    let at = (end + 4) & !3;
    let crc = content.get(at..at + 4)?.try_into().ok()?;
    let crc = if little { u32::from_le_bytes(crc) } else { u32::from_be_bytes(crc) };
    Some((&content[..end], crc))
}

#[cfg(test)]
mod tests {
    use super::debuglink;

    #[test]
    fn the_checksum_stands_at_the_next_multiple_of_four() {
        assert_eq!(debuglink(b"abc\0\x04\x03\x02\x01", true), Some((&b"abc"[..], 0x0102_0304)));
        assert_eq!(
            debuglink(b"abcd\0\0\0\0\x01\x02\x03\x04", false),
            Some((&b"abcd"[..], 0x0102_0304))
        );
        assert_eq!(debuglink(b"abc\0\x04\x03\x02", true), None);
        assert_eq!(debuglink(b"abc", true), None);
        assert_eq!(debuglink(b"", true), None);
    }
}
