//! What the user should know of a window: ids that are not there, sums that lie across its borders, and that nothing is in it.

use teeperf_profile::contents::Body;
use teeperf_record::writing::Level;

use super::Cutter;
use crate::error::EditError;

/// Says, in a recording, that it is of a time in which nothing happened.
const NOTHING: &str =
    "no call or return is in the window that was cut out: name another by --since and --until";

impl Cutter {
    /// Takes note of ids that the recording has.
    pub(super) fn see_ids(&mut self, body: &Body<'_>) {
        let missing = &mut self.missing;
        if missing.threads.is_empty() && missing.processes.is_empty() {
            return;
        }
        let tid = match body {
            Body::Chunk(header, _) => header.tid,
            Body::Tree(header, _) => header.tid,
            Body::Arcs(header, _) => header.tid,
            Body::Keyframe(keyframe) => keyframe.tid,
            Body::Thread(thread) => thread.tid,
            Body::Task(task) => {
                missing.processes.retain(|&pid| pid != task.pid);
                task.tid
            }
            Body::Process(process) => {
                return missing.processes.retain(|&pid| pid != process.pid);
            }
            _ => return,
        };
        missing.threads.retain(|&missing| missing != tid);
    }

    /// Where ids are not there, and where nothing is in the window.
    pub(super) fn tell_of_nothing(&mut self) -> Result<(), EditError> {
        let ids = |what: &str, ids: &[u32]| -> Vec<String> {
            ids.iter().map(|id| format!("there is no {what} {id} in the recording")).collect()
        };
        let mut missing = ids("process", &self.missing.processes);
        missing.extend(ids("thread", &self.missing.threads));
        if self.written.is_empty() && self.sampled.written == 0 && !missing.is_empty() {
            let text = format!("{}; `teeperf info` names those that are there", missing.join(", "));
            return Err(EditError::Refused(text));
        }
        self.made.notices.extend(missing);
        let words = self.out()?.words;
        if words == 0 && self.sums.0 == 0 && self.sampled.written == 0 {
            self.out()?.notice(Level::Warning, NOTHING)?;
        }
        Ok(())
    }

    /// Where sums cannot be told apart at the window's borders.
    pub(super) fn tell_of_sums(&mut self) -> Result<(), EditError> {
        let (within, before, behind) = self.sums;
        let mut texts = Vec::new();
        if before > 0 {
            texts.push(format!(
                "{before} of {within} packets of sums began before the window: what is in them from before it cannot \
                 be told apart, and is here"
            ));
        }
        if behind > 0 {
            texts.push(format!(
                "{behind} packets of sums were written behind the window's end: what is in them from before it \
                 cannot be told apart, and is not here. `record --interval` writes sums more often"
            ));
        }
        for text in texts {
            self.out()?.notice(Level::Warning, &text)?;
            self.made.notices.push(text);
        }
        Ok(())
    }
}
