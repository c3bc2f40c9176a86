//! The images that pieces are of: each a process of the recording, known by its name, with a window wide enough for all
//! its places.

use crate::escapes::Module;
use crate::packets::Payload;
use crate::symbols::{Symbols, WindowId};
use crate::writer::PacketWriter;
use std::collections::{BTreeSet, HashMap};
use std::io;
use teeperf_wire::body::{chunk, process, process_end};
use teeperf_wire::compose;
use teeperf_wire::packet::kind;
use teeperf_wire::piece::{Piece, what};
use teeperf_wire::shared::ClockKind;
use teeperf_wire::tree::OVERFLOW;
use teeperf_wire::word::{self, FIRST_SITE};

/// Places that are farther from the anchor than this have no site.
const MOST_REACH: u64 = 512 << 20;
/// A window is at least so wide to each side.
const LEAST_REACH: u64 = 1 << 20;

/// All of them, in the order in which they come.
pub(super) struct Images {
    by_name: HashMap<Vec<u8>, usize>,
    images: Vec<Image>,
}

/// One of them.
struct Image {
    name: Vec<u8>,
    /// Places up to there, on both sides of the anchor, have sites.
    reach: u64,
    /// Sites that are asked for.
    sites: BTreeSet<u32>,
}

impl Images {
    pub(super) fn of<'a>(pieces: impl Iterator<Item = &'a Piece<'a>>) -> Self {
        let mut all = Self { by_name: HashMap::new(), images: Vec::new() };
        let mut places: Vec<BTreeSet<i64>> = Vec::new();
        for piece in pieces {
            let at = *all.by_name.entry(piece.name.to_vec()).or_insert_with(|| {
                let name = piece.name.to_vec();
                all.images.push(Image { name, reach: LEAST_REACH, sites: BTreeSet::new() });
                places.push(BTreeSet::new());
                all.images.len() - 1
            });
            if piece.header.what == what::ARCS {
                let items = piece.items().map_while(Result::ok);
                places[at].extend(items.flat_map(|item| item.places).flatten());
            } else {
                let nodes = piece.nodes().map_while(Result::ok);
                let nodes = nodes.filter(|node| node.index > OVERFLOW);
                places[at].extend(nodes.filter_map(|node| node.place));
            }
        }
        for (image, places) in all.images.iter_mut().zip(places) {
            image.widen(&places);
        }
        all
    }

    /// Number of a piece's image, from 0, which has one.
    pub(super) fn number(&self, piece: &Piece<'_>) -> usize {
        self.by_name.get(piece.name).copied().unwrap_or(0)
    }

    /// Word of a call at a place; where it has none [`FAR`](teeperf_wire::body::arcs::FAR), and what stands for its
    /// address.
    pub(super) fn word(&self, image: usize, place: Option<i64>) -> (u32, u64) {
        let Some(place) = place else { return (0, 0) };
        match self.images[image].site(place) {
            Some(site) => (word::call(site), 0),
            None => (0, place.cast_unsigned()),
        }
    }

    /// For people.
    pub(super) fn name(&self, image: usize) -> String {
        match String::from_utf8_lossy(&self.images[image].name) {
            name if name.is_empty() => "an image without a name".into(),
            name => name.into_owned(),
        }
    }

    /// Names of all that have one.
    pub(super) fn names(&self) -> impl Iterator<Item = &[u8]> {
        self.images.iter().map(|image| &image.name[..]).filter(|name| !name.is_empty())
    }

    /// Writes what each is, and where its functions are; how many words those chunks have.
    pub(super) fn write(
        &self,
        writer: &mut PacketWriter,
        time: u64,
        clock: ClockKind,
    ) -> io::Result<u64> {
        let mut all = 0;
        for (at, image) in self.images.iter().enumerate() {
            let id = at as u32 + 1;
            let packet = Payload::default()
                .number(process::ID, id.into())
                .bytes(process::EXECUTABLE, &image.name)
                .number(process::TIME, time);
            writer.packet(kind::PROCESS, &packet.finish())?;
            let words = image.words();
            let header = chunk::Header {
                process: id,
                thread: 1,
                tid: 1,
                sequence: 1,
                count: words.len() as u32,
                time,
                cpu_ns: u64::MAX,
                clock: clock as u8,
                encoding: chunk::encoding::PLAIN,
                flags: chunk::WHOLE,
                ..chunk::Header::default()
            };
            let bytes = words.iter().flat_map(|word| word.to_le_bytes());
            let payload: Vec<u8> = header.encode().into_iter().chain(bytes).collect();
            writer.packet(kind::CHUNK, &payload)?;
            all += words.len() as u64;
        }
        Ok(all)
    }

    /// Writes that they have ended.
    pub(super) fn end(&self, writer: &mut PacketWriter, time: u64) -> io::Result<()> {
        for id in 1..=self.images.len() as u64 {
            let packet = Payload::default().number(process_end::ID, id);
            writer.packet(kind::PROCESS_END, &packet.number(process_end::TIME, time).finish())?;
        }
        Ok(())
    }

    /// Asks for the symbols of all places.
    pub(super) fn ask(&self, symbols: &Symbols) {
        for (at, image) in self.images.iter().enumerate() {
            let window = WindowId { process: at as u32 + 1, first_site: FIRST_SITE };
            symbols.open(window, 0, image.module());
            symbols.seen(window, image.sites.iter().map(|&site| site..site + 1).collect());
        }
    }
}

impl Image {
    fn widen(&mut self, places: &BTreeSet<i64>) {
        let reach = |place: i64| place.unsigned_abs() + 1;
        let near = places.iter().map(|&place| reach(place)).filter(|&reach| reach <= MOST_REACH);
        let farthest = near.max().unwrap_or(0);
        self.reach = farthest.next_power_of_two().clamp(LEAST_REACH, MOST_REACH);
        self.sites = places.iter().filter_map(|&place| self.site(place)).collect();
    }

    fn site(&self, place: i64) -> Option<u32> {
        let offset =
            place.checked_add_unsigned(self.reach).and_then(|at| u32::try_from(at).ok())?;
        (u64::from(offset) < 2 * self.reach).then(|| FIRST_SITE + offset)
    }

    fn window(&self) -> compose::Window {
        compose::Window {
            opens: true,
            is_anchored: true,
            first_site: FIRST_SITE,
            sites: 2 * self.reach as u32,
            address: self.reach.wrapping_neg(),
            bias: 0,
        }
    }

    /// That the window opens.
    fn words(&self) -> Vec<u32> {
        let mut words = compose::module(&self.window(), 0, self.name.len()).to_vec();
        words.extend(self.name.chunks(3).map(word::pack_bytes));
        words
    }

    /// The same for who looks for symbols. Of a path the last part counts: where files lie here, the image does not
    /// know.
    fn module(&self) -> Module {
        let window = self.window();
        let name = self.name.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
        Module {
            first_site: window.first_site,
            sites: window.sites,
            address: window.address,
            bias: window.bias,
            is_anchored: true,
            build_id: Vec::new(),
            path: name.to_vec(),
        }
    }
}

const _: () = assert!(FIRST_SITE as u64 + 2 * MOST_REACH <= word::MAX_SITE as u64);
