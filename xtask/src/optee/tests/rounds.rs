//! What the groups have in common in which a trusted application keeps its sums itself: what its clients do, and how
//! often that calls what.

use anyhow::Result;

use super::Ran;
use super::recorded::whole;

pub(super) const DEMO: &str = "80391883-0ed0-447a-a4d2-13769a2c6c84.elf";
/// The one that it calls.
pub(super) const CALLEE: &str = "15cc187a-0d9c-4ce6-b9c4-532575f57ded.elf";

/// The script of such a group, with further lines behind it.
macro_rules! clients {
    ($($more:literal)?) => {
        concat!(
            "set -e\n\
             record() { bin/teeperf record -q --optee --elf linked/$DEMO --elf linked/$CALLEE -o \"out/$1.teeperf\" -- bin/optee-demo \"$@\"; }\n\
             DEMO=80391883-0ed0-447a-a4d2-13769a2c6c84.elf\n\
             CALLEE=15cc187a-0d9c-4ce6-b9c4-532575f57ded.elf\n\
             for mode in 'calls 7' 'compute 20000000' 'params 7' 'nested 10' 'sessions 20' 'cancel 200' 'panic 66' unknown; do record $mode; done\n\
             record slots 5 >/dev/null\n\
             record leaps 50 >/dev/null\n\
             record often 500 >/dev/null\n\
             bin/teeperf record -q --optee --elf linked/$DEMO -o out/many.teeperf -- bin/optee-demo calls 200000 >/dev/null\n",
            $($more)?
        )
    };
}
pub(super) use clients;

/// Five hundred calls of the application in a row, each of which has something to hand over.
pub(super) fn often(ran: &Ran) -> Result<()> {
    let calls = [
        ("TEEC_InvokeCommand", 500),
        ("TA_InvokeCommandEntryPoint", 500),
        ("outer", 500),
        ("leaf", 7500),
    ];
    whole(ran, "often.teeperf", &calls)
}

/// Calls of `calls`, so many rounds, behind so many openings of a session; and further functions.
pub(super) fn counts(
    ran: &Ran,
    recording: &str,
    rounds: u64,
    openings: u64,
    more: &[(&str, u64)],
) -> Result<()> {
    let calls = [
        ("TEEC_InvokeCommand", 1),
        ("TA_OpenSessionEntryPoint", openings),
        ("TA_InvokeCommandEntryPoint", 1),
        ("outer", rounds),
        ("middle", 3 * rounds),
        ("leaf", 15 * rounds),
    ];
    whole(ran, &format!("{recording}.teeperf"), &[&calls, more].concat())
}
