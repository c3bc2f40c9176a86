//! Folders and files: the cache, where recordings go, settings.

use super::Finding;
use crate::{bundle, commands, config};
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Where a recording may need it, a gigabyte is soon written.
const LITTLE_ROOM: u64 = 1 << 30;

pub(super) fn examine() -> Vec<Finding> {
    let mut findings = cache();
    let here = Path::new(".");
    let is_writable = tempfile::Builder::new().prefix(".teeperf-").tempfile_in(here).is_ok();
    findings.push(recordings(is_writable, about(here).map(|about| about.free)));
    // SAFETY: a struct of numbers, which the call writes; its answer is checked.
    let limit = unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        (libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) == 0).then_some(limit.rlim_cur)
    };
    findings.extend(limit.filter(|&limit| limit != libc::RLIM_INFINITY).map(size_limit));
    findings.extend(settings());
    findings
}

/// What is known of a file system.
struct About {
    free: u64,
    is_noexec: bool,
}

fn about(path: &Path) -> Option<About> {
    let path = CString::new(path.as_os_str().as_bytes()).ok()?;
    // SAFETY: a struct of numbers, for which zeros are a value.
    let mut found: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: the path is a string that ends with 0, and the struct has room for the answer.
    let answer = unsafe { libc::statvfs(path.as_ptr(), &mut found) };
    (answer == 0).then(|| About {
        free: found.f_bavail.saturating_mul(found.f_frsize),
        is_noexec: found.f_flag & libc::ST_NOEXEC != 0,
    })
}

fn cache() -> Vec<Finding> {
    const AREA: &str = "cache";
    let folder = match bundle::folder() {
        Ok(folder) => folder,
        Err(error) => {
            let next = "set XDG_CACHE_HOME to a folder of your own";
            return vec![Finding::missing(AREA, format!("{error:#}"), next)];
        }
    };
    if bundle::HAS_HOOKS
        && let Err(error) = bundle::unpacked()
    {
        let next = "make room there, or set XDG_CACHE_HOME to another folder";
        return vec![Finding::missing(AREA, format!("{error:#}"), next)];
    }
    let is_noexec = about(&folder).is_some_and(|about| about.is_noexec);
    judge_cache(&folder, is_noexec, folder.starts_with(std::env::temp_dir()))
}

fn judge_cache(folder: &Path, is_noexec: bool, is_temporary: bool) -> Vec<Finding> {
    const AREA: &str = "cache";
    let place = folder.display();
    let mut findings = Vec::new();
    if !commands::can_be_preloaded(folder) {
        findings.push(Finding::warning(
            AREA,
            format!(
                "{place} has a space or a colon in its path: LD_PRELOAD cannot have it, so programs without hooks, with \
                 libraries that have some, are not recorded"
            ),
            "set XDG_CACHE_HOME to a folder without",
        ));
    }
    if is_noexec {
        findings.push(Finding::warning(
            AREA,
            format!(
                "{place} lies where nothing may be executed: programs without hooks, with libraries that have some, are \
                 not recorded"
            ),
            "set XDG_CACHE_HOME to a folder on another file system",
        ));
    }
    if findings.is_empty() {
        let where_else = if is_temporary {
            ", since neither XDG_CACHE_HOME nor HOME has room for one"
        } else {
            ""
        };
        findings.push(Finding::ready(AREA, format!("{place}{where_else}")));
    }
    findings
}

fn recordings(is_writable: bool, free: Option<u64>) -> Finding {
    const AREA: &str = "recordings";
    let free = free.unwrap_or(u64::MAX);
    if !is_writable {
        let next = "record elsewhere, or with -o into a folder that you can write";
        return Finding::warning(AREA, "this folder cannot be written", next);
    }
    match free {
        u64::MAX => Finding::ready(AREA, "this folder can be written"),
        free if free < LITTLE_ROOM => Finding::warning(
            AREA,
            format!("only {} are free here", commands::bytes(free)),
            "record with --rotate 100M, --limit-size or --probe tree, or elsewhere",
        ),
        free => Finding::ready(
            AREA,
            format!("this folder can be written, {} are free", commands::bytes(free)),
        ),
    }
}

fn size_limit(limit: u64) -> Finding {
    Finding::warning(
        "limits",
        format!(
            "files may have {} at most here (ulimit -f): a recording ends there",
            commands::bytes(limit)
        ),
        "ulimit -f unlimited, or record with --rotate",
    )
}

/// Files of settings, and what is wrong with them.
fn settings() -> Vec<Finding> {
    const AREA: &str = "settings";
    let (files, _) = commands::settings(&config::definition());
    let findings = files.iter().map(|file| match &file.problem {
        None => Finding::ready(AREA, format!("{} ({})", file.path, file.role)),
        Some(problem) => {
            let next = "mend it; `teeperf config` shows what holds";
            Finding::missing(AREA, problem.clone(), next)
        }
    });
    let mut findings: Vec<Finding> = findings.collect();
    if findings.is_empty() {
        findings.push(Finding::note(AREA, "no file sets any option (`teeperf config`)"));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::*;

    #[test]
    fn a_cache_has_a_path_that_can_be_preloaded_and_executed() {
        let verdicts = |path: &str, is_noexec| {
            let findings = judge_cache(Path::new(path), is_noexec, false);
            findings.iter().map(|finding| finding.verdict).collect::<Vec<_>>()
        };
        assert_eq!(verdicts("/home/me/.cache/teeperf", false), [Verdict::Ready]);
        assert_eq!(verdicts("/home/my self/teeperf", false), [Verdict::Warning]);
        assert_eq!(verdicts("/a:b", true), [Verdict::Warning, Verdict::Warning]);
    }

    #[test]
    fn room_for_recordings() {
        assert_eq!(recordings(true, Some(5 << 30)).verdict, Verdict::Ready);
        assert_eq!(recordings(true, None).verdict, Verdict::Ready);
        assert!(recordings(true, Some(1 << 20)).text.contains("1.0 MB"));
        assert!(recordings(false, Some(5 << 30)).text.contains("cannot be written"));
        assert!(size_limit(4096).text.contains("4.1 kB"));
    }
}
