//! Numbers as people read them: times with the unit that fits, counts with separators,
//! shares in percent. Every time is in the profile's unit on the way in.

use teeperf_profile::model::{Info, Time, Unit};

/// Columns of [`time`]: five of number, a space, two of unit.
pub(crate) const TIME_COLUMNS: usize = 8;

/// A time in the unit that fits it, always [`TIME_COLUMNS`] wide up to a day, with the
/// units below one another: `"12.34 ms"`, `"950.0 µs"`, `"1.234 s "`; counts likewise: `"12.34 M "`.
pub(crate) fn time(unit: Unit, time: f64) -> String {
    let (number, unit) = scaled(unit, time);
    format!("{number:>5} {unit:<2}")
}

/// A time for running text: `"12.34 ms"`, `"1.234 s"`, `"12.34 M counts"`.
pub(crate) fn time_inline(unit: Unit, time: f64) -> String {
    let (number, scale) = scaled(unit, time);
    format!("{number} {}", word(unit, scale))
}

/// What programs know the unit by.
pub(crate) fn name(unit: Unit) -> &'static str {
    match unit {
        Unit::Nanoseconds => "ns",
        Unit::Counts => "counts",
    }
}

/// A unit in running text.
fn word(unit: Unit, scale: &str) -> String {
    match unit {
        Unit::Nanoseconds => scale.into(),
        Unit::Counts if scale.is_empty() => "counts".into(),
        Unit::Counts => format!("{scale} counts"),
    }
}

/// An interval for running text, in one unit where both ends have the same:
/// `"1.2 to 3.4 ms"`.
pub(crate) fn interval(unit: Unit, time: &Time) -> String {
    let (low, low_scale) = scaled(unit, time.low);
    let (high, high_scale) = scaled(unit, time.high);
    if low_scale == high_scale {
        format!("{low} to {high} {}", word(unit, high_scale))
    } else {
        format!("{low} {} to {high} {}", word(unit, low_scale), word(unit, high_scale))
    }
}

/// Four significant digits and the unit. Rounding comes before the choice of the unit, so
/// that 999.96 µs is 1.000 ms and never "1000.0 µs".
fn scaled(unit: Unit, time: f64) -> (String, &'static str) {
    let scales: &[(&str, f64)] = match unit {
        Unit::Nanoseconds => &[("ns", 1.0), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)],
        Unit::Counts => &[("", 1.0), ("k", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12)],
    };
    let least = scales.first().map_or("", |&(scale, _)| scale);
    if !time.is_finite() || time <= 0.0 {
        return ("0".into(), least);
    }
    let fitting = scales.iter().find(|(_, size)| time / size < 999.95).or(scales.last());
    fitting.map_or((digits(time), least), |&(scale, size)| (digits(time / size), scale))
}

fn digits(value: f64) -> String {
    match value {
        v if v < 9.9995 => format!("{v:.3}"),
        v if v < 99.995 => format!("{v:.2}"),
        v if v < 999.95 => format!("{v:.1}"),
        v => format!("{v:.0}"),
    }
}

/// A count with a comma every three digits.
pub(crate) fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A count and its noun: `"1 thread"`, `"2,000 threads"`.
pub(crate) fn counted(n: u64, noun: &str) -> String {
    format!("{} {noun}{}", count(n), if n == 1 { "" } else { "s" })
}

/// `part` of `whole` between 0 and 1; 0 when there is nothing to be part of.
pub(crate) fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 && part.is_finite() { (part / whole).clamp(0.0, 1.0) } else { 0.0 }
}

/// A share as percent, six columns wide: `"  0.12"`, `"100.00"`.
pub(crate) fn percent(share: f64) -> String {
    format!("{:>6.2}", share * 100.0)
}

/// A share as percent for running text: `"12.3 %"`, and `"0.0012 %"` for what is small.
pub(crate) fn percent_inline(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        p if p <= 0.0 => "0 %".into(),
        p if p < 0.01 => format!("{p:.4} %"),
        p if p < 1.0 => format!("{p:.2} %"),
        p => format!("{p:.1} %"),
    }
}

/// What a column of calls is called.
pub(crate) fn calls_head(info: &Info) -> &'static str {
    if info.is_sampled() { "SAMPLES" } else { "CALLS" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_take_the_unit_that_fits() {
        for (ns, expected) in [
            (0.0, "    0 ns"),
            (-5.0, "    0 ns"),
            (f64::NAN, "    0 ns"),
            (3.2, "3.200 ns"),
            (42.0, "42.00 ns"),
            (999.94, "999.9 ns"),
            (999.96, "1.000 µs"),
            (1_500.0, "1.500 µs"),
            (12_345_678.0, "12.35 ms"),
            (999_960_000.0, "1.000 s "),
            (3.07e9, "3.070 s "),
            (86_399e9, "86399 s "),
        ] {
            assert_eq!(time(Unit::Nanoseconds, ns), expected);
            assert_eq!(time(Unit::Nanoseconds, ns).chars().count(), TIME_COLUMNS);
        }
    }

    #[test]
    fn intervals_share_a_unit_where_they_can() {
        let of = |low, high| interval(Unit::Nanoseconds, &Time { value: 0.0, low, high });
        assert_eq!(of(1_000.0, 2_500.0), "1.000 to 2.500 µs");
        assert_eq!(of(500.0, 2_500.0), "500.0 ns to 2.500 µs");
    }

    #[test]
    fn counts_of_a_clock_are_no_times() {
        for (counts, column, inline) in [
            (0.0, "    0   ", "0 counts"),
            (42.0, "42.00   ", "42.00 counts"),
            (999.96, "1.000 k ", "1.000 k counts"),
            (12_345_678.0, "12.35 M ", "12.35 M counts"),
            (3e15, " 3000 T ", "3000 T counts"),
        ] {
            assert_eq!(time(Unit::Counts, counts), column);
            assert_eq!(time_inline(Unit::Counts, counts), inline);
        }
        let of = |low, high| interval(Unit::Counts, &Time { value: 0.0, low, high });
        assert_eq!(of(1.0, 2.0), "1.000 to 2.000 counts");
        assert_eq!(of(500.0, 2_500.0), "500.0 counts to 2.500 k counts");
    }

    #[test]
    fn counts_are_grouped() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_000), "1,000");
        assert_eq!(count(1_033_000_000), "1,033,000,000");
        assert_eq!(count(u64::MAX), "18,446,744,073,709,551,615");
        assert_eq!(counted(1, "thread"), "1 thread");
        assert_eq!(counted(0, "thread"), "0 threads");
    }

    #[test]
    fn shares_never_divide_by_nothing() {
        assert_eq!(share(1.0, 0.0), 0.0);
        assert_eq!(share(3.0, 2.0), 1.0);
        assert_eq!(percent(0.5), " 50.00");
        assert_eq!(percent_inline(0.000_012), "0.0012 %");
    }
}
