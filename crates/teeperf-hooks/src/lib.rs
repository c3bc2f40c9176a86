//! Records Rust functions with [teeperf]: exact call counts, full call paths, and the time in each, on stable Rust.
//!
//! ```
//! #[teeperf_hooks::profile]
//! fn checksum(bytes: &[u8]) -> u32 {
//!     bytes.iter().map(|&byte| u32::from(byte)).sum()
//! }
//! # assert_eq!(checksum(b"ab"), 195);
//! ```
//!
//! ```text
//! cargo build --release --features teeperf-hooks/on
//! teeperf record -- target/release/program
//! teeperf report
//! ```
//!
//! A Linux program on x86-64 needs nothing more: no C compiler, no other linker, no flags. Without the feature `on`
//! attributes and macros leave nothing behind, so they can stay in the source; with it, and without the recorder, a call
//! costs some three nanoseconds. A program of yours may have a feature that turns it on:
//!
//! ```toml
//! [dependencies]
//! teeperf-hooks = "0.1"
//!
//! [features]
//! profile = ["teeperf-hooks/on"]
//! ```
//!
//! [teeperf]: https://docs.rs/crate/teeperf
//!
//! # What can be recorded
//!
//! `#[profile]` stands at a function, or at an `impl` block, a trait (default methods) or an inline module, and means all
//! functions in there, however deep. `#[profile(skip)]` leaves one out.
//!
//! ```
//! # use teeperf_hooks::profile;
//! struct Stack<T>(Vec<T>);
//!
//! #[profile]
//! impl<T> Stack<T> {
//!     fn push(&mut self, value: T) {
//!         self.0.push(value);
//!     }
//!
//!     #[profile(skip)]
//!     fn len(&self) -> usize {
//!         self.0.len()
//!     }
//! }
//!
//! #[profile]
//! mod parse {
//!     pub fn number(text: &str) -> Option<u32> {
//!         digits(text)?.parse().ok()
//!     }
//!
//!     fn digits(text: &str) -> Option<&str> {
//!         text.split(' ').next()
//!     }
//! }
//! # let mut stack = Stack(vec![]);
//! # stack.push(parse::number("7 up"));
//! # assert_eq!(stack.len(), 1);
//! ```
//!
//! A module in a file of its own gives the attribute nothing to see, so there [`profile_all!`] stands around what is in
//! the file: one line at its beginning, and a brace at its end.
//!
//! ```
//! teeperf_hooks::profile_all! {
//!
//! pub fn first() -> u32 {
//!     second() + 1
//! }
//!
//! fn second() -> u32 {
//!     1
//! }
//!
//! }
//! # assert_eq!(first(), 2);
//! ```
//!
//! A part of a function, or a closure, is recorded by a name that [`scope!`] gives it:
//!
//! ```
//! let squares: Vec<u32> = (0..4)
//!     .map(|number| {
//!         teeperf_hooks::scope!("square");
//!         number * number
//!     })
//!     .collect();
//! # assert_eq!(squares, [0, 1, 4, 9]);
//! ```
//!
//! A call begins before the first statement and ends behind the last: arguments that are dropped with the function are dropped after
//! it, but for async functions, of whose future they are a part.
//!
//! Calls end however they end: by `return`, by `?`, by a panic. Functions that are `unsafe`, `extern "C"`, generic,
//! recursive, return `impl Trait` or never return can be recorded; a `const fn` cannot, because it may run in the compiler:
//! at one alone the attribute is an error, among others it is left out.
//!
//! # What functions are called
//!
//! Each instantiation of a generic function is one of its own, with its types: `program::parse::<u32>`,
//! `program::Holder<&str>::get`, `<program::Square as program::Shape>::area`. That it may be inlined makes no difference: a
//! call in the source is a call. File and line are those of the definition, with and without debug information. In a
//! program without symbols (`strip = "symbols"`) names have no types, and instantiations are one function.
//! `#[profile(name = "…")]` gives a function a name of its own.
//!
//! # Async functions
//!
//! ```
//! #[teeperf_hooks::profile]
//! async fn answer(question: &str) -> Result<u32, std::num::ParseIntError> {
//!     wait().await;
//!     question.parse()
//! }
//! # async fn wait() {}
//! # let mut context = std::task::Context::from_waker(std::task::Waker::noop());
//! # let future = std::pin::pin!(answer("42"));
//! # assert!(std::future::Future::poll(future, &mut context) == std::task::Poll::Ready(Ok(42)));
//! ```
//!
//! An async function runs in pieces, on whichever thread polls it, and in between nothing of it is on a stack, as other
//! futures run there. So each piece is a call on the stack of whoever polls it:
//!
//! - the first time as `answer`, so that its calls are those of the async function;
//! - each further time as `answer [polled again]`, so that its calls are how often it went on. The time of the two is what it
//!   ran, as wall time on the thread;
//! - the time between is no thread's, and many futures may wait at once. It stands in a table of its own in reports: how
//!   often, how long in all, on the mean, and at most.
//!
//! An async block, or any other future, is recorded by [`future!`]. A [`scope!`] must not be held across an `.await`; the
//! compiler says so where a future has to be `Send`. Where calls are summed while the program runs (`record --probe tree`),
//! waits are not recorded. With `async-trait`, `#[profile]` goes above its attribute.
//!
//! # The crate by another name
//!
//! What the attribute writes refers to `::teeperf_hooks`. Where the dependency is renamed, one line at the root of the crate
//! has the name known:
//!
//! ```ignore
//! extern crate teeperf as teeperf_hooks;
//! ```
//!
//! So does `#[profile(crate = path)]`, for what the attribute stands at: where the crate is re-exported by another.
//!
//! # All functions, without a word in the source
//!
//! `cargo teeperf build` has the compiler put hooks into all functions of a workspace, with rustc 1.95 and later. With it this crate's
//! feature `on` stays off, since functions with the attribute would count twice; [`scope!`] is then nothing.
//!
//! # How a program gets its hooks
//!
//! With `on`, the program is linked with the hooks that C programs have, `teeperf-stub`, by cargo; `teeperf record` loads
//! the runtime that they report to. Into a static program (`-C target-feature=+crt-static`) nothing can be loaded: it takes
//! `teeperf-cc` as its linker, of `teeperf install-wrappers`, which links the runtime. So does a program with C code that
//! has hooks itself. On other systems and processors `on` is nothing, so it can be on everywhere. Code that a Rust `dylib`
//! shares with a program cannot be recorded.
//!
//! # Code without a system
//!
//! Trusted applications, enclaves and bare-metal images are recorded as well, with the feature `hooks` in the place of `on`:
//! by the `libteeperf_tee.a` that the image is linked with, of `teeperf install-sdk`, which has a copy of this crate. There
//! [`scope!`] is what there is; `teeperf_tee.h`, beside the library, says how memory is lent to it. The crate allocates
//! nothing, and uses nothing of the standard library.
#![cfg_attr(not(test), no_std)]
#![warn(missing_docs, clippy::undocumented_unsafe_blocks)]

