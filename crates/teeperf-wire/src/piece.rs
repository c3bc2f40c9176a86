//! A **piece**: some of what code without a system has summed in its own memory, as bytes that are handed over by
//! whatever way back there is: an output parameter, a buffer of an enclave's call, a serial line.
//!
//! ```text
//! 0   4  "TPPC"
//! 4   4  length          u32, of the whole piece, from LEAST_LENGTH to MAX_LENGTH
//! 8   …  numbers         unsigned LEB128: see below
//! …   1  more            1: more pieces of the same round come; 0: it is the last one
//! …   4  checksum        CRC-32 of bytes 8 up to here
//! ```
//!
//! The numbers: version; [`what`]; 1 where a round of this kind begins, else 0; number of the piece among those
//! of its thread, from 0; serial of the thread; its id, 0 if not known; [`crate::shared::ClockKind`]; clock units
//! in a second, 0 if not known; time from which on the sums are; time up to which; events, or of arcs calls,
//! that are left out; frames that were mended; bytes of the image's name, then these bytes. Nodes or items
//! follow up to `more`.
//!
//! A **place** of code is 0 for none, else one more than its distance from `teeperf_anchor`, a signed number of 64
//! bits as `distance << 1 ^ distance >> 63`. So no address crosses.
//!
//! A node ([`what::TREE`]): its index less that behind the node before it in the piece (of the first, less 0); its index
//! less its caller's, of the root 0; the function's place; calls; clock units in the function itself; clock units of
//! its shortest call and one more, 0: none has ended; of its longest. Indices rise. The pieces of a round have
//! all ancestors of their nodes, each once.
//!
//! An item ([`what::ARCS`]): 0 for an arc, 1 for a span ([`crate::arena::item`]); its two places; calls, or clock units.

use crate::crc::{Crc, bit_by_bit};
use core::ops::Range;

/// First bytes of every piece.
pub const SYNC: [u8; 4] = *b"TPPC";
/// Version of the layout.
pub const VERSION: u64 = 1;
/// A buffer of so many bytes has room for a piece with something in it.
pub const LEAST_ROOM: usize = 256;
/// No piece is longer.
pub const MAX_LENGTH: usize = 1 << 16;
/// Of a longer name the end is kept.
pub const MAX_NAME: usize = 64;
/// No piece is shorter.
pub const LEAST_LENGTH: usize = START + NUMBERS + TAIL;
/// On a console a piece is a line, or several, of this and hexadecimal digits, two for a byte. What stands before
/// it in the line is no part of it.
pub const MARK: &str = "teeperf:";

/// Bytes before the numbers.
const START: usize = 8;
/// Numbers before the name.
const NUMBERS: usize = 13;
/// Bytes behind them.
const TAIL: usize = 1 + 4;
/// A number has at most so many bytes; one of 32 bits so many.
const LONGEST: usize = 10;
const LONGEST_32: usize = 5;
/// A node has at most so many, and an item.
const NODE: usize = 2 * LONGEST_32 + 5 * LONGEST;
const ITEM: usize = 1 + 3 * LONGEST;

const _: () = assert!(
    START + 4 + 3 * LONGEST_32 + 6 * LONGEST + MAX_NAME + NODE + TAIL <= LEAST_ROOM && ITEM < NODE
);

/// What is in a piece.
pub mod what {
    /// Nodes of a tree.
    pub const TREE: u32 = 1;
    /// Calls between places of code, and times.
    pub const ARCS: u32 = 2;
}

/// What a piece says of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// One of [`what`].
    pub what: u32,
    /// Whether a round of this kind begins here.
    pub begins: bool,
    /// Number of the piece among those of its thread.
    pub sequence: u32,
    /// Of the thread.
    pub serial: u32,
    /// Id of the thread, 0 if not known.
    pub tid: u32,
    /// [`crate::shared::ClockKind`].
    pub clock: u32,
    /// Clock units in a second, 0 if not known.
    pub hz: u64,
    /// Time from which on the sums are.
    pub begin: u64,
    /// Time up to which they are.
    pub end: u64,
    /// Events, or of arcs calls, that are in none of the nodes or items.
    pub lost: u64,
    /// See [`crate::body::tree`].
    pub mended: u64,
}

