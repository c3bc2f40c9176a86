//! Whom a program with hooks trusts: docs/trust.md. A program that has more rights than the user
//! who starts it takes no recorder from the environment, and no other user's recorder ever.

mod peer;

use crate::support::*;
use peer::{Heard, NOBODY, Peer, are_root, as_user};
use std::ffi::CString;
use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCE: &str = "#include <stdio.h>\n#include <unistd.h>\n#include <sys/auxv.h>\n\
    __attribute__((noinline)) int leaf(int x) { return x * 3 + 1; }\n\
    int main(int argc, char **argv) {\n\
        printf(\"secure %lu\\n\", getauxval(AT_SECURE));\n\
        return leaf(argc) != 4;\n\
    }\n";

/// A folder that other users can look into, and the program in it.
fn built(flags: &[&str]) -> (Workshop, PathBuf) {
    let shop = Workshop::new();
    let source = shop.path("trust.c");
    fs::set_permissions(source.parent().unwrap(), Permissions::from_mode(0o755)).unwrap();
    fs::write(&source, SOURCE).unwrap();
    let program = shop.build_own(&source, Compiler::Gcc, flags);
    (shop, program)
}

/// What a user's recorder hears of the program when that user starts it. Says whether the kernel
/// told the program that it has more rights.
fn heard_by_its_starter(program: &Path, variable: &str) -> (Heard, bool) {
    let peer = Peer::of(NOBODY, NOBODY);
    let command = || Command::new(program).env(variable, peer.name()).output().unwrap();
    let output = as_user(NOBODY, NOBODY, command);
    assert!(output.status.success(), "{output:?}");
    let told = String::from_utf8(output.stdout).unwrap();
    (peer.heard(), told.contains("secure 1"))
}

