//! Whether a profile tells the truth about where CPU time goes: programs whose truth is known,
//! and real ones beside perf, with each kind of hooks.

mod compare;
mod kind;
mod made;
mod perf;
mod real;
mod rows;
mod subject;
mod task;

use std::fs;

use anyhow::{Result, ensure};

use super::Figure;
use crate::bench::lab::Lab;
use crate::bench::table::Row;
use kind::Kind;
pub(super) use subject::cpu;
use subject::{Outcome, Subject};

pub(crate) const FIGURE: Figure = Figure {
    name: "truth",
    title: "Shares of CPU time beside the truth",
    method: "`bench/truth`: programs that try to have a profiler lie, each some 2.2 s of CPU time \
             where nothing else is said, and of Debian's sources lua, sqlite3, bzip2, zstd, \
             CPython, PostgreSQL under pgbench and memcached. The truth is the thread's own clock \
             around batches of calls, in a build without hooks, the median of three rounds (of \
             the run of 10 s there is one); of calls that are long, in the recorded run itself. \
             Where work overlaps, and of real programs, it is `perf record -F 4999`, in later \
             rounds 4987 and 5003, of the unhooked program: of each sample the innermost function \
             that has hooks in the other build, inlined or not, all rounds together. Shares are of the time of all \
             functions that both know. Told are the median, the 90th percentile and the worst of \
             the errors of functions with 1 % by either, each function of each of two recorded \
             runs for itself; how many of the intervals printed hold the truth; and how wide they \
             are beside 95 % intervals of as many samples as the run has milliseconds of CPU \
             time. `report --fold-unhooked` tells CPU time by those functions. Errors have limits \
             where n is 2,000 or more. Reached of CPU time is the worst run. For comparison, once \
             each: `perf record -F 999` of the unhooked program with Wilson's intervals, which \
             tells what is possible, and where to be strictly periodic is not enough.",
    measure,
};

/// Variable with beginnings of programs' names, with commas between them.
const CHOICE: &str = "TEEPERF_TRUTH";

fn measure(lab: &Lab) -> Result<Vec<Row>> {
    ensure!(crate::commands::works("perf", &["--version"]), "perf is not installed");
    let kinds: Vec<Kind> = Kind::ALL.into_iter().filter(|kind| kind.is_offered(lab)).collect();
    let (mut rows, mut all) = (Vec::new(), Vec::new());
    for made in made::MADE.iter().filter(|made| is_chosen(lab, &made.id())) {
        let subject = made.subject(lab, &kinds);
        take(lab, &made.id(), subject, &mut rows, &mut all);
    }
    for real in real::REAL.iter().filter(|real| is_chosen(lab, real.id)) {
        let subject = real.subject(lab, &kinds);
        take(lab, real.id, Ok(subject), &mut rows, &mut all);
    }
    for kind in Kind::ALL {
        rows.extend(rows::all(lab, kind, &all));
    }
    let file = lab.work.join("truth.tsv");
    fs::write(&file, rows::functions(&all))?;
    println!("each function of each run: {}", file.display());
    Ok(rows)
}

/// Whether a program is to be judged: with `--quick` [`CHOICE`] may name some.
fn is_chosen(lab: &Lab, id: &str) -> bool {
    let chosen = std::env::var(CHOICE).ok().filter(|_| lab.quick);
    chosen.is_none_or(|names| names.split(',').any(|name| id.starts_with(name)))
}

/// Judges a program. One that fails is a row that misses its limit.
fn take(
    lab: &Lab,
    id: &str,
    subject: Result<Subject<'_>>,
    rows: &mut Vec<Row>,
    all: &mut Vec<Outcome>,
) {
    match subject.and_then(|subject| subject::outcomes(lab, &subject)) {
        Ok(outcomes) => {
            for outcome in outcomes {
                let row = rows::of(&outcome);
                eprintln!("{}: {}; {}", row.id, row.ours, row.beside);
                rows.push(row);
                all.push(outcome);
            }
        }
        Err(error) => rows.push(rows::failed(id, &error)),
    }
}
