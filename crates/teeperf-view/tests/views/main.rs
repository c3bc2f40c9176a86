//! Each form of a profile against expectations written by hand or read by another reader.

mod annotate;
mod diff;
mod dump;
mod folded;
mod gone;
mod info;
mod json;
mod page;
mod sampled;
mod schema;
mod schema_check;
mod support;
mod svg;
mod tables;
mod text;
