//! Who has attached, and what a hello is answered with. Does no I/O.

use crate::control::Request;
use crate::process::Shared;
use crate::segment::Segment;
use crate::socket::Peer;
use crate::trust::Owner;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use teeperf_wire::hello::{HELLO_SIZE, Hello, VERSION, refusal, want};

/// Most processes attached at once.
pub(crate) const MAX_PROCESSES: usize = 4096;

/// Most arenas of one process.
pub(crate) const MAX_ARENAS: usize = 256;

/// Processes that are attached.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    /// By process id, and whether it is lent arenas: a program may have hooks besides.
    by_pid: HashMap<(u32, bool), Known>,
    /// The number that was given out last, to whatever process.
    ids: Arc<AtomicU32>,
}

#[derive(Debug)]
struct Known {
    id: u32,
    token: u64,
    shared: Arc<Shared>,
}

/// What to do with a message.
#[derive(Debug)]
pub(crate) enum Decision {
    /// A new process, or a new program in a known one: whose number is `exec_of`, or 0. With arenas or
    /// with segments.
    Attach { id: u32, inner_pid: u32, exec_of: u32, with_arenas: bool },
    /// A further arena of a process with this token.
    Arena { shared: Arc<Shared>, inner_pid: u32, token: u64 },
    /// A further segment of a process with this token.
    Segment { segment: Arc<Segment>, token: u64 },
    /// The maps of filters for a module, which these bytes describe, of this process.
    Map { id: u32, token: u64, number: u32, module: Vec<u8> },
    /// Whether the thread of this id is left out.
    Thread { tid: u32, token: u64 },
    /// Recording is to go on, because this process calls a function that it waits for.
    Begin { id: u32, token: u64 },
    /// A process that was given memory could not map it.
    Unmapped,
    /// Asked from outside.
    Control(Request),
    /// Asked from outside what cannot be done; this is the answer.
    Answer(Vec<u8>),
    /// One of [`refusal`].
    Refuse(u32),
    /// It has as many arenas as one process may: as [`refusal::UNKNOWN`].
    NoMoreArenas,
    /// No message of ours, or from somebody else's process: no answer.
    Ignore,
}

impl Registry {
    /// With numbers behind this one.
    pub(crate) fn numbered(ids: Arc<AtomicU32>) -> Self {
        Self { ids, ..Self::default() }
    }

    /// What to answer. The processes of the recorder's `owner` are served; where that is root, also those of
    /// other users that descend from the command.
    pub(crate) fn decide(
        &mut self,
        message: &[u8],
        peer: Peer,
        owner: Owner,
        is_descendant: impl FnOnce() -> bool,
    ) -> Decision {
        if !owner.is_of(peer) {
            return match owner.is_root() && is_descendant() {
                true => self.decide_hello(message, peer),
                false => Decision::Ignore,
            };
        }
        match Request::decode(message) {
            Some(Ok(request)) => Decision::Control(request),
            Some(Err(answer)) => Decision::Answer(answer),
            None => self.decide_hello(message, peer),
        }
    }

    fn decide_hello(&mut self, message: &[u8], peer: Peer) -> Decision {
        let Some(hello) = Hello::decode(message) else { return Decision::Ignore };
        if hello.version != VERSION {
            return Decision::Refuse(refusal::VERSION);
        }
        if hello.segment != 0 && hello.want == want::ARENA {
            return self.arena(&hello).unwrap_or(Decision::Refuse(refusal::UNKNOWN));
        }
        if hello.want == want::UNMAPPED {
            return match self.by_pid.values().any(|known| known.token == hello.token) {
                true => Decision::Unmapped,
                false => Decision::Ignore,
            };
        }
        if matches!(hello.want, want::FILTER | want::THREAD | want::BEGIN) {
            return self.filter(&hello, message).unwrap_or(Decision::Refuse(refusal::UNKNOWN));
        }
        if hello.segment != 0 {
            return self.segment(&hello).unwrap_or(Decision::Refuse(refusal::UNKNOWN));
        }
        let with_arenas = hello.want == want::ARENA;
        let exec_of = self.by_pid.get(&(peer.pid, with_arenas)).map_or(0, |known| known.id);
        if peer.pid == 0 || exec_of == 0 && self.by_pid.len() >= MAX_PROCESSES {
            return Decision::Refuse(refusal::CLOSED);
        }
        let id = self.ids.fetch_add(1, Relaxed) + 1;
        Decision::Attach { id, inner_pid: hello.pid, exec_of, with_arenas }
    }

