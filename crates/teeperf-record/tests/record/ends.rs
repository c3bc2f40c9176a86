//! However it ends, what was written can be read.

use crate::harness::{Place, command, record, wait_until};
use crate::reading::{Recording, events};
use crate::roles::words_of;
use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};
use teeperf_record::{Choice, Options, Output, RecordError, Recorder, Snapshot};
use teeperf_wire::body::{chunk, end, process_end};
use teeperf_wire::packet::kind;

#[test]
fn a_program_that_is_killed() {
    let (outcome, recording) = record("killed", |_| {});
    let signal = outcome.status.and_then(|status| status.signal());
    assert_eq!((signal, outcome.exit_code()), (Some(9), 137));
    assert!(recording.is_closed());
    assert_eq!(recording.number(kind::END, end::SIGNAL), Some(9));
    assert_eq!(recording.number(kind::PROCESS_END, process_end::SIGNAL), Some(9));
    // The escape that was cut off is gone, the words before it are not.
    assert_eq!(recording.threads()[&(1, 1)], words_of(1, 100));
    // Its thread may be seen to be gone before the process is.
    let flags = recording.chunks().last().unwrap().header.flags;
    assert!([chunk::CUT, chunk::WHOLE].contains(&flags), "{flags}");
}

#[test]
fn a_command_without_hooks() {
    let (outcome, recording) = record("exits 5", |_| {});
    assert_eq!((outcome.exit_code(), outcome.processes), (5, 0));
    assert!(recording.is_closed());
}

