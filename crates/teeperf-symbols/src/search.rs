//! Where the symbols of a stripped file are kept.
//!
//! The rules are those of GDB ("Debugging Information in Separate Files"): by build-id
//! below a folder of debug files, then by the name in `.gnu_debuglink`.

use crate::error::hex;
use crate::image::Image;
use crate::{Error, Functions};
use object::Endianness;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// How to look for symbols.
#[derive(Clone, Debug)]
pub struct Search {
    /// Folders that hold separate debug files, as `/usr/lib/debug` does.
    pub debug_folders: Vec<PathBuf>,
    /// Files of images that do not say where theirs lies, but at most its name: see [`Search::image`].
    pub images: Vec<PathBuf>,
    /// Build-id that the file must have, where one is known.
    pub build_id: Option<Vec<u8>>,
}

impl Default for Search {
    /// `/usr/lib/debug`, any build-id.
    fn default() -> Self {
        Self { debug_folders: vec!["/usr/lib/debug".into()], images: Vec::new(), build_id: None }
    }
}

/// Where the debug file of the file at `path` is, if both are there and belong together.
pub fn debug_file(path: &Path, search: &Search) -> Option<PathBuf> {
    let image = search.open(path).ok()?;
    search.debug_file(&image).map(|found| found.path)
}

impl Search {
    /// Opens the file itself, and checks that it is the build asked for.
    pub(crate) fn open(&self, path: &Path) -> Result<Image, Error> {
        self.check(Image::open(path)?)
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
        let functions = Functions::open(path, self).ok()?;
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

    /// `<folder>/.build-id/ab/cdef….debug`.
    fn by_build_id(&self, image: &Image) -> Option<Image> {
        let (first, rest) = image.build_id.as_ref()?.split_first()?;
        let name = format!(".build-id/{first:02x}/{}.debug", hex(rest));
        self.debug_folders
            .iter()
            .filter_map(|folder| Image::open(&folder.join(&name)).ok())
            .find(|found| found.build_id == image.build_id && found.machine == image.machine)
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
        let folder = std::fs::canonicalize(image.path.parent()?).ok()?;
        let below = folder.strip_prefix("/").unwrap_or(&folder);
        let mut places = vec![folder.join(name), folder.join(".debug").join(name)];
        places.extend(self.debug_folders.iter().map(|debug| debug.join(below).join(name)));
        places.into_iter().filter_map(|place| Image::open(&place).ok()).find(|found| {
            found.machine == image.machine && found.checksum().is_ok_and(|sum| sum == crc)
        })
    }
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
