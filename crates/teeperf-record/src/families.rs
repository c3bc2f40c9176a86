//! Processes that record in memory of the one that they were forked from ([`crate::heirs`]), because they
//! cannot reach the recorder. Nobody says that they come or go: the drain looks. Which process a claim is
//! of, the system confirms, by the memory that it has mapped, or by whose child it is. So a program
//! that lies has its own recording wrong, and no other's.

use crate::heirs::{Claim, Heirs, NAME};
use crate::inside::View;
use crate::liveness::{filters, innermost};
use crate::process::{Attached, Shared};
use crate::server::{ancestors, arguments_of, executable_of, parent_of};
use crate::socket::open_process;
use std::collections::{HashMap, HashSet};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use teeperf_wire::heirs::reason;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Families {
    /// Numbers of processes that were given out.
    ids: Arc<AtomicU32>,
    families: Vec<Family>,
    heirs: Vec<Heir>,
    /// By the processes that attached.
    libraries_told: HashMap<u32, u32>,
}

/// Those who have the memory of one process that attached.
#[derive(Debug)]
struct Family {
    heirs: Arc<Heirs>,
    inode: u64,
    owner: Owner,
    /// Slots whose claims were looked at, and whose processes are not gone.
    seen: HashSet<usize>,
    refused: [u32; reason::COUNT],
    /// Whether nobody had the memory any more at the last look.
    is_let_go: bool,
}

/// The process that attached.
#[derive(Debug)]
struct Owner {
    pid: u32,
    executable: Vec<u8>,
    arguments: Vec<Vec<u8>>,
}

/// A process that records in a slot.
#[derive(Debug)]
struct Heir {
    id: u32,
    pid: u32,
    /// Nothing where it was gone when it was first seen.
    process: Option<OwnedFd>,
    family: Arc<Heirs>,
    slot: usize,
    is_gone: bool,
}

/// Whose a claim is.
enum Claimant {
    Lives(u32, OwnedFd),
    /// It has ended, or the program lies.
    Gone,
}

/// Processes of a family that say that they are not recorded.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) processes: u32,
    /// They are libraries.
    is_of_libraries: bool,
    pub(crate) text: String,
}

impl Families {
    /// Numbers its processes behind those that have these.
    pub(crate) fn numbered(ids: Arc<AtomicU32>) -> Self {
        Self { ids, ..Self::default() }
    }

    /// A process attached that may have heirs. Gives the number of the one that it takes over from by
    /// `exec`, where that recorded in a slot.
    pub(crate) fn attached(&mut self, attached: &Attached) -> Option<u32> {
        if let Some(heirs) = &attached.heirs
            && let Ok(inode) = heirs.inode()
        {
            self.families.push(Family {
                heirs: Arc::clone(heirs),
                inode,
                owner: Owner {
                    pid: attached.pid,
                    executable: attached.executable.clone(),
                    arguments: attached.arguments.clone(),
                },
                seen: HashSet::new(),
                refused: [0; reason::COUNT],
                is_let_go: false,
            });
        }
        let mut heirs = self.heirs.iter_mut();
        let before = heirs.find(|heir| heir.pid == attached.pid && !heir.is_gone)?;
        before.is_gone = true;
        Some(before.id)
    }

    /// Those that have come since the last look.
    pub(crate) fn newcomers(&mut self) -> Vec<Attached> {
        let mut all = Vec::new();
        for family in &mut self.families {
            for claim in family.heirs.claims() {
                if !family.seen.insert(claim.slot) {
                    continue;
                }
                let Some(segments) = family.heirs.segments(claim.slot) else { continue };
                let (pid, process) = match family.claimant(claim) {
                    Claimant::Lives(pid, process) => (pid, Some(process)),
                    Claimant::Gone => (claim.pid, None),
                };
                let id = self.ids.fetch_add(1, Relaxed) + 1;
                all.push(family.attached(id, pid, claim, process.is_some(), segments));
                let (heirs, slot) = (Arc::clone(&family.heirs), claim.slot);
                self.heirs.push(Heir { id, pid, process, family: heirs, slot, is_gone: false });
            }
        }
        all
    }

