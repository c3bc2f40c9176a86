//! Real programs as the suite of true shares needs them: with debug information, which tells
//! what was inlined, and otherwise the same code with every kind of hooks.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use anyhow::Result;

use super::hooks::Hooks;
use super::lab::Lab;
use super::programs::{empty, install};
use crate::commands::run_quietly;

/// What bzip2's own Makefile compiles, with its flags.
const BZIP2_SOURCES: [&str; 8] = [
    "blocksort.c",
    "huffman.c",
    "crctable.c",
    "randtable.c",
    "compress.c",
    "decompress.c",
    "bzlib.c",
    "bzip2.c",
];

impl Lab {
    /// lua as one program.
    pub(crate) fn lua_for_truth(&self, hooks: Hooks) -> Result<PathBuf> {
        let (folder, _) = self.lua_source()?;
        self.built(hooks, "lua-truth", &[&folder], |compilers, out| {
            self.build_lua(&compilers.with("-g"), "", out)
        })
    }

    /// sqlite3 with its speed test as one program.
    pub(crate) fn speedtest_for_truth(&self, hooks: Hooks) -> Result<PathBuf> {
        let (sqlite, _) = self.sqlite_source()?;
        self.built(hooks, "speedtest1-truth", &[&sqlite], |compilers, out| {
            self.build_speedtest(&compilers.with("-g"), "", out)
        })
    }

    /// sqlite3's source as one file.
    pub(crate) fn amalgamation(&self) -> Result<PathBuf> {
        Ok(self.sqlite_source()?.0)
    }

    /// bzip2 with its library as one program.
    pub(crate) fn bzip2_for_truth(&self, hooks: Hooks) -> Result<PathBuf> {
        let folder = self.debian("bzip2")?;
        self.built(hooks, "bzip2-truth", &[&folder], |compilers, out| {
            let mut command = compilers.command(false);
            command.args(["-O2", "-g", "-D_FILE_OFFSET_BITS=64"]);
            command.args(BZIP2_SOURCES.map(|source| folder.join(source))).arg("-o").arg(out);
            run_quietly(&mut command).map(drop)
        })
    }

    /// zstd by its Makefile.
    pub(crate) fn zstd_for_truth(&self, hooks: Hooks) -> Result<PathBuf> {
        self.zstd_as("zstd-truth", hooks, "-g")
    }

    /// CPython, and the folder of its library, by its Makefile.
    pub(crate) fn python_for_truth(&self, hooks: Hooks) -> Result<(PathBuf, PathBuf)> {
        let source = self.debian("python3.11")?;
        let program = self.built(hooks, "python-truth", &[&source], |compilers, out| {
            let folder = self.own_copy(&source, hooks)?;
            let mut configure = Command::new("./configure");
            configure.arg("--without-ensurepip").current_dir(&folder);
            configure.env("CC", &compilers.cc).env("CXX", &compilers.cxx);
            configure.env("OPT", "-DNDEBUG -g -fwrapv -O2 -Wall");
            run_quietly(&mut configure)?;
            run_quietly(Command::new("make").args(["-j2", "python"]).current_dir(&folder))?;
            install(&folder.join("python"), out)
        })?;
        Ok((program, source.join("Lib")))
    }

    /// memcached by its Makefile, over a libevent without hooks.
    pub(crate) fn memcached_for_truth(&self, hooks: Hooks) -> Result<PathBuf> {
        let source = self.debian("memcached")?;
        let event = self.libevent()?;
        self.built(hooks, "memcached-truth", &[&source], |compilers, out| {
            let folder = self.own_copy(&source, hooks)?;
            let mut configure = Command::new("./configure");
            configure.arg(format!("--with-libevent={}", event.display())).current_dir(&folder);
            configure.arg("--disable-docs").env("CC", &compilers.cc).env("CFLAGS", "-O2 -g");
            run_quietly(&mut configure)?;
            run_quietly(Command::new("make").args(["-j2", "memcached"]).current_dir(&folder))?;
            install(&folder.join("memcached"), out)
        })
    }

    /// Where libevent is installed, as an archive.
    fn libevent(&self) -> Result<PathBuf> {
        let source = self.debian("libevent")?;
        let prefix = self.work.join("libevent");
        if !prefix.join("lib/libevent.a").is_file() {
            let build = self.work.join("libevent-build");
            empty(&build)?;
            let mut cmake = Command::new("cmake");
            cmake.arg("-S").arg(&source).arg("-B").arg(&build);
            cmake.arg(format!("-DCMAKE_INSTALL_PREFIX={}", prefix.display()));
            cmake.args(["-DCMAKE_BUILD_TYPE=Release", "-DEVENT__LIBRARY_TYPE=STATIC"]);
            cmake.args(["-DEVENT__DISABLE_OPENSSL=ON", "-DEVENT__DISABLE_TESTS=ON"]);
            cmake.args(["-DEVENT__DISABLE_SAMPLES=ON", "-DEVENT__DISABLE_BENCHMARK=ON"]);
            run_quietly(&mut cmake)?;
            let mut install = Command::new("cmake");
            install.arg("--build").arg(&build).args(["-j", "2", "--target", "install"]);
            run_quietly(&mut install)?;
        }
        Ok(prefix)
    }

    /// The folder where PostgreSQL is installed, by its Makefile.
    pub(crate) fn postgres_for_truth(&self, hooks: Hooks) -> Result<PathBuf> {
        let source = self.debian("postgresql-15")?;
        let prefix = self.work.join(hooks.name()).join("postgres");
        self.built(hooks, "postgres/bin/postgres", &[&source], |compilers, _| {
            let folder = self.own_copy(&source, hooks)?;
            let mut configure = Command::new("./configure");
            configure.arg(format!("--prefix={}", prefix.display())).current_dir(&folder);
            configure.args(["--without-readline", "--without-zlib"]);
            configure.env("CC", &compilers.cc).env("CFLAGS", "-O2 -g");
            run_quietly(&mut configure)?;
            for target in ["all", "install"] {
                run_quietly(Command::new("make").args(["-j2", target]).current_dir(&folder))?;
            }
            touch(&prefix.join("bin/postgres"))
        })?;
        Ok(prefix)
    }
}

/// Marks a file as made now: `install` of a Makefile may keep the time of what it copies.
fn touch(file: &Path) -> Result<()> {
    Ok(std::fs::File::options().append(true).open(file)?.set_modified(SystemTime::now())?)
}
