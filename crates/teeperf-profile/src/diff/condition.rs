//! When a difference is too large for somebody, such as a build server: `self(parse) > +5%`.
//!
//! ```text
//! condition = clause { "and" clause }
//! clause    = figure ( ">" | "<" ) amount
//! figure    = "total"                                  time in all functions
//!           | ( "self" | "total" | "calls" ) "(" name ")"
//!           | "any" ( "self" | "total" | "calls" )     of the same function in all clauses
//! amount    = [ "+" | "-" ] number [ "%" | unit ]
//! unit      = "ns" | "us" | "µs" | "ms" | "s"          for times; none for calls
//! ```
//!
//! With a sign it is the difference, in percent of what it was before or absolute, and only a change beyond noise fits.
//! Without, it is the figure of the second side, in percent of the time of all functions or absolute. A name is a
//! pattern for functions ([`Wanted`]). Where several functions fit, any will do.

use super::{Change, Diff, Figure, Presence};
use std::fmt;
use teeperf_select::Wanted;

/// A condition, as it was typed.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// Its text.
    pub text: String,
    pub(super) clauses: Vec<Clause>,
}

/// Where a text is no condition, and what would be one there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    text: String,
    at: usize,
    expected: &'static str,
}

/// What met a condition: the functions, and the figures that did.
#[derive(Clone, Debug, PartialEq)]
pub struct Met {
    /// The function; nothing where it is all of them.
    pub function: Option<String>,
    /// A figure for each clause.
    pub figures: Vec<(Kind, Figure)>,
}

/// Which figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Time in a function itself.
    SelfTime,
    /// Time in a function and all that it called; or in all functions.
    Total,
    /// Number of calls.
    Calls,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Clause {
    pub(super) kind: Kind,
    pub(super) whose: Whose,
    pub(super) is_above: bool,
    pub(super) is_difference: bool,
    /// A part where it is in percent; nanoseconds, or calls.
    pub(super) amount: f64,
    pub(super) is_percent: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Whose {
    All,
    Any,
    Named(Wanted),
}

impl fmt::Display for Wrong {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let before = self.text.get(..self.at).unwrap_or(&self.text).chars().count();
        write!(out, "expected {}\n  {}\n  {:before$}^", self.expected, self.text, "")
    }
}

impl std::error::Error for Wrong {}

impl Condition {
    /// Reads a condition.
    ///
    /// # Errors
    ///
    /// Where the text is none: the place, and what is expected there.
    pub fn parse(text: &str) -> Result<Self, Wrong> {
        // What is shown below its text stands on one line.
        let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let mut reader = Reader { text: &text, at: 0 };
        let mut clauses = vec![reader.clause()?];
        while !reader.rest().is_empty() {
            if !reader.takes_word("and") {
                return Err(reader.wrong("`and`, or the end"));
            }
            clauses.push(reader.clause()?);
        }
        Ok(Self { text, clauses })
    }

    /// Names in it that no function of either side has.
    pub fn unknown_names(&self, diff: &Diff) -> Vec<String> {
        let is_known = |name: &Wanted| diff.changes.iter().any(|change| diff.is_of(change, name));
        let names = self.clauses.iter().filter_map(|clause| match &clause.whose {
            Whose::Named(name) => Some(name),
            _ => None,
        });
        names.filter(|name| !is_known(name)).map(Wanted::to_string).collect()
    }

    /// What meets it.
    pub fn met(&self, diff: &Diff) -> Vec<Met> {
        if self.clauses.iter().any(|clause| clause.whose == Whose::Any) {
            // All that is said of any is said of the same one.
            let met = diff.changes.iter().filter_map(|change| self.met_by(diff, change));
            return met.collect();
        }
        let mut function = None;
        let mut figures = Vec::new();
        for clause in &self.clauses {
            let Some((name, figure)) = clause.met(diff) else { return Vec::new() };
            function = function.or(name);
            figures.push((clause.kind, figure));
        }
        vec![Met { function, figures }]
    }

    fn met_by(&self, diff: &Diff, change: &Change) -> Option<Met> {
        let mut figures = Vec::new();
        for clause in &self.clauses {
            let figure = match &clause.whose {
                Whose::Any => {
                    Some(clause.figure(change)).filter(|figure| clause.holds(figure, diff))?
                }
                _ => clause.met(diff)?.1,
            };
            figures.push((clause.kind, figure));
        }
        Some(Met { function: Some(diff.name_of(change).into()), figures })
    }
}

impl Clause {
    /// The first that meets it, of those that it is about.
    fn met(&self, diff: &Diff) -> Option<(Option<String>, Figure)> {
        match &self.whose {
            Whose::All => self.holds(&diff.whole, diff).then_some((None, diff.whole)),
            Whose::Any => None,
            Whose::Named(name) => diff
                .changes
                .iter()
                .filter(|change| diff.is_of(change, name))
                .map(|change| (Some(diff.name_of(change).to_owned()), self.figure(change)))
                .find(|(_, figure)| self.holds(figure, diff)),
        }
    }

    pub(super) fn figure(&self, change: &Change) -> Figure {
        match self.kind {
            Kind::SelfTime => change.self_time,
            Kind::Total => change.total,
            Kind::Calls => change.calls,
        }
    }

