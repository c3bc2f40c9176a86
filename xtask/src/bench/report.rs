//! What `teeperf report --json` says of a recording, as far as figures look at it.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::lab::Lab;

/// A report.
pub(crate) struct Report {
    /// Calls and returns.
    pub(crate) events: f64,
    /// Calls and returns known to be lost.
    pub(crate) lost: u64,
    /// Frames that replay had to mend.
    pub(crate) mended: u64,
    /// Functions that were called.
    pub(crate) functions: Vec<Function>,
}

/// A function in a report.
pub(crate) struct Function {
    /// Name.
    pub(crate) name: String,
    /// Times it was entered.
    pub(crate) calls: u64,
    /// Time in itself, nanoseconds: least, shown, most.
    pub(crate) own: [f64; 3],
}

impl Report {
    /// Reads a recording as a user does.
    pub(crate) fn of(lab: &Lab, recording: &Path) -> Result<Self> {
        Self::of_elf(lab, recording, None::<&Path>)
    }

    /// The same of a file that has no names, but for those of its program.
    pub(crate) fn of_elf(
        lab: &Lab,
        recording: &Path,
        program: Option<impl AsRef<Path>>,
    ) -> Result<Self> {
        let mut command = Command::new(&lab.teeperf);
        command.args(["report", "--json"]).arg(recording);
        if let Some(program) = program {
            command.arg("--elf").arg(program.as_ref());
        }
        Self::told_by(lab, &mut command)
    }

    /// The same with options of the report.
    pub(crate) fn with(lab: &Lab, recording: &Path, options: &[&str]) -> Result<Self> {
        let mut command = Command::new(&lab.teeperf);
        Self::told_by(lab, command.args(["report", "--json"]).args(options).arg(recording))
    }

    fn told_by(lab: &Lab, command: &mut Command) -> Result<Self> {
        let ran = lab.run(command)?;
        let json: Value = serde_json::from_str(&ran.out).context("report --json")?;
        let health = |name: &str| {
            json["health"][name].as_u64().with_context(|| format!("no health.{name} in the report"))
        };
        let list = json["functions"].as_array().context("no functions in the report")?;
        let functions = list.iter().map(function).collect::<Result<_>>()?;
        Ok(Self {
            events: health("events")? as f64,
            lost: health("lost")?,
            mended: health("mended")?,
            functions,
        })
    }

    /// [`Report::of`] a recording in which nothing may be lost.
    pub(crate) fn of_whole(lab: &Lab, recording: &Path) -> Result<Self> {
        let report = Self::of(lab, recording)?;
        ensure!(report.lost == 0, "{}: {} events lost", recording.display(), report.lost);
        Ok(report)
    }

    /// The function of this name.
    pub(crate) fn function(&self, name: &str) -> Result<&Function> {
        let mut found = self.functions.iter().filter(|function| function.name == name);
        found.next().with_context(|| format!("{name} is not in the report"))
    }

    /// Shares of these functions in the time of all of them, percent.
    pub(crate) fn shares(&self, names: &[&str]) -> Result<Vec<f64>> {
        let own = names.iter().map(|name| Ok(self.function(name)?.own[1]));
        let own: Vec<f64> = own.collect::<Result<_>>()?;
        let all = own.iter().sum::<f64>().max(f64::MIN_POSITIVE);
        Ok(own.iter().map(|own| 100.0 * own / all).collect())
    }
}

fn function(json: &Value) -> Result<Function> {
    let name = json["name"].as_str().context("a function without a name")?.to_owned();
    let calls = json["calls"].as_u64().with_context(|| format!("{name} without calls"))?;
    let time = |field: &str| {
        json[field].as_f64().with_context(|| format!("no {field} of {name} in the report"))
    };
    let own = [time("self_low")?, time("self")?, time("self_high")?];
    Ok(Function { calls, own, name })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_the_named_functions() {
        let function = |name: &str, own| Function { name: name.into(), calls: 1, own };
        let report = Report {
            events: 0.0,
            lost: 0,
            mended: 0,
            functions: vec![
                function("a", [20.0, 30.0, 40.0]),
                function("b", [60.0, 70.0, 80.0]),
                function("main", [900.0; 3]),
            ],
        };
        assert_eq!(report.shares(&["a", "b"]).unwrap(), [30.0, 70.0]);
        assert!(report.shares(&["missing"]).is_err());
    }
}
