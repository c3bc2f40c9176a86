//! Samples SGX enclaves from outside, whatever they were built with.
//!
//! A thread that is interrupted inside an enclave leaves it by an asynchronous exit (AEX): the processor saves its state in the
//! enclave, in a frame of the state save area (SSA), and shows a synthetic state instead. Of a debug enclave the kernel lets that frame be
//! read, and the stack with it (Intel SDM, volume 3D).
//!
//! * `layout`: structures of the manual, from bytes; `interrupted`: the synthetic state; `driver`: what `ioctl`s of
//!   `/dev/sgx_enclave` tell; `enclaves`: what is known of enclaves, for signal handlers to read; `debug_read`: the way into
//!   enclaves' memory; `state`: the interrupted state and its call chain or stack; `probe`: an enclave that nobody saw made;
//! * `context`: what a signal tells of the thread that it interrupted;
//! * `ring`: a thread's samples, in shared memory; `threads`: its rings; `timer`: what interrupts a thread; `sampler`: what a signal
//!   handler does; `attached`: what a thread of another process shows; `told`: what a recording is told of samples; `system`: what is asked of Linux.
//!
//! Nothing here allocates or waits on the signal's way. It stands on no C library, so the front end that is preloaded
//! and the one that attaches from another process both build on it.
#![no_std]

pub mod attached;
pub mod context;
pub mod debug_read;
pub mod driver;
pub mod enclaves;
pub mod interrupted;
pub mod layout;
pub mod probe;
pub mod ring;
pub mod sampler;
pub mod state;
pub mod system;
pub mod threads;
mod timer;
pub mod told;

#[cfg(test)]
extern crate std;
