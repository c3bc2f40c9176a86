//! Programs to look into, built by the tests from a few lines of source, and what binutils
//! say about them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// A folder with sources and what was made of them.
pub(crate) struct Workshop(TempDir);

impl Workshop {
    pub(crate) fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Compiles `source` under this name with this command line; gives what it made.
    pub(crate) fn build(&self, command: &str, source_name: &str, source: &str) -> PathBuf {
        let folder = self.path(&source_name.replace('.', "_"));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(source_name), source).unwrap();
        let out = folder.join("out");
        self.run(&format!("{command} {source_name} -o out"), &folder);
        out
    }

    /// Runs a command in a folder.
    pub(crate) fn run(&self, command: &str, folder: &Path) -> String {
        let mut words = command.split_whitespace();
        let mut process = Command::new(words.next().unwrap());
        let output = process.args(words).current_dir(folder).output().expect(command);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command}: {errors}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// A copy of a file, without its symbols.
    pub(crate) fn stripped(&self, file: &Path, name: &str) -> PathBuf {
        let copy = self.path(name);
        std::fs::create_dir_all(copy.parent().unwrap()).unwrap();
        std::fs::copy(file, &copy).unwrap();
        self.run(&format!("strip {}", copy.display()), self.0.path());
        copy
    }

    /// The symbols of a file alone, as a separate debug file.
    pub(crate) fn debug_file(&self, file: &Path, name: &str) -> PathBuf {
        let debug = self.path(name);
        std::fs::create_dir_all(debug.parent().unwrap()).unwrap();
        let command = format!("objcopy --only-keep-debug {} {}", file.display(), debug.display());
        self.run(&command, self.0.path());
        debug
    }
}

/// Symbols of code as `nm` lists them: for each address all names, and the largest size.
pub(crate) fn nm(file: &Path, options: &str) -> BTreeMap<u64, (Vec<String>, u64)> {
    let mut symbols = BTreeMap::<u64, (Vec<String>, u64)>::new();
    let mut command = Command::new("nm");
    command.args(["-P", "--defined-only", "--without-symbol-versions"]);
    let output = command.args(options.split_whitespace()).arg(file).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let &[name, kind, value, ref rest @ ..] = &fields[..] else { panic!("nm says {line}") };
        // `data_start` is data, but declared weak without a type, and so listed as code.
        if matches!(kind, "T" | "t" | "W" | "w" | "i") && name != "data_start" {
            let number = |text| u64::from_str_radix(text, 16).unwrap();
            let entry = symbols.entry(number(value)).or_default();
            entry.0.push(name.to_owned());
            entry.1 = entry.1.max(rest.first().map_or(0, |size| number(size)));
        }
    }
    symbols
}

/// Address of the one symbol of this name.
pub(crate) fn address_of(file: &Path, name: &str) -> u64 {
    let symbols = nm(file, "");
    let mut found = symbols.iter().filter(|(_, (names, _))| names.iter().any(|n| n == name));
    let (&address, _) = found.next().unwrap_or_else(|| panic!("no {name} in {}", file.display()));
    address
}
