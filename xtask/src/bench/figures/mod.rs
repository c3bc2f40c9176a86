//! The figures, one file each: what is measured and against what. How to run, build and
//! tell is elsewhere.

mod beat;
mod bytes;
mod code_size;
mod counts;
mod cycle;
mod enclaves;
mod hot_path;
mod idle;
mod kernels;
mod known_work;
mod logs;
mod mcount;
mod memory;
mod own_tests;
mod paper;
mod perf_data;
mod prompt;
mod real_programs;
mod replay;
mod rotate;
mod rotate_long;
mod rust;
mod sampling;
mod signals;
mod sort;
mod start;
mod suggest;
mod threads;
mod timed;
mod tree;
mod truth;
mod whole;

use anyhow::Result;

use super::lab::Lab;
use super::table::Row;

/// Something that is measured.
pub(crate) struct Figure {
    /// What the user types.
    pub(crate) name: &'static str,
    /// Heading.
    pub(crate) title: &'static str,
    /// How it is measured, a paragraph.
    pub(crate) method: &'static str,
    /// Measures it.
    pub(crate) measure: fn(&Lab) -> Result<Vec<Row>>,
}

/// All of them, in the order of the document.
pub(crate) const FIGURES: &[Figure] = &[
    hot_path::FIGURE,
    cycle::FIGURE,
    timed::FIGURE,
    threads::FIGURE,
    tree::FIGURE,
    mcount::FIGURE,
    idle::FIGURE,
    code_size::FIGURE,
    signals::FIGURE,
    rust::FIGURE,
    whole::FIGURE,
    kernels::FIGURE,
    bytes::FIGURE,
    prompt::FIGURE,
    replay::FIGURE,
    start::FIGURE,
    sampling::FIGURE,
    perf_data::FIGURE,
    enclaves::FIGURE,
    rotate::FIGURE,
    rotate_long::FIGURE,
    memory::FIGURE,
    logs::FIGURE,
    known_work::FIGURE,
    truth::FIGURE,
    beat::FIGURE,
    sort::FIGURE,
    paper::FIGURE,
    suggest::FIGURE,
    counts::FIGURE,
    real_programs::FIGURE,
    own_tests::FIGURE,
];