/// A node of a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// See [`crate::tree`].
    pub index: u32,
    /// Index of its caller's, below its own but for the root.
    pub parent: u32,
    /// Distance of the function from the anchor, if it is known.
    pub place: Option<i64>,
    /// Calls.
    pub calls: u64,
    /// Clock units in the function itself.
    pub own: u64,
    /// Of the shortest call, and one more; 0: none has ended.
    pub least: u64,
    /// Of the longest.
    pub most: u64,
}

/// An arc, or a span of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// Which of both.
    pub is_span: bool,
    /// Distances of both places from the anchor, of those that are known.
    pub places: [Option<i64>; 2],
    /// Calls, or clock units.
    pub count: u64,
}

/// Writes one piece, byte by byte: [`Writer::new`] is told where. What was written is not read again.
#[derive(Debug)]
pub struct Writer<P> {
    put: P,
    at: usize,
    /// Where there is no more room but for the tail.
    end: usize,
    checksum: u32,
    /// Index behind the node before.
    next: u32,
}

impl<P: FnMut(usize, u8)> Writer<P> {
    /// Begins a piece where there is room for so many bytes; nothing if these are fewer than [`LEAST_ROOM`].
    /// `put` takes an offset below `room` and the byte there.
    pub fn new(room: usize, put: P, header: &Header, name: &[u8]) -> Option<Self> {
        if room < LEAST_ROOM {
            return None;
        }
        let end = if room < MAX_LENGTH { room } else { MAX_LENGTH } - TAIL;
        let mut writer = Self { put, at: START, end, checksum: !0, next: 0 };
        let name = name.get(name.len().saturating_sub(MAX_NAME)..).unwrap_or(name);
        for number in [
            VERSION,
            header.what.into(),
            header.begins.into(),
            header.sequence.into(),
            header.serial.into(),
            header.tid.into(),
            header.clock.into(),
            header.hz,
            header.begin,
            header.end,
            header.lost,
            header.mended,
            name.len() as u64,
        ] {
            writer.number(number);
        }
        for &byte in name {
            writer.byte(byte);
        }
        Some(writer)
    }

    /// Whether there is room for one more node, or item, whatever it is.
    pub fn has_room(&self) -> bool {
        self.end - self.at >= NODE
    }

    /// A node, behind those of lower indices. There is room for it.
    pub fn node(&mut self, node: &Node) {
        self.number(node.index.wrapping_sub(self.next).into());
        self.next = node.index.wrapping_add(1);
        self.number(node.index.wrapping_sub(node.parent).into());
        self.place(node.place);
        for number in [node.calls, node.own, node.least, node.most] {
            self.number(number);
        }
    }

    /// An item. There is room for it.
    pub fn item(&mut self, item: &Item) {
        self.number(item.is_span.into());
        for place in item.places {
            self.place(place);
        }
        self.number(item.count);
    }

    /// Ends the piece; its length. `has_more`: others of its round come.
    pub fn finish(mut self, has_more: bool) -> usize {
        self.byte(has_more.into());
        let checksum = !self.checksum;
        let length = self.at + 4;
        for (at, letter) in SYNC.into_iter().enumerate() {
            (self.put)(at, letter);
            (self.put)(4 + at, (length >> (8 * at)) as u8);
            (self.put)(self.at + at, (checksum >> (8 * at)) as u8);
        }
        length
    }

    fn place(&mut self, distance: Option<i64>) {
        let folded = |distance: i64| (distance << 1 ^ distance >> 63).cast_unsigned();
        self.number(distance.map_or(0, |distance| folded(distance).wrapping_add(1)));
    }

