//! Test suites that real programs bring, built with hooks by the programs' own build systems.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use super::hooks::Hooks;
use super::lab::Lab;
use super::programs::{empty, install};
use crate::commands::run_quietly;

/// leveldb's tests for this system, but `db_test.cc`, which needs Google's benchmark library.
const LEVELDB_TESTS: [&str; 29] = [
    "db/autocompact_test.cc",
    "db/c_test.c",
    "db/corruption_test.cc",
    "db/dbformat_test.cc",
    "db/fault_injection_test.cc",
    "db/filename_test.cc",
    "db/log_test.cc",
    "db/recovery_test.cc",
    "db/skiplist_test.cc",
    "db/version_edit_test.cc",
    "db/version_set_test.cc",
    "db/write_batch_test.cc",
    "helpers/memenv/memenv_test.cc",
    "issues/issue178_test.cc",
    "issues/issue200_test.cc",
    "issues/issue320_test.cc",
    "table/filter_block_test.cc",
    "table/table_test.cc",
    "util/arena_test.cc",
    "util/bloom_test.cc",
    "util/cache_test.cc",
    "util/coding_test.cc",
    "util/crc32c_test.cc",
    "util/env_posix_test.cc",
    "util/env_test.cc",
    "util/hash_test.cc",
    "util/logging_test.cc",
    "util/no_destructor_test.cc",
    "util/status_test.cc",
];

/// What zstd's tests run, as targets of their Makefile.
const ZSTD_TARGETS: [&str; 8] = [
    "datagen",
    "decodecorpus",
    "fuzzer",
    "invalidDictionaries",
    "legacy",
    "poolTests",
    "zstd",
    "zstreamtest",
];

impl Lab {
    /// sqlite3's `testfixture`, the Tcl shell that its tests are written for, and the folder
    /// of the tests.
    pub(crate) fn testfixture(&self, hooks: Hooks) -> Result<(PathBuf, PathBuf)> {
        let folder = self.debian("sqlite3")?;
        let program = self.built(hooks, "testfixture", &[&folder], |compilers, out| {
            let build = self.work.join(hooks.name()).join("sqlite3-build");
            empty(&build)?;
            let mut configure = Command::new(folder.join("configure"));
            configure.arg("--disable-readline").env("CC", &compilers.cc);
            run_quietly(configure.env("CFLAGS", "-O1").current_dir(&build))?;
            run_quietly(Command::new("make").args(["-j2", "testfixture"]).current_dir(&build))?;
            install(&build.join("testfixture"), out)
        })?;
        Ok((program, folder.join("test")))
    }

    /// The folder of zstd's tests, all built.
    pub(crate) fn zstd_tests(&self, hooks: Hooks) -> Result<PathBuf> {
        let source = self.debian("libzstd")?;
        let copy = self.work.join(hooks.name()).join("zstd-tests");
        let tests = copy.join("tests");
        self.built(hooks, "zstreamtest", &[&source], |compilers, out| {
            empty(&copy)?;
            run_quietly(Command::new("cp").arg("-aT").arg(&source).arg(&copy))?;
            let mut make = Command::new("make");
            make.args(["-j2", "-C"]).arg(&tests).arg(format!("CC={}", compilers.cc));
            make.args(["HAVE_ZLIB=0", "HAVE_LZMA=0", "HAVE_LZ4=0"]).args(ZSTD_TARGETS);
            run_quietly(&mut make)?;
            install(&tests.join("zstreamtest"), out)
        })?;
        Ok(tests)
    }

    /// The folder of CPython, built with all its modules.
    pub(crate) fn python_tests(&self, hooks: Hooks) -> Result<PathBuf> {
        self.python_for_truth(hooks)?;
        let folder = self.copy_of(&self.debian("python3.11")?, hooks);
        run_quietly(Command::new("make").arg("-j2").current_dir(&folder))?;
        Ok(folder)
    }

    /// The folder of PostgreSQL, all built.
    pub(crate) fn postgres_tests(&self, hooks: Hooks) -> Result<PathBuf> {
        self.postgres_for_truth(hooks)?;
        Ok(self.copy_of(&self.debian("postgresql-15")?, hooks))
    }

    /// The folder of OpenSSL, all built.
    pub(crate) fn openssl_tests(&self, hooks: Hooks) -> Result<PathBuf> {
        let source = self.debian("openssl")?;
        self.built(hooks, "openssl", &[&source], |compilers, out| {
            let folder = self.own_copy(&source, hooks)?;
            let mut configure = Command::new("./config");
            configure.current_dir(&folder).env("CC", &compilers.cc).env("CXX", &compilers.cxx);
            run_quietly(&mut configure)?;
            run_quietly(Command::new("make").arg("-j2").current_dir(&folder))?;
            install(&folder.join("apps/openssl"), out)
        })?;
        Ok(self.copy_of(&source, hooks))
    }

    /// leveldb's tests, a program each.
    pub(crate) fn leveldb_tests(&self, hooks: Hooks) -> Result<Vec<PathBuf>> {
        LEVELDB_TESTS.iter().map(|test| self.leveldb_program(hooks, test, &[])).collect()
    }

    /// ninja and its own tests, by CMake: the folder of both, and the script that looks at
    /// what ninja prints.
    pub(crate) fn ninja_tests(&self, hooks: Hooks) -> Result<(PathBuf, PathBuf)> {
        let folder = self.debian("ninja-build")?;
        let build = self.work.join(hooks.name()).join("ninja-build");
        self.built(hooks, "ninja_test", &[&folder], |compilers, out| {
            empty(&build)?;
            let mut cmake = Command::new("cmake");
            cmake.arg("-S").arg(&folder).arg("-B").arg(&build);
            cmake.args(["-DCMAKE_BUILD_TYPE=Release", "-DBUILD_TESTING=ON"]);
            run_quietly(cmake.env("CC", &compilers.cc).env("CXX", &compilers.cxx))?;
            let mut make = Command::new("cmake");
            make.arg("--build").arg(&build).args(["-j", "2", "--target", "ninja", "ninja_test"]);
            run_quietly(&mut make)?;
            install(&build.join("ninja_test"), out)
        })?;
        Ok((build, folder.join("misc/output_test.py")))
    }
}
