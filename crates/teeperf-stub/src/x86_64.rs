//! The stub on x86-64, System V calling convention, ELF.

#[cfg(feature = "hooks")]
mod catch;
#[cfg(feature = "hooks")]
mod hooks;
#[cfg(feature = "hooks")]
mod module;
mod wrap;
