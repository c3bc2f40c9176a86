//! What is known of the terminal.

use std::os::fd::AsRawFd;

/// Its rows and columns; nothing where it does not say, or is none.
pub(crate) fn size(terminal: &impl AsRawFd) -> Option<(u16, u16)> {
    let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the request writes a winsize, and there is one.
    let answer = unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCGWINSZ, &mut size) };
    (answer == 0 && size.ws_col > 0).then_some((size.ws_row, size.ws_col))
}
