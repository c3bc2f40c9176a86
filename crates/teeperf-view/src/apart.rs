//! Functions of one name told apart: by their module, else by where they are defined.

use std::collections::HashMap;

use teeperf_profile::model::{Function, FunctionId};

use crate::names;

/// What tells functions apart that have others of their name beside them.
#[derive(Debug, Default)]
pub(crate) struct Apart(HashMap<u32, String>);

impl Apart {
    /// Of these functions.
    pub(crate) fn of(functions: &[Function]) -> Self {
        let mut by_name: HashMap<&str, Vec<u32>> = HashMap::new();
        for (function, at) in functions.iter().zip(0..) {
            by_name.entry(&function.name).or_default().push(at);
        }
        let mut out = HashMap::new();
        for same in by_name.into_values().filter(|same| same.len() > 1) {
            let known = |at: u32| &functions[at as usize];
            let of_module =
                |module: &str| same.iter().filter(|&&at| known(at).module == module).count();
            for &at in &same {
                let function = known(at);
                let is_alone = of_module(&function.module) == 1 && !function.module.is_empty();
                let what = if is_alone { function.module.clone() } else { place(function) };
                if !what.is_empty() {
                    out.insert(at, what);
                }
            }
        }
        Self(out)
    }

    /// The name in so many columns, with what tells it apart behind it.
    pub(crate) fn fit(&self, function: FunctionId, name: &str, width: usize) -> String {
        let Some(what) = self.0.get(&function.0) else { return names::fit(name, width) };
        let what = names::cut_middle(&names::printable(what), (width / 2).max(8));
        let taken = names::columns(&what) + 3;
        format!("{} ({what})", names::fit(name, width.saturating_sub(taken).max(4)))
    }
}

/// Where a function is defined, or its code stands.
fn place(function: &Function) -> String {
    let file = function.file.as_deref().map(|file| file.rsplit('/').next().unwrap_or(file));
    match (file, function.line, &function.place) {
        (Some(file), Some(line), _) => format!("{file}:{line}"),
        (_, _, Some(place)) => format!("{}+0x{:x}", function.module, place.address),
        _ => function.module.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_tell_first_then_files() {
        let function = |name: &str, module: &str, file: Option<&str>| Function {
            name: name.into(),
            module: module.into(),
            file: file.map(Into::into),
            line: file.map(|_| 7),
            ..Function::default()
        };
        let all = [
            function("parse", "liba.so", None),
            function("parse", "libb.so", Some("/x/b.c")),
            function("parse", "libb.so", Some("/x/c.c")),
            function("main", "program", None),
        ];
        let apart = Apart::of(&all);
        let fit = |at: u32, width| apart.fit(FunctionId(at), &all[at as usize].name, width);
        assert_eq!(
            [0, 1, 2, 3].map(|at| fit(at, 30)),
            ["parse (liba.so)", "parse (b.c:7)", "parse (c.c:7)", "main"]
        );
        assert!(names::columns(&fit(0, 16)) <= 16, "{}", fit(0, 16));
    }
}
