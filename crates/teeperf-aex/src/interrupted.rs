//! The synthetic state: what a thread shows after an asynchronous exit, until it resumes (Intel SDM, volume 3D,
//! table "Synthetic States on Asynchronous Enclave Exit").
//!
//! RIP is the asynchronous exit pointer, where ENCLU stands, RAX the leaf that is to run there, ERESUME, RBX the TCS, RCX the pointer
//! again. In Linux's vDSO the same ENCLU enters enclaves: a thread that is about to has another leaf in RAX.

use crate::layout::PAGE;

/// ENCLU, as it is encoded.
pub const ENCLU: [u8; 3] = [0x0f, 0x01, 0xd7];
const ERESUME: u64 = 3;

/// Of an interrupted thread's registers, those that tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// RIP.
    pub ip: u64,
    /// RAX.
    pub ax: u64,
    /// RBX.
    pub bx: u64,
    /// RCX.
    pub cx: u64,
}

impl Shown {
    /// The TCS by which the thread was inside an enclave. `byte_at` gives a byte of the instruction at RIP, and is asked for one only
    /// while all else fits: what a processor is about to run is there to be read.
    pub fn tcs(&self, byte_at: impl FnMut(u64) -> Option<u8>) -> Option<u64> {
        let fits = self.ax == ERESUME
            && self.cx == self.ip
            && self.bx != 0
            && self.bx.is_multiple_of(PAGE);
        let mut places = (self.ip..).take(ENCLU.len()).map(byte_at);
        (fits && ENCLU.iter().all(|&byte| places.next().flatten() == Some(byte))).then_some(self.bx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATE: Shown = Shown { ip: 0x7fff_0010, ax: 3, bx: 0x10_3000, cx: 0x7fff_0010 };

    fn tcs(state: Shown, code: &[u8]) -> Option<u64> {
        state.tcs(|at| code.get((at - state.ip) as usize).copied())
    }

    #[test]
    fn the_synthetic_state_tells_the_tcs() {
        assert_eq!(tcs(STATE, &ENCLU), Some(0x10_3000));
    }

    #[test]
    fn a_thread_that_is_about_to_enter_is_outside() {
        assert_eq!(tcs(Shown { ax: 2, ..STATE }, &ENCLU), None);
    }

    #[test]
    fn other_states_are_outside() {
        for state in [
            Shown { bx: 0x10_3008, ..STATE },
            Shown { bx: 0, ..STATE },
            Shown { cx: 0, ..STATE },
            Shown { ip: u64::MAX - 1, ..STATE },
        ] {
            assert_eq!(tcs(state, &ENCLU), None, "{state:x?}");
        }
        assert_eq!(tcs(STATE, &[0x0f, 0x01, 0xd6]), None);
        assert_eq!(tcs(STATE, &ENCLU[..2]), None);
    }

    #[test]
    fn code_is_read_no_further_than_it_fits() {
        let mut asked = 0;
        assert_eq!(
            STATE.tcs(|_| {
                asked += 1;
                Some(0x0e)
            }),
            None
        );
        assert_eq!(asked, 1);
        assert_eq!(Shown { ax: 1, ..STATE }.tcs(|_| panic!("nothing is to be read")), None);
    }
}
