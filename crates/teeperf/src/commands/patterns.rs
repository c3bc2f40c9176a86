//! `teeperf help patterns`: how functions are named, wherever a PATTERN is asked for.

use crate::config;
use anyhow::Result;
use clap::Args;

/// How functions are named: the language of patterns, and where it holds
#[derive(Args, Debug)]
#[command(after_help = "\
Patterns:
  parse           the function of this name. In C++ and Rust parameters, template arguments and the type that is returned
                  may be left out: ns::find is every ns::find, 'ns::find<int>' those of int, 'ns::find(char)' those that
                  take a char. So may what compilers put behind copies, such as .constprop.0
  'parse*'        a glob of the whole name: * stands for any text, ? for one character; \\ takes the meaning of the next
                  character away
  '/^get_[xy]/'   a regular expression, found anywhere in the name
  file:a.c        functions written in a file of this name; in one whose path ends so, file:src/a.c; below a folder,
                  file:src/; a glob in which ** crosses folders, 'file:src/**/*.h'; from the root on, file:/usr/
  'f*@libz.so*'   behind an @ the file name or path of the program or library, likewise; '@libz.so*' has all of it
  \\@f             a name in which these signs are its own

Where they hold:
  --teeperf-only, --teeperf-exclude, teeperf.toml  when a program is built; its module is not known then: no @
  record and ctl: --only, --exclude, --timed       while it runs; its files are not known then: no file:
  --focus, --ignore, --root, --group               in all that reads recordings
  report --crossing                                likewise
  report --around, --callers, --callees,           of one recording
  --histogram                                      likewise
  annotate                                         where a source file may be named as well, src/a.c
  diff --fail-if 'self(PATTERN) > +5%'             where a name that no function has is an error

Where a recording is read, a plain name that no function has is taken for a part of names, and that is said. Files are
known of functions that had debug information (-g) when they were recorded.

Not of functions: --thread, --only-thread and --exclude-thread take ids and names of threads, which may be globs or regular
expressions. --path takes a regular expression for whole call paths, main;parse;malloc.

Examples:
  teeperf report --focus 'file:src/parser/' --ignore '@libc.so*'
  teeperf report --around ns::Table::find
  teeperf record --only 'parse*' --exclude '/_slow$/' -- ./program
  teeperf diff --fail-if 'self(ns::Table::find) > +5%' a.teeperf b.teeperf")]
pub(crate) struct Arguments {}

pub(crate) fn run(_: &Arguments) -> Result<()> {
    let mut command = config::definition();
    command.build();
    match command.find_subcommand_mut("patterns") {
        Some(page) => super::print(page.render_long_help().to_string().as_bytes()),
        None => Ok(()),
    }
}
