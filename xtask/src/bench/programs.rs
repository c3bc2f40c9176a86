//! Real programs from Debian's sources, each built once for each kind of hooks, by its own
//! build system where that takes a compiler from outside, so that the wrapper is tried under
//! Make and CMake too.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::debian::source;
use super::hooks::{Compilers, Hooks};
use super::lab::Lab;
use crate::commands::run_quietly;

/// Flags of lua's own Makefile for Linux, less readline.
const LUA_FLAGS: [&str; 4] = ["-O2", "-DLUA_USE_LINUX", "-DLUA_COMPAT_5_3", "-std=gnu99"];
/// As sqlite's authors build speedtest1.
const SQLITE_FLAGS: [&str; 3] = ["-O2", "-DSQLITE_THREADSAFE=0", "-DSQLITE_OMIT_LOAD_EXTENSION"];

/// Where a library's hooks go and who uses it.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Host {
    /// The program is hooked as well.
    Hooked,
    /// Only the library is.
    Unhooked,
}

impl Lab {
    pub(super) fn debian(&self, package: &str) -> Result<PathBuf> {
        source(package, &self.sources)
    }

    /// lua as one program.
    pub(crate) fn lua(&self, hooks: Hooks) -> Result<PathBuf> {
        let (folder, _) = self.lua_source()?;
        self.built(hooks, "lua", &[&folder], |compilers, out| self.build_lua(compilers, "", out))
    }

    /// The same with options of the wrapper, always anew.
    pub(crate) fn lua_without(&self, options: &str) -> Result<PathBuf> {
        let out = self.work.join(Hooks::Late.name()).join("lua-without");
        self.build_lua(&self.compilers(Hooks::Late)?, options, &out)?;
        Ok(out)
    }

    pub(super) fn build_lua(&self, compilers: &Compilers, options: &str, out: &Path) -> Result<()> {
        let (folder, include) = self.lua_source()?;
        let mut command = lua_command(compilers, &include);
        command.env("TEEPERF_CC_OPTIONS", options);
        command.args(lua_sources(&folder, |name| name != "luac.c")?).arg("-o").arg(out);
        run_quietly(command.args(["-Wl,-E", "-lm", "-ldl"])).map(drop)
    }

    /// lua as a library with hooks, and a program that uses it.
    pub(crate) fn lua_shared(&self, hooks: Hooks, host: Host) -> Result<PathBuf> {
        let (folder, include) = self.lua_source()?;
        let library = self.built(hooks, "liblua.so", &[&folder], |compilers, out| {
            let mut command = lua_command(compilers, &include);
            command.args(["-shared", "-fPIC", "-Wl,-soname,liblua.so"]);
            command.args(lua_sources(&folder, |name| name != "luac.c" && name != "lua.c")?);
            run_quietly(command.arg("-o").arg(out).args(["-lm", "-ldl"])).map(drop)
        })?;
        self.host_of(hooks, host, "lua", &library, |compilers| {
            let mut command = lua_command(compilers, &include);
            command.arg("-I").arg(&folder).arg(folder.join("lua.c"));
            command
        })
    }

    /// The folder of lua's sources, and one with the header that Debian's rules write.
    pub(super) fn lua_source(&self) -> Result<(PathBuf, PathBuf)> {
        let include = self.work.join("lua-include");
        fs::create_dir_all(&include)?;
        let header = "#define DEB_HOST_MULTIARCH \"\"\n";
        fs::write(include.join("lua5.4-deb-multiarch.h"), header)?;
        Ok((self.debian("lua5.4")?.join("src"), include))
    }

    /// sqlite3 with its speed test as one program.
    pub(crate) fn speedtest(&self, hooks: Hooks) -> Result<PathBuf> {
        let (sqlite, _) = self.sqlite_source()?;
        self.built(hooks, "speedtest1", &[&sqlite], |compilers, out| {
            self.build_speedtest(compilers, "", out)
        })
    }

    /// The same with options of the wrapper, always anew.
    pub(crate) fn speedtest_without(&self, options: &str) -> Result<PathBuf> {
        let out = self.work.join(Hooks::Late.name()).join("speedtest1-without");
        self.build_speedtest(&self.compilers(Hooks::Late)?, options, &out)?;
        Ok(out)
    }

