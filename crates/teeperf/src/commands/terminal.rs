//! What is known of the terminal, and how text may look on it.

use clap::ValueEnum;
use std::ffi::OsString;
use std::io::IsTerminal;
use std::os::fd::AsRawFd;
use std::sync::OnceLock;
use teeperf_view::style::Style;

/// When text has colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Colour {
    /// On a terminal
    Auto,
    /// In pipes and files too
    Always,
    /// Never
    Never,
}

/// What the user said, once.
static COLOUR: OnceLock<Colour> = OnceLock::new();

/// Says when text has colour from here on.
pub(crate) fn colour_is(when: Colour) {
    // What was said first holds.
    let _ = COLOUR.set(when);
}

/// How text on standard output may look: as wide as [`columns`] are.
pub(crate) fn style() -> Style {
    let out = std::io::stdout();
    let is_terminal = out.is_terminal();
    let when = COLOUR.get().copied().unwrap_or(Colour::Auto);
    Style {
        colour: has_colour(when, is_terminal, &|name| std::env::var_os(name)),
        width: columns().unwrap_or(Style::default().width),
    }
}

/// Most that a line is laid out for, whoever says how wide it is.
const WIDEST: usize = 1000;

/// How wide standard output is: what its terminal says, else `COLUMNS`.
pub(crate) fn columns() -> Option<usize> {
    let told = || std::env::var("COLUMNS").ok()?.parse().ok().map(|told: usize| told.min(WIDEST));
    size(&std::io::stdout()).map(|(_, columns)| columns.into()).or_else(told)
}

/// The user's word first, then <https://no-color.org>, then <https://bixense.com/clicolors>, then the terminal.
fn has_colour(
    when: Colour,
    is_terminal: bool,
    variable: &dyn Fn(&str) -> Option<OsString>,
) -> bool {
    let is = |name: &str, value: &str| variable(name).is_some_and(|text| text == value);
    let is_said = |name: &str| variable(name).is_some_and(|text| !text.is_empty());
    match when {
        Colour::Always => true,
        Colour::Never => false,
        Colour::Auto if is_said("NO_COLOR") => false,
        Colour::Auto if is_said("CLICOLOR_FORCE") && !is("CLICOLOR_FORCE", "0") => true,
        Colour::Auto => is_terminal && !is("TERM", "dumb") && !is("CLICOLOR", "0"),
    }
}

/// Its rows and columns; nothing where it does not say, or is none.
pub(crate) fn size(terminal: &impl AsRawFd) -> Option<(u16, u16)> {
    let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the request writes a winsize, and there is one.
    let answer = unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCGWINSZ, &mut size) };
    (answer == 0 && size.ws_col > 0).then_some((size.ws_row, size.ws_col))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_says_first_whether_there_is_colour() {
        let has = |when, is_terminal, set: &[(&str, &str)]| {
            let find = |name: &str| set.iter().find(|(known, _)| *known == name);
            has_colour(when, is_terminal, &|name| find(name).map(|(_, value)| value.into()))
        };
        let (auto, no, force) = (Colour::Auto, ("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1"));
        assert!(has(auto, true, &[]) && !has(auto, false, &[]));
        assert!(!has(auto, true, &[no]) && !has(auto, true, &[no, force]));
        assert!(has(auto, false, &[force]) && !has(auto, false, &[("CLICOLOR_FORCE", "0")]));
        assert!(has(auto, true, &[("NO_COLOR", "")]));
        assert!(!has(auto, true, &[("TERM", "dumb")]) && !has(auto, true, &[("CLICOLOR", "0")]));
        assert!(has(Colour::Always, false, &[no]) && !has(Colour::Never, true, &[force]));
    }
}
