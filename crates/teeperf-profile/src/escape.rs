//! Escapes with their payload taken apart, for whoever reads words one by one.

use teeperf_wire::shared::ClockKind;
use teeperf_wire::word::{self, code, module};

/// An escape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Escape<'a> {
    /// The clock moved by so many units.
    Tick(u32),
    /// An event was lost here.
    Hole,
    /// `setjmp` under this number.
    Mark(u32),
    /// `longjmp` to this number.
    Jump(u32),
    /// `vfork` begins.
    VforkBegin,
    /// The parent goes on after `vfork`.
    VforkEnd,
    /// Absolute time, clock units.
    Stamp(u64),
    /// A stretch without events.
    Gap(Gap),
    /// Another stack runs from here on.
    Switch {
        /// Id of the stack left, [`word::ABANDONED`] when it will not run again.
        left: u64,
        /// Id of the stack entered.
        entered: u64,
    },
    /// The stack of this id begins anew and empty.
    StackNew(u64),
    /// The thread is on the stack of this id from here on.
    Stack(u64),
    /// An exception is caught in the function at this site.
    Catch(u32),
    /// A call or return of code outside every window.
    Far {
        /// Whether it is a return.
        is_return: bool,
        /// Address of the function.
        address: u64,
        /// Low 32 bits of the counter, in `cycle` chunks.
        time: Option<u32>,
    },
    /// A window was given out or taken back.
    Module(Module<'a>),
    /// Name of the thread.
    Name(Text<'a>),
    /// Text of the program.
    Note(Text<'a>),
    /// An async function goes on.
    Wait {
        /// Its site.
        site: u32,
        /// Clock units since it was polled last.
        units: u64,
    },
    /// A moment that the program marks, or a counter's value then.
    Point {
        /// One of [`word::point`], or what is not known.
        kind: u32,
        /// The site that has its name.
        site: u32,
        /// The time.
        time: u64,
        /// The value.
        value: u64,
    },
    /// Nothing: fills a place.
    Pad,
    /// What the counter is at the event that is the next item.
    Timed(u64),
    /// From here on the filter of this number holds.
    Filter(u32),
    /// The thread was off its processor.
    OffCpu {
        /// Clock units.
        units: u64,
        /// Waits, where they are told.
        waits: Option<u32>,
    },
    /// The thread was interrupted by its timer.
    Sample(Sample),
    /// A code that this reader does not know.
    Unknown(u32),
    /// A known code whose payload is not what it must be.
    Malformed(u32),
}

/// [`code::SAMPLE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The instruction is one of hooks.
    pub is_in_hook: bool,
    /// The kernel was interrupted, which code in front of the instruction had called.
    pub is_in_kernel: bool,
    /// Only time in user mode is sampled.
    pub is_of_user_mode: bool,
    /// The thread may have met page faults since its timer interrupted it last.
    pub has_faults: bool,
    /// The timer alone interrupts the thread.
    pub is_alone: bool,
    /// Nothing interrupted the thread, which ends.
    pub is_end: bool,
    /// Likewise: the thread goes on, and the clock alone tells its time from here on.
    pub is_clocked: bool,
    /// Site of the instruction; 0 where it lies in no window.
    pub site: u32,
    /// Its address.
    pub address: u64,
    /// CPU time of the thread, nanoseconds.
    pub cpu_ns: u64,
    /// Samples since the one before that found no place, all of them in hooks.
    pub missed: u32,
    /// CPU time that it stands for by its period, nanoseconds.
    pub period_ns: u32,
}

/// [`code::GAP`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// One of [`word::gap`].
    pub reason: u32,
    /// Events lost.
    pub lost: u64,
    /// Frames that were there and are gone.
    pub popped: u32,
    /// Frames that came and are not known.
    pub pushed: u32,
    /// Clock units to leave out.
    pub units: u64,
}