    pub(super) fn build_speedtest(
        &self,
        compilers: &Compilers,
        options: &str,
        out: &Path,
    ) -> Result<()> {
        let (sqlite, speedtest) = self.sqlite_source()?;
        let mut command = compilers.command(false);
        command.env("TEEPERF_CC_OPTIONS", options);
        command.args(SQLITE_FLAGS).args([&sqlite, &speedtest]).arg("-o").arg(out).arg("-lm");
        run_quietly(&mut command).map(drop)
    }

    /// The same without hooks, and with debug information.
    pub(crate) fn speedtest_with_debug(&self) -> Result<PathBuf> {
        let (sqlite, speedtest) = self.sqlite_source()?;
        self.built(Hooks::None, "speedtest1-debug", &[&sqlite], |compilers, out| {
            let mut command = compilers.command(false);
            command.args(SQLITE_FLAGS).arg("-g").args([&sqlite, &speedtest]);
            run_quietly(command.arg("-o").arg(out).arg("-lm")).map(drop)
        })
    }

    /// Likewise, with frame pointers.
    pub(crate) fn speedtest_with_frame_pointers(&self) -> Result<PathBuf> {
        let (sqlite, speedtest) = self.sqlite_source()?;
        self.built(Hooks::None, "speedtest1-frames", &[&sqlite], |compilers, out| {
            let mut command = compilers.command(false);
            command.args(SQLITE_FLAGS).args(["-g", "-fno-omit-frame-pointer"]);
            run_quietly(command.args([&sqlite, &speedtest]).arg("-o").arg(out).arg("-lm")).map(drop)
        })
    }

    /// sqlite3 as it stands, without inlining: every function that is entered is called.
    pub(crate) fn speedtest_without_inlining(&self) -> Result<PathBuf> {
        let (sqlite, speedtest) = self.sqlite_source()?;
        self.built(Hooks::Late, "speedtest1-noinline", &[&sqlite], |compilers, out| {
            let mut command = compilers.command(false);
            command.args(SQLITE_FLAGS).args(["-fno-inline", "-fno-ipa-icf", "-g1"]);
            command.args([&sqlite, &speedtest]).arg("-o").arg(out).arg("-lm");
            run_quietly(&mut command).map(drop)
        })
    }

    /// sqlite3 as a library with hooks, and the speed test that uses it.
    pub(crate) fn speedtest_shared(&self, hooks: Hooks, host: Host) -> Result<PathBuf> {
        let (sqlite, speedtest) = self.sqlite_source()?;
        let library = self.built(hooks, "libsqlite3.so", &[&sqlite], |compilers, out| {
            let mut command = compilers.command(false);
            command.args(SQLITE_FLAGS).args(["-shared", "-fPIC", "-Wl,-soname,libsqlite3.so"]);
            run_quietly(command.arg(&sqlite).arg("-o").arg(out).arg("-lm")).map(drop)
        })?;
        let include = sqlite.parent().context("a file lies in a folder")?.to_owned();
        self.host_of(hooks, host, "speedtest1", &library, |compilers| {
            let mut command = compilers.command(false);
            command.args(SQLITE_FLAGS).arg("-I").arg(&include).arg(&speedtest);
            command
        })
    }

    /// The amalgamation, which sqlite's own Makefile makes with tclsh, and the speed test.
    pub(super) fn sqlite_source(&self) -> Result<(PathBuf, PathBuf)> {
        let folder = self.debian("sqlite3")?;
        let build = self.work.join("sqlite3");
        let amalgamation = build.join("sqlite3.c");
        if !amalgamation.is_file() {
            fs::create_dir_all(&build)?;
            let mut configure = Command::new(folder.join("configure"));
            run_quietly(configure.arg("--disable-readline").current_dir(&build))?;
            run_quietly(Command::new("make").arg("sqlite3.c").current_dir(&build))?;
        }
        Ok((amalgamation, folder.join("test/speedtest1.c")))
    }

    /// A program that uses a library in the same folder.
    fn host_of(
        &self,
        hooks: Hooks,
        host: Host,
        name: &str,
        library: &Path,
        command: impl FnOnce(&Compilers) -> Command,
    ) -> Result<PathBuf> {
        let (suffix, own) = match host {
            Host::Hooked => ("shared", hooks),
            Host::Unhooked => ("plain", Hooks::None),
        };
        self.built(hooks, &format!("{name}-{suffix}"), &[library], |_, out| {
            let mut command = command(&self.compilers(own)?);
            command.arg("-o").arg(out).arg(library).args(["-Wl,-rpath,$ORIGIN", "-lm"]);
            run_quietly(&mut command).map(drop)
        })
    }

