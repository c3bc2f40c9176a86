//! The packet that introduces a process, written anew when the process gives itself a title (setproctitle(3)).

use super::Attached;
use crate::packets::Payload;
use crate::server::{arguments_of, executable_of};
use teeperf_wire::body::process;

/// What a recording says of a process.
pub(super) struct Introduction {
    id: u32,
    pid: u32,
    parent_pid: u32,
    exec_of: u32,
    /// Time when its recording began.
    began: u64,
    executable: Vec<u8>,
    arguments: Vec<Vec<u8>>,
}

impl Introduction {
    pub(super) fn of(attached: &Attached, began: u64) -> Self {
        Self {
            id: attached.id,
            pid: attached.pid,
            parent_pid: attached.parent_pid,
            exec_of: attached.exec_of,
            began,
            executable: attached.executable.clone(),
            arguments: attached.arguments.clone(),
        }
    }

    /// The payload of its `PROCESS` packet.
    pub(super) fn packet(&self) -> Vec<u8> {
        let packet = Payload::default()
            .number(process::ID, self.id.into())
            .number(process::PID, self.pid.into())
            .number(process::PARENT_PID, self.parent_pid.into())
            .bytes(process::EXECUTABLE, &self.executable)
            .number(process::TIME, self.began)
            .number(process::EXEC_OF, self.exec_of.into())
            .list(process::ARGUMENT, &self.arguments);
        packet.finish()
    }

    /// Whether the process has another command line now than it had. A process that has ended has none, and one that has
    /// called `exec` is another process.
    pub(super) fn has_changed(&mut self) -> bool {
        if self.pid == 0 {
            return false;
        }
        let mut now = arguments_of(self.pid);
        let end = now.iter().rposition(|word| !word.is_empty()).map_or(0, |last| last + 1);
        now.truncate(end);
        if now.is_empty() || now == self.arguments || executable_of(self.pid) != self.executable {
            return false;
        }
        self.arguments = now;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn introduction(pid: u32, words: &[&str]) -> Introduction {
        Introduction {
            id: 1,
            pid,
            parent_pid: 0,
            exec_of: 0,
            began: 0,
            executable: executable_of(pid),
            arguments: words.iter().map(|word| word.as_bytes().to_vec()).collect(),
        }
    }

    #[test]
    fn a_changed_command_line_is_told_once() {
        let own = std::process::id();
        let mut changed = introduction(own, &["postgres"]);
        assert!(changed.has_changed() && !changed.has_changed());
        assert_eq!(changed.arguments[0], arguments_of(own)[0]);
        // Another program runs under that number by now; and none does.
        let executable = b"/another/program".to_vec();
        assert!(!Introduction { executable, ..introduction(own, &["x"]) }.has_changed());
        assert!(!introduction(u32::MAX, &["x"]).has_changed());
        assert!(!introduction(0, &["x"]).has_changed());
    }
}
