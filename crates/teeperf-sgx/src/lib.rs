//! Preloaded into a host of SGX enclaves: stands between it and the untrusted runtime of Intel's SDK (`libsgx_urts.so`;
//! Intel SGX Developer Reference for Linux OS), through whose `sgx_ecall` every call into an enclave goes, with a table of
//! the functions that the enclave may call outside.
//!
//! Each ECALL and each OCALL is a call on the time line of its thread, below the function that makes it, and timed by the
//! processor's counter as well. The thread's arena ([`teeperf_lender`]) is handed on with each ECALL: an enclave that was
//! built with hooks goes on in the same chunk.
//!
//! * `entries`: where the host and the runtime come in, in assembly, so that nothing of ours is in the way of who unwinds
//!   through it; `crossings`: what is recorded then; `open`: a thread's crossings that are open; `tables`: tables of OCALLs;
//!   `proxies`: who made an ECALL; `labels`: frames that are no functions; `usage`: what the kernel counts meanwhile.
//!
//! The host sees nothing of it: arguments, results and `errno` are the runtime's. Without a recorder every call is handed on
//! and nothing else. What the runtime calls of an enclave by itself (its start and end, exceptions that it takes back into
//! the enclave) does not go through `sgx_ecall`, and is part of what it happens in.
#![cfg(target_arch = "x86_64")]

mod crossings;
mod entries;
mod labels;
mod open;
mod proxies;
mod tables;
mod usage;
