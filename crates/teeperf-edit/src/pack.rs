//! A recording with the files that it names, in one archive: `tar`, compressed by zstd. So that another machine has them
//! as they were: programs and libraries whose build-ids are those recorded, their debug files, what the kernel says of its functions
//! where it was sampled, and sources if they are wanted.
//!
//! The manifest comes first, then the recording, then files, below `files/` and the paths that they had. [`open`] reads the
//! recording out of it; [`unpack()`] gives the files to who follows stacks of samples, for which a recording has no names.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use teeperf_profile::samples::{jitted, kernel};
use teeperf_profile::{Options, Recording, packets};
use teeperf_symbols::{Functions, Lines, MAX_SOURCES, Search, Shown, archive, debug_file, vdso};

use crate::error::EditError;
use crate::rotate::folder::{self, Chain};
use named::Named;

mod named;
mod unpack;

pub(crate) use unpack::unpack_from;
pub use unpack::{Of, unpack};

/// First bytes of an archive.
pub const MAGIC: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];
/// Name of the recording in it.
const RECORDING: &str = "recording.teeperf";
/// Name of what tells of it.
const MANIFEST: &str = "manifest.json";
/// Most entries, and bytes, before the recording in an archive.
const MOST_BEFORE: usize = 64;
const MOST_BYTES_BEFORE: u64 = 64 << 20;
/// Most files that debug information of a program was split off into: as many are taken out again with all others.
const MOST_COMPANIONS: usize = 256;
/// Bytes of an entry's head, which its data is padded to.
const BLOCK: u64 = 512;

/// What is to be packed.
#[derive(Clone, Debug, Default)]
pub struct Pack {
    /// Sources, those that may be shown.
    pub sources: Option<Shown>,
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
    /// Sources that are among the files.
    pub sources: Vec<PathBuf>,
    /// Sources that are not, and why.
    pub left_out: Vec<(PathBuf, String)>,
    /// Bytes of the sources that are.
    source_bytes: u64,
}

#[derive(Serialize)]
struct Manifest<'a> {
    format: &'static str,
    version: u32,
    recording: &'static str,
    /// Whether there are samples in it.
    samples: bool,
    writer: &'a str,
    files: Vec<&'a Entry>,
    missing: &'a [String],
}

#[derive(Serialize, Deserialize)]
struct Entry {
    /// Where it was.
    path: String,
    /// In the archive.
    name: String,
    kind: Kind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    build_id: Option<String>,
    bytes: u64,
}

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Binary,
    Debug,
    Image,
    /// What a process told of code that it made.
    Jitted,
    /// What `/proc/kallsyms` had.
    Kernel,
    Source,
    #[serde(other)]
    Other,
}

/// Where what is packed comes from.
enum Content {
    File(PathBuf),
    /// May be shown when it is opened.
    Source(PathBuf),
    Bytes(Vec<u8>),
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
    let content = Stream::open(path).map_err(unread)?;
    let recording = || content.read().map(|read| Recording::from_read(read, name.clone()));
    let mut named = Named::of(recording().map_err(unread)?, wanted.sources.is_some(), progress)?;
    if named.has_samples && wanted.sources.is_some() {
        named.add_sources_of_samples(&packets::replay(
            &mut recording().map_err(unread)?,
            &mut Options { search: wanted.search.clone(), ..Options::default() },
        )?);
    }
    let mut packed = Packed::default();
    let mut files = Vec::new();
    for (module, build_id) in &named.modules {
        module_files(Path::new(module), build_id, &wanted.search, &mut files, &mut packed.missing);
    }
    for image in &wanted.search.images {
        add(image, Kind::Image, None, &mut files, &mut packed.missing);
    }
    let shown = wanted.sources.clone().unwrap_or_default();
    for source in &named.sources {
        add_source(Path::new(source), &shown, &mut files, &mut packed);
    }
    if let Some((path, build_id)) = &named.kernel {
        kernel_functions(path, build_id, named.is_here, &mut files, &mut packed.missing);
    }
    for &pid in &named.jitted {
        if let Some(text) = jitted::text(pid) {
            add_bytes(&jitted::path(pid).to_string_lossy(), Kind::Jitted, text, &mut files);
        }
    }
    packed.files = files.len() as u64;
    let left_out = packed.left_out.iter().map(|(path, why)| format!("{}: {why}", path.display()));
    let missing: Vec<String> = packed.missing.iter().cloned().chain(left_out).collect();
    let manifest = Manifest {
        format: "teeperf-pack",
        version: 1,
        recording: RECORDING,
        samples: named.has_samples,
        writer,
        files: files.iter().map(|(_, entry)| entry).collect(),
        missing: &missing,
    };
    let failed = |source| EditError::Write { name: "the archive".into(), source };
    let manifest = serde_json::to_vec_pretty(&manifest).map_err(|e| failed(e.into()))?;
    let write = || -> io::Result<()> {
        let mut encoder = zstd::stream::write::Encoder::new(out, 3)?;
        // Of a file whose bits changed on the way nothing else would tell.
        encoder.include_checksum(true)?;
        let mut tar = tar::Builder::new(encoder);
        append(&mut tar, MANIFEST, manifest.len() as u64, &manifest[..])?;
        append(&mut tar, RECORDING, content.bytes, content.read()?)?;
        for (from, Entry { name, bytes, .. }) in &files {
            match from {
                Content::File(path) => append(&mut tar, name, *bytes, File::open(path)?)?,
                Content::Source(path) => {
                    let again = |why: teeperf_symbols::Refusal| {
                        io::Error::other(format!("{}: {why}", path.display()))
                    };
                    append(&mut tar, name, *bytes, shown.open(path).map_err(again)?.0)?;
                }
                Content::Bytes(text) => append(&mut tar, name, *bytes, &text[..])?,
            }
        }
        tar.into_inner()?.finish()?.flush()
    };
    write().map_err(failed)?;
    Ok(packed)
}

