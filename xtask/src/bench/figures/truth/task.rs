//! How a program is run: by itself, below a recorder, and below perf. A server has a load.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::bench::lab::Lab;
use crate::commands::line;

/// A command, and for a server what is done with it.
#[derive(Default)]
pub(super) struct Task {
    pub(super) words: Vec<String>,
    /// A variable of its environment, and its value.
    pub(super) variable: Option<(String, String)>,
    pub(super) load: Option<Load>,
}

/// What a server is put to, as parts of a script.
pub(super) struct Load {
    /// Waits until the server can be reached.
    pub(super) ready: String,
    /// Uses it, and has it end.
    pub(super) work: String,
}

impl Task {
    pub(super) fn of<const N: usize>(words: [&str; N]) -> Self {
        Self { words: words.map(String::from).into(), ..Self::default() }
    }

    /// Runs it by itself and returns what it printed.
    pub(super) fn run(&self, lab: &Lab) -> Result<String> {
        self.run_below(lab, None)
    }

    /// The same below a recorder, whose command ends where the program's begins.
    pub(super) fn record(&self, lab: &Lab, recorder: Command) -> Result<String> {
        self.run_below(lab, Some(recorder))
    }

    fn run_below(&self, lab: &Lab, recorder: Option<Command>) -> Result<String> {
        let mut words = recorder.as_ref().map(line).into_iter().collect::<Vec<_>>();
        words.extend(self.words.iter().cloned());
        match &self.load {
            Some(Load { ready, work }) => {
                let server = words.join(" ");
                self.finish(lab, script(&format!("{server} &\n{AND_ITS_END}\n{ready}\n{work}")))
            }
            None => {
                let mut command = recorder.unwrap_or_else(|| Command::new(&self.words[0]));
                let begin = usize::from(words.len() == self.words.len());
                command.args(&self.words[begin..]);
                self.finish(lab, command)
            }
        }
    }

    /// The same below perf, whose command lacks what is to be sampled, and writes `data`. perf
    /// joins a server that runs: it mistakes libraries of a process that another program was
    /// executed in.
    pub(super) fn sample(&self, lab: &Lab, mut perf: Command, data: &Path) -> Result<String> {
        match &self.load {
            Some(Load { ready, work }) => {
                let (server, perf) = (self.words.join(" "), line(&perf));
                let is_there = format!("[ -s {} ]", data.display());
                self.finish(
                    lab,
                    script(&format!(
                        "{server} &\n{AND_ITS_END}\n{ready}\n{AND_CHILDREN}\n\
                         {perf} -p $all &\nsampler=$!\n\
                         for try in $(seq 200); do {is_there} && break; sleep 0.05; done\n\
                         sleep 0.3\n{work}\nwait $sampler"
                    )),
                )
            }
            None => {
                perf.arg("--").args(&self.words);
                self.finish(lab, perf)
            }
        }
    }

    fn finish(&self, lab: &Lab, mut command: Command) -> Result<String> {
        command.envs(self.variable.clone());
        Ok(lab.run(&mut command)?.out)
    }
}

/// The server ends with the script, whatever happens.
const AND_ITS_END: &str = "server=$!\ntrap 'kill $server 2> /dev/null || true' EXIT";

/// perf joins processes, not what they started before.
const AND_CHILDREN: &str = "all=$(echo $server $(pgrep -P $server) | tr ' ' ,)";

fn script(text: &str) -> Command {
    let mut command = Command::new("sh");
    command.arg("-ec").arg(format!("{text}\nwait $server"));
    command
}
