//! Whole recordings, with traced processes in the tests' hands: this same executable in
//! another role, attached and writing as a runtime does. Needs neither hooks nor a compiler.

mod client;
mod control;
mod ends;
mod harness;
mod hostile;
mod reading;
mod roles;
mod whole;
