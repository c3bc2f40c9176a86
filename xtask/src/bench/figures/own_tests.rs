//! The test suites that real programs bring, with every function hooked, without and with the
//! recorder.

use anyhow::Result;

use super::Figure;
use crate::bench::hooks::Hooks;
use crate::bench::lab::Lab;
use crate::bench::subject::{Subject, as_postgres, rows, shell, text};

pub(crate) const FIGURE: Figure = Figure {
    name: "tests",
    title: "Real programs' own tests, under recording",
    method: "Suites that come with the programs' sources from Debian, built with `teeperf cc` and run \
             once without and once with the recorder; they must pass both ways. sqlite3: the \
             veryquick set, but ten files of 1000 that fail without the recorder too where root \
             runs them (attach, backup2, delete, extension01, io, oserror, pager1, temptable, \
             tkt3457, wal2). redis: units that need no cluster, those that fork \
             among them, but not dump and corrupt-dump, which fail without the recorder too. \
             leveldb: all but db_test, which needs another library. ninja: ninja_test and \
             output_test.py. zstd: what `make -C tests check` runs, and a fixed number of rounds \
             of its fuzzers. OpenSSL: `make test`. PostgreSQL: the regression tests of `make check`. \
             CPython: modules about the language, processes, signals, threads and libraries in C. \
             lua's package brings no tests.",
    measure: |lab| Ok(rows(lab, &SUITES)),
};

const SUITES: [Subject; 8] = [
    Subject { id: "ninja-tests", what: "ninja's tests", words: ninja },
    Subject { id: "leveldb-tests", what: "leveldb's tests", words: leveldb },
    Subject { id: "redis-tests", what: "redis' tests", words: redis },
    Subject { id: "sqlite3-tests", what: "sqlite3's veryquick tests", words: sqlite3 },
    Subject { id: "zstd-tests", what: "zstd's tests", words: zstd },
    Subject { id: "openssl-tests", what: "OpenSSL's tests", words: openssl },
    Subject { id: "postgres-tests", what: "PostgreSQL's tests", words: postgres },
    Subject { id: "cpython-tests", what: "CPython's tests", words: cpython },
];

/// Units of redis' tests; the first three are those of `--quick`.
const REDIS_UNITS: [&str; 63] = [
    "unit/aofrw",
    "unit/type/list",
    "integration/rdb",
    "unit/printver",
    "unit/auth",
    "unit/protocol",
    "unit/keyspace",
    "unit/scan",
    "unit/info",
    "unit/info-command",
    "unit/type/string",
    "unit/type/incr",
    "unit/type/list-2",
    "unit/type/list-3",
    "unit/type/set",
    "unit/type/zset",
    "unit/type/hash",
    "unit/type/stream",
    "unit/type/stream-cgroups",
    "unit/sort",
    "unit/expire",
    "unit/other",
    "unit/multi",
    "unit/quit",
    "unit/acl",
    "unit/acl-v2",
    "unit/latency-monitor",
    "unit/pubsub",
    "unit/pubsubshard",
    "unit/slowlog",
    "unit/scripting",
    "unit/functions",
    "unit/introspection",
    "unit/introspection-2",
    "unit/limits",
    "unit/obuf-limits",
    "unit/bitops",
    "unit/bitfield",
    "unit/geo",
    "unit/hyperloglog",
    "unit/lazyfree",
    "unit/wait",
    "unit/pause",
    "unit/querybuf",
    "unit/pendingquerybuf",
    "unit/tracking",
    "unit/oom-score-adj",
    "unit/shutdown",
    "unit/networking",
    "unit/violations",
    "unit/replybufsize",
    "unit/cluster-scripting",
    "integration/aof",
    "integration/aof-multi-part",
    "integration/shutdown",
    "integration/logging",
    "integration/redis-cli",
    "integration/redis-benchmark",
    "integration/convert-zipmap-hash-on-load",
    "integration/convert-ziplist-hash-on-load",
    "integration/convert-ziplist-zset-on-load",
    "integration/block-repl",
    "integration/dismiss-mem",
];

/// Files whose tests fail without the recorder too: most count on rights that root does not lack.
const SQLITE_OMITTED: &str =
    "attach|backup2|delete|extension01|io|oserror|pager1|temptable|tkt3457|wal2";

