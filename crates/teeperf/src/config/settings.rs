//! What a file of settings says: sections and keys that there are, with values that the options take, each with its line.

use super::files::{Found, Role};
use super::keys;
use anyhow::{Context, Result, bail, ensure};
use clap::{Arg, ArgAction, Command};
use std::fmt::Display;
use std::ops::Range;
use std::path::{Path, PathBuf};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// How programs are built: read where they are.
pub(crate) const BUILD: &str = "build";

/// One option that a file sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    /// The command; empty, it is of all commands.
    pub(crate) section: String,
    /// Its long name.
    pub(crate) key: String,
    /// As on the command line; of a switch `true` or `false`.
    pub(crate) values: Vec<String>,
    pub(crate) file: PathBuf,
    pub(crate) line: usize,
}

impl Setting {
    /// As it would stand on the command line.
    pub(crate) fn as_words(&self) -> String {
        let key = &self.key;
        match &self.values[..] {
            [value] if value == "true" => format!("--{key}"),
            values => {
                let words = values.iter().map(|value| format!("--{key} {}", quoted(value)));
                words.collect::<Vec<_>>().join(" ")
            }
        }
    }

    /// File and line.
    pub(crate) fn place(&self) -> String {
        format!("{}:{}", self.file.display(), self.line)
    }
}

fn quoted(value: &str) -> String {
    crate::shell::quoted(value.as_ref()).display().to_string()
}

/// The text of a file, for errors that name the line.
struct Text<'a> {
    path: &'a Path,
    text: &'a str,
}

impl Text<'_> {
    fn line(&self, span: &Range<usize>) -> usize {
        self.text.get(..span.start).unwrap_or_default().matches('\n').count() + 1
    }

    fn at(&self, span: &Range<usize>, what: impl Display) -> anyhow::Error {
        anyhow::anyhow!("{}:{}: {what}", self.path.display(), self.line(span))
    }
}

/// Reads a file of settings, and says what is wrong in it with its line.
pub(crate) fn read(found: &Found, text: &str, cli: &Command) -> Result<Vec<Setting>> {
    let file = Text { path: &found.path, text };
    let root = DeTable::parse(text).with_context(|| found.path.display().to_string())?;
    let mut settings = Vec::new();
    for (name, value) in root.get_ref() {
        let section = &**name.get_ref();
        if section == BUILD {
            if found.role == Role::User {
                let what = "[build] is a project's: it stands in its teeperf.toml";
                return Err(file.at(&name.span(), what));
            }
            continue;
        }
        if let Some(arg) = keys::global_keys(cli).find(|arg| arg.get_long() == Some(section)) {
            let values = values(&file, arg, value)?;
            if let Some(why) = keys::refused(cli, section, &values) {
                return Err(file.at(&value.span(), why));
            }
            let line = file.line(&name.span());
            let (section, key, file) = (String::new(), section.to_owned(), found.path.clone());
            settings.push(Setting { section, key, values, file, line });
            continue;
        }
        let command = known(&file, name, cli)?;
        let DeValue::Table(table) = value.get_ref() else {
            return Err(
                file.at(&value.span(), format_args!("`{section}` is a section: [{section}]"))
            );
        };
        for (key, value) in table {
            settings.push(setting(&file, found.role, command, key, value)?);
        }
    }
    Ok(settings)
}

/// Says which sections there are not; no more, for those who read one alone.
pub(crate) fn check_sections(path: &Path, text: &str) -> Result<()> {
    let root = DeTable::parse(text).with_context(|| path.display().to_string())?;
    let is_other =
        |name: &&Spanned<_>| *Spanned::<std::borrow::Cow<'_, str>>::get_ref(name) != BUILD;
    let mut others = root.get_ref().keys().filter(is_other).peekable();
    if others.peek().is_none() {
        return Ok(());
    }
    let cli = super::definition();
    let is_global = |name: &str| keys::global_keys(&cli).any(|arg| arg.get_long() == Some(name));
    for name in others {
        if !is_global(name.get_ref()) {
            known(&Text { path, text }, name, &cli)?;
        }
    }
    Ok(())
}