/// [`code::MODULE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Module<'a> {
    /// Whether the window opens; else it is retired.
    pub opens: bool,
    /// First site.
    pub first_site: u32,
    /// Number of sites.
    pub sites: u32,
    /// Whether its address is told from [`module::ANCHOR`] on.
    pub is_anchored: bool,
    /// Address of the window's first byte.
    pub address: u64,
    /// Load bias.
    pub bias: u64,
    /// Build-id.
    pub build_id: Text<'a>,
    /// Path.
    pub path: Text<'a>,
}

/// Bytes in payload words, three in each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Text<'a> {
    words: &'a [u32],
    limit: usize,
}

impl<'a> Text<'a> {
    /// Nothing when one of these is no payload word.
    fn new(words: &'a [u32], limit: usize) -> Option<Self> {
        words
            .iter()
            .all(|&word| word::payload_value(word).is_some())
            .then_some(Self { words, limit })
    }

    /// The bytes. The last word may add one or two zeros.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes: Vec<u8> = self.words.iter().flat_map(|&w| word::unpack_bytes(w)).collect();
        bytes.truncate(self.limit);
        bytes
    }
}

impl std::fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let bytes = self.bytes();
        let text = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
        f.write_str(&String::from_utf8_lossy(text))
    }
}

/// The escape at `words[at]`, which must be one, and where the next word stands. Nothing
/// when its payload is not whole: then no word behind it can be trusted.
pub fn read(words: &[u32], at: usize, clock: ClockKind) -> Option<(Escape<'_>, usize)> {
    let escape = *words.get(at)?;
    let (escape_code, arg) = (escape >> 24 & 0x1F, escape & word::MAX_ARG);
    if !word::has_payload(escape_code) {
        return Some((alone(escape_code, arg), at + 1));
    }
    let count = word::payload_value(*words.get(at + 1)?)? as usize;
    let payload = words.get(at + 2..)?.get(..count)?;
    let known = with_payload(escape_code, arg, payload, clock);
    Some((known.unwrap_or(Escape::Malformed(escape_code)), at + 2 + count))
}

fn alone(escape_code: u32, arg: u32) -> Escape<'static> {
    match escape_code {
        code::TICK => Escape::Tick(arg),
        code::HOLE => Escape::Hole,
        code::PAD => Escape::Pad,
        code::FILTER => Escape::Filter(arg),
        code::MARK => Escape::Mark(arg),
        code::JUMP => Escape::Jump(arg),
        code::VFORK_BEGIN => Escape::VforkBegin,
        code::VFORK_END => Escape::VforkEnd,
        other => Escape::Unknown(other),
    }
}

