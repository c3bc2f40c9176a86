//! Reads a recording back, from the format's description: strict, and with everything in memory.

use std::collections::BTreeMap;
use teeperf_wire::body::{chunk, end, notice, process, process_end, start};
use teeperf_wire::packet::{HEADER_SIZE, Header, kind};
use teeperf_wire::word::{Word, code, decode, has_payload};

/// A recording, taken apart.
#[derive(Debug, Default)]
pub(crate) struct Recording {
    pub(crate) packets: Vec<(u16, Vec<u8>)>,
    /// Bytes behind the last whole packet.
    pub(crate) rest: usize,
}

/// A chunk packet.
#[derive(Clone, Debug)]
pub(crate) struct Chunk {
    pub(crate) header: chunk::Header,
    pub(crate) words: Vec<u32>,
}

impl Recording {
    /// From a file's bytes; panics where they are damaged.
    pub(crate) fn new(mut bytes: &[u8]) -> Self {
        let mut recording = Self::default();
        while let Some((head, rest)) = bytes.split_at_checked(HEADER_SIZE) {
            let header = Header::decode(head.try_into().unwrap()).unwrap();
            let Some((payload, rest)) = rest.split_at_checked(header.length as usize) else {
                break;
            };
            assert!(header.fits(payload), "packet {} is damaged", recording.packets.len());
            assert_eq!(header.sequence as usize, recording.packets.len());
            recording.packets.push((header.kind, payload.to_vec()));
            bytes = rest;
        }
        recording.rest = bytes.len();
        assert_eq!(recording.packets.first().map(|packet| packet.0), Some(kind::START));
        assert!(recording.number(kind::START, start::HZ).is_some());
        recording
    }

    /// Whether the recorder closed it.
    pub(crate) fn is_closed(&self) -> bool {
        self.rest == 0 && self.packets.last().is_some_and(|packet| packet.0 == kind::END)
    }

    /// The first field with this tag in a packet of this kind, as a number.
    pub(crate) fn number(&self, kind: u16, tag: u16) -> Option<u64> {
        self.numbers(kind, tag).first().copied()
    }

    /// All of them.
    pub(crate) fn numbers(&self, kind: u16, tag: u16) -> Vec<u64> {
        let fields = self.fields(kind, tag).into_iter();
        fields.map(|value| u64::from_le_bytes(value[..8].try_into().unwrap())).collect()
    }

    /// The first field with this tag in a packet of this kind, as text.
    pub(crate) fn text(&self, kind: u16, tag: u16) -> Option<String> {
        self.fields(kind, tag).first().map(|value| String::from_utf8(value.clone()).unwrap())
    }

    fn fields(&self, kind: u16, tag: u16) -> Vec<Vec<u8>> {
        let packets = self.packets.iter().filter(|packet| packet.0 == kind);
        let fields = packets.flat_map(|packet| teeperf_wire::fields::read(&packet.1));
        let tagged = fields.map(Result::unwrap).filter(|field| field.tag == tag);
        tagged.map(|field| field.value.to_vec()).collect()
    }

    /// Texts of all notices.
    pub(crate) fn notices(&self) -> Vec<String> {
        let texts = self.fields(kind::NOTICE, notice::TEXT).into_iter();
        texts.map(|text| String::from_utf8(text).unwrap()).collect()
    }

    /// Numbers of the processes that attached, and of those that ended.
    pub(crate) fn processes(&self) -> (Vec<u64>, Vec<u64>) {
        let attached = self.numbers(kind::PROCESS, process::ID);
        (attached, self.numbers(kind::PROCESS_END, process_end::ID))
    }

    /// What the end packet says of words.
    pub(crate) fn words_in_all(&self) -> Option<u64> {
        self.number(kind::END, end::WORDS)
    }

    /// All chunk packets, as they stand.
    pub(crate) fn chunks(&self) -> Vec<Chunk> {
        let packets = self.packets.iter().filter(|packet| packet.0 == kind::CHUNK);
        packets.map(|packet| read_chunk(&packet.1)).collect()
    }

    /// Words of each thread of each process, in the order of the recording, which must be the
    /// right one: chunk after chunk, piece after piece.
    pub(crate) fn threads(&self) -> BTreeMap<(u32, u32), Vec<u32>> {
        let mut threads = BTreeMap::<_, (u32, u32, Vec<u32>)>::new();
        for Chunk { header, words } in self.chunks() {
            let entry = threads.entry((header.process, header.thread));
            let (sequence, first, all) = entry.or_insert((1, 0, Vec::new()));
            assert_eq!((header.sequence, header.first), (*sequence, *first), "{header:?}");
            *first += header.count;
            if header.flags & chunk::WHOLE != 0 {
                (*sequence, *first) = (*sequence + 1, 0);
            }
            all.extend(words);
        }
        threads.into_iter().map(|(key, (_, _, words))| (key, words)).collect()
    }
}

/// Words without those that only fill or move the tick.
pub(crate) fn events(words: &[u32]) -> Vec<u32> {
    let is_event = |word: &&u32| !matches!(decode(**word), Word::Escape { .. });
    words.iter().filter(is_event).copied().collect()
}

fn read_chunk(payload: &[u8]) -> Chunk {
    let (header, data) = chunk::Header::decode(payload).unwrap();
    let data = match header.encoding {
        chunk::encoding::PLAIN => data.to_vec(),
        _ => zstd::bulk::decompress(data, chunk::MAX_BYTES).unwrap(),
    };
    let words = match header.encoding {
        chunk::encoding::CYCLE_ZSTD => join(&data, &header),
        _ => numbers(&data),
    };
    assert_eq!(words.len(), header.count as usize);
    assert!(!words.contains(&0));
    Chunk { header, words }
}

fn numbers(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|four| u32::from_le_bytes(four.try_into().unwrap())).collect()
}

/// Puts the times of the second plane back behind the events of the first.
fn join(data: &[u8], header: &chunk::Header) -> Vec<u32> {
    let (first, times) = data.split_at(header.words_bytes as usize);
    let (first, mut times) = (numbers(first), times.iter());
    let mut last = header.time as u32;
    let (mut words, mut payload) = (Vec::new(), 0);
    for (at, &word) in first.iter().enumerate() {
        words.push(word);
        if payload > 0 {
            payload -= 1;
            continue;
        }
        match decode(word) {
            Word::Escape { code, .. } if has_payload(code) => {
                payload = 1 + (first[at + 1] & 0x7FFF_FFFF);
            }
            Word::Call { .. } | Word::Return { .. } => {
                let (mut step, mut shift) = (0u32, 0);
                loop {
                    let byte = *times.next().unwrap();
                    step |= u32::from(byte & 0x7F) << shift;
                    shift += 7;
                    if byte < 0x80 {
                        break;
                    }
                }
                last = last.wrapping_add(step);
                words.push(last);
            }
            _ => {}
        }
    }
    assert_eq!(times.len(), 0);
    words
}

/// Number of holes among these words.
pub(crate) fn holes(words: &[u32]) -> usize {
    let is_hole = |word: &&u32| matches!(decode(**word), Word::Escape { code: code::HOLE, .. });
    words.iter().filter(is_hole).count()
}
