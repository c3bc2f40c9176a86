//! A list of what went wrong that stays short whatever the input does.

/// Most warnings kept; the others are counted.
pub(crate) const MAX_WARNINGS: usize = 200;

/// Warnings in order, at most [`MAX_WARNINGS`] of them.
#[derive(Debug, Default)]
pub(crate) struct Warnings {
    list: Vec<String>,
    more: u64,
}

impl Warnings {
    /// Keeps a warning, if there is room; the text is made only then.
    pub(crate) fn add(&mut self, text: impl FnOnce() -> String) {
        if self.list.len() < MAX_WARNINGS {
            self.list.push(text());
        } else {
            self.more += 1;
        }
    }

    /// Adds those of another list behind these.
    pub(crate) fn append(&mut self, other: &mut Warnings) {
        for text in other.list.drain(..) {
            self.add(|| text);
        }
        self.more += std::mem::take(&mut other.more);
    }

    /// All of them; the last says how many were not kept.
    pub(crate) fn into_vec(mut self) -> Vec<String> {
        if self.more > 0 {
            self.list.push(format!("and {} more warnings", self.more));
        }
        self.list
    }
}
