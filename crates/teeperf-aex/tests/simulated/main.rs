//! Simulated enclaves (`tests/simulator`), sampled from within their host's process and from another.

mod attached;
mod inside;
mod outside;
mod support;