    /// The zstd program, by its Makefile.
    pub(crate) fn zstd(&self, hooks: Hooks) -> Result<PathBuf> {
        self.zstd_as("zstd", hooks, "")
    }

    /// The same without hooks, and with debug information.
    pub(crate) fn zstd_with_debug(&self) -> Result<PathBuf> {
        self.zstd_as("zstd-debug", Hooks::None, "-g")
    }

    /// The same with these flags for debug information, under a name of its own.
    pub(crate) fn zstd_as(&self, name: &str, hooks: Hooks, debug: &str) -> Result<PathBuf> {
        let source = self.debian("libzstd")?;
        self.built(hooks, name, &[&source], |compilers, out| {
            let folder = self.own_copy(&source, hooks)?;
            let mut make = Command::new("make");
            make.args(["-j2", "-C"]).arg(folder.join("programs")).arg("zstd");
            make.arg(format!("CC={}", compilers.cc)).arg(format!("DEBUGFLAGS={debug}"));
            make.args(["HAVE_ZLIB=0", "HAVE_LZMA=0", "HAVE_LZ4=0"]);
            run_quietly(&mut make)?;
            install(&folder.join("programs/zstd"), out)
        })
    }

    /// The redis server and its load, by their Makefile. The folder has `redis-server`,
    /// `redis-cli` and `redis-benchmark` under `src`, and the tests.
    pub(crate) fn redis(&self, hooks: Hooks) -> Result<PathBuf> {
        let source = self.debian("redis")?;
        let folder = self.copy_of(&source, hooks);
        self.built(hooks, "redis-server", &[&source], |compilers, out| {
            self.own_copy(&source, hooks)?;
            let mut make = Command::new("make");
            make.args(["-j2", "-C"]).arg(&folder);
            make.args(["MALLOC=libc", "USE_SYSTEMD=no", "OPTIMIZATION=-O2"]);
            // As a variable on the command line, CC would reach jemalloc's and lua's
            // Makefiles in their own spelling too: that is wanted.
            run_quietly(make.arg(format!("CC={}", compilers.cc)))?;
            install(&folder.join("src/redis-server"), out)
        })?;
        Ok(folder)
    }

    /// leveldb's db_bench, over a library built by CMake.
    pub(crate) fn db_bench(&self, hooks: Hooks) -> Result<PathBuf> {
        self.leveldb_program(hooks, "benchmarks/db_bench.cc", &["util/histogram.cc"])
    }

    /// A program of leveldb's sources, linked with its library and Google's test library.
    pub(super) fn leveldb_program(
        &self,
        hooks: Hooks,
        main: &str,
        more: &[&str],
    ) -> Result<PathBuf> {
        let folder = self.debian("leveldb")?;
        let google = self.debian("googletest")?;
        let library = self.leveldb_library(hooks, &folder)?;
        let test_library = self.googletest(&google)?;
        let stem = Path::new(main).file_stem().context("a source has a name")?.to_string_lossy();
        self.built(hooks, &stem, &[&library, &folder.join(main)], |compilers, out| {
            let mut link = compilers.command(true);
            link.args(["-O2", "-DLEVELDB_PLATFORM_POSIX=1", "-std=c++14", "-pthread"]);
            for include in [folder.clone(), folder.join("include"), google_include(&google)] {
                link.arg("-I").arg(include);
            }
            link.arg("-I").arg(google.join("googletest/include"));
            for source in more.iter().chain(&["util/testutil.cc"]) {
                link.arg(folder.join(source));
            }
            // A compiler for C++ takes C for C++ unless it is told.
            if main.ends_with(".c") {
                link.args(["-x", "c"]);
            }
            link.arg(folder.join(main)).args(["-x", "none"]);
            link.arg("-o").arg(out).args([&library, &test_library]);
            run_quietly(&mut link).map(drop)
        })
    }