/// The command that a section is of.
fn known<'a>(
    file: &Text<'_>,
    name: &Spanned<std::borrow::Cow<'_, str>>,
    cli: &'a Command,
) -> Result<&'a Command> {
    let text = &**name.get_ref();
    if let Some(command) = keys::sections(cli).find(|section| section.get_name() == text) {
        return Ok(command);
    }
    let names = keys::sections(cli).map(Command::get_name).chain([BUILD]);
    let globals = keys::global_keys(cli).filter_map(Arg::get_long);
    let next = match keys::nearest(text, names.chain(globals)) {
        Some(near) => format!("; is [{near}] meant?"),
        None => "; a section is named after a command, such as [record]".into(),
    };
    Err(file.at(&name.span(), format_args!("there is no section [{text}]{next}")))
}

fn setting(
    file: &Text<'_>,
    role: Role,
    command: &Command,
    key: &Spanned<std::borrow::Cow<'_, str>>,
    value: &Spanned<DeValue<'_>>,
) -> Result<Setting> {
    let (section, name) = (command.get_name(), &**key.get_ref());
    let Some(arg) = keys::keys(command).find(|arg| arg.get_long() == Some(name)) else {
        let next = match keys::nearest(name, keys::keys(command).filter_map(Arg::get_long)) {
            Some(near) => format!("; is `{near}` meant?"),
            None => format!("; `teeperf config {section}` has those there are"),
        };
        let what = format_args!("`teeperf {section}` has no option --{name} that can be set{next}");
        return Err(file.at(&key.span(), what));
    };
    if role == Role::Project && keys::is_the_users_own(command, arg) {
        let own =
            super::files::own().map_or("your own file".into(), |path| path.display().to_string());
        let what = format_args!(
            "`{name}` is the user's to say, such as where something is written, sent or read from, and what is passed on: a \
             project does not say that for those who use it; next: put it into {own}"
        );
        return Err(file.at(&key.span(), what));
    }
    let values = values(file, arg, value)?;
    if !keys::is_switch(arg)
        && let Some(why) = keys::refused(command, name, &values)
    {
        return Err(file.at(&value.span(), why));
    }
    Ok(Setting {
        section: section.to_owned(),
        key: name.to_owned(),
        values,
        file: file.path.to_owned(),
        line: file.line(&key.span()),
    })
}

