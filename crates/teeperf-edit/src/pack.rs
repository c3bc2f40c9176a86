//! A recording with the files that it names, in one archive: `tar`, compressed by zstd. So that another machine has them
//! as they were: programs and libraries whose build-ids are those recorded, their debug files, and sources if they
//! are wanted.
//!
//! The manifest comes first, then the recording, then files, below `files/` and the paths that they had. [`open`] reads the
//! recording out of it, and unpacks nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use teeperf_profile::Recording;
use teeperf_profile::chunks::Decoder;
use teeperf_profile::contents::Body;
use teeperf_profile::escape::Escape;
use teeperf_profile::events::{Events, Item};
use teeperf_symbols::{Functions, Search, debug_file};
use teeperf_wire::word::{self, code};

use crate::error::EditError;
use crate::rotate::folder::{self, Chain};

/// First bytes of an archive.
pub const MAGIC: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];
/// Name of the recording in it.
const RECORDING: &str = "recording.teeperf";
/// Name of what tells of it.
const MANIFEST: &str = "manifest.json";
/// Most modules and sources of a recording that are looked for.
const MOST: usize = 1 << 14;
/// Most entries, and bytes, before the recording in an archive.
const MOST_BEFORE: usize = 64;
const MOST_BYTES_BEFORE: u64 = 64 << 20;
/// Bytes of an entry's head, which its data is padded to.
const BLOCK: u64 = 512;

/// What is to be packed.
#[derive(Clone, Debug, Default)]
pub struct Pack {
    /// Whether sources are.
    pub sources: bool,
    /// Folders of debug files, and files of images.
    pub search: Search,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Packed {
    /// Files beside the recording.
    pub files: u64,
    /// Files that are missing, and why.
    pub missing: Vec<String>,
}

#[derive(Serialize)]
struct Manifest<'a> {
    format: &'static str,
    version: u32,
    recording: &'static str,
    writer: &'a str,
    files: Vec<Entry>,
    missing: &'a [String],
}

#[derive(Serialize)]
struct Entry {
    path: String,
    name: String,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    build_id: Option<String>,
    bytes: u64,
}

/// Packs the recording in a file, or in a folder ([`crate::rotate`]). `progress` is told now and then how many bytes were read.
///
/// # Errors
///
/// When it cannot be read, or the archive cannot be written.
pub fn pack(
    path: &Path,
    wanted: &Pack,
    writer: &str,
    out: impl Write,
    progress: &mut dyn FnMut(u64),
) -> Result<Packed, EditError> {
    let name = path.display().to_string();
    let unread = |source| teeperf_profile::Error::Open { name: name.clone(), source };
    let content = Content::open(path).map_err(unread)?;
    let recording = Recording::from_read(content.read().map_err(unread)?, name.clone());
    let (modules, sources) = named(recording, wanted.sources, progress)?;
    let mut packed = Packed::default();
    let mut files = Vec::new();
    for (module, build_id) in &modules {
        module_files(Path::new(module), build_id, &wanted.search, &mut files, &mut packed.missing);
    }
    for image in &wanted.search.images {
        add(image, "image", None, &mut files, &mut packed.missing);
    }
    for source in &sources {
        add(Path::new(source), "source", None, &mut files, &mut packed.missing);
    }
    packed.files = files.len() as u64;
    let manifest = Manifest {
        format: "teeperf-pack",
        version: 1,
        recording: RECORDING,
        writer,
        files: files.iter().map(|(_, entry)| clone_of(entry)).collect(),
        missing: &packed.missing,
    };
    let failed = |source| EditError::Write { name: "the archive".into(), source };
    let manifest = serde_json::to_vec_pretty(&manifest).map_err(|e| failed(e.into()))?;
    let write = || -> io::Result<()> {
        let mut tar = tar::Builder::new(zstd::stream::write::Encoder::new(out, 3)?);
        append(&mut tar, MANIFEST, manifest.len() as u64, &manifest[..])?;
        append(&mut tar, RECORDING, content.bytes, content.read()?)?;
        for (from, entry) in &files {
            append(&mut tar, &entry.name, entry.bytes, File::open(from)?)?;
        }
        tar.into_inner()?.finish()?.flush()
    };
    write().map_err(failed)?;
    Ok(packed)
}

/// The recording's bytes, of which what a recorder adds or removes meanwhile changes nothing.
struct Content {
    files: Vec<File>,
    bytes: u64,
}

impl Content {
    fn open(path: &Path) -> io::Result<Self> {
        let files = if path.is_dir() { folder::files(path)? } else { vec![File::open(path)?] };
        let bytes = files.iter().map(|file| file.metadata().map(|about| about.len()));
        let bytes = bytes.sum::<io::Result<u64>>()?;
        Ok(Self { files, bytes })
    }

    /// From its beginning on, as often as is wanted, but one at a time.
    fn read(&self) -> io::Result<impl Read> {
        let again = |file: &File| {
            let mut again = file.try_clone()?;
            again.rewind()?;
            Ok(again)
        };
        let files: io::Result<_> = self.files.iter().map(again).collect();
        Ok(Chain(files?).take(self.bytes))
    }
}

fn clone_of(entry: &Entry) -> Entry {
    Entry {
        path: entry.path.clone(),
        name: entry.name.clone(),
        kind: entry.kind,
        build_id: entry.build_id.clone(),
        bytes: entry.bytes,
    }
}

/// Files of code by path, with build-ids, and paths of sources.
type Named = (BTreeMap<String, Vec<u8>>, BTreeSet<String>);

