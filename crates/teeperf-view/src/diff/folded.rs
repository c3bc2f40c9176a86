//! Folded stacks with two counts, `stack before after`, as difffolded.pl writes and flamegraph.pl and inferno read them:
//! nanoseconds of self time of a run of each side.

use crate::folded::frame;
use std::io::{self, Write};
use teeperf_profile::diff::Diff;

/// Writes the self time of every call path on both sides.
pub fn write(diff: &Diff, out: &mut impl Write) -> io::Result<()> {
    let frames: Vec<String> = diff.functions.iter().map(|function| frame(&function.name)).collect();
    let mut stack = Vec::new();
    for (at, path) in diff.paths.iter().enumerate().skip(1) {
        let (before, after) = (path.sums.before.self_ns.round(), path.sums.after.self_ns.round());
        if before < 1.0 && after < 1.0 {
            continue;
        }
        stack.clear();
        let mut place = at;
        while place > 0 {
            let path = &diff.paths[place];
            stack.push(frames[path.function.0 as usize].as_str());
            place = path.parent as usize;
        }
        stack.reverse();
        writeln!(out, "{} {} {}", stack.join(";"), before as u64, after as u64)?;
    }
    Ok(())
}
