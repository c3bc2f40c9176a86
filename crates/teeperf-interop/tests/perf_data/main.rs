//! `perf.data`: real files of perf, against another reader and against perf itself; files written here number by number; and
//! damaged ones.

mod built;
mod damaged;
mod kinds;
mod made;
mod mapped;
mod real;
mod seen;
mod written;
