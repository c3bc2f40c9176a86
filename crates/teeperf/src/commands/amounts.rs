//! Amounts as users type them: `2G`, `500MB`, `30s`, `1.5 ms`.

use std::time::Duration;
use teeperf_edit::rotate::{self, Keep};
use teeperf_record::Period;

/// Bytes: a number and `k`, `M`, `G` or `T` (thousands), with or without `B`; `KiB` and so on
/// (of 1,024).
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text)?;
    let (letter, rest) = match unit.chars().next() {
        Some(letter) => (letter.to_ascii_lowercase(), &unit[letter.len_utf8()..]),
        None => ('b', ""),
    };
    let base: f64 = match rest {
        "" | "B" | "b" => 1000.0,
        "iB" | "i" => 1024.0,
        _ => return Err(format!("unknown unit {unit:?}: k, M, G, T, or KiB, MiB, GiB, TiB")),
    };
    let power = match letter {
        'b' if rest.is_empty() => 0,
        'k' => 1,
        'm' => 2,
        'g' => 3,
        't' => 4,
        _ => return Err(format!("unknown unit {unit:?}: k, M, G, T, or KiB, MiB, GiB, TiB")),
    };
    let value = number * base.powi(power);
    if value < 1.0 || value > u64::MAX as f64 {
        return Err("out of range".into());
    }
    Ok(value as u64)
}

/// How much of a recording is kept: a size, such as `100M`, or a time, such as `10m`.
pub(crate) fn rotation(text: &str) -> Result<Keep, String> {
    let is_time = ["s", "m", "min", "h"].iter().any(|unit| {
        text.strip_suffix(unit).is_some_and(|number| {
            number.trim_end().ends_with(|last: char| last.is_ascii_digit() || last == '.')
        })
    });
    if is_time {
        let time = time(text)?;
        return match time >= rotate::LEAST_TIME {
            true => Ok(Keep::Time(time)),
            false => Err("it is a second at least".into()),
        };
    }
    match bytes(text)? {
        kept if kept >= rotate::LEAST_BYTES => Ok(Keep::Bytes(kept)),
        _ => Err("it is 4M at least; a time has its unit: s, m or h".into()),
    }
}

/// How often a second: a number and `k`, `M` or `G`, with or without `Hz`.
pub(crate) fn frequency(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text)?;
    let scale = match unit.strip_suffix("Hz").unwrap_or(unit) {
        "" => 1.0,
        "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        _ => return Err(format!("unknown unit {unit:?}: Hz, kHz, MHz or GHz")),
    };
    let value = number * scale;
    // Slower ones time nothing, and there are none that are faster.
    if (1e3..=1e12).contains(&value) {
        Ok(value as u64)
    } else {
        Err("a counter counts 1 kHz at least and 1000 GHz at most".into())
    }
}

/// An address or a distance of addresses: `0x` and hexadecimal digits, or decimal ones.
pub(crate) fn address(text: &str) -> Result<u64, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| "no address: such as 0x40000000".into())
}

/// A length of time: a number and `ns`, `us`, `ms`, `s`, `m` or `h`; seconds without a unit.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    let (number, unit) = split(text)?;
    let seconds = match unit {
        "ns" => 1e-9,
        "us" | "µs" | "μs" => 1e-6,
        "ms" => 1e-3,
        "s" | "" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(format!("unknown unit {unit:?}: ns, us, ms, s, m or h")),
    };
    match Duration::try_from_secs_f64(number * seconds) {
        Ok(time) if !time.is_zero() => Ok(time),
        _ => Err("out of range".into()),
    }
}

/// A time of the clock on the wall, UTC, such as `2026-11-23T22:03:13.5Z` (RFC 3339), as nanoseconds since 1970; nothing
/// where the text is no date.
pub(crate) fn wall(text: &str) -> Option<Result<u64, String>> {
    let is_date = text.len() >= 10 && text.as_bytes()[4] == b'-' && text.as_bytes()[7] == b'-';
    is_date.then(|| match humantime::parse_rfc3339_weak(text) {
        Ok(time) => match time.duration_since(std::time::UNIX_EPOCH) {
            Ok(since) => u64::try_from(since.as_nanos()).map_err(|_| "out of range".into()),
            Err(_) => Err("out of range".into()),
        },
        Err(_) => Err("no time: such as 2026-11-23T22:03:13Z, in UTC".into()),
    })
}

