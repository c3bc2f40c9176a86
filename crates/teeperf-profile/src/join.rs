//! What several files have as one profile: calls, and what was sampled of each event, are summed with those of the other files.
//! Threads stay apart, each as its file has it.

use crate::combine::combine;
use crate::model::{Profile, Thread};

/// Puts together what files have, each with its name, which stands before what is said of it. Events of one name are one. What is known of the
/// run is the first file's, but for how long it took and its samples: these are summed. Nothing where there is no file.
pub fn join(files: Vec<(String, Profile)>) -> Option<Profile> {
    let mut events: Vec<Profile> = Vec::new();
    for (number, (name, mut profile)) in (0..).zip(files) {
        let beside = std::mem::take(&mut profile.beside);
        for mut profile in std::iter::once(profile).chain(beside) {
            for warning in &mut profile.health.warnings {
                *warning = format!("{name}: {warning}");
            }
            profile.threads.iter_mut().for_each(|thread| thread.file = number);
            let of = |profile: &Profile| (profile.info.event.clone(), profile.info.unit);
            match events.iter_mut().find(|known| of(known) == of(&profile)) {
                Some(known) => *known = combine(std::mem::take(known), profile),
                None => events.push(profile),
            }
        }
    }
    for profile in &mut events {
        let total = |thread: &Thread| thread.tree.total_ns();
        profile.threads.sort_by(|a, b| total(b).total_cmp(&total(a)));
        if profile.info.is_sampled() && profile.health.events > 0 {
            let all: f64 = profile.threads.iter().map(total).sum();
            profile.info.period_ns = all / profile.health.events as f64;
        }
    }
    let first = (!events.is_empty()).then(|| events.remove(0))?;
    Some(Profile { beside: events, ..first })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aggregate::Sort;
    use crate::groups::{By, groups};
    use crate::model::{Function, FunctionId, Health, Info, Node, Time, Tree};

    /// A file whose thread has been in functions of these names, one called by the other, for so long.
    fn file(event: &str, names: &[&str], self_ns: f64) -> Profile {
        let node = |parent, function, own: f64, total: f64| Node {
            parent,
            function: FunctionId(function),
            calls: u64::from(own > 0.0),
            self_time: Time::from(own),
            total: Time::from(total),
            extremes: None,
            spent: Default::default(),
        };
        let mut nodes = vec![node(0, 0, 0.0, self_ns)];
        for at in 0..names.len() as u32 {
            let own = if at + 1 == names.len() as u32 { self_ns } else { 0.0 };
            nodes.push(node(at, at, own, self_ns));
        }
        let function = |name: &&str| Function { name: (*name).into(), ..Function::default() };
        Profile {
            info: Info { event: event.into(), duration_ns: 10, ..Info::default() },
            functions: names.iter().map(function).collect(),
            threads: vec![Thread { pid: 7, events: 1, tree: Tree { nodes }, ..Thread::default() }],
            health: Health { events: 1, warnings: vec!["cut".into()], ..Health::default() },
            ..Profile::default()
        }
    }

    #[test]
    fn files_are_summed_by_function_and_event() {
        let with_beside = Profile {
            beside: vec![file("faults", &["x"], 3.0)],
            ..file("clock", &["a", "b"], 5.0)
        };
        let files = vec![
            ("one".into(), with_beside),
            ("two".into(), file("clock", &["c", "b"], 7.0)),
            ("three".into(), file("faults", &["b", "x"], 2.0)),
        ];
        let joined = join(files).unwrap();
        let rows = crate::aggregate::table(&joined, Sort::Name);
        let rows: Vec<_> = rows
            .iter()
            .map(|row| (&*joined.functions[row.function.0 as usize].name, row.self_time.value))
            .collect();
        assert_eq!(rows, [("a", 0.0), ("b", 12.0), ("c", 0.0)]);
        assert_eq!(
            (joined.threads.len(), joined.health.events, joined.info.duration_ns),
            (2, 2, 20)
        );
        // The process of one file is not that of the other with its id.
        let processes = groups(&joined, By::Process, Sort::Name);
        let processes = processes.iter().map(|group| (group.process, group.self_time.value));
        assert_eq!(processes.collect::<Vec<_>>(), [(Some(7), 7.0), (Some(7), 5.0)]);
        assert_eq!(joined.health.warnings, ["one: cut", "two: cut"]);
        assert_eq!(joined.info.period_ns, 6.0);
        let [faults] = &joined.beside[..] else { panic!("one event beside") };
        assert_eq!((faults.framed_ns(), faults.functions.len()), (5.0, 2));
        assert!(join(Vec::new()).is_none());
        // Calls are an event of their own.
        let mixed =
            vec![("a".into(), file("clock", &["a"], 1.0)), ("b".into(), file("", &["a"], 2.0))];
        let mixed = join(mixed).unwrap();
        assert_eq!((mixed.framed_ns(), mixed.beside[0].framed_ns()), (1.0, 2.0));
    }

    /// Guards: samples of the first file alone beside the time of all.
    #[test]
    fn samples_of_timers_are_those_of_all_files() {
        let of = |timer_samples, period_ns| {
            let mut file = file("", &["f"], 1e9);
            (file.info.timer_samples, file.info.period_ns) = (timer_samples, period_ns);
            file
        };
        let joined = |first, second| {
            let all = join(vec![("a".into(), first), ("b".into(), second)]).unwrap();
            (all.info.timer_samples, all.info.period_ns)
        };
        assert_eq!(joined(of(Some(0), 1e6), of(Some(300), 1e6)), (Some(300), 1e6));
        assert_eq!(joined(of(Some(100), 1e6), of(Some(300), 2e6)), (Some(400), 1.75e6));
        // Ticks of a clock have a deviation too.
        let mixed = join(vec![("a".into(), of(None, 1e5)), ("b".into(), of(Some(300), 1e6))]);
        let variance = |thread: &Thread| thread.tree.nodes[1].spent.total_variance;
        assert!(mixed.unwrap().threads.iter().any(|thread| variance(thread) == 1e14));
        assert_eq!(joined(of(Some(300), 1e6), of(None, 1e5)), (Some(300), 1e6));
        assert_eq!(joined(of(None, 1e5), of(None, 1e5)).0, None);
    }
}
