//! What perf tells of a program without hooks: for each sample the innermost function that has
//! hooks in the other build. What libraries and the kernel do is its time.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use anyhow::{Result, ensure};

use super::task::Task;
use crate::bench::lab::Lab;

/// Samples for each second of CPU time where perf tells the truth, by round: nearly the same, but
/// no program is in step with all of them.
pub(super) const TRUE_HZ: [u32; 3] = [4999, 4987, 5003];
/// Samples for each second where it is a profiler among others.
pub(super) const USUAL_HZ: u32 = 999;

/// Stacks of a program's own functions, as [`plain`] names them, the innermost first, and how often
/// each was seen.
#[derive(Default)]
pub(super) struct Stacks(BTreeMap<Vec<String>, u64>);

impl Stacks {
    /// Runs a program under perf, and returns what it printed. Functions of the file `program`
    /// count, those of others do not.
    pub(super) fn sample(
        &mut self,
        lab: &Lab,
        hz: u32,
        task: &Task,
        program: &str,
    ) -> Result<String> {
        let data = lab.scratch("truth.perf.data");
        let mut record = Command::new("perf");
        // Without what makes perf slow to start and to end, and is of no use here.
        record.args(["record", "-q", "--no-buildid", "--no-buildid-cache", "--no-bpf-event"]);
        record.args(["-F", &hz.to_string(), "-e", "cpu-clock"]);
        record.args(["--call-graph", "dwarf,4096", "-o"]).arg(&data);
        let out = task.sample(lab, record, &data)?;
        let mut script = Command::new("perf");
        let output = script.args(["script", "-F", "ip,sym,dso", "-i"]).arg(&data).output()?;
        ensure!(output.status.success(), "perf script failed");
        self.add(&String::from_utf8_lossy(&output.stdout), program);
        std::fs::remove_file(&data)?;
        Ok(out)
    }

    /// Adds what `perf script -F ip,sym,dso` printed.
    fn add(&mut self, script: &str, program: &str) {
        let file = format!("/{program}");
        for sample in script.split("\n\n").filter(|sample| !sample.trim().is_empty()) {
            *self.0.entry(stack(sample, &file)).or_default() += 1;
        }
    }

    /// Samples by the innermost of these functions. Such as have none of them are left out.
    pub(super) fn by_function(&self, hooked: &BTreeSet<String>) -> BTreeMap<String, f64> {
        let mut samples = BTreeMap::new();
        for (stack, count) in &self.0 {
            if let Some(name) = stack.iter().find(|name| hooked.contains(*name)) {
                *samples.entry(name.clone()).or_default() += *count as f64;
            }
        }
        samples
    }
}

/// The functions of one sample that are in the program's file. An inlined one is where the next is
/// that is none.
fn stack(sample: &str, file: &str) -> Vec<String> {
    let (mut frames, mut inlined) = (Vec::new(), Vec::new());
    for line in sample.lines() {
        let Some((_, symbol)) = line.trim().split_once(' ') else { continue };
        let Some((name, place)) = symbol.rsplit_once(" (") else { continue };
        inlined.push(plain(name));
        if place == "inlined)" {
            continue;
        }
        if place.trim_end_matches(')').ends_with(file) {
            frames.append(&mut inlined);
        }
        inlined.clear();
    }
    frames
}

/// A function's name as all sides can agree on it: without parameters, template arguments, the
/// type that it returns, and what a compiler adds to the names of parts and copies.
pub(super) fn plain(name: &str) -> String {
    let (mut kept, mut depth) = (String::new(), 0usize);
    for c in name.chars() {
        match c {
            '(' | '<' => depth += 1,
            ')' | '>' => depth = depth.saturating_sub(1),
            _ if depth == 0 => kept.push(c),
            _ => {}
        }
    }
    let kept = kept.trim().trim_end_matches(" const").trim_end_matches("[clone");
    let last = kept.rsplit(' ').next().unwrap_or(kept);
    let last = last.trim_matches(':');
    match last.find('.') {
        Some(at) if at > 0 => last[..at].to_owned(),
        _ => last.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: &str = "
\t            1040 memcpy (/usr/lib/libc.so.6)
\t            2040 small (inlined)
\t            2040 outer.part.0 (/tmp/program)
\t            2100 main (/tmp/program)


\tffffffff81000130 entry (inlined)
\tffffffff81000130 entry_64 ([kernel.kallsyms])
\t            2100 main (/tmp/program)


\t            1040 _dl_start (/usr/lib/ld.so)
";

    fn samples(hooked: &[&str]) -> Vec<(String, f64)> {
        let mut stacks = Stacks::default();
        stacks.add(SCRIPT, "program");
        let hooked = hooked.iter().map(|name| (*name).to_owned()).collect();
        stacks.by_function(&hooked).into_iter().collect()
    }

    #[test]
    fn a_sample_is_of_the_innermost_hooked_function() {
        let all = ["small", "outer", "main", "entry", "_dl_start"];
        assert_eq!(samples(&all), [("main".into(), 1.0), ("small".into(), 1.0)]);
        assert_eq!(samples(&["outer", "main"]), [("main".into(), 1.0), ("outer".into(), 1.0)]);
        assert_eq!(samples(&["main"]), [("main".into(), 2.0)]);
    }

    #[test]
    fn names_without_what_differs() {
        assert_eq!(plain("sqlite3VdbeExec"), "sqlite3VdbeExec");
        assert_eq!(plain("balance.part.0.constprop.1"), "balance");
        assert_eq!(plain("truth::power::<f64>"), "truth::power");
        assert_eq!(plain("geometry::Square::area() const"), "geometry::Square::area");
        assert_eq!(
            plain("double geometry::fold<f(int)::g>(std::vector<int> const&)"),
            "geometry::fold"
        );
        assert_eq!(
            plain("f(unsigned)::{lambda(int)#1}::operator()(int) const"),
            plain("f::{lambda#1}::operator()")
        );
    }
}
