//! What a traced process does in each test.

use crate::client::{Client, Writer, ask, connect, send};
use crate::harness::{ROLE, command};
use std::os::unix::process::CommandExt;
use std::process::{Command, exit};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::{Duration, Instant};
use teeperf_wire::shared::{ClockKind, control, segment, state};
use teeperf_wire::word::{call, code, escape, payload, ret, split62};

/// Not a test: where a role begins, when this executable is run in one.
#[test]
fn program() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let mut words = role.split(' ');
    let name = words.next().unwrap();
    let numbers: Vec<u32> = words.map(|word| word.parse().unwrap()).collect();
    let number = |at: usize| numbers.get(at).copied().unwrap_or(0);
    match name {
        "threads" => threads(number(0), number(1)),
        "killed" => killed(),
        "short" => short(number(0)),
        "blocked" => blocked(number(0)),
        "late" => late(),
        "never" => never(),
        "leaves" => leaves(number(0)),
        "exec" => exec(),
        "idle" => idle(),
        "endless" => endless(),
        "alone" => alone(),
        "watches" => watches(),
        "exits" => exit(number(0) as i32),
        "cut" => cut(),
        "says" => says(),
        "jumble" => jumble(number(0)),
        "knocks" => knocks(),
        "recorder" => crate::ends::recorder(),
        "lists" => lists(),
        _ => panic!("no role {name}"),
    }
    exit(0);
}

/// Words of a thread, all different from every other's.
pub(crate) fn words_of(thread: u32, count: u32) -> Vec<u32> {
    (0..count).map(|n| call(0x1000 + (n * 7 + thread * 131) % 0x5000)).collect()
}

/// An event as the clock has it.
fn put_event(client: &Client, writer: &mut Writer, word: u32, time: u32) -> bool {
    if client.welcome.clock == ClockKind::Cycle as u32 {
        writer.put(&[word, time | 1])
    } else {
        writer.put(&[word])
    }
}

/// So many threads write so many words each; the process ends with status 7.
fn threads(threads: u32, count: u32) {
    let client = Client::attach();
    let all: Vec<_> = (0..threads).map(|_| client.thread()).collect();
    std::thread::scope(|scope| {
        for mut writer in all {
            let client = &client;
            scope.spawn(move || {
                for (at, word) in words_of(writer.serial, count).into_iter().enumerate() {
                    assert!(put_event(client, &mut writer, word, at as u32 * 900));
                    if at % 1_000 == 0 && client.welcome.clock == ClockKind::Tick as u32 {
                        assert!(writer.put(&[escape(code::TICK, 1)]));
                    }
                }
                writer.hand_over();
            });
        }
    });
    exit(7);
}

/// Writes 100 words and is killed at once.
fn killed() {
    let mut writer = Client::attach().thread();
    for word in words_of(1, 100) {
        writer.put(&[word]);
    }
    // In the middle of an escape.
    writer.put(&[escape(code::STAMP, 0), payload(2), split62(5)[0]]);
    // SAFETY: no pointers are involved.
    unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
}

/// Threads that write three words and end, one after another, and leave their chunks behind.
fn short(count: u32) {
    let client = Client::attach();
    for _ in 0..count {
        let mut writer = client.thread();
        let thread = std::thread::spawn(move || {
            writer.put(&words_of(writer.serial, 3));
        });
        thread.join().unwrap();
    }
}

/// Threads that write three words and then all live until the last has written.
fn blocked(count: u32) {
    let client = Client::attach();
    let barrier = std::sync::Barrier::new(count as usize);
    std::thread::scope(|scope| {
        for _ in 0..count {
            let (mut writer, barrier) = (client.thread(), &barrier);
            let small = std::thread::Builder::new().stack_size(64 << 10);
            let writes = move || {
                writer.put(&words_of(writer.serial, 3));
                barrier.wait();
            };
            small.spawn_scoped(scope, writes).unwrap();
        }
    });
}

/// A word is reserved, its chunk handed over, more chunks behind it; then it is written.
fn late() {
    let mut writer = Client::attach().thread();
    writer.put(&[call(0x2000)]);
    let hole = writer.reserve();
    for n in 0..50_000 {
        writer.put(&[call(0x3000 + n % 0x100)]);
    }
    std::thread::sleep(Duration::from_millis(50));
    hole.store(ret(0x2000), Release);
    writer.put(&[call(0x4000)]);
    writer.hand_over();
}

/// A word is reserved and never written; its chunk must not be given to anybody.
fn never() {
    let mut writer = Client::attach().thread();
    writer.put(&[call(0x2000)]);
    let hole = writer.reserve();
    writer.put(&[call(0x2010)]);
    let chunk = writer.hand_over().unwrap();
    for n in 0..60_000 {
        writer.put(&[call(0x3000 + n % 0x100)]);
    }
    std::thread::sleep(Duration::from_millis(1_500));
    writer.put(&[call(0x4000)]);
    writer.hand_over();
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(chunk.state(), state::FULL, "a chunk with a hole was given back");
    assert_eq!(hole.load(Acquire), 0);
}

/// In each of so many chunks a word is reserved and never written, as when a handler jumps out of a hook.
fn leaves(chunks: u32) {
    let mut writer = Client::attach().thread();
    for n in 0..chunks {
        assert!(writer.put(&[call(0x2000 + n)]), "no chunk is left for number {n}");
        writer.reserve();
        writer.put(&[call(0x2000 + n)]);
        writer.hand_over();
    }
}

/// Writes and becomes another program.
fn exec() {
    let mut writer = Client::attach().thread();
    writer.put(&words_of(1, 10));
    let next = command("threads 1 20");
    panic!("{}", Command::new(&next[0]).args(&next[1..]).exec());
}

