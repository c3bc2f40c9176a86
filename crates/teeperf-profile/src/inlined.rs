//! What compilers inlined into functions of a profile, as the debug information of their modules' files tells.

use std::collections::BTreeMap;
use std::path::Path;

use teeperf_symbols::{Lines, Search};

use crate::model::{Code, FunctionId, Place, Profile};

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inlined {
    /// The functions that were asked for, each with the names of what was inlined into it.
    pub functions: Vec<(FunctionId, Vec<String>)>,
    /// Why nothing is known of some of them, one text for each file.
    pub unknown: Vec<String>,
}

/// Places in a list of functions, each with the first address.
type Starts = Vec<(usize, u64)>;

/// Of these functions, in their order. Where they stand must be known, see [`Options::by_place`](crate::Options::by_place);
/// files are taken if they are of the build that was recorded.
pub fn of(profile: &Profile, functions: &[FunctionId], search: &Search) -> Inlined {
    let place = |id: &FunctionId| profile.functions.get(id.0 as usize)?.place.as_ref();
    // By path and build-id: which function, and where it starts.
    let mut by_file: BTreeMap<(&str, &[u8]), Starts> = BTreeMap::new();
    for (at, id) in functions.iter().enumerate() {
        if let Some(Place { path, build_id, address, code: Code::Process, .. }) = place(id) {
            by_file.entry((path, build_id)).or_default().push((at, *address));
        }
    }
    let mut out = Inlined {
        functions: functions.iter().map(|id| (*id, Vec::new())).collect(),
        unknown: Vec::new(),
    };
    for ((path, build_id), places) in by_file {
        let build_id = (!build_id.is_empty()).then(|| build_id.to_vec());
        let search = Search { build_id, ..search.clone() };
        let starts: Vec<u64> = places.iter().map(|place| place.1).collect();
        let found = Lines::open(Path::new(path), &search).and_then(|lines| match lines.path() {
            Some(_) => lines.inlined(&starts).map(|found| Some((found, lines.missing()))),
            None => Ok(None),
        });
        match found {
            Ok(Some((found, missing))) => {
                out.unknown.extend(missing);
                for (&(at, _), names) in places.iter().zip(found) {
                    out.functions[at].1 = names;
                }
            }
            Ok(None) => out.unknown.push(format!("{path} has no debug information (-g)")),
            Err(error) => out.unknown.push(error.to_string()),
        }
    }
    out
}
