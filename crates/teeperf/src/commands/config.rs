//! `teeperf config`: what files set, and where.

use crate::config::{self, Setting, files};
use anyhow::{Context, Result, bail};
use clap::{Arg, Args, Command};
use serde::Serialize;
use std::fmt::Write;

/// Shows what files set: options of commands, by their names on the command line
///
/// A project's teeperf.toml, in its folder or above, and the user's own file set what an option is where the command line does
/// not say so. What is typed counts first, then the project's file, then the user's. A switch that a file sets is taken back
/// by --no-SWITCH.
#[derive(Args, Debug)]
#[command(after_help = "\
Files: teeperf.toml in the current folder or the nearest above it, or the file that TEEPERF_CONFIG names in its place; then
$XDG_CONFIG_HOME/teeperf/config.toml, or ~/.config/teeperf/config.toml. With TEEPERF_CONFIG= (empty) there is none. A file
that somebody else may have written is not used. A project's file does not say where anything is written,
nor what is passed on.

  color = \"never\"            options of all commands stand on top
  [record]                   and those of one in a section of its name
  clock = \"cycle\"
  limit-time = \"10m\"
  quiet = true
  [report]
  limit = 50

Examples:
  teeperf config              what files set here
  teeperf config record       all that can be set for record, and what holds
  teeperf config --json | jq '.settings[] | select(.used)'")]
pub(crate) struct Arguments {
    /// A command: show all that can be set for it
    command: Option<String>,
    /// JSON on one line
    #[arg(long)]
    json: bool,
}

/// A file of settings, as told.
#[derive(Serialize)]
pub(crate) struct File {
    pub(crate) path: String,
    /// `project`, `named` or `user`.
    pub(crate) role: &'static str,
    used: bool,
    /// Why it is not used, or what is wrong in it.
    pub(crate) problem: Option<String>,
    /// Section `[build]`.
    build: Vec<Key>,
}

/// A key of `[build]`, and its value as TOML.
#[derive(Serialize)]
struct Key {
    key: String,
    value: String,
}

/// Everything that files say.
#[derive(Serialize)]
struct Found {
    format: &'static str,
    version: u32,
    files: Vec<File>,
    settings: Vec<Told>,
}

#[derive(Serialize)]
struct Told {
    section: String,
    key: String,
    values: Vec<String>,
    file: String,
    line: usize,
    used: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let definition = config::definition();
    let (files, settings) = look(&definition);
    if arguments.json {
        let found =
            Found { format: "teeperf-config", version: 1, files, settings: told(&settings) };
        return super::to_stdout(|out| teeperf_view::json::harmless::write(&found, out));
    }
    let problems: Vec<&str> = files.iter().filter_map(|file| file.problem.as_deref()).collect();
    let text = match &arguments.command {
        Some(name) => of_command(&definition, name, &settings)?,
        None => of_files(&files, &settings)?,
    };
    super::print(text.as_bytes())?;
    match problems.first() {
        Some(problem) => bail!("{problem}"),
        None => Ok(()),
    }
}

/// Files there are, and what they set.
pub(crate) fn look(definition: &Command) -> (Vec<File>, Vec<Setting>) {
    let mut settings = Vec::new();
    let files = files::all().into_iter().map(|found| {
        let read = match found.unused() {
            Some(why) => Err(why),
            None => config::read(&found, definition).map_err(|error| format!("{error:#}")),
        };
        let read =
            read.and_then(|read| Ok((read, build(&found).map_err(|error| format!("{error:#}"))?)));
        let (problem, build) = match read {
            Ok((read, build)) => {
                settings.extend(read);
                (None, build)
            }
            Err(problem) => (Some(problem), Vec::new()),
        };
        let (path, role) = (found.path.display().to_string(), found.role.name());
        File { path, role, used: problem.is_none(), problem, build }
    });
    (files.collect(), settings)
}

