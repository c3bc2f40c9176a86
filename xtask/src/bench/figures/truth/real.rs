//! Real programs from Debian's sources, of which perf tells the truth.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use super::kind::Kind;
use super::subject::{Subject, Told, source};
use crate::bench::hooks::Hooks;
use crate::bench::lab::Lab;
use crate::bench::subject::{shell, text};
use crate::commands::run_quietly;

/// A real program and what it is given to do.
pub(super) struct Real {
    pub(super) id: &'static str,
    what: &'static str,
    /// Name of the program's file.
    file: &'static str,
    words: fn(&Lab, Hooks) -> Result<Vec<String>>,
}

pub(super) const REAL: &[Real] = &[
    Real { id: "lua", what: "lua, work.lua", file: "lua-truth", words: lua },
    Real { id: "sqlite3", what: "speedtest1", file: "speedtest1-truth", words: sqlite },
    Real { id: "bzip2", what: "bzip2 -9", file: "bzip2-truth", words: bzip2 },
    Real { id: "zstd", what: "zstd -9", file: "zstd-truth", words: zstd },
    Real { id: "cpython", what: "CPython, work.py", file: "python-truth", words: python },
    Real { id: "postgres", what: "PostgreSQL, pgbench", file: "postgres", words: postgres },
    Real { id: "memcached", what: "memcached, load.c", file: "memcached-truth", words: memcached },
];

impl Real {
    pub(super) fn subject<'a>(&'static self, lab: &'a Lab, kinds: &[Kind]) -> Subject<'a> {
        Subject {
            id: self.id.to_owned(),
            what: self.what.to_owned(),
            told: Told::ByPerf,
            judges_cpu: false,
            repeats: 1,
            file: self.file.to_owned(),
            kinds: kinds.to_vec(),
            words: Box::new(|hooks| (self.words)(lab, hooks)),
        }
    }
}

fn lua(lab: &Lab, hooks: Hooks) -> Result<Vec<String>> {
    let script = text(&lab.bench_file("programs/work.lua"));
    Ok(vec![text(&lab.lua_for_truth(hooks)?), script, lab.size("14", "2").into()])
}

fn sqlite(lab: &Lab, hooks: Hooks) -> Result<Vec<String>> {
    let program = text(&lab.speedtest_for_truth(hooks)?);
    Ok([program.as_str(), "--memdb", "--size", lab.size("150", "15")].map(String::from).into())
}

fn bzip2(lab: &Lab, hooks: Hooks) -> Result<Vec<String>> {
    let program = text(&lab.bzip2_for_truth(hooks)?);
    Ok([&program, "-9", "-k", "-f", &text(&input(lab)?)].map(String::from).into())
}

fn zstd(lab: &Lab, hooks: Hooks) -> Result<Vec<String>> {
    let program = text(&lab.zstd_for_truth(hooks)?);
    let out = text(&lab.scratch("truth.zst"));
    let words = [&program, "-q", "-f", "-9", "--single-thread", &text(&input(lab)?), "-o", &out];
    Ok(words.map(String::from).into())
}

/// What is compressed: sqlite3's source, again and again.
fn input(lab: &Lab) -> Result<PathBuf> {
    let input = lab.scratch(lab.size("truth.in", "truth-quick.in"));
    if !input.is_file() {
        let text = fs::read(lab.amalgamation()?)?;
        fs::write(&input, text.repeat(lab.size(3, 1)))?;
    }
    Ok(input)
}

fn python(lab: &Lab, hooks: Hooks) -> Result<Vec<String>> {
    let (program, library) = lab.python_for_truth(hooks)?;
    let script = text(&source(lab, "work.py"));
    let path = format!("PYTHONPATH={}", library.display());
    let words = ["env", &path, &text(&program), "-S", &script, lab.size("20", "2")];
    Ok(words.map(String::from).into())
}

/// The server and its load, which is the same in all runs. It stores, and then mostly fetches.
fn memcached(lab: &Lab, hooks: Hooks) -> Result<Vec<String>> {
    let server = text(&lab.memcached_for_truth(hooks)?);
    let path = source(lab, "load.c");
    let load = lab.built(Hooks::None, "truth-load", &[&path], |compilers, out| {
        let mut command = compilers.command(false);
        run_quietly(command.arg("-O2").arg(&path).arg("-o").arg(out)).map(drop)
    })?;
    let requests = lab.size("1200000", "150000");
    shell(format!(
        "{server} -u root -l 127.0.0.1 -p 17411 -t 2 -A &
         server=$!
         trap 'kill $server 2> /dev/null || true' EXIT
         {} 17411 {requests}
         wait $server",
        load.display()
    ))
}

/// A server with two clients that read and write. Root may not run it: then its own user does.
fn postgres(lab: &Lab, hooks: Hooks) -> Result<Vec<String>> {
    let tools = text(&lab.postgres_for_truth(Hooks::None)?.join("bin"));
    let server = text(&lab.postgres_for_truth(hooks)?.join("bin"));
    let data = database(&tools)?.display().to_string();
    let (transactions, run) = (lab.size("4000", "400"), user_switch());
    shell(format!(
        "cd /
         rm -f {data}/postmaster.pid
         {run} {server}/postgres -D {data} &
         server=$!
         trap 'kill -INT $server 2> /dev/null || true' EXIT
         for try in $(seq 200); do
             {tools}/pg_isready -q -h 127.0.0.1 -p 17412 && break
             sleep 0.05
         done
         {tools}/pgbench -h 127.0.0.1 -p 17412 -U postgres -n -c 2 -t {transactions} \
             -b tpcb-like@1 -b select-only@4 postgres
         kill -INT $server
         wait $server"
    ))
}

/// What runs a command of PostgreSQL's.
fn user_switch() -> &'static str {
    // SAFETY: it takes nothing and cannot fail.
    if unsafe { libc::geteuid() } == 0 {
        "setpriv --reuid=postgres --regid=postgres --clear-groups"
    } else {
        ""
    }
}

/// A database with the tables of pgbench, made once.
fn database(tools: &str) -> Result<PathBuf> {
    let folder = std::env::temp_dir().join("teeperf-truth-postgres");
    if folder.join("made").is_file() {
        return Ok(folder);
    }
    let run = user_switch();
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
