//! Processors, and what there is to compile for and to run on each.

/// One processor, in one of its states.
pub(super) struct Machine {
    pub(super) name: &'static str,
    /// Folder of its library.
    pub(super) architecture: &'static str,
    /// Target of the Rust compiler; nothing for this machine, whose own compiler is taken.
    pub(super) triple: Option<&'static str>,
    /// Before `gcc` and its like.
    pub(super) prefix: &'static str,
    /// For the C compiler.
    pub(super) flags: &'static [&'static str],
    /// For what it compiles with `-pg`: each makes code of another kind.
    pub(super) counting: &'static [&'static str],
    /// Runs its programs under Linux, or is the machine.
    pub(super) emulator: &'static str,
    /// Of a whole machine: where that comes from.
    pub(super) emulator_package: Option<&'static str>,
    /// Debian packages with all that.
    pub(super) packages: &'static [&'static str],
}

impl Machine {
    /// This machine is one, so that nothing is emulated.
    pub(super) fn is_here(&self) -> bool {
        self.architecture == std::env::consts::ARCH
    }
}

pub(super) const MACHINES: [Machine; 5] = [
    Machine {
        name: "x86-64",
        architecture: "x86_64",
        triple: None,
        prefix: "x86_64-linux-gnu-",
        flags: &[],
        counting: &["-O2", "-O2 -mfentry", "-O2 -fPIC", "-O2 -fno-pie -no-pie", "-O0", "-O3 -mavx"],
        emulator: "qemu-x86_64",
        emulator_package: None,
        packages: &["gcc", "libc6-dev", "qemu-user"],
    },
    Machine {
        name: "aarch64",
        architecture: "aarch64",
        triple: Some("aarch64-unknown-none-softfloat"),
        prefix: "aarch64-linux-gnu-",
        flags: &[],
        counting: &["-O2", "-O0"],
        emulator: "qemu-aarch64",
        emulator_package: None,
        packages: &["gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross", "qemu-user"],
    },
    Machine {
        name: "armv7-arm",
        architecture: "armv7",
        triple: Some("armv7a-none-eabi"),
        prefix: "arm-linux-gnueabihf-",
        flags: &["-marm"],
        counting: &["-O2", "-O0"],
        emulator: "qemu-arm",
        emulator_package: None,
        packages: &["gcc-arm-linux-gnueabihf", "libc6-dev-armhf-cross", "qemu-user"],
    },
    Machine {
        name: "armv7-thumb",
        architecture: "armv7",
        triple: Some("armv7a-none-eabi"),
        prefix: "arm-linux-gnueabihf-",
        flags: &["-mthumb"],
        counting: &["-O2", "-O0"],
        emulator: "qemu-arm",
        emulator_package: None,
        packages: &["gcc-arm-linux-gnueabihf", "libc6-dev-armhf-cross", "qemu-user"],
    },
    Machine {
        name: "riscv64",
        architecture: "riscv64",
        triple: Some("riscv64gc-unknown-none-elf"),
        prefix: "riscv64-linux-gnu-",
        flags: &[],
        counting: &["-O2", "-O0"],
        emulator: "qemu-riscv64",
        emulator_package: None,
        packages: &["gcc-riscv64-linux-gnu", "libc6-dev-riscv64-cross", "qemu-user"],
    },
];