/// Modules of CPython's tests; the first two are those of `--quick`.
const CPYTHON_MODULES: [&str; 61] = [
    "test_grammar",
    "test_signal",
    "test_builtin",
    "test_dict",
    "test_list",
    "test_set",
    "test_tuple",
    "test_bytes",
    "test_int",
    "test_float",
    "test_complex",
    "test_generators",
    "test_coroutines",
    "test_contextlib",
    "test_exceptions",
    "test_except_star",
    "test_gc",
    "test_weakref",
    "test_re",
    "test_json",
    "test_io",
    "test_os",
    "test_posix",
    "test_eintr",
    "test_faulthandler",
    "test_threading",
    "test_thread",
    "test_subprocess",
    "test_fork1",
    "test_wait3",
    "test_wait4",
    "test_select",
    "test_selectors",
    "test_epoll",
    "test_poll",
    "test_mmap",
    "test_ctypes",
    "test_capi",
    "test_pickle",
    "test_struct",
    "test_zlib",
    "test_compile",
    "test_ast",
    "test_pty",
    "test_sched",
    "test_queue",
    "test_threadsignals",
    "test_threading_local",
    "test_atexit",
    "test_posixpath",
    "test_time",
    "test_timeout",
    "test_fileio",
    "test_hashlib",
    "test_sys",
    "test_sys_setprofile",
    "test_sys_settrace",
    "test_itertools",
    "test_functools",
    "test_decimal",
    "test_math",
];

fn sqlite3(lab: &Lab) -> Result<Vec<String>> {
    let (program, tests) = lab.testfixture(Hooks::Late)?;
    let (program, tests) = (text(&program), text(&tests));
    // One of eight parts, in a hurry.
    let part = lab.size("1/1", "3/8");
    shell(format!(
        "rm -rf sqlite3-tests
         mkdir sqlite3-tests
         cd sqlite3-tests
         export QUICKTEST_OMIT='^({SQLITE_OMITTED})[.]test$' TCLTEST_PART={part}
         {program} {tests}/veryquick.test"
    ))
}

fn zstd(lab: &Lab) -> Result<Vec<String>> {
    let folder = text(&lab.zstd_tests(Hooks::Late)?);
    let rounds = lab.size(300, 20);
    shell(format!(
        "cd {folder}
         ZSTD_BIN=../programs/zstd DATAGEN_BIN=./datagen ./playTests.sh
         ./fuzzer -s1 -i{rounds}
         ./zstreamtest -s1 -i{rounds}
         ./zstreamtest --newapi -s1 -i{rounds}
         ./decodecorpus -t -s1 -n{rounds}
         ./invalidDictionaries
         ./legacy
         ./poolTests"
    ))
}

fn redis(lab: &Lab) -> Result<Vec<String>> {
    let folder = text(&lab.redis(Hooks::Late)?);
    let units = lab.size(&REDIS_UNITS[..], &REDIS_UNITS[..3]);
    let single: String = units.iter().map(|unit| format!(" --single {unit}")).collect();
    shell(format!("cd {folder} && ./runtest --clients 2{single}"))
}

fn leveldb(lab: &Lab) -> Result<Vec<String>> {
    let tests = lab.leveldb_tests(Hooks::Late)?;
    shell(tests.iter().map(|test| text(test) + "\n").collect())
}

fn ninja(lab: &Lab) -> Result<Vec<String>> {
    let (folder, script) = lab.ninja_tests(Hooks::Late)?;
    let (folder, script) = (text(&folder), text(&script));
    shell(format!(
        "cd {folder}
         ./ninja_test
         python3 {script}"
    ))
}

fn openssl(lab: &Lab) -> Result<Vec<String>> {
    let folder = text(&lab.openssl_tests(Hooks::Late)?);
    let tests = lab.size("", "TESTS='test_sha test_evp'");
    shell(format!("make -C {folder} test HARNESS_JOBS=2 {tests}"))
}

/// The regression tests make a server of their own.
fn postgres(lab: &Lab) -> Result<Vec<String>> {
    let folder = text(&lab.postgres_tests(Hooks::Late)?);
    let run = as_postgres();
    let tests = lab.size("check", "check-tests TESTS='test_setup boolean int4'");
    shell(format!(
        "if [ -n \"{run}\" ]; then chown -R postgres:postgres {folder}; fi
         {run} make -C {folder}/src/test/regress {tests}"
    ))
}

fn cpython(lab: &Lab) -> Result<Vec<String>> {
    let folder = text(&lab.python_tests(Hooks::Late)?);
    let modules = lab.size(&CPYTHON_MODULES[..], &CPYTHON_MODULES[..2]).join(" ");
    shell(format!("cd {folder} && ./python -m test -j2 {modules}"))
}