/// What a file says of builds.
fn build(found: &files::Found) -> Result<Vec<Key>> {
    let text = found.text()?;
    crate::compiler::check_settings(&found.path, &text)?;
    let table: toml::Table = toml::from_str(&text)?;
    let build = table.get("build").and_then(toml::Value::as_table);
    let keys = build.into_iter().flatten();
    Ok(keys.map(|(key, value)| Key { key: key.clone(), value: value.to_string() }).collect())
}

/// Whether a setting holds: no earlier file says otherwise.
fn holds(settings: &[Setting], at: usize) -> bool {
    !settings[..at].iter().any(|earlier| config::overrides(earlier, &settings[at]))
}

fn told(settings: &[Setting]) -> Vec<Told> {
    let told = settings.iter().enumerate().map(|(at, setting)| Told {
        section: setting.section.clone(),
        key: setting.key.clone(),
        values: setting.values.clone(),
        file: setting.file.display().to_string(),
        line: setting.line,
        used: holds(settings, at),
    });
    told.collect()
}

fn of_files(files: &[File], settings: &[Setting]) -> Result<String> {
    let mut text = String::new();
    if files.is_empty() {
        let own = files::own().map(|path| path.display().to_string()).unwrap_or_default();
        writeln!(text, "no settings: there is no {} here or above, and no {own}", files::NAME)?;
    }
    for (number, file) in files.iter().enumerate() {
        let gap = if number == 0 { "" } else { "\n" };
        let unused = if file.used { "" } else { ", not used" };
        writeln!(text, "{gap}{} ({}{unused})", file.path, file.role)?;
        if !file.build.is_empty() {
            writeln!(text, "  [build]")?;
        }
        for Key { key, value } in &file.build {
            writeln!(text, "  {key} = {value}")?;
        }
        let mut section = "";
        let of_file =
            settings.iter().enumerate().filter(|(_, of)| of.file.as_os_str() == &*file.path);
        for (at, setting) in of_file {
            if setting.section != section {
                section = &setting.section;
                writeln!(text, "  [{section}]")?;
            }
            let earlier = settings[..at].iter().find(|earlier| config::overrides(earlier, setting));
            let overruled =
                earlier.map_or(String::new(), |by| format!("    # {} counts", by.place()));
            writeln!(text, "  {} = {}{overruled}", setting.key, setting.values.join(", "))?;
        }
    }
    Ok(text)
}

/// All that can be set for a command.
fn of_command(definition: &Command, name: &str, settings: &[Setting]) -> Result<String> {
    let names =
        || config::sections(definition).map(Command::get_name).collect::<Vec<_>>().join(", ");
    let command = config::sections(definition)
        .find(|command| command.get_name() == name)
        .with_context(|| format!("nothing can be set for {name:?}, but for {}", names()))?;
    let mut rows = Vec::new();
    let own = config::keys(command).map(|arg| (name, arg));
    for (section, arg) in config::global_keys(definition).map(|arg| ("", arg)).chain(own) {
        let Some(key) = arg.get_long().filter(|_| !arg.is_hide_set()) else { continue };
        let set = settings.iter().find(|of| of.section == section && of.key == key);
        let (value, from) = match set {
            Some(setting) => (setting.values.join(", "), setting.place()),
            None => (default(arg), String::new()),
        };
        rows.push((key.to_owned(), value, from));
    }
    let width = |column: fn(&(String, String, String)) -> usize| rows.iter().map(column).max();
    let (keys, values) = (width(|row| row.0.len()), width(|row| row.1.chars().count()));
    let mut text = String::new();
    for (key, value, from) in &rows {
        let (keys, values) = (keys.unwrap_or_default(), values.unwrap_or_default().min(40));
        writeln!(text, "{}", format!("{key:<keys$}  {value:<values$}  {from}").trim_end())?;
    }
    Ok(text)
}

/// What an option is where nobody says; a dash where that depends, or is nothing.
fn default(arg: &Arg) -> String {
    let values = arg.get_default_values().iter();
    let text = values.map(|value| value.to_string_lossy()).collect::<Vec<_>>().join(", ");
    if text.is_empty() { "-".into() } else { text }
}