fn with_payload<'a>(
    escape_code: u32,
    arg: u32,
    payload: &'a [u32],
    clock: ClockKind,
) -> Option<Escape<'a>> {
    Some(match escape_code {
        code::STAMP => Escape::Stamp(word::join(payload.get(..2)?)?),
        code::GAP => Escape::Gap(Gap {
            reason: arg,
            lost: word::join(payload.get(..2)?)?,
            popped: word::payload_value(*payload.get(2)?)?,
            pushed: word::payload_value(*payload.get(3)?)?,
            units: word::join(payload.get(4..6)?)?,
        }),
        code::SWITCH => Escape::Switch {
            left: word::join(payload.get(..2)?)?,
            entered: word::join(payload.get(2..4)?)?,
        },
        code::STACK_NEW => Escape::StackNew(word::join(payload.get(..2)?)?),
        code::STACK => Escape::Stack(word::join(payload.get(..2)?)?),
        code::CATCH => Escape::Catch(word::payload_value(*payload.first()?)?),
        code::FAR => Escape::Far {
            is_return: arg & 1 == 1,
            address: word::join(payload.get(..3)?)?,
            time: match clock {
                ClockKind::Tick => None,
                ClockKind::Cycle => Some(*payload.get(3)?),
            },
        },
        code::MODULE => Escape::Module(module_payload(payload)?),
        code::NAME => Escape::Name(Text::new(payload, usize::MAX)?),
        code::NOTE => Escape::Note(Text::new(payload, usize::MAX)?),
        code::WAIT => Escape::Wait {
            site: word::payload_value(*payload.first()?)?,
            units: word::join(payload.get(1..3)?)?,
        },
        // A handler of the program's jumped out while the thread wrote it. The next one tells of
        // the CPU time up to there.
        code::SAMPLE if payload.iter().any(|&word| word::payload_value(word).is_none()) => {
            Escape::Pad
        }
        code::SAMPLE => Escape::Sample(Sample {
            is_in_hook: arg & word::sample::HOOK != 0,
            is_in_kernel: arg & word::sample::KERNEL != 0,
            is_of_user_mode: arg & word::sample::USER != 0,
            has_faults: arg & word::sample::FAULTS != 0,
            is_alone: arg & word::sample::ALONE != 0,
            is_end: arg & (word::sample::END | word::sample::CLOCKED) != 0,
            is_clocked: arg & word::sample::CLOCKED != 0,
            site: word::payload_value(*payload.first()?)?,
            address: word::join(payload.get(1..4)?)?,
            cpu_ns: word::join(payload.get(4..6)?)?,
            missed: word::payload_value(*payload.get(6)?)?,
            period_ns: word::payload_value(*payload.get(7)?)?,
        }),
        code::OFF_CPU => Escape::OffCpu {
            units: word::join(payload.get(..2)?)?,
            waits: payload.get(2).and_then(|&waits| word::payload_value(waits)),
        },
        code::TIMED => Escape::Timed(word::join(payload.get(..2)?)?),
        code::POINT => Escape::Point {
            kind: arg,
            site: word::payload_value(*payload.first()?)?,
            time: word::join(payload.get(1..3)?)?,
            value: word::join(payload.get(3..6)?)?,
        },
        other => Escape::Unknown(other),
    })
}

fn module_payload(payload: &[u32]) -> Option<Module<'_>> {
    let (fixed, texts) = payload.split_at_checked(module::FIXED)?;
    let build_id_bytes = word::payload_value(fixed[9])? as usize;
    if build_id_bytes > module::MAX_BUILD_ID {
        return None;
    }
    let (build_id, path) = texts.split_at_checked(build_id_bytes.div_ceil(3))?;
    Some(Module {
        opens: word::payload_value(fixed[0])? != module::RETIRED,
        is_anchored: word::payload_value(fixed[0])? == module::ANCHORED,
        first_site: word::payload_value(fixed[1])?,
        sites: word::payload_value(fixed[2])?,
        address: word::join(&fixed[3..6])?,
        bias: word::join(&fixed[6..9])?,
        build_id: Text::new(build_id, build_id_bytes)?,
        path: Text::new(path, module::MAX_PATH)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Guards: a warning for each handler that jumps out while its thread writes a sample.
    #[test]
    fn a_sample_that_was_cut_short_is_none() {
        const NEVER_WRITTEN: u32 = 1;
        let (head, count) = (word::escape(code::SAMPLE, 0), word::payload(8));
        let mut words = vec![head, count];
        words.extend([word::payload(7); 3]);
        words.extend([NEVER_WRITTEN; 5]);
        assert_eq!(read(&words, 0, ClockKind::Tick), Some((Escape::Pad, 10)));
        words[2..].fill(word::payload(7));
        let (whole, _) = read(&words, 0, ClockKind::Tick).unwrap();
        assert!(matches!(whole, Escape::Sample(sample) if sample.site == 7));
        // One without all its words is another matter.
        let short = [head, word::payload(2), word::payload(7), word::payload(7)];
        let malformed = Escape::Malformed(code::SAMPLE);
        assert_eq!(read(&short, 0, ClockKind::Tick), Some((malformed, 4)));
    }
}
