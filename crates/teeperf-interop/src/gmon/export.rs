//! From a profile of a recording to a file for gprof: of one module, because a gmon file belongs to one
//! ELF file. Calls are counted exactly; times become samples.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

use teeperf_profile::model::{Code, Function, FunctionId, Place, Profile};
use teeperf_symbols::{Error as SymbolsError, Functions, Search};

use super::names::layout_of_image;
use super::{Builder, Error, Gmon, Layout, Names};

/// Which module's functions are written.
#[derive(Clone, Copy)]
pub enum Which<'a> {
    /// The program that was run; where the recording does not know it, the only module.
    Program,
    /// One of this path or file name.
    Named(&'a str),
    /// The module that this ELF file is.
    Elf(&'a Names),
}

/// A file to be written, and what is not in it.
#[derive(Debug)]
pub struct Export {
    /// The file.
    pub gmon: Gmon,
    /// Path of the module that it is of, or that it has no name.
    pub module: String,
    /// What else the profile has.
    pub left_out: LeftOut,
    /// Where no ELF file was named: why that at the module's path is not the one that was recorded.
    pub doubt: Option<String>,
}

/// What the profile has and the file has no place for.
#[derive(Debug, Default, PartialEq)]
pub struct LeftOut {
    /// Nanoseconds in functions of other modules, or whose address is not known.
    pub ns: f64,
    /// Share of all time that this is.
    pub share: f64,
    /// Other modules, the one with most time first.
    pub modules: Vec<String>,
    /// Calls by what has no address in the module: the file has them, by nobody.
    pub calls_by_others: u64,
    /// Calls on paths for which there was no room, so that their caller is not known: likewise.
    pub calls_without_room: u64,
}

/// The functions of a module, as a file with so many samples in a second. Functions must have
/// places: see [`teeperf_profile::Options::by_place`].
///
/// # Errors
///
/// When the module cannot be told or nothing of it was called, or when what it has fits no file.
pub fn export(profile: &Profile, which: Which<'_>, hz: u32) -> Result<Export, Error> {
    let modules = modules(profile);
    let module = choose(profile, &modules, which)?;
    let names = if let Which::Elf(names) = which { Some(names) } else { None };
    let layout = layout(module, names)?;
    if let (Some(names), Code::Image) = (names, module.code) {
        let begins = |at: u64| names.at(at).is_some_and(|found| names.extents()[found].start == at);
        if !has_functions(profile, module, begins) {
            return Err(other_image(names, module));
        }
    }
    let places: Vec<Option<(u64, u64)>> =
        profile.functions.iter().map(|function| place(function, module, names)).collect();
    let place = |id: FunctionId| places.get(id.0 as usize).copied().flatten();

    let mut builder = Builder::new(layout, hz);
    let mut left_out = LeftOut::default();
    let mut own: BTreeMap<(u64, u64), f64> = BTreeMap::new();
    for thread in &profile.threads {
        for node in thread.tree.nodes.iter().skip(1) {
            let ns = node.self_time.value;
            let Some((address, size)) = place(node.function) else {
                left_out.ns += ns;
                continue;
            };
            *own.entry((address, size)).or_default() += ns;
            let caller = match node.parent {
                0 => None,
                parent => Some(thread.tree.nodes[parent as usize].function),
            };
            let no_room = thread.no_room.as_ref().map(|no_room| no_room.function);
            if caller.is_some() && caller == no_room {
                left_out.calls_without_room =
                    left_out.calls_without_room.saturating_add(node.calls);
            } else if caller.is_some_and(|caller| place(caller).is_none()) {
                left_out.calls_by_others = left_out.calls_by_others.saturating_add(node.calls);
            }
            let caller = caller.and_then(place);
            builder.call(caller.map_or(0, |(address, _)| address), address, node.calls);
        }
    }
    if let Some(graph) = &profile.graph {
        for vertex in &graph.functions {
            let ns = vertex.self_time.value;
            match place(vertex.function) {
                Some(known) => *own.entry(known).or_default() += ns,
                None => left_out.ns += ns,
            }
        }
        for arc in &graph.arcs {
            let Some((callee, _)) = place(arc.callee) else { continue };
            let caller = arc.caller.and_then(place);
            if caller.is_none() && arc.caller.is_some() {
                left_out.calls_by_others = left_out.calls_by_others.saturating_add(arc.calls);
            }
            builder.call(caller.map_or(0, |(address, _)| address), callee, arc.calls);
        }
    }
    let within: f64 = own.values().sum();
    for ((address, size), ns) in own {
        builder.time(address, size, ns);
    }
    if left_out.ns > 0.0 {
        left_out.share = left_out.ns / (left_out.ns + within);
    }
    let others = modules.iter().filter(|other| other.path != module.path);
    left_out.modules = others.map(Module::shown).collect();
    let doubt = if names.is_none() { doubt(profile, module) } else { None };
    Ok(Export { gmon: builder.finish()?, module: module.shown(), left_out, doubt })
}

/// A module that something was called of.
struct Module {
    path: String,
    build_id: Vec<u8>,
    /// As of the function of which most is known.
    code: Code,
    ns: f64,
}

impl Module {
    fn name(&self) -> &str {
        file_name(&self.path)
    }

    /// Where its file is looked for. Where files lie here an image does not know: of a path the last part counts.
    fn file(&self) -> &Path {
        Path::new(if self.code == Code::Process { &*self.path } else { self.name() })
    }

    /// For people. An image need not say its name.
    fn shown(&self) -> String {
        match &*self.path {
            "" => "an image without a name".to_owned(),
            path => path.to_owned(),
        }
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// All of them, the one with most time first.
fn modules(profile: &Profile) -> Vec<Module> {
    let mut found: BTreeMap<(&str, &[u8]), (Code, f64)> = BTreeMap::new();
    let nodes = profile.threads.iter().flat_map(|thread| thread.tree.nodes.iter().skip(1));
    let of_paths = nodes.map(|node| (node.function, node.self_time.value));
    let graph = profile.graph.iter().flat_map(|graph| &graph.functions);
    let of_counts = graph.map(|vertex| (vertex.function, vertex.self_time.value));
    for (function, ns) in of_paths.chain(of_counts) {
        let function = profile.functions.get(function.0 as usize);
        if let Some(Place { path, build_id, code, .. }) = function.and_then(|f| f.place.as_ref()) {
            let (known, sum) = found.entry((path, build_id)).or_insert((*code, 0.0));
            *known = (*known).min(*code);
            *sum += ns;
        }
    }
    let module = |((path, build_id), (code, ns)): ((&str, &[u8]), (Code, f64))| Module {
        path: path.to_owned(),
        build_id: build_id.to_vec(),
        code,
        ns,
    };
    let mut modules: Vec<Module> = found.into_iter().map(module).collect();
    modules.sort_by(|a, b| b.ns.total_cmp(&a.ns));
    modules
}

fn choose<'a>(
    profile: &Profile,
    modules: &'a [Module],
    which: Which<'_>,
) -> Result<&'a Module, Error> {
    let wanted = match which {
        Which::Program => match modules {
            [only] => return Ok(only),
            _ => profile.info.command.first().map_or("the program", |path| file_name(path)),
        },
        Which::Named(name) => name,
        Which::Elf(names) => {
            let same_build = |module: &&Module| {
                !module.build_id.is_empty() && module.build_id == names.build_id()
            };
            if let Some(found) = modules.iter().find(same_build) {
                return Ok(found);
            }
            let wanted = names.program().map_or("", |(path, _)| file_name(path));
            let is_known = modules.iter().any(|module| module.name() == wanted);
            match sole_image(modules).filter(|_| !is_known) {
                Some(found) if names.is_image() => return Ok(found),
                Some(found) if modules.len() == 1 => return Err(other_image(names, found)),
                _ => {}
            }
            wanted
        }
    };
    if let Some(found) = modules.iter().find(|module| module.path == wanted) {
        return Ok(found);
    }
    let named: Vec<&Module> = modules.iter().filter(|module| module.name() == wanted).collect();
    match (named.as_slice(), which) {
        ([found], Which::Elf(names))
            if !found.build_id.is_empty() && found.build_id != names.build_id() =>
        {
            Err(Error::OtherBuild {
                elf: names.program().map_or_else(String::new, |(path, _)| path.to_owned()),
            })
        }
        ([found], _) => Ok(found),
        ([], _) => Err(Error::NoModule {
            module: wanted.to_owned(),
            others: modules.iter().map(Module::shown).collect(),
        }),
        (several, _) => Err(Error::SeveralModules {
            module: wanted.to_owned(),
            paths: several.iter().map(|module| module.path.clone()).collect(),
        }),
    }
}

/// The image that a file can only be of, whatever it is called: the only one, or the one without a name.
fn sole_image(modules: &[Module]) -> Option<&Module> {
    let mut images = modules.iter().filter(|module| module.code != Code::Process);
    match (images.next(), images.next()) {
        (only, None) => only,
        _ => modules.iter().find(|module| module.path.is_empty()),
    }
}

/// How numbers stand in the module: all processes that are recorded have 64 bits.
fn layout(module: &Module, names: Option<&Names>) -> Result<Layout, Error> {
    match (names, module.code) {
        (Some(names), Code::UnknownImage) => Err(other_image(names, module)),
        (Some(names), _) => Ok(names.program().map_or(Layout::LITTLE_64, |(_, layout)| layout)),
        (None, Code::Process) => Ok(Layout::LITTLE_64),
        (None, code) => {
            let there = layout_of_image(module.file());
            let there = there.filter(|_| code == Code::Image);
            there.ok_or_else(|| Error::NoLayout { module: module.shown() })
        }
    }
}

/// Whether the functions that are known of a module begin where its file has them, as `begins` says. For what has no
/// build-id to tell it by.
fn has_functions(profile: &Profile, module: &Module, begins: impl Fn(u64) -> bool) -> bool {
    let known = profile.functions.iter().filter_map(|function| place(function, module, None));
    known.filter(|&(_, size)| size > 0).all(|(address, _)| begins(address))
}

/// Why the file at the module's path is not the one that was recorded.
fn doubt(profile: &Profile, module: &Module) -> Option<String> {
    let build_id = (!module.build_id.is_empty()).then(|| module.build_id.clone());
    let has_build_id = build_id.is_some();
    let found = Functions::open(module.file(), &Search { build_id, ..Search::default() });
    let functions = match found {
        Ok(_) if has_build_id => return None,
        Ok(functions) => functions,
        Err(error) => return is_another(&error).then(|| error.to_string()),
    };
    let begins = |at: u64| functions.at(at).is_some_and(|symbol| symbol.start == at);
    (!has_functions(profile, module, begins)).then(|| {
        let file = module.file().display();
        format!("{file}: functions do not begin where they did: the file has been replaced since")
    })
}

/// Whether an error says that what was recorded is not there. Of a file that cannot be looked at nothing is known.
fn is_another(error: &SymbolsError) -> bool {
    match error {
        SymbolsError::Io { source, .. } => source.kind() == ErrorKind::NotFound,
        SymbolsError::BuildId { .. }
        | SymbolsError::NotAFile { .. }
        | SymbolsError::NotAModule { .. } => true,
        _ => false,
    }
}

fn other_image(names: &Names, module: &Module) -> Error {
    let elf = names.program().map_or_else(String::new, |(path, _)| path.to_owned());
    Error::OtherImage { elf, module: module.shown() }
}

/// Address and size of a function in the module: by the ELF file, where there is one and it knows the
/// function, since a recording has no sizes of functions without symbols.
fn place(function: &Function, module: &Module, names: Option<&Names>) -> Option<(u64, u64)> {
    let place = function.place.as_ref()?;
    let is_there = *place.path == *module.path && *place.build_id == *module.build_id;
    if !is_there || place.code == Code::UnknownImage {
        return None;
    }
    let known = names.and_then(|names| names.at(place.address).map(|at| &names.extents()[at]));
    Some(known.map_or((place.address, place.size), |extent| (extent.start, extent.size)))
}