/// A period of the tick: a time with its unit that a ticker can keep to.
pub(crate) fn period(text: &str) -> Result<Duration, String> {
    if text.ends_with(|last: char| last.is_ascii_digit()) {
        return Err("the unit is missing: 100us, 1ms".into());
    }
    let wanted = time(text)?;
    if !(Period::SHORTEST..=Period::LONGEST).contains(&wanted) {
        return Err("a tick comes every 10us to 100ms".into());
    }
    Ok(wanted)
}

/// A part of a whole: `90%`, or `0.9`.
pub(crate) fn part(text: &str) -> Result<f64, String> {
    let (number, scale) = match text.strip_suffix('%') {
        Some(number) => (number.trim_end(), 100.0),
        None => (text, 1.0),
    };
    let part = number.parse::<f64>().map(|number| number / scale);
    part.ok()
        .filter(|part| (0.0..=1.0).contains(part))
        .ok_or_else(|| "not from 0% to 100%, such as 90%".into())
}

fn split(text: &str) -> Result<(f64, &str), String> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number = text[..end].parse().map_err(|_| "not a number".to_owned())?;
    Ok((number, text[end..].trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_have_a_unit_and_bounds() {
        assert_eq!(period("100us"), Ok(Duration::from_micros(100)));
        for text in ["5", "5ns", "5us", "1h", "", "us", "0ms"] {
            assert!(period(text).is_err(), "{text}");
        }
    }

    #[test]
    fn bytes_are_read() {
        for (text, value) in [
            ("1", 1),
            ("2k", 2_000),
            ("2KB", 2_000),
            ("1.5M", 1_500_000),
            ("2G", 2_000_000_000),
            ("1GiB", 1 << 30),
            ("3 MiB", 3 << 20),
            ("7b", 7),
        ] {
            assert_eq!(bytes(text), Ok(value), "{text}");
        }
        for text in ["", "G", "-1", "1x", "0", "1Gx", "1e3", "99999999999T", "."] {
            assert!(bytes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn frequencies_are_read() {
        for (text, value) in [
            ("10000000", 10_000_000),
            ("10M", 10_000_000),
            ("62.5 MHz", 62_500_000),
            ("32768Hz", 32_768),
            ("1GHz", 1_000_000_000),
        ] {
            assert_eq!(frequency(text), Ok(value), "{text}");
        }
        for text in ["", "0", "1", "10m", "Hz", "10MHzz", "2000GHz", "-1M", "1e9"] {
            assert!(frequency(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_kept_is_a_size_or_a_time() {
        assert_eq!(rotation("100M"), Ok(Keep::Bytes(100_000_000)));
        assert_eq!(rotation("10m"), Ok(Keep::Time(Duration::from_secs(600))));
        assert_eq!(rotation("90 s"), Ok(Keep::Time(Duration::from_secs(90))));
        for text in ["", "100", "1k", "0.1s", "10x"] {
            assert!(rotation(text).is_err(), "{text}");
        }
    }

    #[test]
    fn times_are_read() {
        for (text, nanoseconds) in [
            ("30", 30_000_000_000),
            ("1.5s", 1_500_000_000),
            ("100us", 100_000),
            ("50 µs", 50_000),
            ("2m", 120_000_000_000),
        ] {
            assert_eq!(time(text), Ok(Duration::from_nanos(nanoseconds)), "{text}");
        }
        for text in ["", "0", "5x", "-3s", "99999999999999999999999h"] {
            assert!(time(text).is_err(), "{text}");
        }
    }

    #[test]
    fn parts() {
        assert_eq!([part("90%"), part("0.5"), part("1 %")], [Ok(0.9), Ok(0.5), Ok(0.01)]);
        for text in ["", "%", "101%", "-1%", "2", "NaN", "a"] {
            assert!(part(text).is_err(), "{text}");
        }
    }
}
