//! The command as people type it: its options, its output, its documents and the projects that it
//! builds. One program of tests for all of them, as of the scenarios.

mod advice;
mod annotate;
mod builds;
mod cargo;
mod collect;
mod command;
mod config;
mod diff;
mod doctor;
mod gmon;
mod import;
mod kept;
mod manual;
mod perf_data;
mod progress;
mod python_reader;
mod reports;
mod rust;
#[path = "../../../teeperf-view/tests/views/schema_check.rs"]
mod schema_check;
mod schemas;
mod sdk;
mod selects;
mod sources;
mod support;
mod tee_perf;
mod transparency;
mod versions;
mod wrapper;
