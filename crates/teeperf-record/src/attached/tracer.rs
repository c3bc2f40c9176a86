//! The thread that traces, from its start to its end: all of ptrace is its own.

use super::target::{self, AttachError, Target};
use super::timer::{self, Ticks};
use super::work::{Work, notice};
use crate::clock::ClockPage;
use crate::drain::Event;
use crate::packets::Level;
use crate::sample::{Gate, Keeper, gate};
use crate::sgx::{NO_EVENTS, Sgx, Within};
use crate::stats::Stats;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;
use teeperf_aex::sampler::Settings;
use teeperf_aex::told;
use teeperf_wire::body::sampled::source;

/// The running thread. Dropping it lets all threads go on, and ends it.
#[derive(Debug)]
pub(crate) struct Tracer {
    thread: Option<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
}

/// What it works with.
#[derive(Debug)]
pub(crate) struct Means {
    pub(crate) sgx: Sgx,
    pub(crate) target: Target,
    pub(crate) page: Arc<ClockPage>,
    pub(crate) stats: Arc<Stats>,
    pub(crate) events: Sender<Event>,
}

/// Between two ticks where the kernel says when threads are due.
const TICK: Duration = Duration::from_millis(10);
/// Where it does not: as often as is asked for, within these.
const LOOKS: [u64; 2] = [500_000, 4_000_000];

/// As the recording is told.
pub(super) fn settings(sgx: &Sgx) -> Settings {
    let modules = Arc::default();
    Within { how: sgx.how, has_enclaves: true, modules }.settings()
}

/// Payloads of the packets that say what is sampled, and how; the samples' clock had this value at the recording's start.
pub(crate) fn sampled(sgx: &Sgx, zero_ns: u64) -> Vec<Vec<u8>> {
    let fields = |event| {
        let mut room = [0; 512];
        let fields = told::fields(&mut room, event, &settings(sgx), zero_ns, source::AEX_ATTACHED);
        fields.map(<[u8]>::to_vec).unwrap_or_default()
    };
    told::EVENTS.map(fields).to_vec()
}

impl Tracer {
    /// Starts the thread. A process that runs is traced when this comes back; the command when it passes the gate.
    pub(crate) fn start(means: Means) -> Result<(Self, Option<Gate>), AttachError> {
        target::check_machine()?;
        let system = |source| AttachError::System { pid: 0, source };
        let (gate, keeper) = match means.target {
            Target::Command => {
                let (gate, keeper) = gate().map_err(system)?;
                (Some(gate), Some(keeper))
            }
            Target::Process(pid) => {
                target::check(pid)?;
                (None, None)
            }
        };
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let (began, begins) = channel();
        let thread = std::thread::Builder::new().name("teeperf-sample".into());
        let thread = thread.spawn(move || work(means, keeper, &stopped, &began));
        let tracer = Self { thread: Some(thread.map_err(system)?), stop };
        if gate.is_none() {
            begins.recv().unwrap_or_else(|_| {
                Err(AttachError::System { pid: 0, source: io::ErrorKind::Other.into() })
            })?;
        }
        Ok((tracer, gate))
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic in it was already reported by the thread itself.
            let _ = thread.join();
        }
    }
}

fn work(
    means: Means,
    keeper: Option<Keeper>,
    stop: &AtomicBool,
    began: &Sender<Result<(), AttachError>>,
) {
    let events = means.events.clone();
    let command = keeper.as_ref().map(Keeper::waiting);
    if command == Some(None) {
        // It was not started.
        return;
    }
    let command = command.flatten().map(libc::pid_t::cast_unsigned);
    let target = means.target;
    let made = Work::new(means, command).and_then(|work| {
        // The kernel says when a thread is due, or does not.
        let tick = if timer::are_granted() {
            TICK.as_nanos() as u64
        } else {
            notice(&events, (Level::Warning, NO_EVENTS.into()));
            work.settings.period_ns.clamp(LOOKS[0], LOOKS[1])
        };
        Ok((work, Ticks::start(tick as i64)?))
    });
    let refused = match (made, target) {
        (Ok((mut work, ticks)), _) => match work.begin() {
            Ok(()) => {
                if let Some(keeper) = keeper {
                    keeper.open();
                }
                let _ = began.send(Ok(()));
                work.run(stop);
                drop(ticks);
                return;
            }
            Err(error) => error,
        },
        (Err(source), target) => {
            let pid = if let Target::Process(pid) = target { pid } else { 0 };
            AttachError::System { pid, source }
        }
    };
    if command.is_some() {
        let text = format!("nothing could be sampled: {refused}");
        notice(&events, (Level::Warning, text));
    }
    // The command goes on by the gate's end; who attaches is told.
    let _ = began.send(Err(refused));
}