    #[inline(never)]
    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.byte(number as u8 | 0x80);
            number >>= 7;
        }
        self.byte(number as u8);
    }

    /// With its checksum bit by bit: a table would be larger than all that sums.
    #[inline(never)]
    fn byte(&mut self, byte: u8) {
        (self.put)(self.at, byte);
        self.at += 1;
        self.checksum = bit_by_bit(self.checksum ^ u32::from(byte));
    }
}

/// A piece, as it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece<'a> {
    /// What it says of itself.
    pub header: Header,
    /// Of the image's file.
    pub name: &'a [u8],
    /// Whether others of its round come.
    pub has_more: bool,
    /// Bytes of all of it.
    pub length: usize,
    data: &'a [u8],
}

/// Why no piece begins somewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// The first four bytes are not [`SYNC`].
    Sync,
    /// Its length is none that a piece has.
    Length(u32),
    /// Fewer bytes are left than its length says.
    CutOff,
    /// The checksum is wrong.
    Checksum,
    /// It is of a version that is not known here.
    Version(u64),
    /// Its first numbers make no sense.
    Header,
}

impl core::fmt::Display for Damage {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Sync => write!(f, "no piece begins here"),
            Self::Length(length) => write!(f, "a piece claims {length} bytes"),
            Self::CutOff => write!(f, "a piece is cut off"),
            Self::Checksum => write!(f, "a piece is damaged: its checksum is wrong"),
            Self::Version(version) => {
                write!(f, "a piece is of version {version}, and only {VERSION} is known")
            }
            Self::Header => write!(f, "a piece makes no sense"),
        }
    }
}

/// The rest of a piece cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreadable;

impl<'a> Piece<'a> {
    /// The piece that begins where these bytes do; others may follow.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Damage> {
        Self::decode_with(bytes, |body| Crc::new().update(&bytes[body]).finish())
    }

    /// Likewise, for who has another way to the CRC-32 of some of the bytes.
    pub fn decode_with(
        bytes: &'a [u8],
        checksum_of: impl FnOnce(Range<usize>) -> u32,
    ) -> Result<Self, Damage> {
        if !bytes.starts_with(&SYNC) {
            return Err(Damage::Sync);
        }
        let Some(&[a, b, c, d]) = bytes.get(4..8).and_then(<[u8]>::first_chunk) else {
            return Err(Damage::CutOff);
        };
        let claimed = u32::from_le_bytes([a, b, c, d]);
        let length = claimed as usize;
        if !(LEAST_LENGTH..=MAX_LENGTH).contains(&length) {
            return Err(Damage::Length(claimed));
        }
        let body = bytes.get(START..length).ok_or(Damage::CutOff)?;
        let (body, checksum) = body.split_last_chunk::<4>().ok_or(Damage::CutOff)?;
        if checksum_of(START..START + body.len()).to_le_bytes() != *checksum {
            return Err(Damage::Checksum);
        }
        let (&more, mut data) = body.split_last().ok_or(Damage::Header)?;
        let version = number(&mut data).ok_or(Damage::Header)?;
        if version != VERSION {
            return Err(Damage::Version(version));
        }
        let header = header(&mut data).ok_or(Damage::Header)?;
        let name = number(&mut data).filter(|&bytes| bytes <= MAX_NAME as u64);
        let name = name.and_then(|bytes| data.split_at_checked(bytes as usize));
        let (name, data) = name.ok_or(Damage::Header)?;
        Ok(Self { header, name, has_more: more != 0, length, data })
    }

    /// Its nodes. After an error there are no more.
    pub fn nodes(&self) -> impl Iterator<Item = Result<Node, Unreadable>> + use<'a> {
        let mut next = 0;
        each(self.data, move |data| {
            let index = number(data)?.checked_add(next)?;
            next = index.checked_add(1)?;
            let index = u32::try_from(index).ok()?;
            let above = u32::try_from(number(data)?).ok()?;
            let parent = index.checked_sub(above).filter(|&parent| parent < index || index == 0)?;
            let place = place(data)?;
            let [calls, own, least, most] =
                [number(data), number(data), number(data), number(data)];
            let (calls, own, least, most) = (calls?, own?, least?, most?);
            Some(Node { index, parent, place, calls, own, least, most })
        })
    }

    /// Its items. After an error there are no more.
    pub fn items(&self) -> impl Iterator<Item = Result<Item, Unreadable>> + use<'a> {
        each(self.data, |data| {
            let is_span = match number(data)? {
                0 => false,
                1 => true,
                _ => return None,
            };
            let places = [place(data)?, place(data)?];
            Some(Item { is_span, places, count: number(data)? })
        })
    }
}