/// Writes a little and lives for a while, until the recording is told to stop.
fn idle() {
    let client = Client::attach();
    let mut writer = client.thread();
    writer.put(&[escape(code::TICK, 5)]);
    writer.put(&words_of(1, 10));
    client.wait_for_control(control::STOPPED, true);
}

/// Writes until recording stops, then ends with status 9; with 8 when nobody stops it.
fn endless() {
    let client = Client::attach();
    let mut writer = client.thread();
    let begun = Instant::now();
    for n in 0u32.. {
        if n % 0x1_0000 == 0 && begun.elapsed() > Duration::from_secs(60) {
            exit(8);
        }
        // Noise, so that the recording grows.
        let word = call(0x1000 + n.wrapping_mul(2_654_435_761) % 0x1000_0000);
        let stopped = client.control() & control::STOPPED != 0;
        if stopped || !writer.put(&[word]) {
            exit(9);
        }
    }
}

/// Writes until the recorder is gone, then ends in peace.
fn alone() {
    let client = Client::attach();
    let mut writer = client.thread();
    let tick = client.clock.number(teeperf_wire::shared::clock::TICK);
    let (mut last, mut since) = (0, Instant::now());
    while since.elapsed() < Duration::from_secs(2) {
        let now = tick.load(Relaxed);
        if now != last {
            (last, since) = (now, Instant::now());
        }
        if !writer.put(&words_of(1, 100)) {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Sees itself paused, resumed and stopped from outside.
fn watches() {
    let client = Client::attach();
    client.wait_for_control(control::PAUSED, true);
    client.wait_for_control(control::PAUSED, false);
    client.wait_for_control(control::STOPPED, true);
}

/// Writes a little, to the recorder and to standard output.
fn says() {
    println!("the program's own words");
    Client::attach().thread().put(&words_of(1, 10));
}

/// Tries to take the recorder's memory away from under it.
fn cut() {
    let client = Client::attach();
    let mut writer = client.thread();
    writer.put(&words_of(1, 10));
    for entry in std::fs::read_dir("/proc/self/fd").unwrap() {
        let path = entry.unwrap().path();
        // Those that the runtime would close; none may be cut, even by another name.
        if let Ok(target) = std::fs::read_link(&path)
            && target.to_string_lossy().contains("teeperf")
            && let Ok(file) = std::fs::OpenOptions::new().write(true).open(&path)
        {
            assert!(file.set_len(0).is_err());
        }
    }
    writer.hand_over();
}

/// Random words all over the shared memory, states and counters included.
fn jumble(rounds: u32) {
    let client = Client::attach();
    let mut noise = 88_172_645_463_325_252u64;
    let mut random = move || {
        noise ^= noise << 13;
        noise ^= noise >> 7;
        noise ^= noise << 17;
        noise as u32
    };
    let clock = client.welcome.clock;
    for round in 0..rounds {
        let segments = client.segments();
        let (mapped, welcome) = segments[round as usize % segments.len()];
        let anywhere = (random() as usize % mapped.length) & !3;
        let chunk = random() % welcome.chunks;
        let start = segment::DATA + chunk as usize * welcome.chunk_size as usize;
        let (offset, value) = match random() % 8 {
            0 => (anywhere, random()),
            1 => (segment::STATES + chunk as usize * 4, random() % 4),
            2 => (segment::WANTED, random()),
            3 => (segment::SEGMENTS, random()),
            // Headers that are believed, and what stands in them.
            4 => (start + teeperf_wire::shared::chunk::CLOCK, clock),
            5 => (start + random() as usize % 16 * 4, random() % 9),
            6 => (start + 64 + random() as usize % 64 * 4, escape(random(), random() % 9)),
            _ => (start + 64 + random() as usize % 64 * 4, payload(random() % 40)),
        };
        mapped.number(offset).store(value, Release);
    }
}

/// Messages that are none, and connections that say nothing.
fn knocks() {
    let client = Client::attach();
    let silent: Vec<_> = (0..70).map(|_| connect().unwrap()).collect();
    for length in 0..100 {
        // Who does not speak the language may be hung up on at any time.
        let _ = connect().and_then(|socket| send(&socket, &vec![0x54; length]));
    }
    for (segment, token) in [(1, 0), (7, client.welcome.token), (u32::MAX, client.welcome.token)] {
        let (welcome, files) = ask(segment, token).unwrap();
        assert_ne!(welcome.refusal, 0);
        assert!(files.is_empty());
    }
    drop(silent);
    let (welcome, files) = ask(1, client.welcome.token).unwrap();
    assert_eq!((welcome.refusal, files.len()), (0, 1));
    let mut writer = client.thread();
    writer.put(&words_of(1, 10));
    writer.hand_over();
}

/// Windows for everything, thousands of modules, names without end.
fn lists() {
    let client = Client::attach();
    let mut writer = client.thread();
    let module = |first: u32, sites: u32, path: u32| {
        let mut words = vec![escape(code::MODULE, 0), payload(16)];
        words.extend([1, first, sites, 0x1000, 0, 0, 0, 0, 0, 3].map(payload));
        words.extend([payload(0x11_2233), payload(path & 0x7F_7F7F | 0x2F)]);
        words.extend([payload(0x41_4141); 4]);
        words
    };
    assert!(writer.put(&module(0x1000, 0x6FFF_EFFF, 1)));
    for n in 0..70_000u32 {
        assert!(writer.put(&module(0x1000 + n * 64, 64, n)));
        assert!(writer.put(&[call(n.wrapping_mul(2_654_435_761) >> 2 | 0x1000)]));
    }
    let mut name = vec![escape(code::NAME, 0), payload(500)];
    name.extend([payload(0x41_4141); 500]);
    assert!(writer.put(&name));
    writer.hand_over();
}
