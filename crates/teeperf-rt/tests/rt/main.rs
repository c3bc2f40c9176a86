//! Programs in C and C++, built with hooks, run under a small recorder: what they wrote is compared
//! word by word with what they did.

mod control;
mod counts;
mod full;
mod hostile;
mod leaps;
mod modules;
mod objects;
mod processes;
mod signals;
mod support;
mod threads;