/// As words of the command line.
fn values(file: &Text<'_>, arg: &Arg, value: &Spanned<DeValue<'_>>) -> Result<Vec<String>> {
    let name = arg.get_long().unwrap_or_default();
    let one = |value: &Spanned<DeValue<'_>>| -> Result<String> {
        match (value.get_ref(), keys::is_switch(arg)) {
            (DeValue::Boolean(is_on), true) => Ok(is_on.to_string()),
            (_, true) => bail!("`{name}` is a switch: true or false"),
            (DeValue::String(text), _) => Ok(text.clone().into_owned()),
            (DeValue::Integer(number), _) => Ok(number.to_string()),
            (DeValue::Float(number), _) => Ok(number.to_string()),
            _ => bail!("`{name}` takes a string, or a number"),
        }
    };
    let all = || match value.get_ref() {
        DeValue::Array(list) => {
            let takes_several = matches!(arg.get_action(), ArgAction::Append);
            ensure!(takes_several, "`{name}` takes one value, and no list");
            list.iter().map(one).collect()
        }
        _ => one(value).map(|one| vec![one]),
    };
    all().map_err(|error| file.at(&value.span(), error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_as(role: Role, text: &str) -> Result<Vec<Setting>> {
        let found = Found { path: "teeperf.toml".into(), role, distrusted: None };
        read(&found, text, &crate::config::definition())
    }

    #[test]
    fn options_are_set_by_their_names() {
        let text = "color = 'never'\n[build]\nonly = []\n[record]\nclock = \"cycle\"\nquiet = true\nonly = ['a', 'b c']\n\
                    [report]\nlimit = 50\n[diff]\nnoise = 0.05\n";
        let read = read_as(Role::Project, text).unwrap();
        let told: Vec<String> = read
            .iter()
            .map(|of| format!("{} {}: {}", of.line, of.section, of.as_words()))
            .collect();
        let expected = [
            "1 : --color never",
            "5 record: --clock cycle",
            "6 record: --quiet",
            "7 record: --only a --only 'b c'",
            "9 report: --limit 50",
            "11 diff: --noise 0.05",
        ];
        let mut told = told;
        told.sort_by_key(|line| line.split(' ').next().unwrap().parse::<u32>().unwrap());
        assert_eq!(told, expected);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line_and_the_nearest_name() {
        for (text, told) in [
            ("\n[recrod]\n", "teeperf.toml:2: there is no section [recrod]; is [record] meant?"),
            ("[zzz]\n", "such as [record]"),
            ("colour = 'never'\n", "is [color] meant?"),
            (
                "[record]\nclokc = 'tick'\n",
                "teeperf.toml:2: `teeperf record` has no option --clokc",
            ),
            ("[record]\nclokc = 'tick'\n", "is `clock` meant?"),
            ("[record]\nzzz = 1\n", "`teeperf config record` has those there are"),
            ("[record]\n\nclock = 'sundial'\n", "teeperf.toml:3: invalid value 'sundial'"),
            ("[record]\nclock = 'sundial'\n", "[possible values: auto, tick, cycle, ordered]"),
            ("[record]\nlimit-size = 'big'\n", "--limit-size"),
            ("[record]\nquiet = 'yes'\n", "`quiet` is a switch: true or false"),
            ("[record]\nclock = ['tick']\n", "`clock` takes one value, and no list"),
            ("[record]\nclock = true\n", "`clock` takes a string, or a number"),
            ("record = 1\n", "`record` is a section"),
            ("color = 'blue'\n", "teeperf.toml:1: invalid value 'blue'"),
            ("[record]\nclock = \n", "line 2"),
            ("[pack]\noutput = 'x'\n", "has no option --output that can be set"),
            ("[config]\njson = true\n", "there is no section [config]"),
        ] {
            let error = format!("{:#}", read_as(Role::Project, text).unwrap_err());
            assert!(error.contains(told), "{text}: {error}");
        }
    }

    #[test]
    fn where_something_is_written_only_the_user_says() {
        for text in [
            "[record]\noutput = 'x'\n",
            "[record]\nforce = true\n",
            "[record]\nto = 'tcp:host:1'\n",
            "[flame]\noutput = 'x'\n",
            "[diff]\nhtml = 'x'\n",
            "[pack]\nsources = true\n",
            "[annotate]\nsource-dir = '/x=/etc'\n",
            "[collect]\nlisten = 'tcp:0.0.0.0:7377'\n",
            "[suggest]\nwrite = true\n",
        ] {
            let error = format!("{:#}", read_as(Role::Project, text).unwrap_err());
            assert!(error.contains("teeperf.toml:2: ") && error.contains("config.toml"), "{error}");
            for role in [Role::User, Role::Named] {
                assert_eq!(read_as(role, text).unwrap().len(), 1, "{text}");
            }
        }
        let error = format!("{:#}", read_as(Role::User, "[build]\n").unwrap_err());
        assert!(error.contains("a project's"), "{error}");
    }

    #[test]
    fn sections_are_checked_by_name_alone() {
        let check = |text| check_sections(Path::new("f"), text);
        assert!(check("[build]\n[record]\nno-such = 1\n").is_ok() && check("color = 1").is_ok());
        let error = check("[build]\n[built]\n").unwrap_err().to_string();
        assert_eq!(error, "f:2: there is no section [built]; is [build] meant?");
    }
}
