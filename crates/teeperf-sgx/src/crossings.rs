//! What is recorded when a crossing begins and when it ends. Between the two the thread has its side of the recording to itself: ECALLs
//! in OCALLs are crossings as any other.

use crate::entries;
use crate::labels::{self, Label};
use crate::open::{self, Crossings, Ecall, Open};
use crate::proxies;
use crate::tables;
use std::ffi::{c_int, c_void};
use teeperf_lender::modules;
use teeperf_lender::real;
use teeperf_lender::system::keeping_errno;
use teeperf_lender::thread::{self, Own};

type Real = unsafe extern "C" fn(u64, c_int, *const c_void, *mut c_void) -> u32;

/// `SGX_ERROR_UNEXPECTED` (sgx_error.h).
const UNEXPECTED: u32 = 1;

/// Where there is no runtime.
extern "C" fn nobody() -> u32 {
    UNEXPECTED
}

/// What an entry is to call.
#[repr(C)]
pub(crate) struct Onward {
    function: usize,
    table: *const c_void,
}

/// An ECALL begins, with this frame, of this number and table, and returns to this address.
///
/// # Safety
/// Called by the entry, with what the host gave it.
pub(crate) unsafe extern "C" fn ecall_enters(
    frame: usize,
    number: c_int,
    table: *const c_void,
    returns_to: usize,
    is_switchless: u32,
) -> Onward {
    let is_switchless = is_switchless != 0;
    let (real, entry) = if is_switchless {
        let entry = entries::sgx_ecall_switchless as extern "C" fn() as usize;
        (real!(c"sgx_ecall_switchless" as Real), entry)
    } else {
        (real!(c"sgx_ecall" as Real), entries::sgx_ecall as extern "C" fn() as usize)
    };
    let function = real.map_or(nobody as extern "C" fn() -> u32 as usize, |real| real as usize);
    let mut onward = Onward { function, table };
    keeping_errno(|| {
        let mut taken = thread::take();
        let Some(own) = taken.own() else { return };
        open::with(own.serial, |crossings| {
            close_left(own, crossings, frame);
            if own.is_handed_on() {
                // A signal's handler, while the thread is inside: who writes there would not know of it.
                return;
            }
            // SAFETY: the host's table.
            let table = unsafe { tables::replaced(table) };
            onward.table = table.for_runtime;
            crossings.count();
            let label = if is_switchless { Label::SwitchlessEcall } else { Label::Ecall };
            let number = usize::try_from(number).unwrap_or(usize::MAX);
            let caller = proxies::caller(returns_to, entry);
            let Some(label) = own.site_of(labels::at(label, number)) else { return };
            let function = modules::site_of(own, caller);
            if let Some(function) = function {
                own.event_at(function, 0);
            }
            own.timed_event(label, 0);
            let mark = crossings.open.len() as u32 + 1;
            let ecall = Ecall { number, window: table.window, mark, inside: Default::default() };
            crossings.open.push(Open { frame, label, function, ecall: Some(ecall) });
            own.hand_on(table.window, Some(mark));
        });
    });
    onward
}

/// The ECALL with this frame has come back.
pub(crate) extern "C" fn ecall_leaves(frame: usize) {
    leaves(frame);
}

/// An OCALL begins, with this frame, through this entry. Gives the function that it is of.
pub(crate) extern "C" fn ocall_enters(entry: u32, frame: usize) -> usize {
    let (function, number) = tables::behind(entry as usize);
    keeping_errno(|| {
        let mut taken = thread::take();
        let Some(own) = taken.own() else { return };
        open::with(own.serial, |crossings| {
            close_left(own, crossings, frame);
            crossings.count();
            // Without an ECALL of this thread it is the runtime's own, which does what others ask for.
            let label = if own.is_handed_on() {
                own.come_back(None);
                Label::Ocall
            } else {
                Label::SwitchlessOcall
            };
            let Some(label) = own.site_of(labels::at(label, number)) else { return };
            let function = modules::site_of(own, function);
            own.timed_event(label, 0);
            if let Some(function) = function {
                own.event_at(function, 0);
            }
            crossings.open.push(Open { frame, label, function, ecall: None });
        });
    });
    function
}

/// The OCALL with this frame has come back.
pub(crate) extern "C" fn ocall_leaves(frame: usize) {
    leaves(frame);
}

fn leaves(frame: usize) {
    keeping_errno(|| {
        let mut taken = thread::take();
        let Some(own) = taken.own() else { return };
        open::with(own.serial, |crossings| {
            if !crossings.has(frame) {
                return;
            }
            crossings.count();
            while let Some(open) = crossings.open.pop() {
                close(own, &open);
                if open.frame == frame {
                    break;
                }
            }
            // Back inside.
            let outer = crossings.open.last().and_then(|open| open.ecall);
            if let Some(ecall) = outer {
                own.hand_on(ecall.window, None);
            }
        });
    });
}

/// Crossings that this call shows to be left are closed: also an ECALL out of which the thread came by an OCALL that was left.
fn close_left(own: &mut Own, crossings: &mut Crossings, frame: usize) {
    let next = |own: &Own, crossings: &mut Crossings| {
        let is_outside = !own.is_handed_on();
        let left = crossings.take_left(frame);
        left.or_else(|| crossings.open.pop_if(|open| is_outside && open.ecall.is_some()))
    };
    while let Some(open) = next(own, crossings) {
        close(own, &open);
    }
}

fn close(own: &mut Own, open: &Open) {
    match &open.ecall {
        Some(ecall) => {
            if own.is_handed_on() {
                own.come_back(Some(ecall.mark));
            }
            for (label, counted) in
                [(Label::PageFaults, ecall.inside.faults), (Label::Switches, ecall.inside.switches)]
            {
                let site = own.site_of(labels::at(label, ecall.number));
                if let Some(site) = site.filter(|_| counted > 0) {
                    own.count(site, counted);
                }
            }
            own.timed_event(open.label, 1);
            if let Some(function) = open.function {
                own.event_at(function, 1);
            }
        }
        None => {
            if let Some(function) = open.function {
                own.event_at(function, 1);
            }
            own.timed_event(open.label, 1);
        }
    }
}

/// The calling thread's arena, to be handed to an enclave with an ECALL, and how many bytes it has; null where there is none, or only
/// crossings are recorded. It is the same for all of the thread's life.
///
/// # Safety
/// A number can be written to `bytes`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn teeperf_sgx_arena(bytes: *mut usize) -> *mut c_void {
    let memory = keeping_errno(|| {
        let mut taken = thread::take();
        let own = taken.own()?;
        Some(own.memory).filter(|memory| !memory.is_kept)
    });
    let (base, length) =
        memory.map_or((std::ptr::null_mut(), 0), |memory| (memory.base, memory.length));
    // SAFETY: the caller's promise.
    unsafe { bytes.write(length) };
    base.cast()
}