fn named(
    mut recording: Recording<impl Read>,
    with_sources: bool,
    progress: &mut dyn FnMut(u64),
) -> Result<Named, EditError> {
    let mut decoder = Decoder::new().map_err(EditError::Memory)?;
    let (mut modules, mut sources) = (BTreeMap::new(), BTreeSet::new());
    let opens = word::escape(code::MODULE, 0);
    let mut told = 0;
    while let Some(packet) = recording.next_packet()? {
        match &packet.body {
            Body::Chunk(header, data) => {
                let Ok((clock, words)) = decoder.words(header, data) else { continue };
                if !words.contains(&opens) {
                    continue;
                }
                for event in Events::of(header, clock, words) {
                    if let Item::Escape(Escape::Module(module)) = event.item
                        && modules.len() < MOST
                    {
                        modules.insert(module.path.to_string(), module.build_id.bytes());
                    }
                }
            }
            Body::Keyframe(keyframe) => {
                for window in keyframe.windows.iter().take(MOST.saturating_sub(modules.len())) {
                    modules.insert(window.path().to_owned(), window.build_id().to_vec());
                }
            }
            Body::Symbols(symbols) if with_sources => {
                let files = symbols.iter().map(|symbol| symbol.file);
                for file in files.filter(|file| file.starts_with(b"/")) {
                    if sources.len() < MOST {
                        sources.insert(String::from_utf8_lossy(file).into_owned());
                    }
                }
            }
            _ => {}
        }
        if packet.offset - told >= 1 << 20 {
            told = packet.offset;
            progress(told);
        }
    }
    Ok((modules, sources))
}

type Files = Vec<(PathBuf, Entry)>;

fn module_files(
    path: &Path,
    build_id: &[u8],
    search: &Search,
    files: &mut Files,
    missing: &mut Vec<String>,
) {
    let shown = path.display();
    let hex: String = build_id.iter().map(|byte| format!("{byte:02x}")).collect();
    let known = (!build_id.is_empty()).then(|| build_id.to_vec());
    if known.is_none() {
        // Another file may stand there now, and nobody could tell.
        missing.push(format!("{shown}: the recording does not tell its build-id: it is left out"));
        return;
    }
    let exact = Search { build_id: known, ..search.clone() };
    if let Err(error) = Functions::open(path, &exact) {
        missing.push(format!("{error}"));
        return;
    }
    add(path, "binary", Some(hex.clone()), files, missing);
    if let Some(debug) = debug_file(path, &exact) {
        add(&debug, "debug", Some(hex), files, missing);
    }
}

fn add(
    path: &Path,
    kind: &'static str,
    build_id: Option<String>,
    files: &mut Files,
    missing: &mut Vec<String>,
) {
    let shown = path.display().to_string();
    let about = match path.metadata() {
        Ok(about) if about.is_file() => about,
        Ok(_) => return missing.push(format!("{shown}: no file")),
        Err(error) => return missing.push(format!("{shown}: {error}")),
    };
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let below: PathBuf = absolute
        .components()
        .filter(|part| matches!(part, std::path::Component::Normal(_)))
        .collect();
    let name = format!("files/{}", below.display());
    if files.iter().any(|(_, entry)| entry.name == name) {
        return;
    }
    files.push((path.to_owned(), Entry { path: shown, name, kind, build_id, bytes: about.len() }));
}

/// An entry of so many bytes, whatever becomes of what is read.
fn append(
    tar: &mut tar::Builder<impl Write>,
    name: &str,
    bytes: u64,
    content: impl Read,
) -> io::Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_size(bytes);
    header.set_mode(0o644);
    // A file that became shorter meanwhile has zeros at its end.
    tar.append_data(&mut header, name, content.chain(io::repeat(0)).take(bytes))
}

/// The recording in an archive, which begins where `stream` stands. Entries before it are passed over; nothing is unpacked.
///
/// # Errors
///
/// When it is no archive, or has no recording near its beginning.
pub fn open(stream: impl Read + 'static) -> io::Result<Box<dyn Read>> {
    let invalid = |text: &str| io::Error::new(io::ErrorKind::InvalidData, text.to_owned());
    let mut stream = zstd::stream::read::Decoder::new(stream)?;
    // What a hostile archive may have us keep.
    stream.window_log_max(27)?;
    let mut stream = BufReader::new(stream);
    let mut before = 0u64;
    for _ in 0..MOST_BEFORE {
        let mut block = [0; BLOCK as usize];
        stream.read_exact(&mut block)?;
        let header = tar::Header::from_byte_slice(&block);
        let sum: u32 = block.iter().enumerate().fold(0, |sum, (at, &byte)| {
            sum + u32::from(if (148..156).contains(&at) { b' ' } else { byte })
        });
        if header.cksum().ok() != Some(sum) {
            return Err(invalid("it is compressed, but no archive of `teeperf pack`"));
        }
        let bytes = header.entry_size()?;
        if &*header.path_bytes() == RECORDING.as_bytes() {
            return Ok(Box::new(stream.take(bytes)));
        }
        let padded = bytes.checked_next_multiple_of(BLOCK).unwrap_or(u64::MAX);
        before = before.saturating_add(padded);
        if before > MOST_BYTES_BEFORE {
            break;
        }
        let passed = io::copy(&mut (&mut stream).take(padded), &mut io::sink())?;
        if passed < padded {
            break;
        }
    }
    Err(invalid("the archive has no recording at its beginning"))
}
