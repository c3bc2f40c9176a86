//! Without hooks: macros that leave nothing behind.

/// Nothing: neither of the features `on` and `hooks` is asked for, or there are no hooks for this system.
#[macro_export]
macro_rules! scope {
    () => {};
    ($name:literal) => {};
    ($function:expr) => {
        let _ = $function as *const ();
    };
}

/// The future: neither of the features `on` and `hooks` is asked for, or there are no hooks for this system.
#[macro_export]
macro_rules! future {
    ($name:literal, $future:expr) => {
        $future
    };
}

/// Nothing.
#[doc(hidden)]
#[macro_export]
macro_rules! __call {
    ($($site:tt)*) => {
        ()
    };
}

/// The body, as it is.
#[doc(hidden)]
#[macro_export]
macro_rules! __future {
    ($depth:literal, $name:tt, $file:tt, $line:expr, $future:expr) => {
        $future
    };
}
