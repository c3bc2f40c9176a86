//! Servers of debug information that a command asks, and a word on those that do not answer.

use std::sync::Arc;
use teeperf_symbols::Debuginfod;

/// The user's servers. When it goes, it tells which files these could not be asked for.
#[derive(Debug)]
pub(crate) struct Servers(Arc<Debuginfod>);

impl Servers {
    /// Those that the environment names; an error says what is missing.
    pub(crate) fn of_user() -> Result<Self, String> {
        let servers = Debuginfod::of_user().map_err(|text| format!("--debuginfod: {text}"))?;
        Ok(Self(Arc::new(servers)))
    }

    /// To be asked.
    pub(crate) fn shared(&self) -> Arc<Debuginfod> {
        Arc::clone(&self.0)
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        if let Some(failures) = self.0.failures() {
            note!("teeperf: --debuginfod: {failures}");
        }
    }
}
