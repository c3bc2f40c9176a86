//! How a text may look: whether it may have colour, and how wide a line may be. What the
//! terminal can do is the caller's to find out; nothing here asks the environment.

use std::fmt;

/// Look of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Whether ANSI colour sequences may be written (ECMA-48, select graphic rendition).
    pub colour: bool,
    /// Columns of a line; taken as at least [`Style::NARROWEST`].
    pub width: usize,
}

impl Default for Style {
    fn default() -> Self {
        Self { colour: false, width: 100 }
    }
}

impl Style {
    /// Columns below which no table is squeezed: it overflows instead.
    pub const NARROWEST: usize = 60;

    /// Columns that a table fills.
    pub fn columns(&self) -> usize {
        self.width.max(Self::NARROWEST)
    }

    /// `text`, painted when colour is allowed.
    pub fn paint<T: fmt::Display>(&self, paint: Paint, text: T) -> Painted<T> {
        Painted { code: if self.colour { paint.code() } else { "" }, text }
    }
}

/// What a piece of text means to the reader; the colour follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paint {
    /// A section's heading.
    Heading,
    /// Something the reader must not overlook.
    Warning,
    /// A large share of the time.
    Hot,
    /// A share worth a look.
    Warm,
    /// Better than it was.
    Better,
    /// What may be overlooked.
    Faint,
    /// As the terminal has it.
    Plain,
}

impl Paint {
    /// Paint for a share of the time, `0.0..=1.0`.
    pub fn of_share(share: f64) -> Self {
        match share {
            s if s >= 0.2 => Self::Hot,
            s if s >= 0.05 => Self::Warm,
            s if s < 0.005 => Self::Faint,
            _ => Self::Plain,
        }
    }

    fn code(self) -> &'static str {
        match self {
            Self::Heading => "1",
            Self::Warning => "1;33",
            Self::Hot => "1;31",
            Self::Warm => "33",
            Self::Better => "32",
            Self::Faint => "2",
            Self::Plain => "",
        }
    }
}

/// Text with its colour. Width and alignment of the format are those of the text alone.
#[derive(Clone, Copy, Debug)]
pub struct Painted<T> {
    code: &'static str,
    text: T,
}

impl<T: fmt::Display> fmt::Display for Painted<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.code.is_empty() {
            return self.text.fmt(out);
        }
        write!(out, "\x1b[{}m", self.code)?;
        self.text.fmt(out)?;
        out.write_str("\x1b[0m")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_escape_without_colour() {
        let style = Style { colour: false, width: 80 };
        assert_eq!(format!("{:>4}|", style.paint(Paint::Hot, "ab")), "  ab|");
    }

    #[test]
    fn colour_does_not_count_as_width() {
        let style = Style { colour: true, width: 80 };
        assert_eq!(format!("{:>4}|", style.paint(Paint::Hot, "ab")), "\x1b[1;31m  ab\x1b[0m|");
    }
}
