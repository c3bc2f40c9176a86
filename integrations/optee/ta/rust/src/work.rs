//! The functions of `ta/demo/work.c`.

/// What the demo gives for `DEMO_CMD_CALLS`.
#[inline(never)]
pub(crate) fn calls(rounds: u32) -> u32 {
    teeperf_hooks::scope!();
    (0..rounds).fold(0, |sum, number| sum.wrapping_add(Outer(number).run()))
}

/// A method has a name as well.
struct Outer(u32);

impl Outer {
    #[inline(never)]
    fn run(&self) -> u32 {
        teeperf_hooks::scope!(Self::run);
        (0..3).fold(0, |sum, more| sum.wrapping_add(middle(self.0.wrapping_add(more))))
    }
}

#[inline(never)]
fn middle(number: u32) -> u32 {
    teeperf_hooks::scope!();
    (0..5).fold(0, |sum, more| sum.wrapping_add(leaf(number.wrapping_add(more))))
}

/// Where the compiler's own hooks count, it has to be there to be called.
#[cfg_attr(feature = "hooks", inline(always))]
#[cfg_attr(not(feature = "hooks"), inline(never))]
fn leaf(number: u32) -> u32 {
    teeperf_hooks::scope!(leaf);
    number.wrapping_mul(3).wrapping_add(1)
}

/// What the demo gives for `DEMO_CMD_COMPUTE`.
#[inline(never)]
pub(crate) fn compute(rounds: u32) -> u32 {
    teeperf_hooks::scope!();
    (0..rounds).fold(1, |number: u32, _| {
        core::hint::black_box(number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223))
    })
}

/// Calls what `calls` does, and panics.
#[inline(never)]
pub(crate) fn panics(rounds: u32) {
    teeperf_hooks::scope!();
    let sum = calls(rounds);
    panic!("as was asked for: {sum}");
}