    /// The process was given its memory.
    pub(crate) fn attached(
        &mut self,
        (pid, with_arenas): (u32, bool),
        id: u32,
        token: u64,
        shared: Arc<Shared>,
    ) {
        self.by_pid.insert((pid, with_arenas), Known { id, token, shared });
    }

    /// The process is gone: its number, if it is still the one known by that process id.
    pub(crate) fn gone(&mut self, pid: u32, id: u32) {
        for with_arenas in [false, true] {
            if self.by_pid.get(&(pid, with_arenas)).is_some_and(|known| known.id == id) {
                self.by_pid.remove(&(pid, with_arenas));
            }
        }
    }

    /// The token alone says whose segment it is: a child of `vfork` writes and asks in its
    /// parent's name.
    fn segment(&self, hello: &Hello) -> Option<Decision> {
        let known = self.by_pid.values().find(|known| known.token == hello.token)?;
        let segments = known.shared.segments.lock().unwrap_or_else(|lock| lock.into_inner());
        let segment = Arc::clone(segments.get(hello.segment as usize)?);
        Some(Decision::Segment { segment, token: known.token })
    }

    fn filter(&self, hello: &Hello, message: &[u8]) -> Option<Decision> {
        let known = self.by_pid.values().find(|known| known.token == hello.token)?;
        let (id, token) = (known.id, known.token);
        Some(match hello.want {
            want::THREAD => Decision::Thread { tid: hello.segment, token },
            want::BEGIN => Decision::Begin { id, token },
            _ => {
                let (number, module) = (hello.segment, message.get(HELLO_SIZE..)?.to_vec());
                Decision::Map { id, token, number, module }
            }
        })
    }