/// What is read from bytes up to their end, or up to what cannot be read.
fn each<'a, T>(
    mut data: &'a [u8],
    mut read: impl FnMut(&mut &'a [u8]) -> Option<T>,
) -> impl Iterator<Item = Result<T, Unreadable>> {
    core::iter::from_fn(move || {
        if data.is_empty() {
            return None;
        }
        let found = read(&mut data).ok_or(Unreadable);
        if found.is_err() {
            data = &[];
        }
        Some(found)
    })
}

fn header(data: &mut &[u8]) -> Option<Header> {
    let mut wide = || number(data);
    let narrow = |number: Option<u64>| u32::try_from(number?).ok();
    Some(Header {
        what: narrow(wide()).filter(|what| matches!(*what, what::TREE | what::ARCS))?,
        begins: wide()? == 1,
        sequence: narrow(wide())?,
        serial: narrow(wide())?,
        tid: narrow(wide())?,
        clock: narrow(wide())?,
        hz: wide()?,
        begin: wide()?,
        end: wide()?,
        lost: wide()?,
        mended: wide()?,
    })
}

fn place(data: &mut &[u8]) -> Option<Option<i64>> {
    let folded = number(data)?.checked_sub(1);
    Some(folded.map(|folded| (folded >> 1).cast_signed() ^ -(folded & 1).cast_signed()))
}