    /// Numbers of those that have ended since the last look.
    pub(crate) fn gone(&mut self) -> Vec<u32> {
        let entry = |heir: &Heir| libc::pollfd {
            // The kernel passes over negative ones.
            fd: heir.process.as_ref().map_or(-1, AsRawFd::as_raw_fd),
            events: libc::POLLIN,
            revents: 0,
        };
        let mut all: Vec<_> = self.heirs.iter().map(entry).collect();
        if all.is_empty() {
            return Vec::new();
        }
        // SAFETY: address and length are those of `all`. After an error nothing is ready.
        unsafe { libc::poll(all.as_mut_ptr(), all.len() as libc::nfds_t, 0) };
        let mut gone = Vec::new();
        for (heir, entry) in self.heirs.iter_mut().zip(&all) {
            if !heir.is_gone && (heir.process.is_none() || entry.revents != 0) {
                heir.is_gone = true;
                gone.push(heir.id);
            }
        }
        gone
    }

    /// All that the process of this number had in its slot is written.
    pub(crate) fn finished(&mut self, id: u32) {
        let Some(at) = self.heirs.iter().position(|heir| heir.id == id) else { return };
        let heir = self.heirs.swap_remove(at);
        heir.family.give_back(heir.slot);
        let mut families = self.families.iter_mut();
        if let Some(family) = families.find(|family| Arc::ptr_eq(&family.heirs, &heir.family)) {
            family.seen.remove(&heir.slot);
        }
    }

    /// Processes that are not recorded, since the last look.
    pub(crate) fn refusals(&mut self) -> Vec<Refusal> {
        let mut all = Vec::new();
        for family in &mut self.families {
            let refusals = family.refusals();
            for refusal in refusals.iter().filter(|refusal| refusal.is_of_libraries) {
                let told = self.libraries_told.entry(family.owner.pid).or_default();
                // Workers write these numbers, as they like.
                *told = told.saturating_add(refusal.processes);
            }
            all.extend(refusals);
        }
        all
    }

    /// How many libraries are in a namespace of their own, as processes that attached said, or their
    /// children. Keys are the ids of the processes that attached.
    pub(crate) fn libraries_told(&mut self) -> HashMap<u32, u32> {
        std::mem::take(&mut self.libraries_told)
    }

    /// Looks for memory that nobody has any more. Claims that were made in it before are still to be seen.
    pub(crate) fn look_for_what_is_let_go(&mut self) {
        self.families.iter_mut().for_each(|family| family.is_let_go = !family.heirs.is_lent());
    }

    /// Gives up the memory that was found so, once the drain has written all that processes left in
    /// it. So a recorder of a hundred thousand processes, one after the other, has no descriptor of
    /// each.
    pub(crate) fn give_up_what_is_let_go(&mut self) {
        self.families.retain(|family| !family.is_let_go || family.has_more());
    }

    /// Whether there are processes that have memory of others, or may yet have some: children that have
    /// called nothing yet.
    pub(crate) fn are_there(&mut self) -> bool {
        self.look_for_what_is_let_go();
        self.give_up_what_is_let_go();
        self.may_be_there()
    }

    /// Whether there may be any.
    pub(crate) fn may_be_there(&self) -> bool {
        !self.families.is_empty()
    }
}

impl Family {
    /// Whether the drain has not written all of a slot, or has not told of a process that says that
    /// it is not recorded.
    fn has_more(&self) -> bool {
        let is_claimed = self.heirs.claims().next().is_some();
        is_claimed || !self.seen.is_empty() || self.heirs.refused() != self.refused
    }

    fn attached(
        &self,
        id: u32,
        pid: u32,
        claim: Claim,
        lives: bool,
        segments: Vec<Arc<crate::segment::Segment>>,
    ) -> Attached {
        let or = |found: Vec<u8>, of_owner: &Vec<u8>| {
            if found.is_empty() { of_owner.clone() } else { found }
        };
        let arguments = if lives { arguments_of(pid) } else { Vec::new() };
        let has_arguments = arguments.iter().any(|argument| !argument.is_empty());
        Attached {
            id,
            pid,
            inner_pid: claim.pid,
            exec_of: 0,
            parent_pid: parent_of(pid).filter(|_| lives).unwrap_or(claim.parent),
            executable: or(
                if lives { executable_of(pid) } else { Vec::new() },
                &self.owner.executable,
            ),
            arguments: if has_arguments { arguments } else { self.owner.arguments.clone() },
            shared: Arc::new(Shared { segments: Mutex::new(segments) }),
            heirs: None,
            filters: if lives { filters(pid) } else { None },
            view: View::of(pid).filter(|_| lives),
        }
    }

