//! The part for programs of this system: header, objects and runtime, and what pkg-config, CMake and Meson ask for. All of it
//! finds the rest from where it lies itself, so the folder can be moved.

use super::{HOST, put, told_of};
use crate::{bundle, compiler};
use anyhow::Result;
use std::path::Path;

/// Folders of the system's headers, whose functions gcc is to leave without hooks: those whose path contains one.
const SYSTEM_HEADERS: &str = "/usr/include,/usr/local/include,/usr/lib/gcc";
/// What stands in a place of its own in the SDK.
const PLACES: &[(&str, &str)] = &[
    (bundle::STUB, "lib"),
    (bundle::WRAPPERS, "lib"),
    (bundle::RUNTIME, "lib"),
    (bundle::LIBRARY, "lib"),
    (bundle::HEADER, ""),
    (bundle::AEX_HEADER, ""),
];
/// The template of files for pkg-config.
const PKG_CONFIG: &str = "lib/pkgconfig/teeperf.pc";

/// Writes it into the folder. What was written, as lines to be told.
pub(super) fn install(folder: &Path) -> Result<String> {
    bundle::needs_hooks()?;
    let mut told = String::new();
    for &(name, mode, contents) in bundle::FILES.iter().chain(bundle::INSIDE) {
        if let Some((_, place)) = PLACES.iter().find(|place| place.0 == name) {
            let name = Path::new(place).join(name);
            put(folder, &name, contents, mode)?;
            told_of(&mut told, &folder.join(name));
        }
    }
    let clang = Path::new("include/teeperf-clang");
    for (name, text) in compiler::clang_headers() {
        put(folder, &clang.join(name), text.as_bytes(), 0o644)?;
    }
    told_of(&mut told, &folder.join(clang));
    let templates =
        super::FILES.iter().filter_map(|(name, text)| Some((name.strip_prefix(HOST)?, text)));
    for (name, text) in templates {
        let text = String::from_utf8_lossy(text);
        if name == PKG_CONFIG {
            for (name, text) in pkg_config(&text) {
                let name = Path::new(PKG_CONFIG).with_file_name(name + ".pc");
                put(folder, &name, text.as_bytes(), 0o644)?;
                told_of(&mut told, &folder.join(name));
            }
        } else {
            put(folder, Path::new(name), filled(&text).as_bytes(), 0o644)?;
            told_of(&mut told, &folder.join(name));
        }
    }
    Ok(told)
}

/// A template with its places filled.
fn filled(text: &str) -> String {
    let mut text = text.replace("@VERSION@", env!("CARGO_PKG_VERSION"));
    for (place, scope) in [
        ("@LINK_ALL@", "all"),
        ("@LINK_EXECUTABLE@", "executable"),
        ("@LINK_LIBRARY@", "library"),
        ("@LINK_CLANG@", "cxx"),
    ] {
        text = text.replace(place, &bundle::link_flags(scope).join(" "));
    }
    let clang = compiler::CLANG_HOOKS.join(" ");
    text = text.replace("@LINK_SCOPES@", &scopes_flags());
    text.replace("@SYSTEM_HEADERS@", SYSTEM_HEADERS).replace("@CLANG_HOOKS@", &clang)
}

/// Linker options for modules that have scopes and no other hooks: a catch there is in a function that nobody knows of, and
/// scopes end by themselves where an exception passes.
fn scopes_flags() -> String {
    let mut flags = bundle::link_flags("all");
    flags.retain(|flag| !flag.ends_with("=__cxa_begin_catch"));
    flags.join(" ")
}

/// Names and texts: what is made, by which compiler. Paths stand
/// behind `-I` and `-L` alone: there pkg-config escapes spaces.
fn pkg_config(template: &str) -> Vec<(String, String)> {
    let api = "-I${includedir}";
    let gcc = format!(
        "-finstrument-functions -finstrument-functions-exclude-file-list={SYSTEM_HEADERS} {api}"
    );
    let clang =
        format!("{} -I${{includedir}}/teeperf-clang {api}", compiler::CLANG_HOOKS.join(" "));
    let object = |name: &str| format!("-l:{name}");
    let flags = |scope| bundle::link_flags(scope).join(" ").replace('*', "\\*");
    let [stub, runtime, library, wrappers] =
        [bundle::STUB, bundle::RUNTIME, bundle::LIBRARY, bundle::WRAPPERS].map(object);
    let all = format!("-L${{libdir}} {stub} {}", flags("all"));
    let program = format!("{all} {}", flags("executable"));
    let scopes = format!(
        "-L${{libdir}} {stub} {runtime} {} {} {wrappers}",
        scopes_flags(),
        flags("executable")
    );
    // Hooks refer to it weakly, for which linkers take no library with --as-needed.
    let needed = format!("-Wl,--push-state,--no-as-needed {library} -Wl,--pop-state");
    let kinds = [
        (
            "teeperf",
            "Hooks for programs, with the runtime in them",
            format!("{program} {runtime} {wrappers}"),
        ),
        (
            "teeperf-shared",
            "Hooks for programs, with the runtime as a library",
            format!("{program} {wrappers} {needed}"),
        ),
        (
            "teeperf-library",
            "Hooks for shared libraries",
            format!("{all} {} {wrappers}", flags("library")),
        ),
    ];
    let file = |name: &str, description: &str, cflags: &str, libs: &str| {
        let text = template.replace("@NAME@", name).replace("@DESCRIPTION@", description);
        (name.to_owned(), filled(&text.replace("@CFLAGS@", cflags).replace("@LIBS@", libs)))
    };
    let mut files = vec![
        file("teeperf-api", "The header of teeperf, and nothing to link", api, ""),
        file("teeperf-scopes", "Scopes, marks and counters alone are recorded", api, &scopes),
        file(
            "teeperf-clang-cxx",
            "What C++ that clang links takes beside the hooks",
            "",
            &flags("cxx"),
        ),
    ];
    for (name, what, libs) in kinds {
        files.push(file(name, &format!("{what}, by gcc"), &gcc, &libs));
        files.push(file(&format!("{name}-clang"), &format!("{what}, by clang"), &clang, &libs));
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_place_is_left_open() {
        for (name, text) in super::super::FILES.iter().filter(|(name, _)| name.starts_with(HOST)) {
            let text = String::from_utf8_lossy(text);
            let files = if name.ends_with(PKG_CONFIG) {
                pkg_config(&text)
            } else {
                vec![((*name).to_owned(), filled(&text))]
            };
            for (name, text) in files {
                let is_open = |line: &&str| {
                    line.split('@').nth(1).is_some_and(|word| {
                        word.chars().all(|c| c.is_ascii_uppercase() || c == '_') && !word.is_empty()
                    })
                };
                assert_eq!(text.lines().find(is_open), None, "{name}");
            }
        }
    }
}
