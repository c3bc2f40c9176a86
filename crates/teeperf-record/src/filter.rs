//! Filters: which functions and threads are recorded, and which functions are timed by the counter, decided while
//! programs run.
//!
//! [`Rules`] are what the user asks for. A thread of its own ([`desk`]) resolves them to a map for each file
//! ([`map`], [`teeperf_wire::filter`]), hands maps to processes, and puts other rules in their place.

pub(crate) mod desk;
mod map;
mod threads;
mod unused;

use teeperf_select::{BadPattern, Pattern, Wanted};

/// Which functions and threads are recorded, and which functions are timed by the counter beside the tick. Without rules all
/// are recorded and none is timed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules(Vec<Rule>);

/// One rule. What is recorded fits one of those that say so, where there are any, and none of those that leave
/// out; functions and threads each have their own.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    leaves_out: bool,
    of: Of,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Of {
    /// These functions.
    Function { wanted: Wanted, what: What },
    /// Threads of this id or name.
    Thread(Pattern),
    /// Kinds of events, of whatever functions and threads.
    Events(Events),
}

/// Kinds of events that are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Events {
    /// Calls and returns of functions.
    pub calls: bool,
    /// What programs say of themselves by teeperf.h: named scopes, marks, counters, notes.
    pub marks: bool,
    /// Calls from one world into another.
    pub crossings: bool,
}

impl Events {
    /// Everything.
    pub const ALL: Self = Self { calls: true, marks: true, crossings: true };
    const NONE: Self = Self { calls: false, marks: false, crossings: false };
    const NAMES: [&str; 3] = ["calls", "marks", "crossings"];

    fn kinds(&mut self) -> [&mut bool; 3] {
        [&mut self.calls, &mut self.marks, &mut self.crossings]
    }
}

impl std::str::FromStr for Events {
    type Err = String;

    /// Names with commas between them, or `all`.
    fn from_str(text: &str) -> Result<Self, String> {
        if text == "all" {
            return Ok(Self::ALL);
        }
        let mut events = Self::NONE;
        for name in text.split(',') {
            let kind = Self::NAMES.iter().position(|known| *known == name.trim());
            let kind = kind.ok_or_else(|| {
                format!(
                    "{name:?} is no kind of events: calls, marks, crossings, or all; functions are chosen by a filter (--only, \
                     --exclude)"
                )
            })?;
            *events.kinds()[kind] = true;
        }
        Ok(events)
    }
}

impl std::fmt::Display for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut own = *self;
        let names =
            own.kinds().into_iter().zip(Self::NAMES).filter_map(|(is, name)| is.then_some(name));
        f.write_str(&names.collect::<Vec<_>>().join(","))
    }
}

/// What of rules can be changed while the rest stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Which functions and threads are recorded.
    Recording,
    /// Which functions are timed by the counter.
    Timing,
    /// Which kinds of events are recorded.
    Events,
}

/// What rules of functions are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// Whether they are recorded.
    Recording,
    /// Whether they are timed by the counter.
    Timing,
}

/// What a rule is about, as its text begins: whether it leaves out, and functions in which respect, or threads.
const SIGNS: [(&str, bool, Option<What>); 5] = [
    ("only ", false, Some(What::Recording)),
    ("exclude ", true, Some(What::Recording)),
    ("timed ", false, Some(What::Timing)),
    ("only-thread ", false, None),
    ("exclude-thread ", true, None),
];
/// How the rule of events begins.
const EVENTS: &str = "events ";
/// Most rules.
const MOST: usize = 256;

impl Rules {
    /// Records functions, or leaves them out.
    ///
    /// # Errors
    ///
    /// When the text is no pattern.
    pub fn function(&mut self, leaves_out: bool, text: &str) -> Result<(), BadPattern> {
        self.of_function(leaves_out, text, What::Recording)
    }

    /// Times functions, as far as they are recorded.
    ///
    /// # Errors
    ///
    /// As above.
    pub fn timed(&mut self, text: &str) -> Result<(), BadPattern> {
        self.of_function(false, text, What::Timing)
    }

