//! Keeps clang's hooks out of the C++ standard library. clang has no option that leaves
//! files out, but a pragma that gives an attribute to all functions declared after it. So
//! each standard header gets a namesake in a folder that clang searches first; it puts the
//! pragma around the real one. Functions that no line declares (defaulted constructors and
//! destructors of library classes) keep their hooks.

use crate::bundle;
use anyhow::Result;
use std::path::PathBuf;

/// The C++ standard library's headers, C++98 to C++26, without those of C (whose few inline
/// functions are always inlined, and are not hooked then).
const NAMES: &[&str] = &[
    "algorithm",
    "any",
    "array",
    "atomic",
    "barrier",
    "bit",
    "bitset",
    "charconv",
    "chrono",
    "codecvt",
    "compare",
    "complex",
    "concepts",
    "condition_variable",
    "coroutine",
    "debugging",
    "deque",
    "exception",
    "execution",
    "expected",
    "filesystem",
    "flat_map",
    "flat_set",
    "format",
    "forward_list",
    "fstream",
    "functional",
    "future",
    "generator",
    "hazard_pointer",
    "inplace_vector",
    "initializer_list",
    "iomanip",
    "ios",
    "iosfwd",
    "iostream",
    "istream",
    "iterator",
    "latch",
    "limits",
    "linalg",
    "list",
    "locale",
    "map",
    "mdspan",
    "memory",
    "memory_resource",
    "mutex",
    "new",
    "numbers",
    "numeric",
    "optional",
    "ostream",
    "print",
    "queue",
    "random",
    "ranges",
    "ratio",
    "rcu",
    "regex",
    "scoped_allocator",
    "semaphore",
    "set",
    "shared_mutex",
    "source_location",
    "span",
    "spanstream",
    "sstream",
    "stack",
    "stacktrace",
    "stdexcept",
    "stdfloat",
    "stop_token",
    "streambuf",
    "string",
    "string_view",
    "strstream",
    "syncstream",
    "system_error",
    "text_encoding",
    "thread",
    "tuple",
    "type_traits",
    "typeindex",
    "typeinfo",
    "unordered_map",
    "unordered_set",
    "utility",
    "valarray",
    "variant",
    "vector",
    "version",
    "cassert",
    "ccomplex",
    "cctype",
    "cerrno",
    "cfenv",
    "cfloat",
    "cinttypes",
    "ciso646",
    "climits",
    "clocale",
    "cmath",
    "csetjmp",
    "csignal",
    "cstdalign",
    "cstdarg",
    "cstdbool",
    "cstddef",
    "cstdint",
    "cstdio",
    "cstdlib",
    "cstring",
    "ctgmath",
    "ctime",
    "cuchar",
    "cwchar",
    "cwctype",
];

/// The folder, made when it is not there yet.
pub(crate) fn folder() -> Result<PathBuf> {
    let folder = bundle::folder()?.join("clang-headers");
    let complete = folder.join(".complete");
    if !complete.exists() {
        std::fs::create_dir_all(&folder)?;
        for (name, text) in all() {
            bundle::write_atomically(&folder.join(name), text.as_bytes(), 0o644)?;
        }
        bundle::write_atomically(&complete, b"", 0o644)?;
    }
    Ok(folder)
}

/// Names and texts of the headers.
pub(crate) fn all() -> impl Iterator<Item = (&'static str, String)> {
    NAMES.iter().map(|name| (*name, namesake(name)))
}

fn namesake(name: &str) -> String {
    format!(
        "#pragma clang system_header\n\
         #pragma clang attribute push(__attribute__((no_instrument_function)), apply_to = function)\n\
         #include_next <{name}>\n\
         #pragma clang attribute pop\n"
    )
}
