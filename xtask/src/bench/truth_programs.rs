//! Real programs as the suite of true shares needs them: with debug information, which tells
//! what was inlined, and otherwise the same code with every kind of hooks.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use super::hooks::Hooks;
use super::lab::Lab;
use super::programs::install;
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
        let source = self.debian("libzstd")?;
        self.built(hooks, "zstd-truth", &[&source], |compilers, out| {
            let folder = self.own_copy(&source, hooks)?;
            let mut make = Command::new("make");
            make.args(["-j2", "-C"]).arg(folder.join("programs")).arg("zstd");
            make.arg(format!("CC={}", compilers.cc));
            make.args(["HAVE_ZLIB=0", "HAVE_LZMA=0", "HAVE_LZ4=0", "DEBUGFLAGS=-g"]);
            run_quietly(&mut make)?;
            install(&folder.join("programs/zstd"), out)
        })
    }
}
