//! `teeperf version`: more than a number, for reports of what does not work.

use anyhow::Result;
use teeperf_wire::{hello, hook, packet};

pub(crate) fn run() -> Result<()> {
    let text = format!(
        "teeperf {}\n\
         recordings: format {}.{}, and all of format {} with what they add left out\n\
         programs:   hooks of interface {}, runtimes of exchange {}\n\
         machine:    {}-{}\n",
        env!("CARGO_PKG_VERSION"),
        packet::MAJOR,
        packet::MINOR,
        packet::MAJOR,
        hook::VERSION,
        hello::VERSION,
        std::env::consts::ARCH,
        std::env::consts::OS,
    );
    super::print(text.as_bytes())
}
