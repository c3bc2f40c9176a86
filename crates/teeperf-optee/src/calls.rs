//! The functions of the API that lead into the TEE. Each is an event, hands the call on to the API
//! itself, and gives back what that gave.

use crate::labels;
use crate::lending;
use crate::sessions::{self, Session};
use crate::system;
use crate::teec::{
    BAD_PARAMETERS, CANCEL, GENERIC, OF_APPLICATION, Operation, Outcome, SUCCESS, SharedMemory,
    TARGET_DEAD, Uuid,
};
use std::ffi::{c_char, c_void};
use std::sync::OnceLock;
use teeperf_lender::real;
use teeperf_lender::thread::{self, Own};
use teeperf_lender::windows::Window;

/// Name of the mark at which the arena was handed on: there is one at a time.
const HANDED_ON: u32 = 1;

type Initialize = unsafe extern "C" fn(*const c_char, *mut c_void) -> Outcome;
type Open = unsafe extern "C" fn(
    *mut c_void,
    *mut c_void,
    *const Uuid,
    u32,
    *const c_void,
    *mut Operation,
    *mut u32,
) -> Outcome;
type Invoke = unsafe extern "C" fn(*mut c_void, u32, *mut Operation, *mut u32) -> Outcome;
type OfOne = unsafe extern "C" fn(*mut c_void);
type Register = unsafe extern "C" fn(*mut c_void, *mut SharedMemory) -> Outcome;
type Release = unsafe extern "C" fn(*mut SharedMemory);

/// `TEEC_InitializeContext`. A context that was at this address and has not been finalized is gone, with all that was
/// registered with it.
///
/// # Safety
/// As the API has it.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn TEEC_InitializeContext(
    name: *const c_char,
    context: *mut c_void,
) -> Outcome {
    let Some(real) = real!(c"TEEC_InitializeContext" as Initialize) else { return GENERIC };
    drop(sessions::forget(context as usize));
    // SAFETY: the caller's promise.
    unsafe { real(name, context) }
}

/// `TEEC_OpenSession`.
///
/// # Safety
/// As the API has it.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn TEEC_OpenSession(
    context: *mut c_void,
    session: *mut c_void,
    application: *const Uuid,
    login: u32,
    data: *const c_void,
    operation: *mut Operation,
    origin: *mut u32,
) -> Outcome {
    let Some(real) = real!(c"TEEC_OpenSession" as Open) else { return GENERIC };
    // SAFETY: the caller's promise.
    let uuid = unsafe { application.as_ref() }.copied().unwrap_or_default();
    let mut taken = thread::take();
    let mut without = Operation::empty();
    let given = operation;
    let mut unasked = 0;
    let origin = if origin.is_null() { &raw mut unasked } else { origin };
    let mut call = |operation| {
        // SAFETY: the caller's promise; the origin's place is the client's, or ours.
        unsafe {
            let result = real(context, session, application, login, data, operation, origin);
            (result, origin.read())
        }
    };
    let Some(own) = taken.own() else { return call(given).0 };
    let this = TEEC_OpenSession as Open as usize;
    own.event(this, 0);
    let window = sessions::window_of(uuid);
    let has_hooks = sessions::has_shown_hooks(uuid);
    let operation = if given.is_null() { &raw mut without } else { given };
    // SAFETY: the client's operation, or ours.
    let outcome =
        unsafe { lend(own, context as usize, window, has_hooks, operation, given, &mut call) };
    own.event(this, 1);
    learn(uuid, &outcome);
    if outcome.result == SUCCESS {
        let window = window.filter(|_| outcome.entered != Some(false));
        let context = context as usize;
        sessions::opened(session as usize, Session { context, application: uuid, window });
    }
    outcome.result
}

/// `TEEC_InvokeCommand`.
///
/// # Safety
/// As the API has it.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn TEEC_InvokeCommand(
    session: *mut c_void,
    command: u32,
    operation: *mut Operation,
    origin: *mut u32,
) -> Outcome {
    let Some(real) = real!(c"TEEC_InvokeCommand" as Invoke) else { return GENERIC };
    let mut taken = thread::take();
    let mut without = Operation::empty();
    let given = operation;
    let mut unasked = 0;
    let origin = if origin.is_null() { &raw mut unasked } else { origin };
    let mut call = |operation| {
        // SAFETY: the caller's promise; the origin's place is the client's, or ours.
        unsafe { (real(session, command, operation, origin), origin.read()) }
    };
    let Some(own) = taken.own() else { return call(given).0 };
    let this = TEEC_InvokeCommand as Invoke as usize;
    let label = labels::command(command);
    own.event(this, 0);
    own.event(label, 0);
    let known = sessions::session(session as usize);
    let (context, window) = known.map_or((0, None), |known| (known.context, known.window));
    let has_hooks = known.is_some_and(|known| sessions::has_shown_hooks(known.application));
    let operation = if given.is_null() { &raw mut without } else { given };
    // SAFETY: the client's operation, or ours.
    let outcome = unsafe { lend(own, context, window, has_hooks, operation, given, &mut call) };
    own.event(label, 1);
    own.event(this, 1);
    if let Some(known) = known {
        learn(known.application, &outcome);
    }
    outcome.result
}

