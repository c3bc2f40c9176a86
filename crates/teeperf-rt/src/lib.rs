//! The runtime inside a traced program: behind the hooks of every module (the stub, crate
//! `teeperf-stub`), in front of the recorder.
//!
//! A thread writes words into a chunk of shared memory of its own. The hooks do that alone
//! as long as the clock stands, the address has a site and the chunk has room; everything
//! else comes to [`event`]:
//!
//! * [`event`]: one event the long way round, and what a thread may be in the midst of;
//! * `chunk`: a thread's chunk, begun, handed over, waited for;
//! * `writer`: escapes; `cursor`, `thread`: what they are written with;
//! * `sums`: events summed by call path instead;
//! * `pool`: the shared segments chunks come from; `clock`: the recorder's clock page;
//! * `process`: attaching to the recorder, fork, pause, the end of recording; `environment`: whose;
//!   `heirs`: what a forked child has that cannot reach it;
//! * `sampler`: where threads spend their CPU time; [`signals`]: the program's wishes for the signal;
//! * [`sandbox`]: system calls that the program forbids itself;
//! * `filter`: which functions are recorded;
//! * `module`: windows of the modules, [`block`]: their switches, with `elf` and `maps` to
//!   describe them;
//! * [`namespace`]: libraries that find no runtime;
//! * `ancestors`: the processes that this one descends from, with a recorder among them;
//! * [`leap`]: ways out of a function that no hook sees; [`api`]: what `teeperf.h` promises.
//!
//! What it never does: call the C library, allocate, touch `errno`, wait for ever, take a
//! lock inside a hook that a signal handler on the same thread could need, or use a value
//! from shared memory as an address, an index or a length. A hostile recorder gets a senseless
//! recording, not the program.
#![cfg_attr(not(test), no_std)]

mod ancestors;
pub mod api;
mod arch;
pub mod block;
mod chunk;
mod clock;
mod cursor;
mod elf;
mod environment;
pub mod event;
mod filter;
mod heirs;
pub mod leap;
mod maps;
mod module;
pub mod namespace;
mod off_cpu;
mod pauses;
mod platform;
mod pool;
mod process;
mod sampler;
pub mod sandbox;
pub mod signals;
mod stacks;
mod sums;
mod thread;
mod trigger;
mod writer;

/// The runtime has no way to panic that a test has not found; if there is one, the program
/// must not go on with half an invariant.
#[cfg(all(feature = "object", not(test)))]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    arch::trap()
}
