//! Rules that have fitted nothing yet, so that a name that is not written as it should be is said.

use super::{ModuleRules, Of, Rule, Rules};
use teeperf_select::Pattern;

/// See the module. Of rules for functions alone: threads come and go.
#[derive(Debug)]
pub(super) struct Unused<'a>(Vec<&'a Rule>);

impl<'a> Unused<'a> {
    /// All rules of functions.
    pub(super) fn of(rules: &'a Rules) -> Self {
        let of_functions = |rule: &&Rule| matches!(rule.of, Of::Function { .. });
        Self(rules.0.iter().filter(of_functions).collect())
    }

    /// Those of them that are written so.
    pub(super) fn only(mut self, lines: &[String]) -> Self {
        self.0.retain(|rule| lines.contains(&rule.line()));
        self
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// As they were written.
    pub(super) fn lines(&self) -> Vec<String> {
        self.0.iter().map(|rule| rule.line()).collect()
    }

    /// There is a module for which these rules are.
    pub(super) fn see_module(&mut self, module: &ModuleRules<'_>) {
        self.0.retain(|rule| {
            let is_whole =
                matches!(&rule.of, Of::Function { wanted, .. } if wanted.function().is_none());
            !(is_whole && module.applies(rule))
        });
    }

    /// There is a function of these names in it.
    pub(super) fn see(&mut self, module: &ModuleRules<'_>, names: &[&str]) {
        self.0.retain(|rule| match &rule.of {
            Of::Function { wanted, .. } => {
                let fits = |name: &Pattern| name.fits_name(names.iter().copied());
                !(wanted.function().is_some_and(fits) && module.applies(rule))
            }
            Of::Thread(_) | Of::Events(_) => true,
        });
    }
}
