//! `teeperf cc` and `teeperf c++`: stand in for gcc and clang in any build. Add hooks when
//! code is made and the runtime when a program is linked, leave every other use as it is,
//! then become the compiler (`exec`: no further process, its exit status and signals are
//! the compiler's own). Only assembly for the user (`-S`) of which some functions are to have no hooks is looked
//! at when the compiler has ended.

mod added;
mod additions;
mod arguments;
mod clang_text;
mod configured;
mod headers;
mod naked;
mod options;
mod probe;
mod real;
mod response;
mod selecting;
mod settings;

use crate::bundle;
pub(crate) use added::exclusions;
pub(crate) use additions::{CLANG_HOOKS, Files};
use anyhow::{Context, Result};
pub(crate) use arguments::{Product, Request};
pub(crate) use headers::all as clang_headers;
pub(crate) use options::Options;
pub(crate) use probe::Family;
pub(crate) use real::{Driver, candidates};
pub(crate) use response::opened;
use selecting::{Plan, Words};
pub(crate) use selecting::{become_assembler, plan_of};
pub(crate) use settings::Settings;
pub(crate) use settings::check as check_settings;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// The compiler's call that stands for a call of the wrapper.
struct Call {
    command: Command,
    /// What is to be done with the assembly that is written.
    afterwards: Option<(Plan, Request)>,
}

fn call(driver: Driver, arguments: Vec<OsString>) -> Result<Call> {
    let (mut options, arguments) = options::Options::take(arguments)?;
    let request = Request::read(&response::expanded(&arguments), driver == Driver::Cxx);
    let choice = configured::choice(driver, &options, &arguments)?;
    options.compiler = choice.as_ref().map(|choice| choice.compiler.clone()).or(options.compiler);
    let found = real::find(driver, &options);
    let compiler = match &choice {
        Some(choice) => {
            found.with_context(|| format!("what {} was configured for", choice.folder.display()))?
        }
        None => found?,
    };
    let mut added = Vec::new();
    let mut link = additions::Link::default();
    let mut plan = None;
    let mut selecting = Words::default();
    let hooks = additions::wants_hooks(&request, &options);
    if hooks || additions::wants_linking(&request) {
        let bundle = bundle::unpacked()?;
        let mut files = bundle.files();
        let clang_headers;
        let known = probe::ask(&compiler, &request.header_options);
        // A compiler that does not say what it is links as gcc does.
        let family = known.as_ref().map_or(Family::Gcc, |known| known.family);
        options.add(Settings::here()?.build)?;
        if hooks {
            let known = known?;
            if known.family == Family::Clang
                && request.cxx
                && !request.modules
                && !options.system_headers
            {
                clang_headers = headers::folder()?;
                files.clang_headers = Some(&clang_headers);
            }
            let is_late = additions::is_late(&request, &options, &known)?;
            if !is_late {
                naked::warn(&request, &known);
            }
            plan = Plan::new(&request, &options, &known, &compiler, is_late)?;
            if let Some(plan) = &plan {
                selecting = plan.words(&request, family)?;
            }
            added = additions::hooks(&request, &options, &known, &files, is_late)?;
        } else if let Ok(known) = &known
            && let Some(plan) = plan_to_link(&request, &options, known, &compiler)?
        {
            selecting = plan.words(&request, family)?;
        }
        if additions::wants_linking(&request) {
            link = additions::linking(&request, &options, family, &files);
        }
    }
    let mut command = Command::new(&compiler.path);
    command.arg0(compiler.name).args(compiler.words).args(added).args(selecting.before);
    command.args(link.before).args(arguments).args(selecting.after).args(link.after);
    let afterwards = plan.filter(|_| request.to_assembly).map(|plan| (plan, request));
    Ok(Call { command, afterwards })
}

/// Where code may be made at a link, of objects for link-time optimisation, and gets hooks then.
fn plan_to_link(
    request: &Request,
    options: &Options,
    known: &probe::Known,
    compiler: &real::RealCompiler,
) -> Result<Option<Plan>> {
    if !options.may_be_late() || options.no_hooks || request.hooks_decided {
        return Ok(None);
    }
    match known.family == Family::Gcc && request.not_late.is_none() {
        true => Plan::new(request, options, known, compiler, true),
        false => Ok(None),
    }
}

/// Becomes the compiler. Comes back only with an error, or with the exit status of a compiler whose assembly was
/// looked at.
pub(crate) fn become_compiler(driver: Driver, arguments: Vec<OsString>) -> Result<u8> {
    bundle::needs_hooks()?;
    let Call { mut command, afterwards } = call(driver, arguments)?;
    if let Some((plan, request)) = afterwards {
        return plan.run(&mut command, &request);
    }
    let error = command.exec();
    Err(error).with_context(|| format!("cannot run the compiler {:?}", command.get_program()))
}

/// What the wrapper adds when it compiles C and C++ with a compiler of this family.
pub(crate) fn flags_to_compile(family: Family) -> Result<Vec<OsString>> {
    let mut options = options::Options::of_environment()?;
    options.add(Settings::here()?.build)?;
    if family == Family::Clang {
        options.compiler = std::env::var_os(Driver::C.variable()).or(Some("clang".into()));
    }
    let compiler = real::find(Driver::C, &options)?;
    let request = Request::read(&["-c".into(), "any.cc".into()], true);
    let known = probe::ask(&compiler, &[])?;
    if known.family != family {
        anyhow::bail!(
            "{} is {}; name another compiler in {}, or {} --clang",
            compiler.path.display(),
            if known.family == Family::Clang { "clang" } else { "gcc" },
            Driver::C.variable(),
            if family == Family::Clang { "leave out" } else { "add" },
        );
    }
    let bundle = bundle::unpacked()?;
    let mut files = bundle.files();
    let clang_headers;
    if family == Family::Clang {
        clang_headers = headers::folder()?;
        files.clang_headers = Some(&clang_headers);
    }
    let is_late = additions::is_late(&request, &options, &known)?;
    let mut words = additions::hooks(&request, &options, &known, &files, is_late)?;
    if let Some(plan) = Plan::new(&request, &options, &known, &compiler, is_late)? {
        let Words { before, after } = plan.words(&request, known.family)?;
        words.extend(before.into_iter().chain(after));
    }
    Ok(words)
}

/// What the wrapper adds when it links such a product.
pub(crate) fn flags_to_link(product: Product) -> Result<Vec<OsString>> {
    let bundle = bundle::unpacked()?;
    let mut request = Request::read(&["any.o".into()], false);
    request.product = product;
    let mut options = options::Options::of_environment()?;
    options.add(Settings::here()?.build)?;
    let link = additions::linking(&request, &options, Family::Gcc, &bundle.files());
    Ok([link.before, link.after].concat())
}