/// Lets the program have a right that its starter has not: `cap_net_raw`, as setcap(8) does.
fn give_capability(program: &Path) {
    const VERSION_2_EFFECTIVE: u32 = 0x0200_0001;
    const NET_RAW: u32 = 1 << 13;
    let words = [VERSION_2_EFFECTIVE, NET_RAW, 0, 0, 0];
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let path = CString::new(program.as_os_str().as_bytes()).unwrap();
    let (name, value) = (c"security.capability".as_ptr(), bytes.as_ptr().cast());
    // SAFETY: strings of C, and bytes with their number.
    let done = unsafe { libc::setxattr(path.as_ptr(), name, value, bytes.len(), 0) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
}

type Rights<'a> = (&'a str, &'a dyn Fn(&Path));

fn rights() -> [Rights<'static>; 3] {
    let mode = |mode| move |program: &Path| set_mode(program, mode);
    [
        ("set-user-ID", Box::leak(Box::new(mode(0o4755)))),
        ("set-group-ID", Box::leak(Box::new(mode(0o2755)))),
        ("file capabilities", &give_capability),
    ]
}

fn set_mode(program: &Path, mode: u32) {
    chown(program, Some(0), Some(0)).unwrap();
    fs::set_permissions(program, Permissions::from_mode(mode)).unwrap();
}

/// The program greets the recorder of the user that starts it, and no more once it is given a right.
fn expect_silence_once_given(what: &str, give: &dyn Fn(&Path), program: &Path, variable: &str) {
    set_mode(program, 0o755);
    let before = heard_by_its_starter(program, variable);
    assert_eq!(before, (Heard::Hello, false), "{what}: not given yet");
    give(program);
    let (heard, is_secure) = heard_by_its_starter(program, variable);
    if !is_secure {
        eprintln!("skipped: no {what} where temporary files are");
        return;
    }
    assert_eq!(heard, Heard::Nothing, "{what}");
}

/// Guards: `TEEPERF_SOCKET` of whoever starts a program that has more rights. With memory of their own in place of the
/// recorder's, they would see what it calls, and where its code is.
#[test]
fn a_program_with_more_rights_takes_no_recorder_from_its_environment() {
    if !are_root() {
        return;
    }
    for flags in [&["-O1"][..], &["-O1", "-static"], &["-O1", "-static-pie"]] {
        for (what, give) in rights() {
            let (_shop, program) = built(flags);
            let what = format!("{what} {flags:?}");
            expect_silence_once_given(&what, give, &program, "TEEPERF_SOCKET");
        }
    }
}

/// Guards: the same where a library's constructor calls first, before the C library knows the environment.
#[test]
fn a_library_in_a_program_with_more_rights_does_not_either() {
    if !are_root() {
        return;
    }
    let (shop, _) = built(&["-O1"]);
    let (library, program) = (shop.path("libearly.so"), shop.path("with-library"));
    let source = shop.path("early.c");
    let early = "int early;\n\
        __attribute__((noinline)) void count(void) { early++; }\n\
        __attribute__((constructor)) static void first(void) { count(); }\n";
    fs::write(&source, early).unwrap();
    let shared = ["cc", "-O1", "-fPIC", "-shared", "-nostdlib", "-o"];
    run(teeperf().args(shared).arg(&library).arg(&source)).expect_code(0);
    fs::write(&source, format!("extern int early;\n{SOURCE}").replace("!= 4", "!= 3 + early"))
        .unwrap();
    run(teeperf().args(["cc", "-O1", "-o"]).arg(&program).arg(&source).arg(&library))
        .expect_code(0);
    for (what, give) in rights() {
        expect_silence_once_given(what, give, &program, "TEEPERF_SOCKET");
    }
}

/// What another user's recorder hears of a program that finds it.
fn heard_of(program: &Path, user: (u32, u32), peer: (u32, u32)) -> Heard {
    let peer = Peer::of(peer.0, peer.1);
    let command = || Command::new(program).env("TEEPERF_SOCKET", peer.name()).output().unwrap();
    let output = as_user(user.0, user.1, command);
    assert!(output.status.success(), "{output:?}");
    peer.heard()
}

/// Guards: the uid of who answers. A program that took on its rights for good, and what it starts, are not `AT_SECURE` and have
/// the variable; and when a recorder has ended, anybody can take its name.
#[test]
fn a_program_talks_to_its_own_user_and_to_root_alone() {
    if !are_root() {
        return;
    }
    let (_shop, program) = built(&["-O1"]);
    set_mode(&program, 0o755);
    let (root, nobody, other) = ((0, 0), (NOBODY, NOBODY), (4711, NOBODY));
    for (user, peer, wanted) in [
        (root, root, Heard::Hello),
        (nobody, nobody, Heard::Hello),
        (nobody, root, Heard::Hello),
        (root, nobody, Heard::Silence),
        (other, nobody, Heard::Silence),
        // The same user with a group that the recorder has not.
        ((NOBODY, 4711), nobody, Heard::Silence),
    ] {
        assert_eq!(heard_of(&program, user, peer), wanted, "{user:?} with {peer:?}");
    }
}

/// Guards: in a user namespace all users that it does not know look alike, and like nobody.
#[test]
fn users_that_a_namespace_does_not_know_are_not_taken_for_the_own_one() {
    if !are_root() {
        return;
    }
    let (_shop, program) = built(&["-O1"]);
    set_mode(&program, 0o755);
    let peer = Peer::of(4711, 4711);
    let unknown = || {
        let mut command = Command::new(&program);
        command.env("TEEPERF_SOCKET", peer.name());
        // SAFETY: a system call alone.
        let unshare = || match unsafe { libc::unshare(libc::CLONE_NEWUSER) } {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        };
        // SAFETY: as above.
        unsafe { command.pre_exec(unshare) }.output()
    };
    match as_user(NOBODY, NOBODY, unknown) {
        Ok(output) => {
            assert!(output.status.success(), "{output:?}");
            assert_eq!(peer.heard(), Heard::Silence);
        }
        Err(error) => eprintln!("skipped: no user namespaces here: {error}"),
    }
}

/// Guards: the library that samples a program from within, in a program with more rights that names it itself.
#[test]
fn the_library_that_samples_from_within_does_not_either() {
    if !are_root() {
        return;
    }
    let (shop, _) = built(&["-O1"]);
    let library = kept("libteeperf_inside.so");
    let copy = shop.path("libinside.so");
    fs::copy(library, &copy).unwrap();
    let program = shop.path("sampled");
    let mut cc = Command::new("gcc");
    cc.args(["-O1", "-Wl,--no-as-needed", "-o"]).arg(&program).arg(shop.path("trust.c")).arg(&copy);
    run(&mut cc).expect_code(0);
    for (what, give) in rights() {
        expect_silence_once_given(what, give, &program, "TEEPERF_SAMPLES");
    }
}

/// A file of the command's bundle, as it is kept in the cache.
fn kept(name: &str) -> PathBuf {
    run(teeperf().args(["flags", "--cflags"]));
    let bundles = fs::read_dir(cache().join("teeperf")).unwrap().flatten();
    let files = bundles.map(|folder| folder.path().join(name)).filter(|file| file.exists());
    files.max_by_key(|file| fs::metadata(file).unwrap().modified().unwrap()).unwrap()
}
