//! Hosts of SGX enclaves, sampled from another process: ptrace(2). For those that ask the kernel without the C library, and those that run
//! already.
//!
//! ```text
//!  threads' events ──signal──► handler: PTRACE_INTERRUPT
//!  thread stops ──► tracer (own thread): registers, enclave's state, stack ──► thread goes on
//!                      └──► code, enclaves, modules, sample ──► packets ──► drain
//! ```
//!
//! * `tracer`: the thread; `work`: what it does; `ptrace`: what is asked of the kernel; `timer`: when a thread is to be stopped; `thread`: one of them;
//!   `space`: memory of a process, its code; `enclave`: one in it; `look`: what a stopped thread shows; `target`: whom to trace, and why not.
//!
//! A thread stands while its registers and stack are read, and no longer: what takes files is done when it goes on. All that it is
//! told of otherwise, signals and stops of its group, comes to it as it would have. The recorder's end, whatever its kind, lets all go on.

mod enclave;
mod look;
mod ptrace;
mod space;
mod target;
mod thread;
mod timer;
mod tracer;
mod work;

pub use target::{AttachError, Target};
pub(crate) use tracer::{Means, Tracer, sampled};
