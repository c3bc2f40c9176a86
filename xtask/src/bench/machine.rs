//! What must be known of a machine to read its figures: never its name.

use std::fs;
use std::path::Path;
use std::process::Command;

/// One line each: processor, system, compilers and tools.
pub(crate) fn describe() -> Vec<String> {
    let (model, processors) = processor();
    let of_family = family()
        .map_or(String::new(), |[family, model]| format!(" (family {family}, model {model})"));
    let memory = field("/proc/meminfo", "MemTotal").unwrap_or_default();
    let gib = memory.trim_end_matches(" kB").parse::<f64>().unwrap_or(0.0) / (1 << 20) as f64;
    let flags = field("/proc/cpuinfo", "flags").unwrap_or_default();
    let machine =
        if flags.split(' ').any(|flag| flag == "hypervisor") { ", a virtual machine" } else { "" };
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut lines = vec![
        format!("{model}{of_family}, {processors} processors, {gib:.0} GiB{machine}"),
        format!("{}, Linux {}", system(), kernel.split('-').next().unwrap_or_default().trim()),
    ];
    let tools: [&[&str]; 6] = [
        &["gcc", "--version"],
        &["clang", "--version"],
        &["rustc", "--version"],
        &["perf", "--version"],
        &["uftrace", "--version"],
        &["valgrind", "--version"],
    ];
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or_default();
    lines.push(format!("load average {load} when a figure was measured last"));
    lines.extend(tools.iter().filter_map(|words| first_line(words)));
    lines
}

/// Today, as `2026-11-21`.
pub(crate) fn today() -> String {
    first_line(&["date", "-u", "+%Y-%m-%d"]).unwrap_or_else(|| "unknown".into())
}

/// A name for machines like this one: processor and how many. A virtual machine may call all
/// generations of a processor alike: numbers tell these apart.
pub(crate) fn name() -> String {
    let (model, processors) = processor();
    let words = model.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| word.len() > 1);
    let mut words: Vec<String> = words.map(str::to_lowercase).collect();
    let is_told = model.contains(|c: char| c.is_ascii_digit());
    words.extend(family().filter(|_| !is_told).into_iter().flatten());
    format!("{}-{processors}", words.join("-"))
}

/// Commit of a repository, with `+` when files were changed since.
pub(crate) fn commit(root: &Path) -> String {
    let Some(root) = root.to_str() else { return "unknown".into() };
    let git = |words: &[&str]| first_line(&[&["git", "-C", root], words].concat());
    let Some(commit) = git(&["rev-parse", "--short=10", "HEAD"]) else { return "unknown".into() };
    let changed =
        git(&["status", "--porcelain", "--", "crates", "bench", "xtask", ":!bench/results"]);
    commit + if changed.is_some() { "+" } else { "" }
}

/// What kind it is, and how many there are.
fn processor() -> (String, usize) {
    let model = field("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown".into());
    (model, std::thread::available_parallelism().map_or(0, |n| n.get()))
}

/// The processor's family and model, as its maker numbers them.
fn family() -> Option<[String; 2]> {
    Some([field("/proc/cpuinfo", "cpu family")?, field("/proc/cpuinfo", "model")?])
}

fn first_line(words: &[&str]) -> Option<String> {
    let output = Command::new(words[0]).args(&words[1..]).output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).lines().next()?.trim().to_owned())
}

/// The value of the first line `name: value`.
fn field(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let mut pairs = text.lines().filter_map(|line| line.split_once(':'));
    pairs.find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim().to_owned())
}

fn system() -> String {
    let text = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let mut names = text.lines().filter_map(|line| line.strip_prefix("PRETTY_NAME="));
    names.next().unwrap_or("unknown").trim_matches('"').to_owned()
}
