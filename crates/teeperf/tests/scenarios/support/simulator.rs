//! A machine with SGX, simulated (`crates/teeperf-aex/tests/simulator`): hosts of enclaves that run anywhere.

use super::build::Workshop;
use super::run::run;
use std::path::{Path, PathBuf};
use std::process::Command;

impl Workshop {
    /// Builds the machine, its host and an enclave, and gives the latter two.
    pub(crate) fn enclave(&self) -> [PathBuf; 2] {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../teeperf-aex/tests/simulator");
        let folder = self.path("");
        let cc = |arguments: &str| {
            let mut command = Command::new("cc");
            command.current_dir(&source).args(["-O2", "-g", "-fno-omit-frame-pointer"]);
            command.arg("-mno-omit-leaf-frame-pointer");
            let words = arguments.split_whitespace();
            command.args(words.map(|word| word.replace("OUT", folder.to_str().unwrap())));
            let outcome = run(&mut command);
            assert!(outcome.success(), "{command:?}: {}", outcome.stderr);
        };
        // What asks the kernel by itself is not to come by what is preloaded.
        cc(
            "-fPIC -shared -Wl,-Bsymbolic device.c processor.c signals.c inline.c -o OUT/libmachine.so -ldl",
        );
        cc("-fPIC -shared tracer.c -o OUT/libtracer.so -ldl");
        cc("host.c urts.c urts_enter.S -o OUT/host -LOUT -lmachine -Wl,-rpath,$ORIGIN -pthread");
        cc("-fno-stack-protector -nostdlib -ffreestanding -fPIC -shared -Wl,-Bsymbolic \
            -Wl,-e,enclave_entry enclave.c trts.S -o OUT/enclave.so");
        ["host", "enclave.so"].map(|name| self.path(name))
    }

    /// Builds another enclave, with a library in it that knows nothing of enclaves and has no frame pointers.
    pub(crate) fn zstd_enclave(&self) -> PathBuf {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../teeperf-aex/tests/simulator");
        let enclave = self.path("zstd.so");
        let mut cc = Command::new("cc");
        cc.current_dir(source).args(["-O2", "-g", "-fno-stack-protector", "-fno-builtin", "-fPIC"]);
        cc.args(["-nostdlib", "-ffreestanding", "-shared", "-Wl,-Bsymbolic,-e,enclave_entry"]);
        cc.args(["zstd_enclave.c", "trts.S", "-l:libzstd.a", "-o"]).arg(&enclave);
        run(&mut cc).expect_code(0);
        enclave
    }
}