/// The recording's bytes, of which what a recorder adds or removes meanwhile changes nothing.
struct Stream {
    files: Vec<File>,
    bytes: u64,
}

impl Stream {
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

type Files = Vec<(Content, Entry)>;

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
    if path == Path::new(vdso::VDSO) {
        return add_bytes(vdso::VDSO, Kind::Binary, vdso::bytes().unwrap_or_default(), files);
    }
    add(path, Kind::Binary, Some(hex.clone()), files, missing);
    if let Some(debug) = debug_file(path, &exact) {
        add(&debug, Kind::Debug, Some(hex), files, missing);
    }
    // Files that the compiler split off, and those to which `dwz` moved debug information.
    match Lines::open(path, &exact).and_then(|lines| Ok((lines.companions()?, lines.missing()))) {
        Ok((companions, why)) => {
            let left = companions.len().saturating_sub(MOST_COMPANIONS);
            for companion in companions.into_iter().take(MOST_COMPANIONS) {
                add(&companion, Kind::Debug, None, files, missing);
            }
            if left > 0 {
                missing.push(format!(
                    "{shown}: {left} files with debug information that was split off it are left out: an archive has \
                     room for {MOST_COMPANIONS} of a program; next: pack them beside it, with `llvm-dwp -e {shown} -o {shown}.dwp`"
                ));
            }
            missing.extend(why);
        }
        Err(error) => missing.push(error.to_string()),
    }
}

fn add(
    path: &Path,
    kind: Kind,
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
    let name = archive::name_of(&absolute);
    if has(files, &name) {
        return;
    }
    let entry = Entry { path: shown, name, kind, build_id, bytes: about.len() };
    files.push((Content::File(path.to_owned()), entry));
}

/// Whether there is a file of this name already.
fn has(files: &Files, name: &str) -> bool {
    files.iter().any(|(_, entry)| entry.name == name)
}

/// A source, if it may be shown: which ones there are says whoever wrote the program.
fn add_source(path: &Path, shown: &Shown, files: &mut Files, packed: &mut Packed) {
    let name = archive::name_of(path);
    if has(files, &name) {
        return;
    }
    match shown.open(path) {
        Ok((_, about)) if packed.source_bytes + about.len() > MAX_SOURCES => {
            let why = format!("sources have {} MiB in all", MAX_SOURCES >> 20);
            packed.left_out.push((path.to_owned(), why));
        }
        Ok((_, about)) => {
            packed.source_bytes += about.len();
            let shown = path.display().to_string();
            let (kind, bytes) = (Kind::Source, about.len());
            let entry = Entry { path: shown, name, kind, build_id: None, bytes };
            files.push((Content::Source(path.to_owned()), entry));
            packed.sources.push(path.to_owned());
        }
        Err(why) => packed.left_out.push((path.to_owned(), why.to_string())),
    }
}

/// What the kernel that runs says of its functions, if it is the one that was sampled.
fn kernel_functions(
    path: &str,
    build_id: &[u8],
    is_here: bool,
    files: &mut Files,
    missing: &mut Vec<String>,
) {
    if !kernel::runs(Path::new(path), build_id, is_here) {
        let why = match build_id.is_empty() {
            true => {
                "the recording does not tell its build-id, and is not of the system that runs here"
            }
            false => "another kernel runs now than the one that was sampled",
        };
        return missing.push(format!("{path}: {why}"));
    }
    let Some(text) = kernel::running() else {
        let why = "the kernel hides where its functions are (kernel.kptr_restrict): pack as root";
        return missing.push(format!("{}: {why}", kernel::SYMBOLS));
    };
    add_bytes(kernel::SYMBOLS, Kind::Kernel, text, files);
}

/// What no file system has.
fn add_bytes(path: &str, kind: Kind, bytes: Vec<u8>, files: &mut Files) {
    let name = format!("files/{}", path.trim_start_matches('/'));
    let length = bytes.len() as u64;
    let entry = Entry { path: path.into(), name, kind, build_id: None, bytes: length };
    files.push((Content::Bytes(bytes), entry));
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
    let mut stream = BufReader::new(archive::decompressed(stream)?);
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
