//! Simulated enclaves (`tests/simulator`), sampled from within their host's process.

mod inside;
mod support;