    fn claimant(&self, claim: Claim) -> Claimant {
        if let Ok(process) = open_process(claim.pid) {
            // Looked at behind that, so that it is no other of this id.
            if self.has(claim.pid) {
                return Claimant::Lives(claim.pid, process);
            }
        }
        match self.known_inside_as(claim.pid) {
            Some((pid, process)) => Claimant::Lives(pid, process),
            None => Claimant::Gone,
        }
    }

    /// Whether a process is of the family: it has the memory mapped, or, where that cannot be seen, is a
    /// child of those who have.
    fn has(&self, pid: u32) -> bool {
        let maps = std::fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
        if !maps.is_empty() {
            return maps_have(&maps, self.inode);
        }
        ancestors(pid).skip(1).any(|ancestor| ancestor == self.owner.pid)
    }

    /// A process of the family that knows itself by this id, in a namespace of its own.
    fn known_inside_as(&self, inner: u32) -> Option<(u32, OwnedFd)> {
        for entry in std::fs::read_dir("/proc").ok()?.flatten() {
            let pid: Option<u32> = entry.file_name().to_str().and_then(|name| name.parse().ok());
            let Some(pid) = pid else { continue };
            let status = std::fs::read_to_string(entry.path().join("status")).unwrap_or_default();
            if innermost(&status) == Some(inner)
                && let Ok(process) = open_process(pid)
                && self.has(pid)
            {
                return Some((pid, process));
            }
        }
        None
    }

    fn refusals(&mut self) -> Vec<Refusal> {
        let now = self.heirs.refused();
        let before = std::mem::replace(&mut self.refused, now);
        let mut all = Vec::new();
        for (why, (now, before)) in now.into_iter().zip(before).enumerate() {
            let processes = now.wrapping_sub(before);
            if processes == 0 {
                continue;
            }
            let text = self.refusal(why, processes);
            let is_of_libraries = why == reason::NAMESPACE;
            all.push(Refusal { processes, is_of_libraries, text });
        }
        all
    }

    /// Which are missing, why, and what to do.
    fn refusal(&self, why: usize, number: u32) -> String {
        let name = self.owner.name();
        let (one, several) = match why {
            reason::NAMESPACE => ("a library with hooks was", "libraries with hooks were"),
            _ => ("a process with hooks was", "processes with hooks were"),
        };
        let who = if number == 1 { one.into() } else { format!("{number} {several}") };
        let (what, why, next) = match why {
            reason::NO_SLOT => (
                "forked from",
                "could not reach the recorder, and the memory for such children was in use",
                "have fewer of them at a time, or have them call a function before they give up their rights",
            ),
            reason::NAMESPACE => (
                "loaded by",
                "is in a namespace of its own (dlmopen), in which nothing answers hooks",
                "load it by dlopen while it is recorded",
            ),
            _ => (
                "forked from",
                "must not ask for its own process id, by a filter of system calls (seccomp)",
                "have the filter permit getpid and gettid",
            ),
        };
        let pids: Vec<_> = self.heirs.refused_pids().iter().map(u32::to_string).collect();
        let pids = match pids.is_empty() {
            true => String::new(),
            false => format!(" (latest process ids: {})", pids.join(", ")),
        };
        format!("{who} {what} {name} and not recorded{pids}: it {why}; next: {next}")
    }
}

impl Owner {
    fn name(&self) -> String {
        let path = Path::new(std::ffi::OsStr::from_bytes(&self.executable)).display().to_string();
        format!("process {} ({})", self.pid, path.replace(char::is_control, "?"))
    }
}