#[test]
fn a_command_that_is_not_there_leaves_no_file_and_no_other_one_damaged() {
    let place = Place::new();
    std::fs::write(place.path(), "old").unwrap();
    let run = |word: &str| Recorder::new(place.options()).run(&[OsString::from(word)]);
    for (word, code) in [("no such command", 127), ("/etc/passwd", 126)] {
        let Err(RecordError::Launch(error)) = run(word) else { panic!("it ran") };
        assert_eq!(error.exit_code(), code);
        assert_eq!(std::fs::read(place.path()).unwrap(), b"old");
    }
    // Found, but nothing that the system can run.
    let broken = place.folder.path().join("broken");
    std::fs::write(&broken, "#!/no/such/interpreter\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&broken, mode).unwrap();
    for was_there in [true, false] {
        let ran = run(broken.to_str().unwrap());
        let Err(RecordError::Launch(error)) = ran else { panic!("it ran") };
        assert_eq!(error.exit_code(), 126);
        assert_eq!(place.path().exists(), was_there);
        let _ = std::fs::remove_file(place.path());
    }
}

#[test]
fn a_program_is_not_recorded_over_itself() {
    let place = Place::new();
    let program = place.folder.path().join("program");
    std::fs::copy("/bin/true", &program).unwrap();
    let link = place.folder.path().join("link");
    std::os::unix::fs::symlink(&program, &link).unwrap();
    for output in [&program, &link] {
        let mut options = place.options();
        options.output = Output::File(output.clone());
        let refused = Recorder::new(options).run(&[program.clone().into()]);
        assert!(matches!(refused, Err(RecordError::IsProgram(_))), "{refused:?}");
    }
    assert_eq!(std::fs::read(program).unwrap(), std::fs::read("/bin/true").unwrap());
}

/// The file is free again when the recorder has ended, whatever processes the command left behind.
#[test]
fn a_file_is_recorded_into_by_one_recorder_at_a_time() {
    let place = Place::new();
    let at = |name: &str| place.folder.path().join(name);
    let run = |script: &str| {
        let words = ["/bin/sh", "-c", script, &place.folder.path().display().to_string()];
        Recorder::new(place.options()).run(&words.map(OsString::from))
    };
    let leaves = "sleep 300 >&- 2>&- & echo $! >$0/left; until [ -e $0/go ]; do sleep 0.01; done";
    std::thread::scope(|scope| {
        let first = scope.spawn(|| run(leaves));
        wait_until("it runs", || std::fs::read(at("left")).is_ok_and(|text| !text.is_empty()));
        let packets = std::fs::read(place.path()).unwrap();
        assert!(!packets.is_empty());
        let second = run("exit 9");
        let after = std::fs::read(place.path()).unwrap();
        std::fs::write(at("go"), "").unwrap();
        assert!(matches!(second, Err(RecordError::Busy(_))), "{second:?}");
        assert_eq!(after, packets);
        assert!(first.join().unwrap().is_ok());
    });
    // Other tests start programs, which have all that is open for a moment.
    wait_until("it is free", || !matches!(run("exit 9"), Err(RecordError::Busy(_))));
    let left = std::fs::read_to_string(at("left")).unwrap();
    // SAFETY: kill only takes numbers.
    assert_eq!(unsafe { libc::kill(left.trim().parse().unwrap(), libc::SIGKILL) }, 0);
}

#[test]
fn the_size_limit() {
    let (outcome, recording) = record("endless", |options| options.limit_size = Some(3 << 20));
    assert_eq!(outcome.exit_code(), 9);
    assert_eq!(outcome.reason.as_deref(), Some("the size limit was reached"));
    assert_eq!(recording.text(kind::END, end::REASON), outcome.reason);
    assert!(recording.is_closed());
    assert!((3 << 20..16 << 20).contains(&outcome.recorded.bytes), "{:?}", outcome.recorded);
    recording.threads();
}

#[test]
fn a_device_that_is_full_from_the_start() {
    let place = Place::new();
    let mut options = place.options();
    options.output = Output::File("/dev/full".into());
    let Err(RecordError::Output { path, source }) = Recorder::new(options).run(&command("exits 5"))
    else {
        panic!("it began")
    };
    assert_eq!((path.as_str(), source.kind()), ("/dev/full", io::ErrorKind::StorageFull));
}

#[test]
fn a_full_file_system_keeps_whole_packets() {
    let folder = tempfile::tempdir().unwrap();
    let target = std::ffi::CString::new(folder.path().to_str().unwrap()).unwrap();
    let (kind, size) = (c"tmpfs".as_ptr(), c"size=1m".as_ptr());
    // SAFETY: all are C strings.
    if unsafe { libc::mount(kind, target.as_ptr(), kind, 0, size.cast()) } != 0 {
        eprintln!("no file system can be mounted here: {}", io::Error::last_os_error());
        return;
    }
    let path = folder.path().join("test.teeperf");
    let place = Place::new();
    let run = |role| {
        let mut options = place.options();
        options.output = Output::File(path.clone());
        Recorder::new(options).run(&command(role))
    };
    let outcome = run("endless");
    let bytes = std::fs::read(&path);
    std::fs::remove_file(&path).unwrap();
    let rest = std::fs::write(folder.path().join("rest"), vec![0; 2 << 20]);
    let not_begun = run("exits 5");
    let is_left = path.exists();
    // SAFETY: a C string.
    unsafe { libc::umount2(target.as_ptr(), libc::MNT_DETACH) };
    assert!(rest.is_err(), "it is full");
    assert!(matches!(not_begun, Err(RecordError::Output { .. })), "{not_begun:?}");
    assert!(!is_left, "an empty file");
    let outcome = outcome.unwrap();
    assert_eq!(outcome.exit_code(), 9);
    assert_eq!(outcome.error.as_ref().unwrap().kind(), io::ErrorKind::StorageFull);
    let recording = Recording::new(&bytes.unwrap());
    assert_eq!(recording.rest, 0);
    assert!(!recording.threads()[&(1, 1)].is_empty());
    counts_what_is_there(&outcome.recorded, &recording);
}

/// Chunks that the output did not take whole count for nothing.
#[track_caller]
fn counts_what_is_there(recorded: &Snapshot, recording: &Recording) {
    let chunks = recording.chunks();
    let words = chunks.iter().flat_map(|chunk| &chunk.words);
    // Payload that looks like an event counts as one here, too.
    let events = words.filter(|&&word| word >> 31 == 0).count();
    assert!(events > 0);
    assert_eq!((recorded.chunks, recorded.events), (chunks.len() as u64, events as u64));
}

/// A pipe whose reader goes away after so many bytes.
struct Closing(usize, Arc<Mutex<Vec<u8>>>);

impl Write for Closing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut taken = self.1.lock().unwrap();
        let length = bytes.len().min(self.0 - taken.len());
        taken.extend(&bytes[..length]);
        if length == 0 { Err(io::ErrorKind::BrokenPipe.into()) } else { Ok(length) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_reader_that_goes_away() {
    let taken = Arc::default();
    let mut options = Options::new(Output::Writer(Box::new(Closing(100_000, Arc::clone(&taken)))));
    options.signals = false;
    options.clock = Choice::Tick;
    let outcome = Recorder::new(options).run(&command("endless")).unwrap();
    assert_eq!(outcome.exit_code(), 9);
    assert_eq!(outcome.error.as_ref().unwrap().kind(), io::ErrorKind::BrokenPipe);
    let recording = Recording::new(&taken.lock().unwrap());
    assert!(recording.packets.len() > 2);
    counts_what_is_there(&outcome.recorded, &recording);
}

#[test]
fn a_reader_that_was_never_there() {
    let mut options = Options::new(Output::Writer(Box::new(Closing(0, Arc::default()))));
    options.signals = false;
    options.clock = Choice::Tick;
    let outcome = Recorder::new(options).run(&command("exits 5")).unwrap();
    assert_eq!(outcome.exit_code(), 5);
    assert_eq!(outcome.error.unwrap().kind(), io::ErrorKind::BrokenPipe);
}

/// A recorder in a process of its own, which records a role.
struct Separate {
    place: Place,
    child: Child,
}

impl Separate {
    fn start(role: &str) -> Self {
        let place = Place::new();
        let recorder = command("recorder");
        let mut command = Command::new(&recorder[0]);
        command.args(&recorder[1..]);
        command.env(OUTPUT, place.path()).env(RECORDED, role);
        // Who runs the tests may have them ignore signals, as nohup does; a recorder heeds that.
        // SAFETY: signal(2) may be called there, and allocates nothing.
        unsafe {
            command.pre_exec(|| {
                for signal in [libc::SIGINT, libc::SIGHUP] {
                    libc::signal(signal, libc::SIG_DFL);
                }
                Ok(())
            })
        };
        Self { place, child: command.spawn().unwrap() }
    }

    fn wait_for_words(&self) {
        wait_until("words are written", || {
            let bytes = std::fs::read(self.place.path()).unwrap_or_default();
            bytes.len() > 20
                && Recording::new(&bytes).chunks().iter().any(|one| !one.words.is_empty())
        });
    }

    fn signal(&self, signal: i32) {
        // SAFETY: no pointers are involved.
        assert_eq!(unsafe { libc::kill(self.child.id() as i32, signal) }, 0);
    }
}

const OUTPUT: &str = "TEEPERF_TEST_OUTPUT";
const RECORDED: &str = "TEEPERF_TEST_RECORDED";

/// The role of a recorder in a process of its own, with signals.
pub(crate) fn recorder() -> ! {
    let output = PathBuf::from(std::env::var_os(OUTPUT).unwrap());
    let role = std::env::var(RECORDED).unwrap();
    let output = if output == Path::new("-") { Output::Stdout } else { Output::File(output) };
    let mut options = Options::new(output);
    options.clock = Choice::Tick;
    let outcome = Recorder::new(options).run(&command(&role)).unwrap();
    std::process::exit(outcome.exit_code().into())
}

#[test]
fn a_recorder_that_is_killed_and_the_program_goes_on() {
    let mut separate = Separate::start("alone");
    separate.wait_for_words();
    separate.signal(libc::SIGKILL);
    assert_eq!(separate.child.wait().unwrap().signal(), Some(libc::SIGKILL));
    let recording = separate.place.read();
    assert!(!recording.is_closed());
    let words = &recording.threads()[&(1, 1)];
    assert_eq!(events(words)[..100], words_of(1, 100));
}

#[test]
fn signals_to_the_recorder_go_to_the_program_and_the_recording_is_finished() {
    for signal in [libc::SIGTERM, libc::SIGHUP, libc::SIGINT] {
        let mut separate = Separate::start("alone");
        separate.wait_for_words();
        separate.signal(signal);
        let status = separate.child.wait().unwrap();
        assert_eq!(status.code(), Some(128 + signal));
        let recording = separate.place.read();
        assert!(recording.is_closed());
        assert_eq!(recording.number(kind::END, end::SIGNAL), Some(signal as u64));
    }
}

#[test]
fn a_recording_on_standard_output_is_alone_there() {
    let recorder = command("recorder");
    let mut command = Command::new(&recorder[0]);
    command.args(&recorder[1..]).env(OUTPUT, "-").env(RECORDED, "says");
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    // The test harness around the recorder says something before it.
    let start = output.stdout.windows(4).position(|four| four == b"TPRF").unwrap();
    let recording = Recording::new(&output.stdout[start..]);
    assert!(recording.is_closed());
    assert_eq!(recording.threads()[&(1, 1)], words_of(1, 10));
    assert!(String::from_utf8_lossy(&output.stderr).contains("the program's own words"));
}
