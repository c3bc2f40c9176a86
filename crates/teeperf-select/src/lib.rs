//! Which functions get hooks.
//!
//! * [`Pattern`]: functions by name, or by the file that they stand in.
//! * [`Wanted`]: functions by these, and by their module.
//! * [`Selection`]: what is wanted, made of patterns and a least size.
//! * [`assembly::filter`]: takes the hooks of all other functions out of what a compiler wrote.
//! * [`told`]: which patterns fitted, as objects and programs say.
//!
//! Knows nothing of command lines, and starts no compiler: text in, text out. What it does not
//! understand is an [`Error`], never wrong code.

pub mod assembly;
mod pattern;
mod selection;
pub mod told;
mod wanted;

pub use assembly::Error;
pub use pattern::{BadPattern, Pattern};
pub use selection::{Function, Selection};
pub use wanted::Wanted;
