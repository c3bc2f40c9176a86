//! Static libraries in the format of GNU `ar`, with their table of symbols. This machine's `ar` need not know
//! objects of others.

use anyhow::{Context, Result};
use object::{Object, ObjectSymbol};
use std::path::Path;

/// An object in a library.
pub(super) struct Member {
    /// Up to 15 letters.
    pub(super) name: String,
    pub(super) contents: Vec<u8>,
}

impl Member {
    pub(super) fn read(name: &str, path: &Path) -> Result<Self> {
        let contents = std::fs::read(path).with_context(|| path.display().to_string())?;
        Ok(Self { name: name.into(), contents })
    }
}

const MAGIC: &[u8] = b"!<arch>\n";
const HEADER: usize = 60;

/// The library's file.
pub(super) fn of(members: &[Member]) -> Result<Vec<u8>> {
    let mut symbols = Vec::new();
    for (index, member) in members.iter().enumerate() {
        let object = object::File::parse(&*member.contents).context(member.name.clone())?;
        let defined =
            object.symbols().filter(|symbol| symbol.is_global() && symbol.is_definition());
        for symbol in defined {
            symbols.push((index, symbol.name()?.to_owned()));
        }
    }
    let names: usize = symbols.iter().map(|(_, name)| name.len() + 1).sum();
    let table = 4 + 4 * symbols.len() + names;
    let mut place = MAGIC.len() + HEADER + table.next_multiple_of(2);
    let mut places = Vec::new();
    for member in members {
        places.push(place);
        place += HEADER + member.contents.len().next_multiple_of(2);
    }

    let mut bytes = Vec::with_capacity(place);
    bytes.extend(MAGIC);
    header(&mut bytes, "/", table);
    bytes.extend(u32::try_from(symbols.len())?.to_be_bytes());
    for &(index, _) in &symbols {
        bytes.extend(u32::try_from(places[index])?.to_be_bytes());
    }
    for (_, name) in &symbols {
        bytes.extend(name.as_bytes());
        bytes.push(0);
    }
    for member in members {
        pad(&mut bytes);
        header(&mut bytes, &format!("{}/", member.name), member.contents.len());
        bytes.extend(&member.contents);
    }
    pad(&mut bytes);
    Ok(bytes)
}

/// Name, time, owner, group, mode, size; no time, so that the same objects make the same library.
fn header(bytes: &mut Vec<u8>, name: &str, size: usize) {
    let text = format!("{name:16}{:12}{:6}{:6}{:8}{size:<10}`\n", 0, 0, 0, 644);
    bytes.extend(text.as_bytes());
}

fn pad(bytes: &mut Vec<u8>) {
    if !bytes.len().is_multiple_of(2) {
        bytes.push(b'\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn ar_lists_what_is_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("a.c");
        std::fs::write(&source, "int here; int there(void) { return here; }\n").unwrap();
        let object = folder.path().join("a.o");
        let compiled = Command::new("cc").arg("-c").arg(&source).arg("-o").arg(&object).status();
        if !compiled.is_ok_and(|status| status.success()) {
            note!("skipped: there is no C compiler");
            return;
        }
        let members = ["a.o", "b.o"].map(|name| Member::read(name, &object).unwrap());
        let library = folder.path().join("lib.a");
        std::fs::write(&library, of(&members).unwrap()).unwrap();
        let told = Command::new("nm").arg("--print-armap").arg(&library).output().unwrap();
        let text = String::from_utf8(told.stdout).unwrap();
        assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
        assert!(text.contains("there in a.o") && text.contains("there in b.o"), "{text}");
    }
}