    fn of_function(&mut self, leaves_out: bool, text: &str, what: What) -> Result<(), BadPattern> {
        self.0.push(Rule { leaves_out, of: Of::Function { wanted: text.parse()?, what } });
        Ok(())
    }

    /// Records threads of a name or id, or leaves them out.
    ///
    /// # Errors
    ///
    /// When that is no pattern.
    pub fn thread(&mut self, leaves_out: bool, text: &str) -> Result<(), BadPattern> {
        self.0.push(Rule { leaves_out, of: Of::Thread(text.parse()?) });
        Ok(())
    }

    /// Whether all is recorded, and nothing is timed by the counter.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether functions are timed by the counter.
    pub fn are_of_timing(&self) -> bool {
        self.0.iter().any(Rule::is_of_timing)
    }

    /// Records these kinds of events alone.
    pub fn events(&mut self, events: Events) {
        self.0.retain(|rule| rule.part() != Part::Events);
        if events != Events::ALL {
            self.0.push(Rule { leaves_out: false, of: Of::Events(events) });
        }
    }

    /// Which kinds of events are recorded.
    pub(crate) fn kinds(&self) -> Events {
        let kinds = self.0.iter().find_map(|rule| match rule.of {
            Of::Events(events) => Some(events),
            _ => None,
        });
        kinds.unwrap_or(Events::ALL)
    }

    /// These, with a part of another in place of theirs.
    pub(crate) fn with(mut self, part: Part, other: &Self) -> Self {
        self.0.retain(|rule| rule.part() != part);
        self.0.extend(other.0.iter().filter(|rule| rule.part() == part).cloned());
        self
    }

    /// From what [`Rules::lines`] made.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let mut rules = Self::default();
        for line in text.lines() {
            if let Some(events) = line.strip_prefix(EVENTS) {
                rules.events(events.parse()?);
                continue;
            }
            let sign = SIGNS.iter().find(|(sign, ..)| line.starts_with(sign));
            let Some(&(sign, leaves_out, of)) = sign else {
                return Err(format!("{line:?} is no rule of a filter"));
            };
            let text = &line[sign.len()..];
            let read = match of {
                Some(what) => rules.of_function(leaves_out, text, what),
                None => rules.thread(leaves_out, text),
            };
            read.map_err(|error| error.to_string())?;
        }
        if rules.0.len() > MOST { Err(format!("more than {MOST} rules")) } else { Ok(rules) }
    }

    /// Each as a text.
    pub(crate) fn lines(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(Rule::line)
    }

    /// Functions that are recorded, as they were written.
    pub(crate) fn functions(&self) -> Vec<String> {
        let lines = self.lines();
        lines.filter_map(|line| line.strip_prefix("only ").map(str::to_owned)).collect()
    }

    /// Whether functions or scopes are left out.
    pub(crate) fn is_of_functions(&self) -> bool {
        let is_its = |rule: &Rule| matches!(rule.of, Of::Function { what: What::Recording, .. });
        let kinds = self.kinds();
        !kinds.calls || !kinds.marks || self.0.iter().any(is_its)
    }

    /// Whether threads are.
    pub(crate) fn is_of_threads(&self) -> bool {
        self.0.iter().any(|rule| matches!(rule.of, Of::Thread(_)))
    }

    /// Whether a thread of this id and name is recorded.
    pub(crate) fn has_thread(&self, tid: u32, name: &str) -> bool {
        self.has(|of| match of {
            Of::Thread(pattern) => Some(pattern.fits_name([tid.to_string().as_str(), name])),
            Of::Function { .. } | Of::Events(_) => None,
        })
    }

    /// The rules for functions of a module.
    pub(crate) fn of_module(&self, path: &str) -> ModuleRules<'_> {
        self.of_module_and(What::Recording, path)
    }

    /// Which functions of a module are timed: those that these have.
    pub(crate) fn timing_of_module(&self, path: &str) -> ModuleRules<'_> {
        self.of_module_and(What::Timing, path)
    }

    fn of_module_and(&self, asked: What, path: &str) -> ModuleRules<'_> {
        let mut rules = ModuleRules::default();
        for rule in &self.0 {
            let Of::Function { wanted, what } = &rule.of else { continue };
            if *what != asked {
                continue;
            }
            rules.has_only |= !rule.leaves_out;
            if !wanted.is_of_module(path) {
                continue;
            }
            rules.rules.push(rule);
            let (all, some) = if rule.leaves_out {
                (&mut rules.leaves_out_all, &mut rules.exclude)
            } else {
                (&mut rules.has_all, &mut rules.only)
            };
            match wanted.function() {
                Some(name) => some.push(name),
                None => *all = true,
            }
        }
        rules
    }

    fn has(&self, fits: impl Fn(&Of) -> Option<bool>) -> bool {
        let mut only = None;
        for rule in &self.0 {
            match fits(&rule.of) {
                Some(true) if rule.leaves_out => return false,
                Some(fits) if !rule.leaves_out => only = Some(only.unwrap_or(false) || fits),
                _ => {}
            }
        }
        only.unwrap_or(true)
    }
}