    /// RocksDB's db_bench, by its CMake, for any processor of this architecture.
    pub(crate) fn rocksdb_bench(&self, hooks: Hooks) -> Result<PathBuf> {
        let source = self.debian("rocksdb")?;
        self.built(hooks, "rocksdb-bench", &[&source], |compilers, out| {
            let build = self.work.join(hooks.name()).join("rocksdb-build");
            empty(&build)?;
            let mut cmake = Command::new("cmake");
            cmake.arg("-S").arg(&source).arg("-B").arg(&build);
            cmake.args(["-DCMAKE_BUILD_TYPE=Release", "-DPORTABLE=1", "-DWITH_TESTS=OFF"]);
            cmake.args(["-DFAIL_ON_WARNINGS=OFF", "-DROCKSDB_BUILD_SHARED=OFF"]);
            cmake.args(["-DWITH_TOOLS=OFF", "-DWITH_BENCHMARK_TOOLS=ON", "-DWITH_GFLAGS=ON"]);
            run_quietly(cmake.env("CC", &compilers.cc).env("CXX", &compilers.cxx))?;
            let mut make = Command::new("cmake");
            make.arg("--build").arg(&build).args(["-j", "2", "--target", "db_bench"]);
            run_quietly(&mut make)?;
            install(&build.join("db_bench"), out)
        })
    }

    fn leveldb_library(&self, hooks: Hooks, folder: &Path) -> Result<PathBuf> {
        self.built(hooks, "libleveldb.a", &[folder], |compilers, out| {
            let build = self.work.join(hooks.name()).join("leveldb-build");
            empty(&build)?;
            let mut cmake = Command::new("cmake");
            cmake.arg("-S").arg(folder).arg("-B").arg(&build);
            cmake.args(["-DCMAKE_BUILD_TYPE=Release", "-DLEVELDB_BUILD_TESTS=OFF"]);
            cmake.args(["-DLEVELDB_BUILD_BENCHMARKS=OFF", "-DHAVE_SNAPPY=OFF"]);
            run_quietly(cmake.env("CC", &compilers.cc).env("CXX", &compilers.cxx))?;
            let mut make = Command::new("cmake");
            run_quietly(make.arg("--build").arg(&build).args(["-j", "2"]))?;
            install(&build.join("libleveldb.a"), out)
        })
    }

    /// Google's test library, never hooked: it is not what is measured.
    fn googletest(&self, google: &Path) -> Result<PathBuf> {
        self.built(Hooks::None, "googletest.o", &[google], |compilers, out| {
            let mut command = compilers.command(true);
            command.args(["-O1", "-std=c++14", "-r", "-nostdlib", "-o"]).arg(out);
            for part in ["googletest", "googlemock"] {
                command
                    .arg("-I")
                    .arg(google.join(part))
                    .arg("-I")
                    .arg(google.join(part).join("include"));
            }
            command.arg(google.join("googletest/src/gtest-all.cc"));
            command.arg(google.join("googlemock/src/gmock-all.cc"));
            run_quietly(&mut command).map(drop)
        })
    }

    /// A new copy of a source, for build systems that build where the sources are.
    pub(super) fn own_copy(&self, source: &Path, hooks: Hooks) -> Result<PathBuf> {
        let to = self.copy_of(source, hooks);
        empty(&to)?;
        run_quietly(Command::new("cp").arg("-aT").arg(source).arg(&to))?;
        Ok(to)
    }

    pub(super) fn copy_of(&self, source: &Path, hooks: Hooks) -> PathBuf {
        self.work.join(hooks.name()).join(source.file_name().unwrap_or_default())
    }
}

/// Makes a folder, or empties it: what was built before had another compiler.
pub(super) fn empty(folder: &Path) -> Result<()> {
    if folder.is_dir() {
        fs::remove_dir_all(folder)?;
    }
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())
}

fn lua_command(compilers: &Compilers, include: &Path) -> Command {
    let mut command = compilers.command(false);
    command.args(LUA_FLAGS).arg("-I").arg(include);
    command
}

pub(super) fn lua_sources(folder: &Path, wanted: impl Fn(&str) -> bool) -> Result<Vec<PathBuf>> {
    let mut sources = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.ends_with(".c") && wanted(&name) {
            sources.push(path);
        }
    }
    sources.sort();
    Ok(sources)
}

fn google_include(google: &Path) -> PathBuf {
    google.join("googlemock/include")
}

/// Copies what a Makefile left in its own folder.
pub(super) fn install(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to).with_context(|| from.display().to_string()).map(drop)
}
