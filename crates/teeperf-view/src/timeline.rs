//! What programs put on the time line, as the page draws it: a lane for the marks and notes of each thread, one for each of
//! its counters. Bounded however many points there are: where a lane has more than it may, it keeps of each stretch of time
//! what shows its shape, and says how many there were.

use std::collections::BTreeMap;

use serde::Serialize;
use teeperf_profile::model::{Point, PointKind, Profile};

use crate::names::printable;

/// Most points of all lanes, least that each may have however many lanes there are, and most lanes.
const MOST_POINTS: usize = 20_000;
const LEAST_POINTS: usize = 200;
const MOST_LANES: usize = 100;
/// Longest text of a note, characters.
const MOST_TEXT: usize = 300;

/// See the module. Times are nanoseconds since the recording began.
#[derive(Debug, Serialize)]
pub(crate) struct TimeLine {
    /// Latest time that it has.
    end: u64,
    /// What marks and notes say, each once.
    texts: Vec<String>,
    lanes: Vec<Lane>,
    /// Points of lanes that there was no room for, and how many these are.
    #[serde(rename = "leftOut")]
    left_out: usize,
    #[serde(rename = "lanesLeftOut")]
    lanes_left_out: usize,
}

/// Points of a thread: its marks and notes, or the values of a counter.
#[derive(Debug, Serialize)]
struct Lane {
    pid: u32,
    tid: u32,
    /// Of the counter; none of marks and notes.
    counter: Option<String>,
    /// Points that there were.
    all: usize,
    at: Vec<u64>,
    /// Of marks and notes, the number of the text, and one more than twice that of notes': `2 * text + is_note`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    text: Vec<usize>,
    /// Of a counter; one that is not finite is null.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    value: Vec<f64>,
    /// Where not all are here: of how many points each is the one that is shown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stands: Vec<usize>,
}

/// That of a profile, where it has one.
pub(crate) fn of(profile: &Profile) -> Option<TimeLine> {
    let last = profile.points.last()?;
    let mut by_lane: BTreeMap<(u32, u32, Option<&str>), Vec<&Point>> = BTreeMap::new();
    for point in &profile.points {
        let counter = value(point.kind).map(|_| point.name.as_str());
        by_lane.entry((point.pid, point.tid, counter)).or_default().push(point);
    }
    let mut lanes: Vec<_> = by_lane.into_iter().collect();
    // Those with most points, in the order of threads and names.
    let mut sizes: Vec<usize> = lanes.iter().map(|(_, points)| points.len()).collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    let least = sizes.get(MOST_LANES).map_or(0, |size| size + 1);
    let mut room =
        MOST_LANES - sizes.iter().take_while(|&&size| size >= least).count().min(MOST_LANES);
    let (mut left_out, mut lanes_left_out) = (0, 0);
    lanes.retain(|(_, points)| {
        let is_kept = points.len() >= least || {
            let has_room = points.len() + 1 == least && room > 0;
            room -= usize::from(has_room);
            has_room
        };
        if !is_kept {
            left_out += points.len();
            lanes_left_out += 1;
        }
        is_kept
    });
    let most = (MOST_POINTS / lanes.len().max(1)).max(LEAST_POINTS);
    let mut texts = Texts::default();
    let lanes = lanes.iter().map(|((pid, tid, counter), points)| {
        let kept = kept(points, most);
        let mut lane = Lane {
            pid: *pid,
            tid: *tid,
            counter: counter.map(printable),
            all: points.len(),
            at: kept.iter().map(|(point, _)| point.at_ns as u64).collect(),
            text: Vec::new(),
            value: Vec::new(),
            stands: Vec::new(),
        };
        match counter {
            Some(_) => lane.value.extend(kept.iter().filter_map(|(point, _)| value(point.kind))),
            None => lane.text.extend(kept.iter().map(|(point, _)| {
                2 * texts.number(&point.name) + usize::from(point.kind == PointKind::Note)
            })),
        }
        if kept.len() < points.len() {
            lane.stands.extend(kept.iter().map(|(_, stands)| stands));
        }
        lane
    });
    let lanes = lanes.collect();
    let end = profile.info.duration_ns.max(last.at_ns as u64);
    Some(TimeLine { end, texts: texts.list, lanes, left_out, lanes_left_out })
}

