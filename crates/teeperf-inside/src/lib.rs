//! Preloaded into a program that is sampled from within: hosts of SGX enclaves (`record --sgx`), and programs where the kernel lets
//! nothing be sampled otherwise (`record --sample`).
//!
//! Each thread has a timer of its own, whose signal takes a sample of it (`teeperf_aex`) and leaves it in memory that the recorder
//! shares. So what was sampled is there, whatever becomes of the program.
//!
//! * `process`: the recorder's memory, this process's and that of its children; `threads`: where they begin and end; `signals`: the
//!   timers' signal, which the program may have uses of its own for; `enclaves`: what the program tells the driver; `descriptors`: they stay open; `api`: what
//!   runtimes call by themselves; `libc`: what is asked of the C library; `linux`: one exchange with the recorder.
//!
//! Without a recorder every call is handed on and nothing else.

mod api;
mod descriptors;
mod enclaves;
mod libc;
mod linux;
mod process;
mod signals;
mod threads;

/// System calls, as `linux` looks for them.
mod arch {
    pub(crate) use teeperf_aex::system::{number, syscall};
}

#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = begin;
#[used]
#[unsafe(link_section = ".fini_array")]
static END: extern "C" fn() = end;

extern "C" fn begin() {
    if process::attach_program() {
        signals::take();
        threads::first();
    }
}

extern "C" fn end() {
    process::ask(teeperf_wire::sampling::what::ENDS, 0, None);
}
