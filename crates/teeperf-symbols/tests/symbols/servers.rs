//! Debug files from a server, by elfutils' own: on this machine alone.

use crate::toolchain::{Workshop, address_of};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const SOURCE: &str = "
static volatile int sink;
static inline __attribute__((always_inline)) int inner(int x) { sink = x; return x * 3; }
__attribute__((noinline)) int outer(int x) { return inner(x) + 1; }
int main(int argc, char **argv) { (void)argv; return outer(argc); }
";

/// A server that ends with the test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn is_installed(program: &str) -> bool {
    Command::new(program).arg("--version").stdout(Stdio::null()).status().is_ok()
}

/// A port of this machine that nobody has.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Whether the server has looked through its files.
fn has_scanned(port: u16) -> bool {
    let asked = TcpStream::connect(("127.0.0.1", port)).and_then(|mut stream| {
        stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n")?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        Ok(text)
    });
    asked.is_ok_and(|text| {
        text.contains("found_debuginfo_total{")
            || text.contains("thread_work_total{role=\"scan\"} 2")
    })
}

/// Runs this test's program again, with these servers and a cache of its own: variables are a process's.
fn again(test: &str, file: &Path, url: &str, cache: &Path) -> String {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--ignored", "--nocapture"])
        .env("STRIPPED", file)
        .env("DEBUGINFOD_URLS", url)
        .env("DEBUGINFOD_CACHE_PATH", cache)
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_stripped_program_has_names_of_a_server() {
    if !is_installed("debuginfod") || !is_installed("debuginfod-find") {
        return eprintln!("goes without: debuginfod is not installed");
    }
    let shop = Workshop::new();
    let whole = shop.build("gcc -O2 -g -Wl,--build-id=sha1", "program.c", SOURCE);
    let stripped = shop.stripped(&whole, "bin/program");
    let outer = address_of(&whole, "outer");
    shop.debug_file(&whole, "served/program.debug");
    std::fs::remove_file(&whole).unwrap();
    let port = free_port();
    let server = Command::new("debuginfod")
        .args(["-p", &port.to_string(), "-d", ":memory:", "-F"])
        .arg(shop.path("served"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let _server = Server(server.unwrap());
    let begun = Instant::now();
    while !has_scanned(port) && begun.elapsed() < Duration::from_secs(30) {
        std::thread::sleep(Duration::from_millis(50));
    }
    let url = format!("http://127.0.0.1:{port}");
    let ask = |url: &str, cache: &str| {
        again("servers::asked_with_variables", &stripped, url, &shop.path(cache))
    };
    let mut found = String::new();
    // Its index may come a moment after it has looked.
    for attempt in 0..20 {
        found = ask(&url, &format!("cache{attempt}"));
        if found.contains("inner") {
            break;
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    let names = format!("without: []\nwith: [\"inner\"] of {outer:#x}");
    assert!(found.contains(&names), "{found}");
    // Nothing listens there: it goes without, and soon.
    let begun = Instant::now();
    let found = ask(&format!("http://127.0.0.1:{}", free_port()), "none");
    assert!(found.contains("without: []\nwith: []"), "{found}");
    assert!(begun.elapsed() < Duration::from_secs(60));
    let found = ask("", "none");
    assert!(found.contains("no server of debug information is named; next: "), "{found}");
}

/// What the other asks with variables that are its own.
#[test]
#[ignore = "the test above runs it with servers"]
fn asked_with_variables() {
    use std::sync::Arc;
    use teeperf_symbols::{Debuginfod, Functions, Lines, Search};
    let file = std::env::var_os("STRIPPED").unwrap();
    let file = Path::new(&file);
    let servers = match Debuginfod::of_user() {
        Ok(servers) => Arc::new(servers),
        Err(text) => return println!("{text}"),
    };
    let inlined = |search: &Search| {
        let functions = Functions::open(file, search).unwrap();
        let outer = functions.named("outer").map(|symbol| symbol.start);
        let lines = Lines::open(file, search).unwrap();
        let found = outer.map(|outer| lines.inlined(&[outer]).unwrap().remove(0));
        (found.unwrap_or_default(), outer.unwrap_or_default())
    };
    println!("without: {:?}", inlined(&Search::nowhere_else()).0);
    let search = Search { servers: Some(servers), ..Search::nowhere_else() };
    let (names, outer) = inlined(&search);
    println!("with: {names:?} of {outer:#x}");
}
