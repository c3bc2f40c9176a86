//! Real programs from Debian's sources, of which perf tells the truth.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use super::kind::Kind;
use super::subject::{Subject, Told, source};
use super::task::{Load, Task};
use crate::bench::hooks::Hooks;
use crate::bench::lab::Lab;
use crate::bench::subject::{as_postgres, text};
use crate::commands::run_quietly;

/// A real program and what it is given to do.
pub(super) struct Real {
    pub(super) id: &'static str,
    what: &'static str,
    /// Name of the program's file.
    file: &'static str,
    task: fn(&Lab, Hooks) -> Result<Task>,
}

pub(super) const REAL: &[Real] = &[
    Real { id: "lua", what: "lua, work.lua", file: "lua-truth", task: lua },
    Real { id: "sqlite3", what: "speedtest1", file: "speedtest1-truth", task: sqlite },
    Real { id: "bzip2", what: "bzip2 -9", file: "bzip2-truth", task: bzip2 },
    Real { id: "zstd", what: "zstd -12", file: "zstd-truth", task: zstd },
    Real { id: "cpython", what: "CPython, work.py", file: "python-truth", task: python },
    Real { id: "postgres", what: "PostgreSQL, pgbench", file: "postgres", task: postgres },
    Real { id: "memcached", what: "memcached, load.c", file: "memcached-truth", task: memcached },
];

impl Real {
    pub(super) fn subject<'a>(&'static self, lab: &'a Lab, kinds: &[Kind]) -> Subject<'a> {
        Subject {
            id: self.id.to_owned(),
            what: self.what.to_owned(),
            told: Told::Perf,
            judges_cpu: false,
            rounds: 3,
            repeats: 1,
            file: self.file.to_owned(),
            kinds: kinds.to_vec(),
            task: Box::new(|hooks| (self.task)(lab, hooks)),
        }
    }
}

fn lua(lab: &Lab, hooks: Hooks) -> Result<Task> {
    let script = text(&lab.bench_file("programs/work.lua"));
    Ok(Task::of([&text(&lab.lua_for_truth(hooks)?), &script, lab.size("15", "1")]))
}

fn sqlite(lab: &Lab, hooks: Hooks) -> Result<Task> {
    let program = text(&lab.speedtest_for_truth(hooks)?);
    Ok(Task::of([&program, "--memdb", "--size", lab.size("140", "8")]))
}

fn bzip2(lab: &Lab, hooks: Hooks) -> Result<Task> {
    let program = text(&lab.bzip2_for_truth(hooks)?);
    Ok(Task::of([&program, "-9", "-k", "-f", &text(&input(lab)?)]))
}

fn zstd(lab: &Lab, hooks: Hooks) -> Result<Task> {
    let program = text(&lab.zstd_for_truth(hooks)?);
    let out = text(&lab.scratch("truth.zst"));
    let input = text(&input(lab)?);
    Ok(Task::of([&program, "-q", "-f", "-12", "--single-thread", &input, "-o", &out]))
}

/// What is compressed: sqlite3's source, again and again.
fn input(lab: &Lab) -> Result<PathBuf> {
    let input = lab.scratch(lab.size("truth.in", "truth-quick.in"));
    if !input.is_file() {
        let text = fs::read(lab.amalgamation()?)?;
        let end = lab.size(text.len(), text.len() / 4);
        fs::write(&input, text[..end].repeat(lab.size(6, 1)))?;
    }
    Ok(input)
}

fn python(lab: &Lab, hooks: Hooks) -> Result<Task> {
    let (program, library) = lab.python_for_truth(hooks)?;
    let script = text(&source(lab, "work.py"));
    let task = Task::of([&text(&program), "-S", &script, lab.size("36", "1")]);
    Ok(Task { variable: Some(("PYTHONPATH".into(), text(&library))), ..task })
}

/// The server and its load, which is the same in all runs. It stores, and then mostly fetches.
fn memcached(lab: &Lab, hooks: Hooks) -> Result<Task> {
    let server = text(&lab.memcached_for_truth(hooks)?);
    let path = source(lab, "load.c");
    let load = lab.built(Hooks::None, "truth-load", &[&path], |compilers, out| {
        let mut command = compilers.command(false);
        run_quietly(command.arg("-O2").arg(&path).arg("-o").arg(out)).map(drop)
    })?;
    let port = "17411";
    let task = Task::of([&server, "-u", "root", "-l", "127.0.0.1", "-p", port, "-t", "2", "-A"]);
    // The load waits for the server itself, but perf must find it there.
    let ready = "sleep 0.3".into();
    let work = format!("{} {port} {}", load.display(), lab.size(400_000, 30_000));
    Ok(Task { load: Some(Load { ready, work }), ..task })
}

/// A server with two clients that read and write. Root may not run it: then its own user does.
fn postgres(lab: &Lab, hooks: Hooks) -> Result<Task> {
    let tools = text(&lab.postgres_for_truth(Hooks::None)?.join("bin"));
    let server = text(&lab.postgres_for_truth(hooks)?.join("bin"));
    let data = database(lab, &tools)?.display().to_string();
    let words = format!("{} {server}/postgres -D {data}", as_postgres());
    let ready = format!(
        "for try in $(seq 200); do
             {tools}/pg_isready -q -h 127.0.0.1 -p 17412 && break
             sleep 0.05
         done"
    );
    let work = format!(
        "{tools}/pgbench -h 127.0.0.1 -p 17412 -U postgres -n -c 2 -t {} \
             -b tpcb-like@1 -b select-only@4 postgres
         cd /
         {} {tools}/pg_ctl -D {data} -m fast stop",
        lab.size(11_000, 200),
        as_postgres()
    );
    let words = words.split_whitespace().map(String::from).collect();
    Ok(Task { words, load: Some(Load { ready, work }), ..Task::default() })
}

/// A database with the tables of pgbench, made once.
fn database(lab: &Lab, tools: &str) -> Result<PathBuf> {
    let folder = lab.work.join("postgres-data");
    if folder.join("made").is_file() {
        return Ok(folder);
    }
    let run = as_postgres();
    let script = format!(
        "cd /
         rm -rf {folder}
         mkdir -p {folder}
         if [ -n \"{run}\" ]; then chown postgres:postgres {folder}; fi
         {run} {tools}/initdb -D {folder} -U postgres -A trust --no-sync
         {run} sh -c 'cat >> {folder}/postgresql.conf' << 'END'
listen_addresses = '127.0.0.1'
port = 17412
unix_socket_directories = ''
fsync = off
autovacuum = off
END
         {run} {tools}/pg_ctl -D {folder} -w -l {folder}/log start
         {tools}/pgbench -h 127.0.0.1 -p 17412 -U postgres -i -q -s 2 postgres
         {run} {tools}/pg_ctl -D {folder} -w -m fast stop
         {run} touch {folder}/made",
        folder = folder.display()
    );
    run_quietly(Command::new("sh").args(["-ec", &script]))?;
    Ok(folder)
}