    pub(super) fn holds(&self, figure: &Figure, diff: &Diff) -> bool {
        let value = match (self.is_difference, self.is_percent) {
            (true, _) if !figure.is_change => return false,
            // What was nothing has grown by more than any part of it.
            (true, true) => figure.relative().unwrap_or(f64::INFINITY),
            (true, false) => figure.difference(),
            (false, true) => figure.after / diff.whole.after.max(f64::MIN_POSITIVE),
            (false, false) => figure.after,
        };
        if self.is_above { value > self.amount } else { value < self.amount }
    }
}

impl Change {
    /// Whether it was called on one side alone.
    pub fn is_one_sided(&self) -> bool {
        self.presence != Presence::Both
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn wrong(&self, expected: &'static str) -> Wrong {
        Wrong { text: self.text.into(), at: self.at, expected }
    }

    /// What is left, behind spaces.
    fn rest(&mut self) -> &'a str {
        let rest = &self.text[self.at..];
        let trimmed = rest.trim_start();
        self.at += rest.len() - trimmed.len();
        trimmed
    }

    fn takes(&mut self, text: &str) -> bool {
        let is_there = self.rest().starts_with(text);
        self.at += if is_there { text.len() } else { 0 };
        is_there
    }

    fn takes_word(&mut self, word: &str) -> bool {
        let rest = self.rest();
        let end = rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(rest.len());
        rest[..end] == *word && self.takes(word)
    }

    fn clause(&mut self) -> Result<Clause, Wrong> {
        let is_any = self.takes_word("any");
        let kind = match () {
            () if self.takes_word("self") => Kind::SelfTime,
            () if self.takes_word("total") => Kind::Total,
            () if self.takes_word("calls") => Kind::Calls,
            () if is_any => return Err(self.wrong("`self`, `total` or `calls`")),
            () => return Err(self.wrong("`self(NAME)`, `total(NAME)`, `calls(NAME)`, `total`, `any self`, `any total` or `any calls`")),
        };
        let whose = match is_any {
            true => Whose::Any,
            false if self.takes("(") => Whose::Named(self.name()?),
            false if kind == Kind::Total => Whose::All,
            false => return Err(self.wrong("`(NAME)`; `any` in front of it means each function")),
        };
        let is_above = self.takes(">");
        if !is_above && !self.takes("<") {
            return Err(self.wrong("`>` or `<`"));
        }
        let sign = match () {
            () if self.takes("+") => Some(1.0),
            () if self.takes("-") => Some(-1.0),
            () => None,
        };
        let number = self.number()?;
        let (is_percent, scale) = self.unit(kind)?;
        if is_percent && kind == Kind::Calls && sign.is_none() {
            return Err(self.wrong("a number of calls, or a difference in percent such as +5%"));
        }
        let amount = sign.unwrap_or(1.0) * number * scale;
        Ok(Clause { kind, whose, is_above, is_difference: sign.is_some(), amount, is_percent })
    }

    /// Up to the bracket that closes the one before it; of a regular expression brackets are its own.
    fn name(&mut self) -> Result<Wanted, Wrong> {
        let rest = self.rest();
        if rest.starts_with('/') {
            let Some(end) = rest.find("/)") else {
                self.at = self.text.len();
                return Err(self.wrong("`/)` behind the regular expression"));
            };
            return self.pattern(&rest[..=end]);
        }
        let mut depth = 0usize;
        for (at, c) in rest.char_indices() {
            match c {
                '(' => depth += 1,
                ')' if depth > 0 => depth -= 1,
                ')' => {
                    let name = rest[..at].trim();
                    if name.is_empty() {
                        return Err(self.wrong("a function's name"));
                    }
                    return self.pattern(&rest[..at]);
                }
                _ => {}
            }
        }
        self.at = self.text.len();
        Err(self.wrong("`)` behind the name"))
    }

    /// Of this text, with a bracket behind it.
    fn pattern(&mut self, text: &str) -> Result<Wanted, Wrong> {
        let read = text.trim().parse();
        let pattern =
            read.map_err(|_| self.wrong("a pattern for functions: `teeperf help patterns`"))?;
        self.at += text.len() + 1;
        Ok(pattern)
    }

    fn number(&mut self) -> Result<f64, Wrong> {
        let rest = self.rest();
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let number = rest[..end].parse::<f64>();
        let wrong = self.wrong("a number, such as +5%, +10ms or 1000");
        self.at += end;
        number.map_err(|_| wrong)
    }

    fn unit(&mut self, kind: Kind) -> Result<(bool, f64), Wrong> {
        if self.takes("%") {
            return Ok((true, 0.01));
        }
        if kind == Kind::Calls {
            return Ok((false, 1.0));
        }
        const UNITS: [(&str, f64); 6] =
            [("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("μs", 1e3), ("ms", 1e6), ("s", 1e9)];
        match UNITS.iter().find(|(unit, _)| self.takes_word(unit)) {
            Some(&(_, scale)) => Ok((false, scale)),
            None => Err(self.wrong("a unit: %, ns, us, ms or s")),
        }
    }
}

#[cfg(test)]
#[path = "condition_tests.rs"]
mod tests;
