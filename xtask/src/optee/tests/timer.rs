//! Trusted applications that read the generic timer, where OP-TEE lets them: with `CFG_FTRACE_SUPPORT`.

use anyhow::Result;

use super::recorded::{is_timed, prepare, whole};
use super::{Group, Ran};
use crate::checks::Checks;

const TIMED: &str = "timed-by-counter.teeperf";
const COUNTED: &str = "calls-by-counter.teeperf";

pub(super) const GROUP: Group = Group {
    name: "timer",
    script: "set -e\n\
             DEMO=80391883-0ed0-447a-a4d2-13769a2c6c84.elf\n\
             record() { bin/teeperf record -q --optee --clock cycle --elf linked/$DEMO -o \"out/$1-by-counter.teeperf\" -- bin/optee-demo $2 $3; }\n\
             record timed compute 60000000\n\
             record calls calls 7\n",
    prepare,
    judge,
};

fn judge(ran: &Ran, checks: &mut Checks) {
    checks.add("clients end", ran.succeeded());
    checks.add("the time of a computation, by the counter", is_timed(ran, TIMED));
    checks.add("calls with the counter as their clock", counts(ran));
}

fn counts(ran: &Ran) -> Result<()> {
    whole(ran, COUNTED, &[("TEEC_InvokeCommand", 1), ("outer", 7), ("middle", 21), ("leaf", 105)])
}
