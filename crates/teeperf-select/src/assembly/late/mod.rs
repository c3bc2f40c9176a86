//! Puts **late hooks** into the assembly that gcc or clang wrote for x86-64: the compiler's work is
//! done, so it keeps no registers for them, and inlines and makes jumps of calls as it would
//! without.
//!
//! The compiler marks the functions that are to have hooks by a call of [`MARK`] at their entry,
//! which leaves all else as it was (`-mfentry`). The hook takes that call's place; another stands
//! in front of each exit: a return, or a jump to another function. A hook is a comparison and a
//! branch that is not taken while nothing is recorded. The branch leads to a **tail** behind the
//! function's code, which calls the stub (teeperf-stub/src/x86_64/late.rs).
//!
//! Of registers only r11 and the flags are used: both are free at an entry and at an exit, in every
//! convention that keeps r11 for linkers. Where an exit needs r11, it is kept.
//!
//! At an entry, and at an exit, the frame is as it was before the function's first instruction. So
//! the unwind information of a tail is that of the function's beginning.

mod exits;
mod frame;
mod naked;
mod part;
mod write;

use super::edit::Edits;
use super::names::Names;
use super::{Error, Options, check, mentions, text};
use part::Parts;
use std::collections::HashSet;

/// The function that compilers call at the entry of each function that is to have hooks.
pub const MARK: &str = "__fentry__";

/// A name that only assembly with late hooks has.
const STUB: &str = "teeperf_late_enter";

/// How a file is to be gone through, beside what all have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Late {
    /// The user has functions count themselves (`-pg`): calls that do so are left, and mark the
    /// functions.
    pub counts_itself: bool,
    /// Functions of the C++ standard library that the compiler made code of get hooks too.
    pub with_library: bool,
}

/// A file that was gone through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hooked {
    /// The file with hooks.
    pub text: Vec<u8>,
    /// As in [`super::Filtered::met`].
    pub met: Vec<bool>,
}

/// Puts hooks into the functions that are wanted. A file that has them is left as it is.
pub fn insert(text: &[u8], options: &Options<'_>, late: Late) -> Result<Hooked, Error> {
    if mentions(text, STUB) {
        return Ok(Hooked { text: text.to_vec(), met: Vec::new() });
    }
    let lines = text::lines(text);
    let mut edits = Edits::default();
    if options.drop_line_info {
        super::lineinfo::drop(&lines, &mut edits);
    }
    check(text, &lines)?;
    let parts = Parts::read(&lines, late);
    let mut met = Vec::new();
    let mut is_hooked = false;
    let wanted = wanted(text, &lines, &parts, options, late, &mut met);
    let jumps = exits::Jumps::new(&lines, &parts);
    for (function, is_wanted) in wanted.iter().enumerate() {
        let Some(mark) = parts.functions[function].mark else { continue };
        if !late.counts_itself {
            edits.delete(mark);
        }
        if *is_wanted {
            write::hooks(&lines, &parts, function, late, &jumps, &mut edits);
            is_hooked = true;
        }
    }
    let mut text = edits.apply(text);
    if is_hooked {
        text.extend_from_slice(write::ABSENT.as_bytes());
    }
    Ok(Hooked { text, met })
}

/// Which functions get hooks.
fn wanted<'a>(
    text: &'a [u8],
    lines: &[text::Line<'a>],
    parts: &Parts<'a>,
    options: &Options<'_>,
    late: Late,
    met: &mut Vec<bool>,
) -> Vec<bool> {
    let is_hookable = |function: &part::Function<'_>| {
        function.is_hookable() && (late.with_library || !is_of_library(function.name))
    };
    if options.selection.is_all() {
        return parts.functions.iter().map(is_hookable).collect();
    }
    let marks: HashSet<usize> =
        parts.functions.iter().filter_map(|function| function.mark).collect();
    let names = Names::new(text, lines, |line| !marks.contains(&line));
    let mut wants = |name: &str| options.wants(name, &names, met);
    parts.functions.iter().map(|function| is_hookable(function) && wants(function.name)).collect()
}

/// Whether a function is of the namespaces of the C++ standard library and its extensions, by its
/// mangled name (C++ ABI for Itanium, 5.1.4: `St` is `std`, and what stands for classes in it).
fn is_of_library(name: &str) -> bool {
    const CLASSES: &[u8] = b"tabsiod";
    let Some(encoding) = name.strip_prefix("_Z") else { return false };
    // An entity that is local to a function belongs to its namespace.
    let encoding = encoding.trim_start_matches('Z');
    // Behind `N` stand qualifiers of the object, such as `const` and `&`.
    const QUALIFIERS: [char; 5] = ['r', 'V', 'K', 'R', 'O'];
    let nested = encoding.strip_prefix('N').map(|name| name.trim_start_matches(QUALIFIERS));
    let prefix = nested.unwrap_or(encoding).as_bytes();
    match prefix {
        [b'S', class, ..] => CLASSES.contains(class),
        _ => prefix.starts_with(b"9__gnu_cxx"),
    }
}

#[cfg(test)]
mod tests;