/// `TEEC_CloseSession`.
///
/// # Safety
/// As the API has it.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn TEEC_CloseSession(session: *mut c_void) {
    let Some(real) = real!(c"TEEC_CloseSession" as OfOne) else { return };
    let mut taken = thread::take();
    let this = TEEC_CloseSession as OfOne as usize;
    if let Some(own) = taken.own() {
        own.event(this, 0);
    }
    // SAFETY: the caller's promise.
    unsafe { real(session) };
    if let Some(own) = taken.own() {
        own.event(this, 1);
    }
    sessions::closed(session as usize);
}

/// `TEEC_FinalizeContext`.
///
/// # Safety
/// As the API has it.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn TEEC_FinalizeContext(context: *mut c_void) {
    let Some(real) = real!(c"TEEC_FinalizeContext" as OfOne) else { return };
    for mut memory in sessions::forget(context as usize) {
        if let Some(release) = real!(c"TEEC_ReleaseSharedMemory" as Release) {
            // SAFETY: registered with this context, which still is.
            unsafe { release(&raw mut *memory) };
        }
    }
    // SAFETY: the caller's promise.
    unsafe { real(context) };
}

/// Whether an application has hooks is known now, if it was asked. Says so where it has them for nothing.
fn learn(application: Uuid, outcome: &Outcomes) {
    let Some(entered) = outcome.entered else { return };
    let is_news = sessions::has_hooks(application, entered);
    if is_news && outcome.lacks_counter {
        teeperf_lender::tell(format_args!(
            "trusted application {application} is not recorded: it has no counter. Build it with \
             TEEPERF_COUNTER=y, or record without --clock"
        ));
    }
}

/// What came of a call.
struct Outcomes {
    result: Outcome,
    /// Whether the application has entered the arena; nothing where it was not lent, or the call did not come so far.
    entered: Option<bool>,
    /// It has hooks, but not the counter that is the clock.
    lacks_counter: bool,
}

/// Calls, with the thread's arena in a free slot of the operation where there is one. An application that
/// has not entered it may not have liked it: where the call failed, it is made once more as the client has asked it;
/// of one that `has_hooks`, where it has refused parameters. `call` says what came of it, and of whom that is.
///
/// # Safety
/// `operation` is one that nobody else changes meanwhile.
unsafe fn lend(
    own: &mut Own,
    context: usize,
    window: Option<Window>,
    has_hooks: bool,
    operation: *mut Operation,
    given: *mut Operation,
    call: &mut impl FnMut(*mut Operation) -> (Outcome, u32),
) -> Outcomes {
    let memory = own.memory;
    let register = |shared| {
        real!(c"TEEC_RegisterSharedMemory" as Register).is_some_and(|register| {
            // SAFETY: the client's context, and memory that stays.
            unsafe { register(context as *mut c_void, shared) == SUCCESS }
        })
    };
    let is_lent = context != 0 && !memory.is_kept && takes_memory();
    let lent = window.filter(|_| is_lent).and_then(|window| {
        let shared = sessions::registered(context, memory, register)?;
        // SAFETY: the caller's promise.
        let slot = unsafe { lending::lend(operation, shared) }?;
        Some((window, slot))
    });
    let Some((window, slot)) = lent else {
        return Outcomes { result: call(given).0, entered: None, lacks_counter: false };
    };
    let before = own.entered();
    own.hand_on(Some(window), Some(HANDED_ON));
    let (mut result, origin) = call(operation);
    slot.take_back();
    let entered = own.entered() != before;
    let lacks_counter = own.lacks_counter();
    own.come_back(Some(HANDED_ON));
    let was_asked = entered
        || lacks_counter
        || origin == OF_APPLICATION
        || [SUCCESS, TARGET_DEAD].contains(&result);
    let may_dislike = match result {
        SUCCESS | CANCEL => false,
        BAD_PARAMETERS => true,
        _ => !has_hooks,
    };
    if !entered && may_dislike {
        slot.undo();
        (result, _) = call(given);
    }
    Outcomes { result, entered: was_asked.then_some(entered), lacks_counter }
}

fn takes_memory() -> bool {
    static TAKES: OnceLock<bool> = OnceLock::new();
    *TAKES.get_or_init(system::takes_memory)
}
