//! The result of a figure: rows with a limit and what was reached, and how they are shown
//! on the terminal and in docs/performance.md.

use serde::{Deserialize, Serialize};

/// What a row must keep.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Limit {
    /// Reached must not be above.
    AtMost(f64),
    /// Reached must not be below.
    AtLeast(f64),
    /// Only told.
    Told,
}

/// One line of the table.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Row {
    /// Name within its figure, for bench/reasons.md.
    pub(crate) id: String,
    /// What was measured.
    pub(crate) what: String,
    /// Our figures.
    pub(crate) ours: String,
    /// Figures of what ran beside it; empty when there is nothing.
    pub(crate) beside: String,
    /// What must be kept.
    pub(crate) limit: Limit,
    /// What was reached; `None` when it could not be measured here.
    pub(crate) reached: Option<f64>,
    /// Unit of limit and reached, such as `×` or `bytes`.
    pub(crate) unit: String,
}

impl Row {
    /// A row with nothing beside it and no limit.
    pub(crate) fn new(id: &str, what: &str, ours: String) -> Self {
        Self {
            id: id.into(),
            what: what.into(),
            ours,
            beside: String::new(),
            limit: Limit::Told,
            reached: None,
            unit: "×".into(),
        }
    }

    /// Adds what ran beside it.
    pub(crate) fn beside(self, beside: String) -> Self {
        Self { beside, ..self }
    }

    /// Adds the limit and what was reached.
    pub(crate) fn limit(self, limit: Limit, reached: Option<f64>, unit: &str) -> Self {
        Self { limit, reached, unit: unit.into(), ..self }
    }

    /// `yes`, `no`, or why it is neither.
    pub(crate) fn verdict(&self) -> &'static str {
        match (self.limit, self.reached) {
            (Limit::Told, _) => "–",
            (_, None) => "not measured",
            (Limit::AtMost(most), Some(reached)) if reached <= most => "yes",
            (Limit::AtLeast(least), Some(reached)) if reached >= least => "yes",
            _ => "**no**",
        }
    }

    /// The row's cells: what, ours, beside, must be, reached, met.
    pub(crate) fn cells(&self) -> [String; 6] {
        let unit = if self.unit == "×" { " ×".into() } else { format!(" {}", self.unit) };
        let must = match self.limit {
            Limit::AtMost(most) => format!("≤ {most}{unit}"),
            Limit::AtLeast(least) => format!("≥ {least}{unit}"),
            Limit::Told => String::new(),
        };
        let reached = self.reached.map(|value| digits(value) + &unit).unwrap_or_default();
        let texts = [&self.what, &self.ours, &self.beside].map(|text| text.replace('|', "/"));
        let [what, ours, beside] = texts;
        [what, ours, beside, must, reached, self.verdict().into()]
    }
}

/// Headings of [`Row::cells`].
pub(crate) const HEADINGS: [&str; 6] = ["what", "ours", "beside it", "must be", "reached", "met"];

/// A table in Markdown.
pub(crate) fn markdown(rows: &[Row]) -> String {
    let mut text = format!("| {} |\n|{}\n", HEADINGS.join(" | "), " --- |".repeat(HEADINGS.len()));
    for row in rows {
        text += &format!("| {} |\n", row.cells().join(" | "));
    }
    text
}

/// Three significant digits, as a person would write them.
pub(crate) fn digits(value: f64) -> String {
    let magnitude = value.abs();
    match magnitude {
        _ if magnitude == 0.0 => "0".into(),
        _ if magnitude >= 100.0 => format!("{value:.0}"),
        _ if magnitude >= 10.0 => format!("{value:.1}"),
        _ if magnitude >= 0.1 => format!("{value:.2}"),
        _ if magnitude >= 0.01 => format!("{value:.3}"),
        _ => format!("{value:.4}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts() {
        let row = Row::new("a", "a", String::new());
        assert_eq!(row.verdict(), "–");
        let judged = |limit, reached| row.clone().limit(limit, reached, "×").verdict();
        assert_eq!(judged(Limit::AtMost(1.2), Some(1.2)), "yes");
        assert_eq!(judged(Limit::AtMost(1.2), Some(1.21)), "**no**");
        assert_eq!(judged(Limit::AtLeast(1.2), Some(1.19)), "**no**");
        assert_eq!(judged(Limit::AtLeast(1.2), None), "not measured");
        assert_eq!(judged(Limit::AtMost(1.2), Some(f64::NAN)), "**no**");
    }

    #[test]
    fn table_has_one_line_for_each_row() {
        let row = Row::new("a", "x|y", "1 s".into()).limit(Limit::AtMost(2.0), Some(0.056), "s");
        let text = markdown(&[row]);
        assert_eq!(text.lines().count(), 3);
        assert!(text.ends_with("| x/y | 1 s |  | ≤ 2 s | 0.056 s | yes |\n"), "{text}");
    }
}