impl Rule {
    fn line(&self) -> String {
        let (of, text) = match &self.of {
            Of::Function { wanted, what } => (Some(*what), wanted.to_string()),
            Of::Thread(pattern) => (None, pattern.to_string()),
            Of::Events(events) => return format!("{EVENTS}{events}"),
        };
        let is_its = |sign: &&(&str, bool, Option<What>)| (sign.1, sign.2) == (self.leaves_out, of);
        SIGNS.iter().find(is_its).map_or("", |sign| sign.0).to_owned() + &text
    }

    fn is_of_timing(&self) -> bool {
        self.part() == Part::Timing
    }

    fn part(&self) -> Part {
        match self.of {
            Of::Function { what: What::Timing, .. } => Part::Timing,
            Of::Events(_) => Part::Events,
            Of::Function { .. } | Of::Thread(_) => Part::Recording,
        }
    }
}

/// What rules say of the functions of one module.
#[derive(Debug, Default)]
pub(crate) struct ModuleRules<'a> {
    /// Those that are for it.
    rules: Vec<&'a Rule>,
    /// There are rules for what is recorded, of this module or others.
    has_only: bool,
    has_all: bool,
    leaves_out_all: bool,
    only: Vec<&'a Pattern>,
    exclude: Vec<&'a Pattern>,
}