    fn arena(&self, hello: &Hello) -> Option<Decision> {
        let known = self.by_pid.values().find(|known| known.token == hello.token)?;
        let arenas = known.shared.segments.lock().unwrap_or_else(|lock| lock.into_inner());
        let has_arenas = arenas.first().is_some_and(|first| first.clock().is_some());
        let shared = Arc::clone(&known.shared);
        has_arenas.then(|| match arenas.len() {
            ..MAX_ARENAS => Decision::Arena { shared, inner_pid: hello.pid, token: known.token },
            _ => Decision::NoMoreArenas,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::Class;
    use std::sync::Mutex;

    const UID: u32 = 1000;

    fn own() -> Owner {
        Owner::of(UID)
    }

    fn peer(pid: u32) -> Peer {
        Peer { pid, uid: UID }
    }

    fn hello(segment: u32, token: u64) -> [u8; teeperf_wire::hello::HELLO_SIZE] {
        let want = want::SEGMENTS;
        Hello { version: VERSION, segment, token, pid: 7, want }.encode()
    }

    fn attach(registry: &mut Registry, pid: u32, token: u64) -> (u32, u32) {
        let decision = registry.decide(&hello(0, 0), peer(pid), own(), || false);
        let Decision::Attach { id, exec_of, .. } = decision else { panic!("{decision:?}") };
        let segments = vec![Arc::new(Segment::create(Class::Small).unwrap())];
        let shared = Arc::new(Shared { segments: Mutex::new(segments) });
        registry.attached((pid, false), id, token, shared);
        (id, exec_of)
    }

    #[test]
    fn processes_are_numbered_and_exec_is_seen() {
        let mut registry = Registry::default();
        assert_eq!(attach(&mut registry, 50, 11), (1, 0));
        assert_eq!(attach(&mut registry, 60, 12), (2, 0));
        assert_eq!(attach(&mut registry, 50, 13), (3, 1));
        registry.gone(50, 1);
        assert_eq!(attach(&mut registry, 50, 14), (4, 3));
        registry.gone(50, 4);
        assert_eq!(attach(&mut registry, 50, 15), (5, 0));
    }

    #[test]
    fn segments_are_for_those_with_a_token() {
        let mut registry = Registry::default();
        attach(&mut registry, 50, 11);
        let mut ask = |segment, token, pid| {
            registry.decide(&hello(segment, token), peer(pid), own(), || false)
        };
        assert!(matches!(ask(1, 11, 50), Decision::Refuse(refusal::UNKNOWN)));
        assert!(matches!(ask(1, 12, 50), Decision::Refuse(refusal::UNKNOWN)));
        let segments = &registry.by_pid[&(50, false)].shared.segments;
        segments.lock().unwrap().push(Arc::new(Segment::create(Class::Large).unwrap()));
        for pid in [50, 51] {
            let decision = registry.decide(&hello(1, 11), peer(pid), own(), || false);
            assert!(matches!(decision, Decision::Segment { token: 11, .. }), "{decision:?}");
        }
        registry.gone(50, 1);
        let decision = registry.decide(&hello(1, 11), peer(50), own(), || false);
        assert!(matches!(decision, Decision::Refuse(refusal::UNKNOWN)));
    }

    #[test]
    fn filters_are_for_those_with_a_token() {
        let mut registry = Registry::default();
        attach(&mut registry, 50, 11);
        let mut ask = |want, token| {
            let hello = Hello { version: VERSION, segment: 9, token, pid: 7, want };
            registry.decide(&[&hello.encode()[..], &[1, 2]].concat(), peer(51), own(), || false)
        };
        let decision = ask(want::FILTER, 11);
        assert!(
            matches!(&decision, Decision::Map { id: 1, token: 11, number: 9, module } if *module == [1, 2]),
            "{decision:?}"
        );
        assert!(matches!(ask(want::THREAD, 11), Decision::Thread { tid: 9, token: 11 }));
        assert!(matches!(ask(want::BEGIN, 11), Decision::Begin { id: 1, token: 11 }));
        for want in [want::FILTER, want::THREAD, want::BEGIN] {
            assert!(matches!(ask(want, 12), Decision::Refuse(refusal::UNKNOWN)));
        }
    }

    #[test]
    fn strangers_are_not_answered() {
        let mut registry = Registry::default();
        let stranger = Peer { pid: 50, uid: UID + 1 };
        assert!(matches!(
            registry.decide(&hello(0, 0), stranger, own(), || false),
            Decision::Ignore
        ));
        let stop = Request::Stop.encode();
        assert!(matches!(registry.decide(&stop, stranger, own(), || false), Decision::Ignore));
        assert!(matches!(
            registry.decide(&stop, peer(50), own(), || false),
            Decision::Control(Request::Stop)
        ));
        assert!(matches!(registry.decide(b"what?", peer(50), own(), || false), Decision::Ignore));
        let decision = registry.decide(&hello(0, 0), peer(0), own(), || false);
        assert!(matches!(decision, Decision::Refuse(refusal::CLOSED)));
        let want = want::SEGMENTS;
        let old = Hello { version: VERSION + 1, segment: 0, token: 0, pid: 7, want }.encode();
        let decision = registry.decide(&old, peer(50), own(), || false);
        assert!(matches!(decision, Decision::Refuse(refusal::VERSION)));
    }

    #[test]
    fn root_serves_others_that_descend_from_its_command() {
        let mut registry = Registry::default();
        let mut ask = |owner, is_descendant: bool, message: &[u8]| {
            registry.decide(message, peer(50), Owner::of(owner), || is_descendant)
        };
        assert!(matches!(ask(0, true, &hello(0, 0)), Decision::Attach { .. }));
        assert!(matches!(ask(0, false, &hello(0, 0)), Decision::Ignore));
        assert!(matches!(ask(UID + 1, true, &hello(0, 0)), Decision::Ignore));
        assert!(matches!(ask(0, true, &Request::Stop.encode()), Decision::Ignore));
    }

    #[test]
    fn there_is_an_end_to_processes() {
        let mut registry = Registry::default();
        for pid in 1..=MAX_PROCESSES as u32 {
            registry.attached(
                (pid, false),
                pid,
                1,
                Arc::new(Shared { segments: Mutex::default() }),
            );
        }
        let decision = registry.decide(&hello(0, 0), peer(1_000_000), own(), || false);
        assert!(matches!(decision, Decision::Refuse(refusal::CLOSED)));
        let decision = registry.decide(&hello(0, 0), peer(5), own(), || false);
        assert!(matches!(decision, Decision::Attach { exec_of: 5, .. }));
    }
}
