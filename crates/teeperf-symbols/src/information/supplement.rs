//! The file that `dwz -m` moved to what several programs have in common: `.gnu_debugaltlink`, or DWARF 5's `.debug_sup`
//! (section 7.3.6). It is known by its build-id or checksum, and never has another such file.

use super::missing::Missing;
use crate::image::Image;
use crate::{Search, sections};
use gimli::DwarfSections;
use object::Endianness;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Most bytes looked at of the section that names the file.
const MOST_BYTES: u64 = 8192;

/// A file by its name and what it is known by.
struct Link {
    path: PathBuf,
    id: Vec<u8>,
}

/// Where a file's supplement is, and its sections, where it has one that is here.
pub(super) fn of(
    image: &Image,
    search: &Search,
    missing: &mut Missing,
) -> Option<(PathBuf, DwarfSections<sections::Shared>)> {
    let link = link(image)?;
    let folder = image.path.parent().unwrap_or(Path::new("/"));
    // A name in a file that was reached by a link is told from the file's own folder.
    let real = std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    let mut why = "is not here".to_owned();
    let by_id = search.debug_files_of_build(&link.id);
    let places = [folder.join(&link.path), real.join(&link.path)].into_iter().chain(by_id);
    for place in places {
        let Ok(found) = search.companion(&place) else { continue };
        if found.machine != image.machine || found.endian != image.endian {
            "is of another processor".clone_into(&mut why);
        } else if id(&found).as_deref() != Some(&*link.id) {
            "is of another build".clone_into(&mut why);
        } else {
            match sections::of(&found, |id| Some(id.name())) {
                Ok(sections) => return Some((place, sections)),
                Err(error) => why = format!("cannot be read ({error})"),
            }
        }
    }
    missing.supplement(folder.join(link.path), why);
    None
}

/// What a file says of its supplement.
fn link(image: &Image) -> Option<Link> {
    let read = |name| {
        let section = image.debug_section(name)?;
        image.read(section.offset, section.size.min(MOST_BYTES)).ok()
    };
    if let Some(content) = read(".gnu_debugaltlink") {
        let (path, id) = text(&content)?;
        return Some(Link { path: path_of(path)?, id: id.to_vec() });
    }
    let content = read(".debug_sup")?;
    let (is_supplement, path, id) = debug_sup(&content, image.endian)?;
    (!is_supplement).then_some(())?;
    Some(Link { path: path_of(path)?, id: id.to_vec() })
}

/// What a supplement is known by.
fn id(image: &Image) -> Option<Vec<u8>> {
    let told = || {
        let section = image.debug_section(".debug_sup")?;
        let content = image.read(section.offset, section.size.min(MOST_BYTES)).ok()?;
        let (is_supplement, _, id) = debug_sup(&content, image.endian)?;
        is_supplement.then(|| id.to_vec())
    };
    told().or_else(|| image.build_id.clone()).filter(|id| !id.is_empty())
}

/// DWARF 5, section 7.3.6: version, whether this is the supplement, name, size of the checksum, checksum.
fn debug_sup(content: &[u8], endian: Endianness) -> Option<(bool, &[u8], &[u8])> {
    let (version, rest) = content.split_first_chunk()?;
    let version = match endian {
        Endianness::Little => u16::from_le_bytes(*version),
        Endianness::Big => u16::from_be_bytes(*version),
    };
    let (&is_supplement, rest) = rest.split_first()?;
    let (path, rest) = text(rest)?;
    // A number in LEB128, of which no checksum needs more than one byte.
    let (&size, rest) = rest.split_first().filter(|(size, _)| **size < 0x80)?;
    let id = rest.get(..usize::from(size))?;
    (version == 5 && is_supplement < 2).then_some((is_supplement == 1, path, id))
}

/// Up to the zero behind it, and what is behind that.
fn text(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|&byte| byte == 0)?;
    Some((&bytes[..end], &bytes[end + 1..]))
}

fn path_of(bytes: &[u8]) -> Option<PathBuf> {
    (!bytes.is_empty()).then(|| PathBuf::from(OsStr::from_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_of_dwarf_5_are_read_in_both_byte_orders() {
        let little = b"\x05\0\0../alt\0\x02\xab\xcdrest";
        let told = Some((false, &b"../alt"[..], &b"\xab\xcd"[..]));
        assert_eq!(debug_sup(little, Endianness::Little), told);
        let big = b"\0\x05\x01\0\x01\xab";
        assert_eq!(debug_sup(big, Endianness::Big), Some((true, &b""[..], &b"\xab"[..])));
        for length in 0..little.len() - 4 {
            assert_eq!(debug_sup(&little[..length], Endianness::Little), None, "{length}");
        }
        assert_eq!(debug_sup(b"\x04\0\0a\0\0", Endianness::Little), None);
        assert_eq!(debug_sup(b"\x05\0\x02a\0\0", Endianness::Little), None);
    }
}
