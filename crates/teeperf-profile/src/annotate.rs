//! Functions by where their source stands: their figures at the line of their definition, and what they call, from
//! which lines as far as compilers say it. Hooks record who called whom, and not from where: so a callee's figures are
//! those of a line only where one line of the function calls it.

use crate::aggregate::{self, Row, Sort};
use crate::model::{Function, FunctionId, Profile};
use crate::pattern::Pattern;
use std::collections::HashMap;
use teeperf_select::BadPattern;
use teeperf_symbols::{CallSite, demangle, without_copy};

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// All functions of files whose path ends so.
    File(String),
    /// Functions whose names fit, see [`Pattern`].
    Functions(Pattern),
}

/// A function with its figures.
#[derive(Clone, Debug, PartialEq)]
pub struct Noted {
    /// Which.
    pub function: Function,
    /// Its number.
    pub id: FunctionId,
    /// Its figures over all threads.
    pub row: Row,
    /// What it calls, most time first.
    pub callees: Vec<Callee>,
    /// Lines from which it calls others are known.
    pub has_sites: bool,
    /// Lines of its file at which it was sampled: samples, and what they stand for, nanoseconds.
    pub lines: Vec<(u32, u64, f64)>,
    /// The highest line of its file that its code is of, where debug information tells.
    pub highest: Option<u32>,
}

/// What a function calls.
#[derive(Clone, Debug, PartialEq)]
pub struct Callee {
    /// Its name.
    pub name: String,
    /// How often the function calls it.
    pub calls: u64,
    /// Time of these calls, nanoseconds.
    pub total_ns: f64,
    /// From where, as far as it is known: file and line, each once.
    pub sites: Vec<(String, u32)>,
    /// Number of places in the code, of which several may be of one line.
    pub places: usize,
}

impl Wanted {
    /// A file if a function is of such, else functions.
    ///
    /// # Errors
    ///
    /// When it is no pattern either.
    pub fn of(text: &str, profile: &Profile) -> Result<Self, BadPattern> {
        let is_file = profile.functions.iter().any(|function| is_of_file(function, text));
        Ok(if is_file { Self::File(text.into()) } else { Self::Functions(Pattern::new(text)?) })
    }

    /// Functions that are wanted, of those that were called.
    pub fn functions(&self, profile: &Profile) -> Vec<FunctionId> {
        let rows = aggregate::table(profile, Sort::SelfTime);
        let of = |fits: &dyn Fn(&Function) -> bool| -> Vec<FunctionId> {
            let fits = |row: &&Row| fits(&profile.functions[row.function.0 as usize]);
            rows.iter().filter(fits).map(|row| row.function).collect()
        };
        match self {
            Self::File(path) => of(&|function| is_of_file(function, path)),
            Self::Functions(pattern) => {
                let found = pattern.among(&profile.functions);
                let ids = rows.iter().map(|row| row.function);
                ids.filter(|&function| found.has(function)).collect()
            }
        }
    }
}

/// Whether a function's source file has a path that ends with these components.
fn is_of_file(function: &Function, path: &str) -> bool {
    let wanted = path.strip_prefix("./").unwrap_or(path);
    let before = function.file.as_deref().and_then(|file| file.strip_suffix(wanted));
    !wanted.is_empty()
        && before.is_some_and(|before| {
            before.is_empty() || before.ends_with('/') || wanted.starts_with('/')
        })
}

/// These functions with their figures, in the order of files and lines. `sites` has the places from which each calls
/// others, in the order of `wanted`; nothing where that is not known. `highest` likewise the last line of its code.
pub fn annotate(
    profile: &Profile,
    wanted: &[FunctionId],
    sites: &[Option<Vec<CallSite>>],
    highest: &[Option<u32>],
) -> Vec<Noted> {
    let rows = aggregate::table(profile, Sort::SelfTime);
    let rows: HashMap<FunctionId, Row> = rows.into_iter().map(|row| (row.function, row)).collect();
    let tree = aggregate::merged_as_seen(&profile.threads);
    let callees = aggregate::callees_of_each(&tree, &profile.functions, wanted);
    let mut noted: Vec<Noted> = wanted
        .iter()
        .zip(callees)
        .enumerate()
        .filter_map(|(at, (&function, called))| {
            let row = *rows.get(&function)?;
            let sites = sites.get(at).and_then(Option::as_deref);
            let callees = called.into_iter().filter_map(|(callee, row)| {
                let name = &profile.functions[callee?.0 as usize].name;
                Some(self::callee(name, &row, sites.unwrap_or_default()))
            });
            let (function_there, lines) = lines(profile, function);
            Some(Noted {
                function: function_there,
                id: function,
                lines,
                highest: highest.get(at).copied().flatten(),
                row,
                callees: callees.collect(),
                has_sites: sites.is_some_and(|sites| !sites.is_empty()),
            })
        })
        .collect();
    let place = |noted: &Noted| (noted.function.file.clone(), noted.function.line);
    noted.sort_by_key(place);
    noted
}

/// The function, and lines of its file at which it was sampled. Where it is not known where it is defined, as of some that were inlined,
/// the lines tell.
fn lines(profile: &Profile, id: FunctionId) -> (Function, Vec<(u32, u64, f64)>) {
    let mut function = profile.functions[id.0 as usize].clone();
    let begin = profile.lines.partition_point(|line| line.function < id);
    let own = profile.lines[begin..].iter().take_while(|line| line.function == id);
    if function.file.is_none() {
        let most = own.clone().max_by_key(|line| line.samples);
        function.file = most.map(|line| line.file.to_string());
    }
    let own = own.filter(|line| function.file.as_deref() == Some(&*line.file));
    function.line = function.line.or_else(|| own.clone().map(|line| line.line).min());
    let lines = own.map(|line| (line.line, line.samples, line.self_ns)).collect();
    (function, lines)
}

