//! Sections that the linker compressed: `SHF_COMPRESSED`, by zlib or zstd, and binutils' older form, `.zdebug_…`.

use crate::Error;
use crate::image::{Image, Section};
use object::Endianness;
use object::elf;
use object::pod::from_bytes;
use object::read::elf::CompressionHeader;
use std::io::Read;

/// Most bytes that a compressed byte may stand for. Debug information comes to about four.
const MAX_RATIO: u64 = 128;
/// Most bytes of one section, whatever its compressed size.
const MAX_SIZE: u64 = 4 << 30;

/// What the content of a section stands for; nothing where it is not compressed.
pub(crate) fn decompress(
    image: &Image,
    section: &Section,
    bytes: &[u8],
) -> Result<Option<Vec<u8>>, Error> {
    let malformed = |what| Error::malformed(&image.path, section.offset, what);
    let is_marked = section.flags & u64::from(elf::SHF_COMPRESSED) != 0;
    let parts = match (is_marked, image.is_64) {
        (true, true) => split::<elf::CompressionHeader64<Endianness>>(image.endian, bytes),
        (true, false) => split::<elf::CompressionHeader32<Endianness>>(image.endian, bytes),
        (false, _) if image.is_zlib_gnu(section) => zlib_gnu(bytes),
        (false, _) => return Ok(None),
    };
    let (format, size, data) =
        parts.ok_or_else(|| malformed("the header of a compressed section is not whole"))?;
    if size > (data.len() as u64).saturating_mul(MAX_RATIO).min(MAX_SIZE) {
        return Err(malformed("a compressed section claims to hold too much"));
    }
    let mut out = Vec::new();
    if out.try_reserve_exact(size as usize).is_err() {
        return Err(malformed("a compressed section holds more than there is memory for"));
    }
    let done = match format {
        elf::ELFCOMPRESS_ZLIB => {
            flate2::bufread::ZlibDecoder::new(data).take(size).read_to_end(&mut out)
        }
        elf::ELFCOMPRESS_ZSTD => zstd::stream::read::Decoder::with_buffer(data)
            .and_then(|decoder| decoder.take(size).read_to_end(&mut out)),
        _ => return Err(malformed("a section is compressed in an unknown way")),
    };
    match done {
        Ok(length) if length as u64 == size => Ok(Some(out)),
        _ => Err(malformed("a compressed section does not decompress")),
    }
}

fn split<H: CompressionHeader<Endian = Endianness>>(
    endian: Endianness,
    bytes: &[u8],
) -> Option<(u32, u64, &[u8])> {
    let (header, data) = from_bytes::<H>(bytes).ok()?;
    Some((header.ch_type(endian), header.ch_size(endian).into(), data))
}

/// binutils, bfd/compress.c: `ZLIB`, the size that it stands for as a number of 8 bytes, the largest first, and a stream of zlib.
fn zlib_gnu(bytes: &[u8]) -> Option<(u32, u64, &[u8])> {
    let (size, data) = bytes.strip_prefix(b"ZLIB")?.split_first_chunk()?;
    Some((elf::ELFCOMPRESS_ZLIB, u64::from_be_bytes(*size), data))
}