/// Whether a list of mappings (proc_pid_maps(5)) has the memory of this inode.
fn maps_have(maps: &[u8], inode: u64) -> bool {
    let name = [b"/memfd:", NAME.to_bytes()].concat();
    let inode = inode.to_string();
    maps.split(|&byte| byte == b'\n').any(|line| {
        let mut fields = line.split(|&byte| byte == b' ').filter(|field| !field.is_empty());
        fields.nth(4) == Some(inode.as_bytes())
            && fields.next().is_some_and(|path| path.starts_with(&name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_found_among_mappings() {
        let line = "7f00-7f10 rw-s 00000000 00:01 1234    /memfd:teeperf-heirs (deleted)\n";
        assert!(maps_have(line.as_bytes(), 1234));
        assert!(maps_have(format!("1-2 r-xp 0 08:01 7 /bin/true\n{line}").as_bytes(), 1234));
        assert!(!maps_have(line.as_bytes(), 123));
        assert!(!maps_have(line.replace("memfd:", "tmp/").as_bytes(), 1234));
        assert!(!maps_have(b"\n 1234 /memfd:teeperf-heirs\n", 1234));
    }

    fn family_of(heirs: Arc<Heirs>, inode: u64, owner: Owner) -> Family {
        let (seen, refused) = (HashSet::new(), [0; reason::COUNT]);
        Family { heirs, inode, owner, seen, refused, is_let_go: false }
    }

    #[test]
    fn memory_that_nobody_has_is_given_up_once_all_of_it_is_written() {
        let family = || {
            let heirs = Arc::new(Heirs::create(None).unwrap());
            let owner = Owner { pid: 1, executable: Vec::new(), arguments: Vec::new() };
            family_of(heirs, 0, owner)
        };
        let mut families = Families::default();
        families.families.extend([family(), family(), family()]);
        let lent = families.families[0].heirs.lend().unwrap();
        families.families[1].seen.insert(0);
        let mut left = || {
            families.look_for_what_is_let_go();
            families.give_up_what_is_let_go();
            families.families.len()
        };
        assert_eq!(left(), 2);
        drop(lent);
        assert_eq!(left(), 1);
        families.families[0].seen.clear();
        families.give_up_what_is_let_go();
        assert!(!families.may_be_there());
    }

    /// Guards: the drain hears of a process that claimed a slot after the drain's last look, and
    /// ended before the drain asked whether any are there; and of one that is not recorded.
    #[test]
    fn memory_has_more_until_the_drain_has_seen_it() {
        use std::os::unix::fs::FileExt;
        use teeperf_wire::heirs::{REFUSED, SLOTS, slot};

        let heirs = Arc::new(Heirs::create(None).unwrap());
        let lent = std::fs::File::from(heirs.lend().unwrap());
        let write = |at: usize, number: u32| {
            lent.write_all_at(&number.to_le_bytes(), at as u64).unwrap();
        };
        write(SLOTS + slot::PID, u32::MAX);
        write(SLOTS + slot::STATE, slot::READY);
        write(REFUSED + 4 * reason::NO_SLOT, 2);
        drop(lent);
        let owner = Owner { pid: 1, executable: Vec::new(), arguments: Vec::new() };
        let mut families = Families::default();
        families.families.push(family_of(heirs, 0, owner));
        assert!(families.are_there());
        let [child] = &families.newcomers()[..] else { panic!("one child claimed a slot") };
        assert!(families.are_there());
        assert_eq!(families.gone(), [child.id]);
        families.finished(child.id);
        assert!(families.are_there());
        assert_eq!(families.refusals()[0].processes, 2);
        assert!(!families.are_there());
    }

    /// This process has the memory, its parent has not, and nobody has the last id.
    #[test]
    fn claims_are_believed_where_the_system_confirms_them() {
        let heirs = Arc::new(Heirs::create(None).unwrap());
        let inode = heirs.inode().unwrap();
        let own = std::process::id();
        let owner = Owner { pid: own, executable: b"/bin/\x1bx".to_vec(), arguments: Vec::new() };
        let family = family_of(heirs, inode, owner);
        let claimant = |pid| family.claimant(Claim { slot: 0, pid, parent: 1 });
        assert!(matches!(claimant(own), Claimant::Lives(pid, _) if pid == own));
        assert!(matches!(claimant(std::os::unix::process::parent_id()), Claimant::Gone));
        assert!(matches!(claimant(1), Claimant::Gone));
        assert!(matches!(claimant(u32::MAX), Claimant::Gone));
        assert_eq!(family.owner.name(), format!("process {own} (/bin/?x)"));
    }
}
