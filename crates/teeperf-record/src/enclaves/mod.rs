//! Which files lie where in an enclave: told by the runtime that loaded it, whose lists for debuggers are read from outside, through
//! `/proc/PID/mem`.
//!
//! * `process`: memory and maps of a process; `variables`: where in it a variable is;
//! * `intel`, `open_enclave`, `gramine`: what these runtimes keep, each a [`Runtime`];
//! * `files`: what a file puts into the enclave.
//!
//! The enclave runner of Fortanix's EDP keeps no list (rust-sgx, `enclave-runner/src`): it reads the file in SGXS form, which has pages and no
//! symbols, and forgets its name. So of such an enclave nothing is found, and the user names its ELF file: `--module`.
//!
//! All that is read is the program's to write: lists end after [`MOST`] entries, names have a longest length, and what lies outside of
//! the enclave is left out.

mod files;
mod gramine;
mod intel;
mod open_enclave;
mod process;
#[cfg(test)]
mod tests;
mod variables;

use crate::sample::Map;
use crate::sgx::GivenModule;
use files::module;
pub(crate) use process::{Mapping, Process};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use teeperf_symbols::Part;

/// Most entries of a list that are looked at.
const MOST: usize = 1024;

/// A file in an enclave. Addresses are those in the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Module {
    /// As it is for the process.
    pub(crate) path: Vec<u8>,
    pub(crate) code: Vec<Part>,
    /// What else is loaded: perf looks there for the tables by which it follows stacks.
    pub(crate) data: Vec<Part>,
    /// Empty where it has none.
    pub(crate) build_id: Vec<u8>,
}

impl Module {
    /// As maps of a process.
    pub(crate) fn maps(&self, pid: u32) -> impl Iterator<Item = Map<'_>> {
        let code = self.code.iter().map(|part| (part, libc::PROT_READ | libc::PROT_EXEC));
        let data = self.data.iter().map(|part| (part, libc::PROT_READ));
        code.chain(data).map(move |(part, protection)| Map {
            pid,
            tid: pid,
            address: part.address,
            length: part.length,
            offset: part.offset,
            protection: protection as u32,
            flags: libc::MAP_SHARED as u32,
            mode: teeperf_wire::body::sample::mode::USER,
            path: &self.path,
            build_id: &self.build_id,
            ..Map::default()
        })
    }

    fn has(&self, address: u64) -> bool {
        self.code.iter().any(|code| address.wrapping_sub(code.address) < code.length)
    }

    /// The same file in an enclave that lies so much further.
    pub(crate) fn moved(&self, distance: u64) -> Self {
        let moved = |parts: &[Part]| {
            let parts = parts.iter();
            parts
                .map(|part| Part { address: part.address.wrapping_add(distance), ..*part })
                .collect()
        };
        Self { code: moved(&self.code), data: moved(&self.data), ..self.clone() }
    }
}

/// A file, and what is added to its addresses, as a runtime tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Placed {
    path: Vec<u8>,
    bias: u64,
}

/// What is read of a process has no sense, or cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("process {process}: {what} at {address:#x}")]
pub(crate) struct Unreadable {
    process: u32,
    what: &'static str,
    address: u64,
}

/// Where lists end.
const NO_MORE: u64 = 0;

/// Goes through a list of the program's: `each` takes the entry at an address, and tells where the next one is. `endless` is what is wrong
/// where there are more than [`MOST`].
fn walk(
    first: u64,
    endless: Unreadable,
    mut each: impl FnMut(u64) -> Result<u64, Unreadable>,
) -> Result<(), Unreadable> {
    let mut at = first;
    for _ in 0..MOST {
        if at == NO_MORE {
            return Ok(());
        }
        at = each(at)?;
    }
    Err(endless)
}

/// Something that loads enclaves, and says so to debuggers.
trait Runtime: std::fmt::Debug + Sync {
    /// The variable that its list begins in.
    fn variable(&self) -> &'static str;
    /// Part of the name of the library that has it, where there is a usual one; it may be in the program itself.
    fn library(&self) -> &'static str;
    /// Files that it has loaded, into this enclave at least. `variable` is where that is.
    fn files(
        &self,
        process: &Process,
        variable: u64,
        enclave: &Range<u64>,
    ) -> Result<Vec<Placed>, Unreadable>;
}

/// All that are known.
const RUNTIMES: [&dyn Runtime; 3] = [&intel::Intel, &open_enclave::OpenEnclave, &gramine::Gramine];