fn callee(name: &str, row: &Row, sites: &[CallSite]) -> Callee {
    let calls_it = |site: &&CallSite| without_copy(&demangle(&site.callee)) == without_copy(name);
    let found: Vec<&CallSite> = sites.iter().filter(calls_it).collect();
    let place = |site: &&CallSite| {
        let location = site.location.as_ref()?;
        Some((location.file.clone(), location.line?))
    };
    let mut lines: Vec<(String, u32)> = found.iter().filter_map(place).collect();
    lines.sort();
    lines.dedup();
    let (calls, total_ns) = (row.calls, row.total.value);
    Callee { name: name.into(), calls, total_ns, sites: lines, places: found.len() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Line, Node, Thread, Time, Tree};
    use teeperf_symbols::Location;

    /// `main` in a.c calls `parse` in b.c 3 times and `find(int)` of no file twice.
    fn profile() -> Profile {
        let function = |name: &str, file: Option<&str>, line| Function {
            name: name.into(),
            file: file.map(Into::into),
            line,
            ..Function::default()
        };
        let node = |parent, function, calls, ns: f64, total: f64| Node {
            parent,
            function: FunctionId(function),
            calls,
            self_time: Time::from(ns),
            total: Time::from(total),
            extremes: None,
            spent: Default::default(),
        };
        let nodes = vec![
            node(0, 0, 0, 0.0, 60.0),
            node(0, 0, 1, 10.0, 60.0),
            node(1, 1, 3, 20.0, 20.0),
            node(1, 2, 2, 30.0, 30.0),
        ];
        Profile {
            functions: vec![
                function("main", Some("/src/a.c"), Some(9)),
                function("parse.constprop.0", Some("/src/lib/b.c"), Some(4)),
                function("ns::find(int)", None, None),
                function("never", Some("/src/a.c"), Some(1)),
            ],
            threads: vec![Thread { tree: Tree { nodes }, merged: 1, ..Thread::default() }],
            ..Profile::default()
        }
    }

    #[test]
    fn files_and_functions_are_told_apart() {
        let profile = profile();
        let named = |text: &str| {
            let wanted = Wanted::of(text, &profile).unwrap();
            let is_file = matches!(wanted, Wanted::File(_));
            (is_file, wanted.functions(&profile).iter().map(|id| id.0).collect::<Vec<_>>())
        };
        for (text, is_file, functions) in [
            ("a.c", true, &[0][..]),
            ("./a.c", true, &[0]),
            ("/src/a.c", true, &[0]),
            ("lib/b.c", true, &[1]),
            ("b/b.c", false, &[]),
            ("file:b.c", false, &[1]),
            ("main", false, &[0]),
            ("parse", false, &[1]),
            ("ns::find", false, &[2]),
            ("in", false, &[2, 0]),
            ("ma*", false, &[0]),
            ("never", false, &[]),
        ] {
            assert_eq!(named(text), (is_file, functions.to_vec()), "{text}");
        }
    }

    #[test]
    fn lines_are_those_of_the_functions_own_file() {
        let line = |function, file: &str, line, samples| Line {
            function: FunctionId(function),
            file: file.into(),
            line,
            samples,
            self_ns: 10.0 * samples as f64,
        };
        let mut profile = profile();
        profile.lines = vec![
            line(0, "/src/a.c", 10, 2),
            line(0, "/src/a.h", 3, 9),
            line(1, "/src/lib/b.c", 5, 1),
            line(2, "/src/f.h", 30, 1),
            line(2, "/src/g.h", 8, 4),
            line(2, "/src/g.h", 9, 3),
        ];
        let wanted = [FunctionId(0), FunctionId(2)];
        let noted = annotate(&profile, &wanted, &[], &[]);
        assert_eq!(noted[0].lines, [(10, 2, 20.0)]);
        // Of what was inlined the file is known by its samples alone.
        let Function { file, line, .. } = &noted[1].function;
        assert_eq!((file.as_deref(), *line), (Some("/src/g.h"), Some(8)));
        assert_eq!(noted[1].lines, [(8, 4, 40.0), (9, 3, 30.0)]);
    }

    #[test]
    fn calls_are_those_of_a_line_only_where_there_is_one() {
        let site = |callee: &str, line| CallSite {
            caller: 0,
            callee: callee.into(),
            location: Some(Location { file: "/src/a.c".into(), line: Some(line) }),
        };
        let sites = vec![
            site("parse", 12),
            site("_ZN2ns4findEi", 14),
            site("_ZN2ns4findEi", 11),
            site("other", 1),
        ];
        let noted = annotate(&profile(), &[FunctionId(0)], &[Some(sites)], &[]);
        let callees: Vec<_> = noted[0]
            .callees
            .iter()
            .map(|callee| {
                let lines: Vec<u32> = callee.sites.iter().map(|site| site.1).collect();
                (callee.name.as_str(), callee.calls, callee.total_ns, lines)
            })
            .collect();
        assert_eq!(
            callees,
            [("ns::find(int)", 2, 30.0, vec![11, 14]), ("parse.constprop.0", 3, 20.0, vec![12]),]
        );
        assert!(noted[0].has_sites && noted[0].row.calls == 1);
        assert!(!annotate(&profile(), &[FunctionId(0)], &[None], &[])[0].has_sites);
    }
}
