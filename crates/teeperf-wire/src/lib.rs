//! The only vocabulary that crosses a boundary: between a traced program and the
//! recorder ([`word`], [`shared`], [`hello`], [`piece`]), between hooks and runtime inside the program
//! ([`hook`]), and between the recorder and whoever reads a recording ([`packet`],
//! [`fields`], [`body`]).
//!
//! Encodes and decodes, nothing else: no I/O, no allocation, no clock. Everything that
//! decodes takes bytes that an enemy may have written, and answers with a value or an
//! error, never with a panic.
#![no_std]
#![forbid(unsafe_code)]

pub mod arena;
pub mod body;
pub mod compose;
pub mod crc;
pub mod fields;
pub mod filter;
pub mod heirs;
pub mod hello;
pub mod hook;
pub mod packet;
pub mod piece;
pub mod sampling;
pub mod shared;
pub mod tree;
pub mod trust;
pub mod word;
