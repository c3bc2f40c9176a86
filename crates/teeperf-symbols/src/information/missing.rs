//! What of a file's debug information stands in other files that are not here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Most files of which the names are kept.
const MOST_NAMES: usize = 4096;

/// Files that were looked for in vain.
#[derive(Clone, Debug, Default)]
pub(crate) struct Missing {
    /// What was split off (`.dwo`), and why it cannot be had.
    split: BTreeMap<PathBuf, String>,
    /// What `dwz` moved to a file of several programs, and why that cannot be had.
    supplement: Option<(PathBuf, String)>,
    /// Units whose entries contradict themselves.
    damaged: usize,
}

impl Missing {
    /// A file with what was split off one unit.
    pub(super) fn split(&mut self, file: PathBuf, why: String) {
        if self.split.len() < MOST_NAMES {
            self.split.entry(file).or_insert(why);
        }
    }

    /// The file that `dwz` moved a part to.
    pub(super) fn supplement(&mut self, file: PathBuf, why: String) {
        self.supplement = Some((file, why));
    }

    /// Debug information of an address that cannot be read.
    pub(super) fn damaged(&mut self) {
        self.damaged += 1;
    }

    /// What `other` knows beside this.
    pub(crate) fn add(&mut self, other: Self) {
        other.split.into_iter().for_each(|(file, why)| self.split(file, why));
        self.supplement = self.supplement.take().or(other.supplement);
        self.damaged += other.damaged;
    }

    /// All of it in a line, of the file at this path, with what to do next; nothing where nothing is missing.
    pub(crate) fn text(&self, of: &Path) -> Option<String> {
        let of = of.display();
        let mut parts = Vec::new();
        if let Some((file, why)) = self.split.first_key_value() {
            let others = match self.split.len() - 1 {
                0 => String::new(),
                1 => ", and one more file like it".into(),
                more => format!(", and {more} more files like it"),
            };
            parts.push(format!(
                "the compiler split its debug information off into {}, which {why}{others}: functions that were inlined \
                 there are not known; next: put these files back where the compiler wrote them, or pack them beside \
                 the program: `llvm-dwp -e {of} -o {of}.dwp`",
                file.display()
            ));
        }
        if let Some((file, why)) = &self.supplement {
            parts.push(format!(
                "`dwz` moved a part of its debug information to {}, which {why}: functions that were inlined may have no \
                 names; next: install the package with debug information that has this file, or put it there",
                file.display()
            ));
        }
        if self.damaged > 0 && parts.is_empty() {
            parts.push(format!(
                "its debug information of {} address{} contradicts itself: what was inlined there is not known; next: \
                 build it again, and of -flto and -gsplit-dwarf with one alone",
                self.damaged,
                if self.damaged == 1 { "" } else { "es" }
            ));
        }
        (!parts.is_empty()).then(|| format!("{of}: {}", parts.join(". Also, ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_text_for_a_file_names_the_first_and_the_next_step() {
        let mut missing = Missing::default();
        let of = Path::new("/bin/p");
        assert_eq!(missing.text(of), None);
        missing.split("/b/2.dwo".into(), "is not there".into());
        missing.split("/b/1.dwo".into(), "is not there".into());
        missing.split("/b/1.dwo".into(), "is another one".into());
        let text = missing.text(of).unwrap();
        let begin = "/bin/p: the compiler split its debug information off into /b/1.dwo, which is not there, and one more file like it: ";
        assert!(
            text.starts_with(begin) && text.ends_with("`llvm-dwp -e /bin/p -o /bin/p.dwp`"),
            "{text}"
        );
        let mut other = Missing::default();
        other.supplement("/c/alt".into(), "is not there".into());
        missing.add(other);
        let text = missing.text(of).unwrap();
        assert_eq!(text.matches("next: ").count(), 2, "{text}");
        assert!(text.contains("`dwz` moved a part of its debug information to /c/alt"), "{text}");
    }
}