#[cfg(any(
    test,
    feature = "hooks",
    all(feature = "on", target_os = "linux", target_arch = "x86_64")
))]
mod live;
#[cfg(any(
    test,
    feature = "hooks",
    all(feature = "on", target_os = "linux", target_arch = "x86_64")
))]
pub use live::{Polled, Scope, Site, Sites};

#[cfg(not(any(
    test,
    feature = "hooks",
    all(feature = "on", target_os = "linux", target_arch = "x86_64")
)))]
mod idle;

/// Records calls of the function that it stands at, or of all functions in an `impl` block, a trait or an inline module.
///
/// | | |
/// | --- | --- |
/// | `#[profile(skip)]` | leaves this one out, of those that are recorded together |
/// | `#[profile(name = "…")]` | the function's name in reports |
/// | `#[profile(crate = path)]` | where this crate is, if not at `::teeperf_hooks` |
///
/// An attribute in a module, `impl` or trait that has one counts before that. Functions in a function have one of their own.
/// The [crate's page](crate) says what is recorded, and how it is called.
#[cfg(feature = "attributes")]
pub use teeperf_macros::profile;
/// Records calls of all functions of the items in it, as [`#[profile]`](macro@profile) does for a module. For what is in
/// a file of its own:
///
/// ```
/// teeperf_hooks::profile_all! {
///     pub fn double(number: u32) -> u32 {
///         2 * number
///     }
/// }
/// # assert_eq!(double(2), 4);
/// ```
#[cfg(feature = "attributes")]
pub use teeperf_macros::profile_all;

// The hooks, and what tells the runtime of them.
#[cfg(all(not(test), feature = "on", target_os = "linux", target_arch = "x86_64"))]
extern crate teeperf_stub as _;

/// What macros write into programs refers to this, whatever these have in scope.
#[doc(hidden)]
pub mod __private {
    pub use core;

    /// Stands for a value of the type, where the compiler is to know it. Nobody calls it.
    pub fn never<T>() -> T {
        unreachable!()
    }
}
