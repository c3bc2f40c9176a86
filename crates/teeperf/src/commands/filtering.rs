//! Which functions and threads are recorded, and which functions timed by the counter, as `record` and `ctl` take it.

use anyhow::{Result, bail};
use clap::Args;
use teeperf_record::Rules;

/// What is recorded.
#[derive(Args, Debug, Default)]
#[group(skip)]
pub(crate) struct Arguments {
    /// Record only these functions: a name, a glob such as 'parse*', a /regular expression/, and @ and the same for the
    /// module, such as '@libz.so*' (see `teeperf help patterns`). The time of what is left out is that of its callers
    #[arg(long, value_name = "PATTERN")]
    only: Vec<String>,
    /// Do not record these functions, written likewise
    #[arg(long, value_name = "PATTERN")]
    exclude: Vec<String>,
    /// Record only threads of this name or id, written likewise
    #[arg(long, value_name = "THREAD")]
    only_thread: Vec<String>,
    /// Do not record threads of this name or id
    #[arg(long, value_name = "THREAD")]
    exclude_thread: Vec<String>,
}

impl Arguments {
    /// As the recorder takes it.
    pub(crate) fn rules(&self) -> Result<Rules> {
        let mut rules = Rules::default();
        refuse_files(self.only.iter().chain(&self.exclude))?;
        for (leaves_out, texts) in [(false, &self.only), (true, &self.exclude)] {
            texts.iter().try_for_each(|text| rules.function(leaves_out, text))?;
        }
        for (leaves_out, texts) in [(false, &self.only_thread), (true, &self.exclude_thread)] {
            texts.iter().try_for_each(|text| rules.thread(leaves_out, text))?;
        }
        Ok(rules)
    }
}

/// What is timed by the counter, into rules.
pub(crate) fn time(rules: &mut Rules, patterns: &[String]) -> Result<()> {
    refuse_files(patterns.iter())?;
    Ok(patterns.iter().try_for_each(|text| rules.timed(text))?)
}

fn refuse_files<'a>(mut patterns: impl Iterator<Item = &'a String>) -> Result<()> {
    if let Some(text) = patterns.find(|text| text.starts_with("file:")) {
        bail!(
            "{text}: files are chosen when a program is built (`teeperf cc --teeperf-help`); while it runs, name \
             functions, or their module behind an @"
        );
    }
    Ok(())
}

/// Which kinds of events are recorded, as `record --events` and `ctl PID events` have it.
pub(crate) const KINDS: &str = "\
calls: calls and returns of functions
marks: what the program says of itself by teeperf.h: marks, counters, notes, and scopes with a name
crossings: calls between worlds: sessions, commands by number, what the supplicant is asked for (--optee), ECALLs and OCALLs
           (--sgx)";
