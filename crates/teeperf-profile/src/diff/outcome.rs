//! What comes of a condition: it is met, it is not, or the runs differ among themselves by more than it asks for, so that
//! nobody can tell.

use super::condition::{Clause, Condition, Kind, Met, Whose};
use super::{Change, Diff, Figure, noise};

/// See the module.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// By these.
    Met(Vec<Met>),
    /// A difference of the size that it asks for would not be seen, by these.
    Unsure(Vec<Unsure>),
    /// By nothing.
    Not,
}

/// What cannot be told.
#[derive(Clone, Debug, PartialEq)]
pub struct Unsure {
    /// Of which function; nothing where it is all of them, or any.
    pub function: Option<String>,
    /// Of which figure.
    pub kind: Kind,
    /// Within what, with 95 %, a difference is no more than what runs differ by anyway: a part where the condition asks for
    /// percent; nanoseconds, or calls.
    pub margin: f64,
    /// What the condition asks for.
    pub asked: f64,
    /// Both are parts.
    pub is_percent: bool,
}

/// What comes of a clause.
#[derive(Clone, Debug, PartialEq)]
enum Answer {
    Yes,
    No,
    Unsure(Unsure),
}

impl Condition {
    /// What comes of it.
    pub fn outcome(&self, diff: &Diff) -> Outcome {
        let met = self.met(diff);
        if !met.is_empty() {
            return Outcome::Met(met);
        }
        let is_of_any = self.clauses.iter().any(|clause| clause.whose == Whose::Any);
        let unsure = match is_of_any {
            // All that is said of any is said of the same one.
            true => diff.changes.iter().find_map(|change| self.unsure(diff, Some(change))),
            false => self.unsure(diff, None),
        };
        match unsure {
            Some(unsure) => Outcome::Unsure(unsure),
            None => Outcome::Not,
        }
    }

    /// What keeps it from being answered, where nothing answers it with no.
    fn unsure(&self, diff: &Diff, change: Option<&Change>) -> Option<Vec<Unsure>> {
        let mut found = Vec::new();
        for clause in &self.clauses {
            match clause.answer(diff, change) {
                Answer::Yes => {}
                Answer::No => return None,
                Answer::Unsure(unsure) => found.push(unsure),
            }
        }
        (!found.is_empty()).then_some(found)
    }
}

impl Clause {
    fn answer(&self, diff: &Diff, change: Option<&Change>) -> Answer {
        match (&self.whose, change) {
            (Whose::All, _) => self.answer_of(&diff.whole, diff, None, diff.whole.margin),
            (Whose::Any, Some(change)) => {
                let figure = self.figure(change);
                // A small function tells nothing of the runs: what is usual does.
                let margin = match self.kind {
                    Kind::Calls => figure.margin,
                    Kind::SelfTime | Kind::Total => usual_margin(diff) * figure.before,
                };
                self.answer_of(&figure, diff, None, margin)
            }
            (Whose::Any, None) => Answer::No,
            (Whose::Named(wanted), _) => {
                let mut answer = Answer::No;
                for change in diff.changes.iter().filter(|change| diff.is_of(change, wanted)) {
                    let figure = self.figure(change);
                    let name = Some(diff.name_of(change).to_owned());
                    match self.answer_of(&figure, diff, name, figure.margin) {
                        Answer::Yes => return Answer::Yes,
                        Answer::No => {}
                        unsure @ Answer::Unsure(_) if answer == Answer::No => answer = unsure,
                        Answer::Unsure(_) => {}
                    }
                }
                answer
            }
        }
    }

    fn answer_of(
        &self,
        figure: &Figure,
        diff: &Diff,
        function: Option<String>,
        margin: f64,
    ) -> Answer {
        if self.holds(figure, diff) {
            return Answer::Yes;
        }
        let asked = match self.is_percent {
            true => self.amount * figure.before,
            false => self.amount,
        };
        let beyond = match self.is_above {
            true => figure.difference() + margin > asked,
            false => figure.difference() - margin < asked,
        };
        // Of any change, however small, only what is more than noise is asked for.
        if !self.is_difference || self.amount == 0.0 || margin <= asked.abs() || !beyond {
            return Answer::No;
        }
        let scale = if self.is_percent { figure.before.max(f64::MIN_POSITIVE) } else { 1.0 };
        Answer::Unsure(Unsure {
            function,
            kind: self.kind,
            margin: margin / scale,
            asked: self.amount,
            is_percent: self.is_percent,
        })
    }
}

