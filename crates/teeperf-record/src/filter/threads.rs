//! Names of threads whose ids are those that their own process knows.

use std::fs;
use std::path::Path;

/// The name of a thread of a process, empty where it is gone. In another namespace of process ids than this one the
/// thread's id is another (pid_namespaces(7)), and stands as the last of `NSpid`, proc_pid_status(5).
pub(super) fn name(pid: u32, tid: u32) -> String {
    let tasks = format!("/proc/{pid}/task");
    let own = Path::new(&tasks).join(tid.to_string());
    let task = if is_nested(pid) { nested(&tasks, tid) } else { Some(own) };
    let name = task.and_then(|task| fs::read_to_string(task.join("comm")).ok());
    name.unwrap_or_default().trim_end_matches('\n').to_owned()
}

fn is_nested(pid: u32) -> bool {
    ids(Path::new(&format!("/proc/{pid}"))).is_some_and(|ids| ids.len() > 1)
}

fn nested(tasks: &str, tid: u32) -> Option<std::path::PathBuf> {
    let tasks = fs::read_dir(tasks).ok()?.flatten().map(|task| task.path());
    tasks.into_iter().find(|task| ids(task).is_some_and(|ids| ids.last() == Some(&tid)))
}

/// Its ids, from the namespace of `/proc` to its own.
fn ids(task: &Path) -> Option<Vec<u32>> {
    let status = fs::read_to_string(task.join("status")).ok()?;
    let ids = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    Some(ids.split_whitespace().filter_map(|id| id.parse().ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_found_by_its_own_id() {
        let (told, heard) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::Builder::new().name("named".into());
        let thread = thread.spawn(move || {
            // SAFETY: no pointers.
            told.send(unsafe { libc::gettid() }.cast_unsigned()).unwrap();
            let _ = ended.recv();
        });
        let (pid, tid) = (std::process::id(), heard.recv().unwrap());
        assert_eq!(name(pid, tid), "named");
        let tasks = format!("/proc/{pid}/task");
        assert_eq!(nested(&tasks, tid), Some(Path::new(&tasks).join(tid.to_string())));
        assert_eq!(nested(&tasks, 0), None);
        drop(end);
        thread.unwrap().join().unwrap();
    }
}
