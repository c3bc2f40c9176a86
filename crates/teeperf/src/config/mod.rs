//! What holds where the command line says nothing: options of commands, set in a project's `teeperf.toml` and in the user's own
//! file. What stands there becomes the default of the option, so that all the rest is as if it had been typed.

pub(crate) mod files;
mod keys;
mod settings;

use crate::cli::Cli;
use crate::help;
use anyhow::Result;
use clap::parser::ValueSource;
use clap::{ArgMatches, Command, CommandFactory, FromArgMatches};
use files::Found;
pub(crate) use keys::{global_keys, keys, sections};
pub(crate) use settings::{Setting, check_sections};
use std::ffi::OsString;

/// The definition of the command line, with help for this terminal.
pub(crate) fn definition() -> Command {
    help::for_terminal(without_layout())
}

/// The definition of the command line. Laying out help takes longer than all else that a short
/// command does, so the command lays it out where it shows help.
fn without_layout() -> Command {
    keys::with_refusals(Cli::command())
}

/// Reads words; help, versions and what is mistyped end the process.
fn read_words(definition: impl Fn() -> Command, words: &[OsString]) -> ArgMatches {
    let matches = definition().try_get_matches_from(words);
    matches.unwrap_or_else(|_| help::for_terminal(definition()).get_matches_from(words))
}

/// A command line, before files are looked at.
pub(crate) struct Typed {
    words: Vec<OsString>,
    matches: ArgMatches,
    /// What it says by itself.
    pub(crate) cli: Cli,
}

impl Typed {
    /// Reads it; help, versions and what is mistyped end the process.
    pub(crate) fn read(words: Vec<OsString>) -> Self {
        let matches = read_words(without_layout, &words);
        let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
        Self { words, matches, cli }
    }

    /// With what files say, and which of it holds.
    pub(crate) fn with_files(self) -> Result<(Cli, Vec<Setting>)> {
        let found = files::all();
        if found.is_empty() {
            return Ok((self.cli, Vec::new()));
        }
        let definition = without_layout();
        let Some((name, given)) = self.matches.subcommand() else {
            return Ok((self.cli, Vec::new()));
        };
        if !keys::sections(&definition).any(|section| section.get_name() == name) {
            return Ok((self.cli, Vec::new()));
        }
        let mut settings = of_command(name, all(&found, &definition)?);
        let mut built = definition.clone();
        built.build();
        settings.retain(|setting| !is_overruled(&built, given, setting));
        let with = |settings: &[Setting]| {
            let definition = || settings.iter().fold(definition.clone(), with_default);
            let matches = read_words(definition, &self.words);
            Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
        };
        let all = with(&settings);
        let before = settings.len();
        settings
            .retain(|setting| setting.section.is_empty() || !all.command.leaves_idle(&setting.key));
        let cli = if settings.len() == before { all } else { with(&settings) };
        Ok((cli, settings))
    }
}

/// What all files say that hold here, the first first. Says which are not used.
fn all(found: &[Found], definition: &Command) -> Result<Vec<Setting>> {
    let mut settings = Vec::new();
    for found in found {
        match found.unused() {
            Some(text) => note!("teeperf: {text}"),
            None => settings.extend(read(found, definition)?),
        }
    }
    Ok(settings)
}

/// What one file says.
pub(crate) fn read(found: &Found, definition: &Command) -> Result<Vec<Setting>> {
    settings::read(found, &found.text()?, definition)
}

/// Those that hold for a command: what stands in an earlier file counts.
fn of_command(name: &str, all: Vec<Setting>) -> Vec<Setting> {
    let mut kept: Vec<Setting> = Vec::new();
    for setting in all {
        let is_of_it = setting.section.is_empty() || setting.section == name;
        if is_of_it && !kept.iter().any(|earlier| overrides(earlier, &setting)) {
            kept.push(setting);
        }
    }
    kept
}

/// Whether of two settings the first, of an earlier file, stands in place of the other.
pub(crate) fn overrides(earlier: &Setting, later: &Setting) -> bool {
    earlier.section == later.section && earlier.key == later.key
}

/// Whether the command line says otherwise: by the same option, by what takes it back, or by one that does not go with it.
fn is_overruled(built: &Command, given: &ArgMatches, setting: &Setting) -> bool {
    let Some(command) = built.find_subcommand(&setting.section) else { return false };
    let Some(own) = command.get_arguments().find(|arg| arg.get_long() == Some(&setting.key)) else {
        return false;
    };
    let is_typed = |id: &str| given.value_source(id) == Some(ValueSource::CommandLine);
    let refusal = keys::refusal(&setting.key);
    let mut typed = command.get_arguments().filter(|arg| is_typed(arg.get_id().as_str()));
    typed.any(|arg| {
        let is_it = arg.get_id() == own.get_id() || arg.get_long() == Some(&refusal);
        is_it || keys::conflict(command, own, arg)
    })
}

/// The definition with a setting as the default of its option.
fn with_default(definition: Command, setting: &Setting) -> Command {
    let set = |command: Command| {
        let own = command.get_arguments().find(|arg| arg.get_long() == Some(&setting.key));
        match own.map(|arg| arg.get_id().clone()) {
            Some(id) => command.mut_arg(id, |arg| arg.default_values(setting.values.clone())),
            None => command,
        }
    };
    match &setting.section[..] {
        "" => set(definition),
        section => definition.mut_subcommand(section, set),
    }
}
