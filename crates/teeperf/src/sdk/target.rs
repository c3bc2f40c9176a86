//! Architectures, as folders of libraries are called, and the targets of the Rust compiler that serve each.

use anyhow::{Result, bail};
use std::fmt::Write as _;

/// One architecture.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Architecture {
    /// Of its folder.
    pub(crate) name: &'static str,
    /// The compiler's targets, best first.
    pub(crate) triples: &'static [&'static str],
    /// What the compiler is told beside the target.
    pub(crate) flags: &'static [&'static str],
}

const ARCHITECTURES: &[Architecture] = &[
    Architecture {
        name: "x86_64",
        triples: &["x86_64-unknown-none", "x86_64-unknown-linux-gnu", "x86_64-unknown-linux-musl"],
        // Interrupts of bare machines write below the stack pointer.
        flags: &["-Cno-redzone=yes"],
    },
    Architecture {
        name: "aarch64",
        triples: &[
            "aarch64-unknown-none-softfloat",
            "aarch64-unknown-none",
            "aarch64-unknown-linux-gnu",
            "aarch64-unknown-linux-musl",
        ],
        // Else functions of the compiler's library choose at run time, and ask the system for that.
        flags: &["-Ctarget-feature=-outline-atomics"],
    },
    Architecture {
        name: "armv7",
        triples: &[
            "armv7a-none-eabi",
            "armv7a-none-eabihf",
            "armv7-unknown-linux-gnueabihf",
            "armv7-unknown-linux-gnueabi",
        ],
        // Three quarters of the code, and nearly as many instructions in a hook. Code of either kind calls it.
        flags: &["-Ctarget-feature=+thumb-mode"],
    },
    Architecture {
        name: "riscv64",
        triples: &[
            "riscv64gc-unknown-none-elf",
            "riscv64gc-unknown-linux-gnu",
            "riscv64imac-unknown-none-elf",
            // Without atomic instructions.
            "riscv64im-unknown-none-elf",
        ],
        flags: &[],
    },
];

/// What the user asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Whichever target of it there is.
    Any(&'static Architecture),
    /// This one.
    One(&'static Architecture, &'static str),
}

impl Wanted {
    pub(crate) fn architecture(self) -> &'static Architecture {
        match self {
            Self::Any(architecture) | Self::One(architecture, _) => architecture,
        }
    }

    /// Targets that will do.
    pub(crate) fn triples(&self) -> &[&'static str] {
        match self {
            Self::Any(architecture) => architecture.triples,
            Self::One(_, triple) => std::slice::from_ref(triple),
        }
    }
}

/// What a name stands for, of an architecture or of a target.
pub(crate) fn parse(name: &str) -> Result<Wanted, String> {
    ARCHITECTURES
        .iter()
        .find_map(|architecture| {
            if architecture.name == name {
                return Some(Wanted::Any(architecture));
            }
            let triple = architecture.triples.iter().find(|&&triple| triple == name)?;
            Some(Wanted::One(architecture, triple))
        })
        .ok_or_else(|| {
            let names: Vec<&str> = ARCHITECTURES.iter().map(|one| one.name).collect();
            format!("one of {}, or of their targets: see --help", names.join(", "))
        })
}

/// The architecture of this machine.
pub(crate) fn of_this_machine() -> Result<Wanted> {
    let name = match std::env::consts::ARCH {
        "arm" => "armv7",
        name => name,
    };
    match parse(name) {
        Ok(wanted) => Ok(wanted),
        Err(expected) => {
            bail!("there is no library for this machine's processor: say --target, {expected}")
        }
    }
}

/// Which targets there are, and examples.
pub(crate) fn help() -> String {
    let mut text =
        String::from("Architectures, and the Rust targets taken for each, best first:\n");
    for Architecture { name, triples, .. } in ARCHITECTURES {
        for (index, triple) in triples.iter().enumerate() {
            let name = if index == 0 { name } else { "" };
            let _ = writeln!(text, "  {name:8} {triple}");
        }
    }
    text + "\
Code that is called in Arm and in Thumb state, and passes floating-point numbers in either manner, links
with the one for armv7. The last for riscv64 is for code that is compiled with -mabi=lp64.

Examples:
  teeperf install-sdk sdk                                    all that this machine can
  teeperf install-sdk sdk --programs                         for pkg-config, CMake, Meson; takes no Rust compiler
  teeperf install-sdk sdk --target aarch64 --target armv7    both kinds of OP-TEE's applications
  teeperf install-sdk sdk --target x86_64 --threads tls      an enclave with threads"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn architectures_and_their_targets_are_known_and_nothing_else() {
        assert_eq!(parse("armv7").unwrap().triples()[0], "armv7a-none-eabi");
        let one = parse("aarch64-unknown-none").unwrap();
        assert_eq!(
            (one.architecture().name, one.triples()),
            ("aarch64", &["aarch64-unknown-none"][..])
        );
        assert!(parse("mips").unwrap_err().contains("riscv64"));
    }
}
