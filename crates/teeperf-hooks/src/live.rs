//! With hooks: what macros expand to, and what that calls.

mod polled;
mod scope;
mod site;

pub use polled::{Polled, Sites};
pub use scope::Scope;
pub use site::Site;

/// Records what follows as a call, until the block ends that it stands in; of a call that is left by `?`, `return`
/// or a panic the end is recorded as well.
///
/// * `scope!("parse header")` is recorded by that name. It is a literal without quotation marks, backslashes and braces.
/// * `scope!(f)` is recorded as a call of `f`, which is any path to a function: `Self::f`, `f::<T>`. It may be inlined.
/// * `scope!()` is recorded as whatever function the code ends up in: for functions that are `#[inline(never)]`.
///
/// Not across an `.await`: other futures run on the thread meanwhile. That does not compile where the future must be
/// `Send`; see [`future!`](crate::future).
#[macro_export]
macro_rules! scope {
    () => {
        let _scope = $crate::Scope::here();
    };
    ($name:literal) => {
        let _scope = $crate::Scope::at($crate::__site!(0, [$name], "", [file!()], line!()));
    };
    ($function:expr) => {
        let _scope = $crate::Scope::of($function as *const ());
    };
}

/// A future that is recorded by a name while it is polled: `future!("fetch", async { … }).await`. The name is one as for
/// [`scope!`](crate::scope); see [the crate's page](crate#async-functions).
#[macro_export]
macro_rules! future {
    ($name:literal, $future:expr) => {
        $crate::__future!(0, [$name], [file!()], line!(), $future)
    };
}

/// What `#[profile]` writes into a function: a call that lasts as long as the value.
#[doc(hidden)]
#[macro_export]
macro_rules! __call {
    ($($site:tt)*) => {
        $crate::Scope::at($crate::__site!($($site)*))
    };
}

/// What `#[profile]` makes of the body of an async function.
#[doc(hidden)]
#[macro_export]
macro_rules! __future {
    ($depth:literal, $name:tt, $file:tt, $line:expr, $future:expr) => {
        $crate::Polled::new(
            $crate::Sites {
                first: $crate::__site!($depth, $name, "", $file, $line),
                again: $crate::__site!($depth, $name, " [polled again]", $file, $line),
            },
            $future,
        )
    };
}