impl ModuleRules<'_> {
    /// Whether functions are recorded of which the rules say nothing, such as those without a name.
    pub(crate) fn has_others(&self) -> bool {
        !self.leaves_out_all && (self.has_all || !self.has_only)
    }

    /// Whether no rule is for it.
    pub(crate) fn are_none(&self) -> bool {
        self.rules.is_empty()
    }

    /// Whether a rule is for it.
    fn applies(&self, rule: &Rule) -> bool {
        self.rules.iter().any(|own| std::ptr::eq(*own, rule))
    }

    /// Whether no name makes a difference.
    pub(crate) fn is_of_no_name(&self) -> bool {
        self.leaves_out_all || self.exclude.is_empty() && (self.has_all || self.only.is_empty())
    }

    /// Whether a function is recorded that has these names.
    pub(crate) fn has(&self, names: &[&str]) -> bool {
        let fits = |pattern: &&Pattern| pattern.fits_name(names.iter().copied());
        let any = |patterns: &[&Pattern]| patterns.iter().any(fits);
        !self.leaves_out_all
            && (self.has_all || !self.has_only || any(&self.only))
            && !any(&self.exclude)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(lines: &[&str]) -> Rules {
        Rules::read(&lines.join("\n")).unwrap()
    }

    fn has(lines: &[&str], path: &str, name: &str) -> bool {
        let rules = rules(lines);
        let rules = rules.of_module(path);
        let has = rules.has(&[name]);
        assert!(!rules.is_of_no_name() || has == rules.has_others());
        has
    }

    #[test]
    fn rules_come_back_as_text() {
        let lines = [
            "only parse*",
            "exclude /x@y/",
            "only @libz*",
            "only a@b",
            "timed g@libz*",
            "only-thread w",
            "exclude-thread 7",
        ];
        assert_eq!(rules(&lines).lines().collect::<Vec<_>>(), lines);
        assert!(Rules::read("onlyx").is_err() && Rules::read("only ").is_err());
        assert!(Rules::read(&"only a\n".repeat(MOST + 1)).is_err());
    }

    #[test]
    fn functions_by_name_and_module() {
        assert!(has(&[], "/bin/a", "f"));
        assert!(has(&["only f"], "/bin/a", "f") && !has(&["only f"], "/bin/a", "g"));
        assert!(!has(&["exclude f"], "/bin/a", "f") && has(&["exclude f"], "/bin/a", "g"));
        assert!(!has(&["only f*", "exclude fg"], "/bin/a", "fg"));
        assert!(has(&["only f", "only g"], "/bin/a", "g"));
        let module = ["only @libz.so*", "only main"];
        assert!(has(&module, "/lib/libz.so.1", "inflate") && has(&module, "/bin/a", "main"));
        assert!(!has(&module, "/bin/a", "inflate"));
        assert!(!has(&["exclude inflate@libz*"], "/lib/libz.so", "inflate"));
        assert!(has(&["exclude inflate@libz*"], "/bin/a", "inflate"));
        assert!(!has(&["exclude @/usr/*"], "/usr/lib/x.so", "f"));
    }

    #[test]
    fn what_is_timed_is_apart_from_what_is_recorded() {
        let both = rules(&["exclude f", "timed f*", "timed @libz*"]);
        assert!(!both.of_module("/bin/a").has(&["f"]) && both.of_module("/bin/a").has_others());
        let timing = both.timing_of_module("/bin/a");
        assert!(timing.has(&["f"]) && timing.has(&["fg"]) && !timing.has(&["g"]));
        assert!(both.timing_of_module("/lib/libz.so").has(&["g"]));
        assert!(both.are_of_timing() && !rules(&["only f"]).are_of_timing());
        let lines = |rules: Rules| rules.lines().collect::<Vec<_>>();
        let timed = rules(&["only g"]).with(Part::Timing, &both);
        assert_eq!(lines(timed), ["only g", "timed f*", "timed @libz*"]);
        assert_eq!(lines(both.with(Part::Timing, &rules(&["only g"]))), ["exclude f"]);
    }

    #[test]
    fn kinds_of_events_are_apart_too() {
        let both = rules(&["only f", "events marks,crossings"]);
        assert_eq!(both.kinds(), Events { calls: false, ..Events::ALL });
        assert!(both.is_of_functions() && both.of_module("/bin/a").has(&["f"]));
        let lines = |rules: Rules| rules.lines().collect::<Vec<_>>();
        assert_eq!(lines(both.clone()), ["only f", "events marks,crossings"]);
        assert_eq!(lines(both.clone().with(Part::Events, &rules(&[]))), ["only f"]);
        assert_eq!(lines(both.with(Part::Recording, &rules(&[]))), ["events marks,crossings"]);
        assert_eq!(lines(rules(&["events calls,marks,crossings"])), [""; 0]);
        assert!(!rules(&["events calls,marks"]).is_of_functions());
        assert!(Rules::read("events colours").is_err() && Rules::read("events ").is_err());
    }

    #[test]
    fn threads_by_id_and_name() {
        let has = |lines: &[&str], tid, name| rules(lines).has_thread(tid, name);
        assert!(has(&["only f"], 1, "x"));
        assert!(has(&["only-thread w*"], 1, "worker") && !has(&["only-thread w*"], 1, "main"));
        assert!(has(&["only-thread 7"], 7, "x") && !has(&["exclude-thread 7"], 7, "x"));
    }
}
