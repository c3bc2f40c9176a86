//! `teeperf flags`: the words that `teeperf cc` would add, for builds that set them by hand.

use crate::compiler::{self, Family, Product};
use crate::{bundle, shell};
use anyhow::Result;
use clap::Args;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

/// Prints the compiler and linker options that put hooks into a program
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  gcc $(teeperf flags --cflags) -c a.c
  gcc a.o $(teeperf flags --libs) -o program
  gcc -shared b.o $(teeperf flags --libs --shared) -o libb.so
  clang++ $(teeperf flags --cflags --clang) -c c.cc")]
pub(crate) struct Arguments {
    /// Options for compiling
    #[arg(long, required_unless_present = "libs")]
    cflags: bool,
    /// Options for linking
    #[arg(long)]
    libs: bool,
    /// For linking a shared library
    #[arg(long, requires = "libs", conflicts_with = "static_")]
    shared: bool,
    /// For linking a static program
    #[arg(long = "static", requires = "libs", id = "static_")]
    static_: bool,
    /// Options for clang instead of gcc
    #[arg(long)]
    clang: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    bundle::needs_hooks()?;
    let mut words = Vec::new();
    if arguments.cflags {
        let family = if arguments.clang { Family::Clang } else { Family::Gcc };
        words.extend(compiler::flags_to_compile(family)?);
    }
    if arguments.libs {
        let product = match (arguments.shared, arguments.static_) {
            (true, _) => Product::SharedLibrary,
            (_, true) => Product::StaticProgram,
            _ => Product::Program,
        };
        words.extend(compiler::flags_to_link(product)?);
    }
    let line: Vec<OsString> = words.iter().map(|word| shell::quoted(word)).collect();
    let mut text = line.join(" ".as_ref()).into_vec();
    text.push(b'\n');
    super::print(&text)
}
