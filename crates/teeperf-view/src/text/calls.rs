//! Who called whom, where a profile has no call paths: for each function of the table its callers and
//! what it called, with estimates of the time.

use std::collections::HashMap;
use std::io::{self, Write};

use teeperf_profile::aggregate;
use teeperf_profile::model::{Arc, CallGraph, Cycle, FunctionId, Profile, Vertex};

use super::{Options, heading};
use crate::style::{Paint, Style};
use crate::{names, units};

/// Most callers, and most callees, of one function that are printed.
const MOST: usize = 10;
/// Columns before a name: indentation, a time, two counts with `of` between them, and `from`.
const BEFORE_NAME: usize = 4 + units::TIME_COLUMNS + 2 + 21 + 2 + 5;

pub(super) fn write(
    profile: &Profile,
    graph: &CallGraph,
    options: &Options,
    style: &Style,
    out: &mut impl Write,
) -> io::Result<()> {
    heading(style, "Callers and callees: times are estimates", out)?;
    let mut callers: HashMap<FunctionId, Vec<&Arc>> = HashMap::new();
    for arc in &graph.arcs {
        callers.entry(arc.callee).or_default().push(arc);
    }
    let printer = Printer { profile, graph, callers, style };
    for (number, cycle) in graph.cycles.iter().enumerate().take(options.limit) {
        printer.cycle(number, cycle, out)?;
    }
    let rows = aggregate::table(profile, options.sort);
    for row in rows.iter().take(options.limit) {
        if let Some(vertex) = graph.vertex(row.function) {
            printer.function(vertex, out)?;
        }
    }
    Ok(())
}

struct Printer<'a> {
    profile: &'a Profile,
    graph: &'a CallGraph,
    callers: HashMap<FunctionId, Vec<&'a Arc>>,
    style: &'a Style,
}

impl Printer<'_> {
    fn cycle(&self, number: usize, cycle: &Cycle, out: &mut impl Write) -> io::Result<()> {
        let members: Vec<String> =
            cycle.members.iter().take(MOST).map(|&member| self.name(Some(member))).collect();
        let more = cycle.members.len() - members.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let figures = format!(
            "cycle {}: {} in {}, {} among {}{more}",
            number + 1,
            units::time_inline(self.profile.info.unit, cycle.total.value),
            units::counted(cycle.calls, "call"),
            units::count(cycle.inner_calls),
            members.join(", "),
        );
        writeln!(out, "{}", names::cut_middle(&figures, self.style.columns()))
    }

    fn function(&self, vertex: &Vertex, out: &mut impl Write) -> io::Result<()> {
        let calls = match (vertex.calls, vertex.own_calls) {
            (0, _) => ", calls not counted".to_owned(),
            (calls, 0) => format!(" in {}", units::counted(calls, "call")),
            (calls, own) => {
                let own = units::count(own);
                format!(" in {}, {own} of them by itself", units::counted(calls, "call"))
            }
        };
        let figures =
            format!(": {}{calls}", units::time_inline(self.profile.info.unit, vertex.total.value));
        let room = self.style.columns().saturating_sub(figures.len()).max(20);
        writeln!(out, "{}{figures}", names::fit(&self.name(Some(vertex.function)), room))?;
        let by_others = |arc: &&Arc| arc.caller != Some(arc.callee);
        let callers = self.callers.get(&vertex.function).into_iter().flatten().copied();
        self.arcs("from", callers.filter(by_others).collect(), |arc| arc.caller, out)?;
        let callees = self.graph.callees(vertex.function).iter();
        self.arcs("to", callees.filter(by_others).collect(), |arc| Some(arc.callee), out)
    }

    fn arcs(
        &self,
        word: &str,
        mut arcs: Vec<&Arc>,
        other: impl Fn(&Arc) -> Option<FunctionId>,
        out: &mut impl Write,
    ) -> io::Result<()> {
        arcs.sort_by(|a, b| b.total.total_cmp(&a.total).then(b.calls.cmp(&a.calls)));
        let room = self.style.columns().saturating_sub(BEFORE_NAME).max(20);
        for arc in arcs.iter().take(MOST) {
            let time = if self.is_within_a_cycle(arc) {
                " ".repeat(units::TIME_COLUMNS)
            } else {
                units::time(self.profile.info.unit, arc.total)
            };
            let calls = format!("{} of {}", units::count(arc.calls), self.calls_of(arc));
            let name = names::fit(&self.name(other(arc)), room);
            writeln!(out, "    {time}  {calls:>21}  {word:<4} {name}")?;
        }
        let more = arcs.len().saturating_sub(MOST);
        if more > 0 {
            let text = format!("    … {word} {} more", units::count(more as u64));
            writeln!(out, "{}", self.style.paint(Paint::Faint, text))?;
        }
        Ok(())
    }

    /// What an arc's share is of: calls of the callee by others, or of its cycle from outside; calls within
    /// a cycle are a part of the callee's.
    fn calls_of(&self, arc: &Arc) -> String {
        let Some(callee) = self.graph.vertex(arc.callee) else { return String::new() };
        let calls = match callee.cycle {
            Some(cycle) if !self.is_within_a_cycle(arc) => self.graph.cycles[cycle as usize].calls,
            _ => callee.calls - callee.own_calls,
        };
        units::count(calls)
    }

    fn is_within_a_cycle(&self, arc: &Arc) -> bool {
        let cycle = |function| self.graph.vertex(function).and_then(|vertex| vertex.cycle);
        arc.caller
            .is_some_and(|caller| cycle(caller).is_some() && cycle(caller) == cycle(arc.callee))
    }

    /// A function's name, with the cycle it belongs to.
    fn name(&self, function: Option<FunctionId>) -> String {
        let Some(function) = function else { return "nobody known".into() };
        let found = self.profile.functions.get(function.0 as usize);
        let name = names::printable(found.map_or("[unknown]", |found| &found.name));
        match self.graph.vertex(function).and_then(|vertex| vertex.cycle) {
            Some(cycle) => format!("{name} <cycle {}>", cycle + 1),
            None => name,
        }
    }
}
