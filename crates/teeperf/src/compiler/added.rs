//! Functions to leave out, added to a `teeperf.toml` that is there: all else in it stays as it was written, comments too.

use super::settings;
use crate::config::files;
use anyhow::{Context, Result};
use std::path::Path;
use toml_edit::{Array, DocumentMut, Item, Table, Value};

/// The text with these patterns in `exclude` of its `[build]`, and how many of them were not there.
pub(crate) fn exclusions(text: &str, patterns: &[String]) -> Result<(String, usize)> {
    let mut document: DocumentMut = text.parse()?;
    let build = document.entry("build").or_insert(Item::Table(Table::new()));
    let build = build.as_table_like_mut().context("`build` is no table")?;
    let list = build.entry("exclude").or_insert(Item::Value(Array::new().into()));
    let list = list.as_array_mut().context("`exclude` is no list")?;
    let is_there =
        |list: &Array, pattern: &str| list.iter().any(|old| old.as_str() == Some(pattern));
    // A comment behind the last one stays there.
    let trailing = list.trailing().as_str().unwrap_or_default().trim_end().to_owned();
    let mut before = format!("{trailing}\n    ");
    let mut added = 0;
    for pattern in patterns {
        if !is_there(list, pattern) {
            let mut value = Value::from(pattern.as_str());
            value.decor_mut().set_prefix(std::mem::replace(&mut before, "\n    ".into()));
            list.push_formatted(value);
            added += 1;
        }
    }
    if added > 0 {
        list.set_trailing("\n");
        list.set_trailing_comma(true);
    }
    let text = document.to_string();
    // What is written is what will be read.
    settings::check(Path::new(files::NAME), &text)?;
    Ok((text, added))
}

#[cfg(test)]
mod tests {
    use super::settings::Settings;
    use super::*;

    fn added(text: &str, patterns: &[&str]) -> (String, usize) {
        let patterns: Vec<String> = patterns.iter().map(|&pattern| pattern.into()).collect();
        let (text, added) = exclusions(text, &patterns).unwrap();
        assert_eq!(exclusions(&text, &patterns).unwrap(), (text.clone(), 0));
        (text, added)
    }

    #[test]
    fn what_is_there_stays() {
        let before = "# Ours.\n[build] # how\nonly = ['src']\nexclude = [\n    'a', # small\n]\nmin-size = 3\n";
        let after = "# Ours.\n[build] # how\nonly = ['src']\nexclude = [\n    'a', # small\n    'b\\*',\n    \"c\",\n]\nmin-size = 3\n";
        assert_eq!(added(before, &["a", "b\\*", "c"]), (after.into(), 2));
        assert_eq!(added("", &["f"]).0, "[build]\nexclude = [\n    \"f\",\n]\n");
        assert_eq!(added("# x\n", &[]).1, 0);
        for before in [
            "build = { exclude = ['a'] }\n",
            "[build]\nexclude = ['a' # x\n]\n",
            "build.exclude = []\n",
        ] {
            let (text, count) = added(before, &["b"]);
            let read: Settings = toml::from_str(&text).unwrap();
            assert_eq!((read.build.exclude.last().unwrap().as_str(), count), ("b", 1));
        }
    }

    #[test]
    fn what_is_none_of_ours_is_refused() {
        for text in
            ["[build", "build = 3", "[build]\nexclude = 3", "[other]\n", "[build]\nexclude = [1]"]
        {
            assert!(exclusions(text, &["f".into()]).is_err(), "{text}");
        }
    }
}
