//! What is known of contexts, sessions and trusted applications. All by the addresses and names that the
//! client uses; nothing is looked at behind them.

use crate::teec::{BOTH_WAYS, SharedMemory, Uuid};
use std::collections::HashMap;
use std::sync::Mutex;
use teeperf_lender::recorder::Memory;
use teeperf_lender::windows::{self, Window};

/// A session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Session {
    /// Address of its context.
    pub(crate) context: usize,
    pub(crate) application: Uuid,
    /// The trusted application's; nothing: it has no hooks.
    pub(crate) window: Option<Window>,
}

#[derive(Default)]
struct Known {
    /// By address.
    sessions: HashMap<usize, Session>,
    /// Which of them have hooks, as far as that is known, and their windows.
    applications: HashMap<Uuid, (Option<Window>, Option<bool>)>,
    /// Memory that contexts have registered, by context and address of the memory.
    registered: HashMap<(usize, usize), Box<SharedMemory>>,
}

// SAFETY: the addresses in it are the client's and the API's, which may be used by any thread.
unsafe impl Send for Known {}

static KNOWN: Mutex<Option<Known>> = Mutex::new(None);

fn with<T>(what: impl FnOnce(&mut Known) -> T) -> Option<T> {
    // A panic under this lock would have been ours, and left it as it was.
    let mut known = KNOWN.lock().unwrap_or_else(|lock| lock.into_inner());
    Some(what(known.get_or_insert_default()))
}

/// The window of a trusted application, if it may have hooks and there are windows left.
pub(crate) fn window_of(application: Uuid) -> Option<Window> {
    with(|known| {
        let known = known.applications.entry(application);
        let (window, has_hooks) = *known.or_insert_with(|| {
            let window = windows::next();
            (window, window.is_none().then_some(false))
        });
        window.filter(|_| has_hooks != Some(false))
    })?
}

/// Whether a trusted application has shown that it has hooks.
pub(crate) fn has_shown_hooks(application: Uuid) -> bool {
    let is = |known: &mut Known| {
        known.applications.get(&application).is_some_and(|it| it.1 == Some(true))
    };
    with(is).unwrap_or(false)
}

/// Whether a trusted application has hooks is known now. Once it has shown that it has some, a call that ended
/// before them changes nothing. Says whether that is news.
pub(crate) fn has_hooks(application: Uuid, has: bool) -> bool {
    with(|all| {
        let Some((_, known)) = all.applications.get_mut(&application) else { return false };
        if matches!(*known, Some(before) if before || before == has) {
            return false;
        }
        *known = Some(has);
        let its = all.sessions.values_mut().filter(|session| session.application == application);
        its.filter(|_| !has).for_each(|session| session.window = None);
        true
    })
    .unwrap_or(false)
}

/// A session was opened.
pub(crate) fn opened(session: usize, is: Session) {
    with(|known| known.sessions.insert(session, is));
}

/// The session at this address.
pub(crate) fn session(session: usize) -> Option<Session> {
    with(|known| known.sessions.get(&session).copied())?
}

/// It is closed.
pub(crate) fn closed(session: usize) {
    with(|known| known.sessions.remove(&session));
}

/// The arena as this context knows it; where it does not yet, `register` tells it, and says whether it did.
pub(crate) fn registered(
    context: usize,
    memory: Memory,
    register: impl FnOnce(*mut SharedMemory) -> bool,
) -> Option<*mut SharedMemory> {
    let key = (context, memory.base as usize);
    let known = with(|known| known.registered.get_mut(&key).map(|shared| &raw mut **shared))?;
    if known.is_some() {
        return known;
    }
    let mut shared = Box::new(SharedMemory {
        buffer: memory.base.cast(),
        size: memory.length,
        flags: BOTH_WAYS,
        implementation: [0; 16],
    });
    // Not under the lock: it is a call into the kernel.
    if !register(&raw mut *shared) {
        return None;
    }
    with(|known| &raw mut **known.registered.entry(key).or_insert(shared))
}

/// The context ends: what it knew of arenas, to be released.
#[expect(clippy::vec_box, reason = "the API knows each by its address")]
pub(crate) fn forget(context: usize) -> Vec<Box<SharedMemory>> {
    with(|known| {
        known.sessions.retain(|_, session| session.context != context);
        known.registered.extract_if(|key, _| key.0 == context).map(|(_, shared)| shared).collect()
    })
    .unwrap_or_default()
}