/// Most that is said of an enclave, as [`MOST`] are its modules: a program may change its list for ever.
const MOST_PROBLEMS: usize = 32;

/// Looks for the modules of one enclave, again and again: runtimes tell of an enclave when it is finished already, and some load libraries
/// into it later.
#[derive(Debug)]
pub(crate) struct Finder {
    process: u32,
    enclave: Range<u64>,
    named: Arc<[GivenModule]>,
    known: Vec<Module>,
    told: BTreeSet<String>,
    /// Runtimes that the process was found to have, and where their variables are: that takes longer than to read their lists.
    variables: Vec<(&'static dyn Runtime, u64)>,
}

/// What is new since the last look.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct News {
    pub(crate) modules: Vec<Module>,
    /// What a user should know.
    pub(crate) problems: Vec<String>,
}

impl Finder {
    /// For the enclave at these addresses.
    pub(crate) fn new(process: u32, enclave: Range<u64>, named: Arc<[GivenModule]>) -> Self {
        Self {
            process,
            enclave,
            named,
            known: Vec::new(),
            told: BTreeSet::new(),
            variables: Vec::new(),
        }
    }

    /// Whether a module has an address.
    pub(crate) fn has(&self, address: u64) -> bool {
        self.known.iter().any(|module| module.has(address))
    }

    /// Whether any module was found.
    pub(crate) fn is_found(&self) -> bool {
        !self.known.is_empty()
    }

    /// Modules that were found.
    pub(crate) fn found(&self) -> &[Module] {
        &self.known
    }

    /// Looks once more. The first time takes some milliseconds, the next ones less; still, not for each sample.
    pub(crate) fn look(&mut self) -> News {
        let mut problems = Vec::new();
        let modules = self.find(&mut problems);
        self.news(modules, problems)
    }

    fn news(&mut self, modules: Vec<Module>, problems: Vec<String>) -> News {
        let mut news = News::default();
        for module in modules {
            if self.known.len() < MOST && !self.known.contains(&module) {
                self.known.push(module.clone());
                news.modules.push(module);
            }
        }
        for problem in problems {
            if self.told.len() < MOST_PROBLEMS && self.told.insert(problem.clone()) {
                news.problems.push(problem);
            }
        }
        news
    }

    fn find(&mut self, problems: &mut Vec<String>) -> Vec<Module> {
        let process = match Process::open(self.process) {
            Ok(process) => process,
            Err(error) => {
                problems.push(format!("process {}: {error}", self.process));
                return Vec::new();
            }
        };
        let mut modules = files::named(&self.named, &self.enclave, problems);
        // What the user says counts.
        if modules.is_empty() {
            if self.variables.is_empty() {
                self.variables = variables::find(&process, &RUNTIMES);
            }
            for &(runtime, variable) in &self.variables {
                let files = || runtime.files(&process, variable, &self.enclave);
                // The program goes on meanwhile, and frees what it takes off its list: what is there twice counts.
                match files().and_then(|placed| Ok((placed, files()?))) {
                    Ok((placed, again)) => modules.extend(
                        placed
                            .iter()
                            .filter(|placed| again.contains(placed))
                            .filter_map(|placed| module(&process, placed, &self.enclave, problems)),
                    ),
                    Err(error) => problems.push(error.to_string()),
                }
            }
        }
        modules
    }
}

/// Goes through the lists of all runtimes in a program whose memory this is, for fuzzers; how many files each has in the enclave.
/// They are those of no process.
pub(crate) fn any_lists(memory: std::fs::File, enclave: &Range<u64>) -> [usize; 3] {
    const NOBODY: u32 = 0;
    let process = Process::of(NOBODY, memory);
    RUNTIMES.map(|runtime| {
        let Ok(placed) = runtime.files(&process, 0, enclave) else { return 0 };
        assert!(placed.len() <= MOST + 1, "a list does not end");
        let (mut problems, mut modules) = (Vec::new(), Vec::new());
        for placed in &placed {
            modules.extend(module(&process, placed, enclave, &mut problems));
        }
        assert_eq!(modules.len(), problems.len(), "a file of nobody's was read");
        let is_within = |part: &Part| {
            enclave.start <= part.address && part.length <= enclave.end - part.address
        };
        assert!(modules.iter().flat_map(|module| &module.code).all(is_within));
        modules.len()
    })
}