/// At most so many of the points, in order: where there are more, of each of equal stretches the first and, of a counter, the
/// least and the most; each with how many it stands for.
fn kept<'a>(points: &[&'a Point], most: usize) -> Vec<(&'a Point, usize)> {
    if points.len() <= most {
        return points.iter().map(|point| (*point, 1)).collect();
    }
    let (first, last) = (points[0].at_ns, points[points.len() - 1].at_ns);
    let is_counter = value(points[0].kind).is_some();
    let stretches = if is_counter { most / 3 } else { most };
    let width = ((last - first) / stretches as f64).max(1.0);
    let stretch = |point: &Point| (((point.at_ns - first) / width) as usize).min(stretches - 1);
    let mut out = Vec::new();
    for points in points.chunk_by(|a, b| stretch(a) == stretch(b)) {
        let mut shown = vec![0];
        if is_counter {
            let value = |at: usize| value(points[at].kind).unwrap_or_default();
            let all = 0..points.len();
            shown.extend(all.clone().min_by(|&a, &b| value(a).total_cmp(&value(b))));
            shown.extend(all.max_by(|&a, &b| value(a).total_cmp(&value(b))));
            shown.sort_unstable();
            shown.dedup();
        }
        let ends = shown.iter().skip(1).copied().chain([points.len()]).collect::<Vec<_>>();
        out.extend(shown.iter().zip(ends).map(|(&at, end)| (points[at], end - at)));
    }
    out
}

fn value(kind: PointKind) -> Option<f64> {
    match kind {
        PointKind::Mark | PointKind::Note => None,
        PointKind::Integer(value) => Some(value as f64),
        PointKind::Real(value) => Some(value),
    }
}

/// Texts by number, each once.
#[derive(Default)]
struct Texts {
    list: Vec<String>,
    known: BTreeMap<String, usize>,
}

impl Texts {
    fn number(&mut self, text: &str) -> usize {
        let mut short = printable(text);
        if let Some((end, _)) = short.char_indices().nth(MOST_TEXT) {
            short.truncate(end);
            short.push('…');
        }
        let list = &mut self.list;
        *self.known.entry(short).or_insert_with_key(|text| {
            list.push(text.clone());
            list.len() - 1
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(tid: u32, at: usize, name: &str, kind: PointKind) -> Point {
        Point { pid: 1, tid, at_ns: at as f64, name: name.into(), kind }
    }

    fn time_line(points: Vec<Point>) -> TimeLine {
        of(&Profile { points, ..Profile::default() }).unwrap()
    }

    #[test]
    fn each_thread_and_counter_has_a_lane() {
        assert!(of(&Profile::default()).is_none());
        let told = time_line(vec![
            point(7, 10, "frame", PointKind::Mark),
            point(8, 15, "queue", PointKind::Integer(-3)),
            point(7, 20, &"x".repeat(999), PointKind::Note),
            point(8, 25, "queue", PointKind::Real(0.5)),
            point(7, 30, "frame", PointKind::Mark),
        ]);
        let [marks, queue] = &told.lanes[..] else { panic!("{told:?}") };
        assert_eq!(
            (marks.tid, &marks.at[..], &marks.text[..]),
            (7, &[10, 20, 30][..], &[0, 3, 0][..])
        );
        assert_eq!(queue.counter.as_deref(), Some("queue"));
        assert_eq!((&queue.at[..], &queue.value[..]), (&[15, 25][..], &[-3.0, 0.5][..]));
        assert_eq!(
            (told.texts[0].as_str(), told.texts[1].chars().count()),
            ("frame", MOST_TEXT + 1)
        );
        assert_eq!((told.end, told.left_out), (30, 0));
        assert!(marks.stands.is_empty() && queue.stands.is_empty());
    }

    /// The page stays small, and says of what it leaves out how much that is.
    #[test]
    fn however_many_there_are_few_are_kept() {
        let many = 500_000;
        let mut points: Vec<Point> = (0..many)
            .map(|at| match at % 2 {
                0 => point(1, at, "tick", PointKind::Mark),
                _ => point(1, at, "wave", PointKind::Integer(if at == 77_777 { 1000 } else { 3 })),
            })
            .collect();
        points
            .extend((0..300).map(|lane| point(2, many, &format!("{lane}"), PointKind::Real(0.0))));
        let told = time_line(points);
        assert_eq!((told.lanes.len(), told.lanes_left_out, told.left_out), (100, 202, 202));
        let kept: usize = told.lanes.iter().map(|lane| lane.at.len()).sum();
        assert!(kept <= MOST_POINTS + MOST_LANES * LEAST_POINTS, "{kept}");
        for lane in &told.lanes[..2] {
            assert_eq!((lane.all, lane.stands.iter().sum::<usize>()), (many / 2, many / 2));
            assert!(
                lane.at.is_sorted() && lane.at.len() <= MOST_POINTS / 100 + 3,
                "{}",
                lane.at.len()
            );
        }
        let wave = &told.lanes[1];
        assert_eq!(wave.value.iter().filter(|&&value| value == 1000.0).count(), 1, "the one peak");
    }
}
