//! Which function of one build is which of another: by name and module, without what changes from build to build.

use crate::model::Function;
use std::borrow::Cow;
use teeperf_symbols::without_copy;

/// What stands for the program itself, whatever its file is called.
pub(super) const PROGRAM: &str = "";

/// What a function is known by in all builds.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Identity {
    pub(super) module: String,
    pub(super) name: String,
}

impl Identity {
    /// Of a function, in a run of the program whose file has this name.
    pub(super) fn of(function: &Function, program: &str) -> Self {
        let is_program = !program.is_empty() && function.module == program;
        let module = if is_program { PROGRAM.into() } else { stem(&function.module).into_owned() };
        Self { module, name: without_copy(&function.name).to_owned() }
    }
}

/// A library's name without its version: `libz.so` of `libz.so.1.3`, `libc.so` of `libc-2.36.so`.
pub(super) fn stem(module: &str) -> Cow<'_, str> {
    let Some(at) = module.find(".so") else { return module.into() };
    let (name, behind) = module.split_at(at);
    let is_version = |text: &str| text.chars().all(|c| c.is_ascii_digit() || c == '.');
    if !is_version(&behind[3..]) {
        return module.into();
    }
    match name.rsplit_once('-') {
        Some((name, version)) if !version.is_empty() && is_version(version) => {
            format!("{name}.so").into()
        }
        _ => module[..at + 3].into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_known_without_their_version() {
        for (module, expected) in [
            ("libz.so.1.2", "libz.so"),
            ("libz.so", "libz.so"),
            ("libc-2.36.so", "libc.so"),
            ("libfoo-bar.so.3", "libfoo-bar.so"),
            ("libx.so.old", "libx.so.old"),
            ("program", "program"),
            ("-1.so", ".so"),
        ] {
            assert_eq!(stem(module), expected, "{module}");
        }
    }

    #[test]
    fn the_program_is_itself_under_any_name() {
        let of = |module: &str, program| {
            let function =
                Function { name: "main".into(), module: module.into(), ..Function::default() };
            Identity::of(&function, program)
        };
        assert_eq!(of("lua-old", "lua-old"), of("lua-new", "lua-new"));
        assert_ne!(of("lua-old", "lua-old"), of("libm.so.6", "lua-old"));
        assert_ne!(of("a", ""), of("b", ""));
    }
}