/// A number; nothing where it is cut off or has more than 64 bits.
fn number(data: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for at in 0..LONGEST {
        let (&byte, rest) = data.split_first()?;
        *data = rest;
        let bits = u64::from(byte & 0x7F);
        let shifted = bits << (7 * at);
        if shifted >> (7 * at) != bits {
            return None;
        }
        number |= shifted;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(
        room: usize,
        header: &Header,
        name: &[u8],
        write: impl FnOnce(&mut Writer<&mut dyn FnMut(usize, u8)>),
    ) -> ([u8; 1024], usize) {
        let mut bytes = [0; 1024];
        let mut put = |at: usize, byte: u8| bytes[..room][at] = byte;
        let mut writer =
            Writer::new(room, &mut put as &mut dyn FnMut(usize, u8), header, name).unwrap();
        write(&mut writer);
        let length = writer.finish(true);
        (bytes, length)
    }

    fn any_header() -> impl Strategy<Value = Header> {
        let numbers = (any::<[u32; 4]>(), any::<[u64; 5]>(), 1u32..3, any::<bool>());
        numbers.prop_map(
            |([sequence, serial, tid, clock], [hz, begin, end, lost, mended], what, begins)| {
                Header { what, begins, sequence, serial, tid, clock, hz, begin, end, lost, mended }
            },
        )
    }

    proptest! {
        #[test]
        fn nodes_come_back(
            header in any_header(), name in prop::collection::vec(any::<u8>(), 0..80),
            first: u32, steps in prop::collection::vec((0u32..9, any::<u32>(), any::<Option<i64>>(), any::<[u64; 4]>()), 0..40),
            room in LEAST_ROOM..1024,
        ) {
            let header = Header { what: what::TREE, ..header };
            let mut next = first;
            let mut nodes = [Node::default(); 40];
            let mut count = 0;
            let (bytes, length) = written(room, &header, &name, |writer| for &(step, parent, place, numbers) in &steps {
                if !writer.has_room() || next > u32::MAX - 20 {
                    break;
                }
                let [calls, own, least, most] = numbers;
                let index = next + step;
                // No distance is the lowest number, which would be none.
                let place = place.filter(|&place| place != i64::MIN);
                nodes[count] = Node { index, parent: parent.checked_rem(index).unwrap_or(0), place, calls, own, least, most };
                writer.node(&nodes[count]);
                next = index + 1;
                count += 1;
            });
            prop_assert!(length <= room && (count > 0 || steps.is_empty() || first > u32::MAX - 20));
            let piece = Piece::decode(&bytes).unwrap();
            prop_assert_eq!((piece.header, piece.has_more, piece.length), (header, true, length));
            prop_assert_eq!(piece.name, &name[name.len().saturating_sub(MAX_NAME)..]);
            prop_assert!(piece.nodes().eq(nodes[..count].iter().map(|&node| Ok(node))));
        }

        #[test]
        fn items_come_back(header in any_header(), items in prop::collection::vec((any::<bool>(), any::<[i64; 2]>(), any::<u64>()), 0..20)) {
            let header = Header { what: what::ARCS, ..header };
            let places = |places: [i64; 2]| places.map(|place| (place > i64::MIN).then_some(place));
            let mut items = items.iter().map(|&(is_span, two, count)| Item { is_span, places: places(two), count });
            let (bytes, length) = written(1024, &header, b"", |writer| items.clone().for_each(|item| writer.item(&item)));
            let piece = Piece::decode(&bytes[..length]).unwrap();
            prop_assert!(piece.items().all(|item| item.ok() == items.next()) && items.next().is_none());
        }

        #[test]
        fn a_flipped_bit_is_seen(header in any_header(), bit in 0usize..8 * 90) {
            let (mut bytes, length) = written(512, &header, b"name", |writer| writer.number(7));
            prop_assert!(Piece::decode(&bytes[..length]).is_ok());
            let bit = bit % (8 * length);
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(Piece::decode(&bytes[..length]).is_err());
        }

        /// Whatever the bytes behind a right checksum.
        #[test]
        fn any_body_is_read_to_its_end(mut body in prop::collection::vec(prop_oneof![any::<u8>(), 0u8..3], NUMBERS + 1..200)) {
            body[0] = VERSION as u8;
            let mut bytes = [0u8; 256];
            let length = START + body.len() + 4;
            bytes[..4].copy_from_slice(&SYNC);
            bytes[4] = length as u8;
            bytes[START..][..body.len()].copy_from_slice(&body);
            bytes[length - 4..length].copy_from_slice(&Crc::new().update(&body).finish().to_le_bytes());
            if let Ok(piece) = Piece::decode(&bytes[..length]) {
                prop_assert!(piece.nodes().count() <= body.len() && piece.items().count() <= body.len());
                let mut last = None;
                for node in piece.nodes().map_while(Result::ok) {
                    prop_assert!(last < Some(node.index) && (node.parent < node.index || node.index == 0));
                    last = Some(node.index);
                }
            }
        }
    }

    #[test]
    fn each_damage_has_its_name() {
        let (bytes, length) = written(256, &Header { what: 1, ..Header::default() }, b"", |_| {});
        let whole = &bytes[..length];
        let with = |at: usize, byte: u8| {
            let mut bytes = bytes;
            bytes[at] = byte;
            let checksum = Crc::new().update(&bytes[START..length - 4]).finish().to_le_bytes();
            bytes[length - 4..length].copy_from_slice(&checksum);
            Piece::decode(&bytes[..length]).err()
        };
        assert!(Piece::decode(whole).is_ok());
        assert_eq!(Piece::decode(&whole[1..]), Err(Damage::Sync));
        assert_eq!(Piece::decode(&whole[..length - 1]), Err(Damage::CutOff));
        assert_eq!(Piece::decode(&whole[..6]), Err(Damage::CutOff));
        assert_eq!(with(4, 3), Some(Damage::Length(3)));
        assert_eq!(with(8, 2), Some(Damage::Version(2)));
        assert_eq!(with(9, 3), Some(Damage::Header));
        assert_eq!(with(20, 90), Some(Damage::Header));
        assert!(Writer::new(LEAST_ROOM - 1, |_, _| (), &Header::default(), b"").is_none());
    }
}
