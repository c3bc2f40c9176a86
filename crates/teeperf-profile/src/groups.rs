//! Functions by what they belong to: their thread or process, their module or source file.

use std::collections::HashMap;

use crate::aggregate::{self, Row, Sort};
use crate::model::{self, FunctionId, Profile, Sampled, Thread, Time};

/// What functions are put together by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The thread that called them.
    Thread,
    /// The process that called them.
    Process,
    /// The program or library that they are in.
    Module,
    /// The source file that they are written in.
    File,
}

/// Functions of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Name of the thread, the process's first thread, the module, or path of the file; empty when it is not known.
    pub name: String,
    /// Process id, of threads and processes.
    pub process: Option<u32>,
    /// Thread id, of threads.
    pub thread: Option<u32>,
    /// Calls of its functions.
    pub calls: u64,
    /// Time in its functions themselves.
    pub self_time: Time,
    /// Time in them and in all they called. A call within a call of the same group is in it once.
    pub total: Time,
    /// Its functions, sorted: of threads and processes with what happened there, of others with all.
    pub functions: Vec<Row>,
}

/// The groups of a profile, with most self time first; functions in each in this order. Calls without paths are of no
/// thread.
pub fn groups(profile: &Profile, by: By, sort: Sort) -> Vec<Group> {
    let mut out = match by {
        By::Thread => {
            let of = |thread: &Thread| {
                let mut group = of_threads(profile, std::slice::from_ref(&thread), sort);
                group.thread = Some(thread.tid);
                group
            };
            profile.threads.iter().map(of).collect()
        }
        By::Process => processes(profile, sort),
        By::Module | By::File => of_functions(profile, by, sort),
    };
    out.sort_by(|a: &Group, b| {
        let order = b.self_time.value.total_cmp(&a.self_time.value);
        order.then_with(|| (&a.name, a.process, a.thread).cmp(&(&b.name, b.process, b.thread)))
    });
    out
}

fn processes(profile: &Profile, sort: Sort) -> Vec<Group> {
    let mut numbers: HashMap<(u32, u32), usize> = HashMap::new();
    let mut threads: Vec<Vec<&Thread>> = Vec::new();
    for thread in &profile.threads {
        let number = *numbers.entry((thread.file, thread.pid)).or_insert_with(|| {
            threads.push(Vec::new());
            threads.len() - 1
        });
        threads[number].push(thread);
    }
    let of = |threads: Vec<&Thread>| {
        let mut group = of_threads(profile, &threads, sort);
        // Its first thread has its number, and its name as a rule.
        if let Some(first) = threads.iter().find(|thread| thread.tid == thread.pid) {
            group.name.clone_from(&first.name);
        }
        group
    };
    threads.into_iter().map(of).collect()
}

fn of_threads(profile: &Profile, threads: &[&Thread], sort: Sort) -> Group {
    let tree = aggregate::merged(threads.iter().copied());
    let mut rows = aggregate::rows(&tree, &profile.functions, sort);
    let sampled = model::sampled(threads.iter().copied(), Sampled::default());
    aggregate::add_sampling_error(&mut rows, &profile.info, &sampled);
    let mut own = Time::default();
    tree.nodes.iter().skip(1).for_each(|node| own += node.self_time);
    Group {
        name: threads.first().map(|thread| thread.name.clone()).unwrap_or_default(),
        process: threads.first().map(|thread| thread.pid),
        thread: None,
        calls: sum_of_calls(&rows),
        self_time: own,
        total: own,
        functions: rows,
    }
}

/// By module or file: a function is of one.
fn of_functions(profile: &Profile, by: By, sort: Sort) -> Vec<Group> {
    let mut names: Vec<&str> = Vec::new();
    let mut numbers: HashMap<&str, usize> = HashMap::new();
    let group_of: Vec<usize> = profile
        .functions
        .iter()
        .map(|function| {
            let name = match by {
                By::File => function.file.as_deref().unwrap_or_default(),
                _ => &function.module,
            };
            *numbers.entry(name).or_insert_with(|| {
                names.push(name);
                names.len() - 1
            })
        })
        .collect();
    let totals = aggregate::totals(
        &aggregate::merged(&profile.threads),
        names.len(),
        |function: FunctionId| group_of.get(function.0 as usize).copied().unwrap_or_default(),
    );
    let mut rows: Vec<Vec<Row>> = vec![Vec::new(); names.len()];
    for row in aggregate::table(profile, sort) {
        rows[group_of[row.function.0 as usize]].push(row);
    }
    let groups = names.iter().zip(rows).zip(totals).filter(|((_, rows), _)| !rows.is_empty());
    groups
        .map(|((name, functions), mut total)| {
            let mut own = Time::default();
            functions.iter().for_each(|row| own += row.self_time);
            // Where calls have no paths, of what they called it is not known what is in the group itself.
            if profile.graph.is_some() {
                total = own;
            }
            Group {
                name: (*name).to_owned(),
                process: None,
                thread: None,
                calls: sum_of_calls(&functions),
                self_time: own,
                total,
                functions,
            }
        })
        .collect()
}

fn sum_of_calls(rows: &[Row]) -> u64 {
    rows.iter().fold(0, |sum, row| sum.saturating_add(row.calls))
}
