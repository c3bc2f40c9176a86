//! An output whose reader goes in the midst: each form gives the output's own error, by which the
//! command knows that nothing is wrong.

use std::io::{self, ErrorKind, Write};
use teeperf_profile::aggregate::Sort;
use teeperf_view::{folded, json, page, svg, tables};

use crate::support::kitchen;

/// Takes so many bytes.
struct Gone(usize);

impl Write for Gone {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(self.0);
        self.0 -= taken;
        if taken == 0 { Err(ErrorKind::BrokenPipe.into()) } else { Ok(taken) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Tries it with outputs that take fewer and fewer of its bytes.
#[track_caller]
fn expect_own_error(write: impl Fn(&mut dyn Write) -> io::Result<()>) {
    let mut whole = Vec::new();
    write(&mut whole).unwrap();
    assert!(!whole.is_empty());
    for taken in (0..whole.len()).rev().step_by(1 + whole.len() / 500) {
        let error = write(&mut Gone(taken)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BrokenPipe, "{error} behind {taken} bytes");
    }
}

/// Guards: `report --csv` of a large table, and a page's data, failed with an error of another
/// kind.
#[test]
fn of_every_form() {
    let profile = kitchen();
    expect_own_error(|mut out| page::write(&profile, &page::Options::default(), &mut out));
    expect_own_error(|mut out| json::write(&profile, &json::Options::default(), &mut out));
    expect_own_error(|mut out| folded::write(&profile, folded::Unit::default(), &mut out));
    expect_own_error(|mut out| {
        let tree = &profile.threads[0].tree;
        svg::write(tree, &profile.functions, &profile.info, &svg::Options::default(), &mut out)
    });
    let mut table = tables::functions(&profile, Sort::SelfTime, usize::MAX);
    // More than a writer of CSV keeps.
    table.rows = table.rows.iter().cycle().take(5000).cloned().collect();
    expect_own_error(|mut out| tables::write_csv(&table, &mut out));
}