/// Within what part of a time a difference is no more than what runs usually differ by, with 95 %.
fn usual_margin(diff: &Diff) -> f64 {
    let spread = diff.spread.map_or(0.0, |spread| spread.relative);
    let part = |runs: usize| 1.0 / runs.max(1) as f64;
    let parts = part(diff.runs.before.len()) + part(diff.runs.after.len());
    noise::margin(spread * parts.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::{Presence, Run, Sides, Spread};
    use crate::model::{Function, FunctionId};

    /// `parse` takes 100 ms and differs by 20 % from run to run, `read` 10 ms, by 1 %; all together 5 %.
    fn diff(spread: f64) -> Diff {
        let figure = |ns: f64, margin: f64| Figure {
            before: ns,
            after: ns * 1.02,
            margin,
            ..Figure::default()
        };
        let change = |at, self_time, calls| Change {
            function: FunctionId(at),
            presence: Presence::Both,
            calls,
            self_time,
            total: self_time,
        };
        let same = Figure { before: 7.0, after: 7.0, ..Figure::default() };
        let calls = Figure { before: 700.0, after: 705.0, margin: 30.0, ..Figure::default() };
        let function = |name: &str| Function { name: name.into(), ..Function::default() };
        let runs = || vec![Run::default(), Run::default()];
        Diff {
            functions: vec![function("parse"), function("read")],
            changes: vec![
                change(0, figure(100e6, 20e6), same),
                change(1, figure(10e6, 1e5), calls),
            ],
            whole: figure(110e6, 5.5e6),
            runs: Sides { before: runs(), after: runs() },
            spread: Some(Spread { relative: spread, is_measured: true }),
            ..Diff::default()
        }
    }

    fn unsure(text: &str, spread: f64) -> Option<(Option<String>, f64)> {
        match Condition::parse(text).unwrap().outcome(&diff(spread)) {
            Outcome::Unsure(list) => {
                Some((list[0].function.clone(), (list[0].margin * 1e4).round() / 1e4))
            }
            Outcome::Met(met) => panic!("{text}: {met:?}"),
            Outcome::Not => None,
        }
    }

    #[test]
    fn what_would_not_be_seen_is_no_pass() {
        let parse = || Some((Some("parse".to_owned()), 0.2));
        assert_eq!(unsure("self(parse) > +5%", 0.0), parse());
        assert_eq!(unsure("self(parse) > +19%", 0.0), parse());
        assert_eq!(unsure("self(parse) > +21%", 0.0), None);
        assert_eq!(unsure("self(parse) > +30ms", 0.0), None);
        assert_eq!(unsure("self(parse) > +15ms", 0.0), Some((Some("parse".into()), 20e6)));
        assert_eq!(unsure("self(read) > +2%", 0.0), None);
        assert_eq!(unsure("total > +3%", 0.0), Some((None, 0.05)));
        assert_eq!(unsure("total < -2%", 0.0), Some((None, 0.05)));
        assert_eq!(unsure("total > +6%", 0.0), None);
        // A single figure is what it is; and of any difference at all noise is none.
        assert_eq!(unsure("self(parse) > 1s", 0.0), None);
        assert_eq!(unsure("self(parse) > +0%", 0.0), None);
        assert_eq!(unsure("calls(parse) > +1", 0.0), None);
        assert_eq!(unsure("calls(read) > +1%", 0.0), Some((Some("read".into()), 0.0429)));
    }

    #[test]
    fn of_any_function_what_runs_usually_differ_by_counts() {
        assert_eq!(unsure("any self > +10%", 0.01), None);
        assert_eq!(unsure("any self > +10%", 0.16), Some((None, 0.3136)));
        // All that is said has to be open: none takes a second.
        assert_eq!(unsure("any self > +10% and any self > 50ms", 0.16), Some((None, 0.3136)));
        assert_eq!(unsure("any self > +10% and any self > 1s", 0.16), None);
        assert_eq!(unsure("any self > +10% and total > +6%", 0.16), None);
    }
}
