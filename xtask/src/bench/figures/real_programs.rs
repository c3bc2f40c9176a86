//! Real programs under recording: that they work as before, that nothing is lost, and what
//! it costs each.

use std::path::PathBuf;

use anyhow::Result;

use super::Figure;
use crate::bench::hooks::Hooks;
use crate::bench::lab::Lab;
use crate::bench::programs::Host;
use crate::bench::subject::{Subject, rows, shell, text};

pub(crate) const FIGURE: Figure = Figure {
    name: "programs",
    title: "Real programs",
    method: "Each is built with `teeperf cc` by its own build system where it has one that takes \
             a compiler, and run once without and once with the recorder; a run that does not \
             succeed, or whose own check fails, is an error here. Programs from Debian's sources. \
             db_bench: fillrandom, then readrandom four times as often.",
    measure: |lab| Ok(rows(lab, &SUBJECTS)),
};

const SUBJECTS: [Subject; 9] = [
    Subject { id: "lua", what: "lua", words: |lab| lua(lab, lab.lua(Hooks::Late)?) },
    Subject {
        id: "lua-shared",
        what: "lua and liblua.so, both hooked",
        words: |lab| lua(lab, lab.lua_shared(Hooks::Late, Host::Hooked)?),
    },
    Subject {
        id: "lua-library",
        what: "hooked liblua.so, unhooked lua",
        words: |lab| lua(lab, lab.lua_shared(Hooks::Late, Host::Unhooked)?),
    },
    Subject {
        id: "sqlite3",
        what: "sqlite3 speedtest1",
        words: |lab| speedtest(lab, lab.speedtest(Hooks::Late)?),
    },
    Subject {
        id: "sqlite3-shared",
        what: "speedtest1 and libsqlite3.so, both hooked",
        words: |lab| speedtest(lab, lab.speedtest_shared(Hooks::Late, Host::Hooked)?),
    },
    Subject {
        id: "sqlite3-library",
        what: "hooked libsqlite3.so, unhooked speedtest1",
        words: |lab| speedtest(lab, lab.speedtest_shared(Hooks::Late, Host::Unhooked)?),
    },
    Subject { id: "zstd", what: "zstd, there and back, two threads", words: zstd },
    Subject { id: "redis", what: "redis-server under redis-benchmark", words: redis },
    Subject { id: "leveldb", what: "leveldb's db_bench, 80 % reads", words: leveldb },
];

fn lua(lab: &Lab, program: PathBuf) -> Result<Vec<String>> {
    Ok(vec![text(&program), text(&lab.bench_file("programs/work.lua"))])
}

fn speedtest(lab: &Lab, program: PathBuf) -> Result<Vec<String>> {
    let size = lab.size("20", "2");
    Ok([&text(&program), "--size", size, "--memdb", "--verify"].map(String::from).into())
}

fn zstd(lab: &Lab) -> Result<Vec<String>> {
    let zstd = text(&lab.zstd(Hooks::Late)?);
    let input = text(&lab.work.join("sqlite3/sqlite3.c"));
    shell(format!(
        "cat {input} {input} {input} > zstd.in
         {zstd} -q -f -3 -T2 zstd.in -o zstd.out
         {zstd} -q -f -d zstd.out -o zstd.back
         cmp zstd.in zstd.back"
    ))
}

fn redis(lab: &Lab) -> Result<Vec<String>> {
    let folder = lab.redis(Hooks::Late)?;
    let load = lab.redis(Hooks::None)?;
    let (server, load) = (text(&folder.join("src")), text(&load.join("src")));
    let requests = lab.size(100_000, 2_000);
    shell(format!(
        "{server}/redis-server --bind 127.0.0.1 --port 17379 --save '' --loglevel warning &
         server=$!
         trap 'kill $server 2> /dev/null || true' EXIT
         for try in $(seq 200); do
             {load}/redis-cli -p 17379 ping > /dev/null 2>&1 && break
             sleep 0.05
         done
         {load}/redis-benchmark -p 17379 -q -n {requests} -c 20 -t set,get,lpush,lrange_100
         {load}/redis-cli -p 17379 shutdown nosave
         wait $server"
    ))
}

fn leveldb(lab: &Lab) -> Result<Vec<String>> {
    let bench = text(&lab.db_bench(Hooks::Late)?);
    let (writes, reads) = lab.size(("100000", "400000"), ("5000", "20000"));
    let db = text(&lab.scratch("leveldb"));
    shell(format!(
        "rm -rf {db}
         {bench} --db={db} --benchmarks=fillrandom,readrandom --num={writes} --reads={reads}"
    ))
}
