//! Builds recordings for tests and examples, byte by byte, with nothing of the crate that
//! reads them.
#![allow(dead_code, reason = "each test uses a part of it")]

pub(crate) mod item;
pub(crate) mod samples;
pub(crate) mod slow;

use teeperf_wire::body::{self, chunk};
use teeperf_wire::fields::Writer;
use teeperf_wire::packet::{Header, MAJOR, MINOR, kind};

/// A recording under way.
pub(crate) struct Builder {
    pub(crate) bytes: Vec<u8>,
    sequence: u32,
    words: u64,
}

/// A field: tag and value.
pub(crate) type Field<'a> = (u16, &'a [u8]);

impl Builder {
    /// With no packet yet.
    pub(crate) fn empty() -> Self {
        Self { bytes: Vec::new(), sequence: 0, words: 0 }
    }

    /// With a start packet: a tick clock of a unit a nanosecond, hooks without cost.
    pub(crate) fn new() -> Self {
        let mut builder = Self::empty();
        builder.start(&[]);
        builder
    }

    /// A start packet with these fields besides.
    pub(crate) fn start(&mut self, more: &[Field<'_>]) {
        let version = u32::from(MAJOR) | u32::from(MINOR) << 16;
        let mut fields: Vec<Field<'_>> = vec![];
        let (version, hz) = (version.to_le_bytes(), 1_000_000_000u64.to_le_bytes());
        fields.push((body::start::VERSION, &version));
        fields.push((body::start::HZ, &hz));
        fields.extend_from_slice(more);
        self.fields(kind::START, &fields);
    }

    pub(crate) fn fields(&mut self, packet_kind: u16, fields: &[Field<'_>]) {
        let mut room = vec![0; fields.iter().map(|(_, value)| value.len() + 8).sum()];
        let mut writer = Writer::new(&mut room);
        for (tag, value) in fields {
            writer.bytes(*tag, value).unwrap();
        }
        let payload = writer.finish().to_vec();
        self.packet(packet_kind, &payload);
    }

    pub(crate) fn packet(&mut self, packet_kind: u16, payload: &[u8]) {
        self.bytes.extend(Header::encode(packet_kind, self.sequence, payload));
        self.bytes.extend_from_slice(payload);
        self.sequence = self.sequence.wrapping_add(1);
    }

    pub(crate) fn process(&mut self, id: u32, pid: u32, executable: &str) {
        let (id, pid) = (u64::from(id).to_le_bytes(), u64::from(pid).to_le_bytes());
        self.fields(
            kind::PROCESS,
            &[
                (body::process::ID, &id),
                (body::process::PID, &pid),
                (body::process::EXECUTABLE, executable.as_bytes()),
            ],
        );
    }

    /// A chunk; `count` and `encoding` of the header are filled in.
    pub(crate) fn chunk(&mut self, header: chunk::Header, words: &[u32], compressed: bool) {
        let mut data: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut header = chunk::Header { count: words.len() as u32, encoding: 0, ..header };
        if compressed {
            data = zstd::bulk::compress(&data, 1).unwrap();
            header.encoding = chunk::encoding::ZSTD;
        }
        self.words += words.len() as u64;
        self.packet(kind::CHUNK, &[&header.encode()[..], &data].concat());
    }

    /// The filters that [`slow::passes`] knows, of process 1.
    pub(crate) fn filters(&mut self) {
        for number in 1..4 {
            // Said once the one way, once the other.
            let others_pass = number % 2 == 0;
            let listed = |site: &u32| slow::passes(number, u64::from(*site)) != others_pass;
            self.filter(number, 1, 0x1000..0x1040, others_pass, (0x1000..0x1040).filter(listed));
        }
    }

    fn filter(
        &mut self,
        number: u32,
        process: u32,
        window: std::ops::Range<u32>,
        others_pass: bool,
        listed: impl Iterator<Item = u32>,
    ) {
        let wide = |value: u32| u64::from(value).to_le_bytes();
        let list: Vec<u8> = listed.flat_map(u32::to_le_bytes).collect();
        self.fields(
            kind::FILTER,
            &[
                (body::filter::NUMBER, &wide(number)),
                (body::filter::PROCESS, &wide(process)),
                (body::filter::FIRST_SITE, &wide(window.start)),
                (body::filter::SITES, &wide(window.end - window.start)),
                (body::filter::OTHERS_PASS, &wide(others_pass.into())),
                (body::filter::LIST, &list),
            ],
        );
    }

    pub(crate) fn symbols(
        &mut self,
        process: u32,
        first_site: u32,
        symbols: &[(u32, u32, u32, &str, &str)],
    ) {
        let (process, first) =
            (u64::from(process).to_le_bytes(), u64::from(first_site).to_le_bytes());
        let values: Vec<Vec<u8>> = symbols
            .iter()
            .map(|(site, size, line, name, file)| {
                let mut value =
                    [site.to_le_bytes(), size.to_le_bytes(), line.to_le_bytes()].concat();
                value.extend((name.len() as u16).to_le_bytes());
                value.extend(name.bytes());
                value.extend(file.bytes());
                value
            })
            .collect();
        let mut fields: Vec<Field<'_>> =
            vec![(body::symbols::PROCESS, &process), (body::symbols::FIRST_SITE, &first)];
        fields.extend(values.iter().map(|value| (body::symbols::SYMBOL, &value[..])));
        self.fields(kind::SYMBOLS, &fields);
    }

    /// The bytes, closed in order.
    pub(crate) fn end(mut self) -> Vec<u8> {
        let words = self.words.to_le_bytes();
        self.fields(kind::END, &[(body::end::WORDS, &words)]);
        self.bytes
    }
}
