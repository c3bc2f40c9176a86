//! No other thread has anything to do with what the calling one counts.

/// It counts calls for an arena from now on, or does not any more.
pub(crate) const fn counts(_begins: bool) {}

/// Whether others do.
pub(crate) const fn others_count() -> bool {
    false
}

/// Calls that it has counted, and nobody takes.
#[cfg(feature = "threads")]
pub(crate) const fn leave_behind(_calls: u64) {}

/// Takes what others have left.
pub(crate) const fn take_left() -> u64 {
    0
}
