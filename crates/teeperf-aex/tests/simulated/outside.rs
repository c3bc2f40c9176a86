//! What a tracer sees of a simulated enclave. A processor has a thread leave its enclave before anybody can stop it; here it stands with RIP
//! inside, so its asynchronous exit is done by who stopped it, and undone before it goes on.

use std::fs::File;
use std::os::unix::fs::FileExt;
use teeperf_aex::attached::{Ptrace, Stop, Stopped, UserRegisters};
use teeperf_aex::interrupted::Shown;

/// The enclave, as the host says it.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) ptrace: Ptrace,
    /// `/proc/PID/mem`, for writing.
    memory: File,
    base: u64,
    size: u64,
    /// Bytes of a frame.
    frame: u64,
    threads: Vec<u64>,
    /// The TCS whose exit is to be undone.
    left: Option<u64>,
}

/// Where in a TCS things are: OSSA, CSSA, AEP, and the thread inside, which the simulated processor keeps.
const OSSA: u64 = 16;
const CSSA: u64 = 24;
const AEP: u64 = 40;
const INSIDE: u64 = 72;
/// For each place of GPRSGX, RAX RCX RDX RBX RSP RBP RSI RDI R8 … R15 RFLAGS RIP, its number among ptrace's.
const SAVED: [usize; 18] = [10, 11, 12, 5, 19, 4, 13, 14, 9, 8, 7, 6, 3, 2, 1, 0, 18, 16];

impl Machine {
    pub(crate) fn new(process: u32, base: u64, size: u64, frame: u64, threads: Vec<u64>) -> Self {
        let memory =
            File::options().read(true).write(true).open(format!("/proc/{process}/mem")).unwrap();
        Self { ptrace: Ptrace, memory, base, size, frame, threads, left: None }
    }

    fn word(&self, at: u64) -> std::io::Result<u64> {
        let mut word = [0; 8];
        self.memory.read_exact_at(&mut word, at)?;
        Ok(u64::from_le_bytes(word))
    }

    /// The TCS by which a thread is inside; the host may have destroyed the enclave.
    fn inside(&self, thread: u32) -> Option<u64> {
        let is_meant =
            |tcs: &u64| self.word(tcs + INSIDE).is_ok_and(|inside| inside as u32 == thread);
        self.threads.iter().copied().find(is_meant)
    }

    fn exit(&mut self, tcs: u64, registers: &UserRegisters) -> Stopped {
        let cssa = self.word(tcs + CSSA).unwrap() as u32;
        let region =
            self.base + self.word(tcs + OSSA).unwrap() + self.frame * u64::from(cssa + 1) - 184;
        for (place, register) in SAVED.into_iter().enumerate() {
            self.memory
                .write_all_at(&registers[register].to_le_bytes(), region + 8 * place as u64)
                .unwrap();
        }
        self.memory.write_all_at(&(cssa + 1).to_le_bytes(), tcs + CSSA).unwrap();
        self.left = Some(tcs);
        let aep = self.word(tcs + AEP).unwrap();
        let shown = Shown { ip: aep, ax: 3, bx: tcs, cx: aep };
        Stopped {
            shown,
            sp: self.word(region + 144).unwrap(),
            bp: self.word(region + 152).unwrap(),
        }
    }
}

impl Stop for Machine {
    fn stop(&mut self, thread: u32) -> Option<Stopped> {
        let stopped = self.ptrace.stop(thread)?;
        let is_inside = stopped.shown.ip.wrapping_sub(self.base) < self.size;
        match self.inside(thread).filter(|_| is_inside) {
            Some(tcs) => {
                let registers = self.ptrace.registers(thread)?;
                Some(self.exit(tcs, &registers))
            }
            None => Some(stopped),
        }
    }

    fn go_on(&mut self, thread: u32) {
        if let Some(tcs) = self.left.take() {
            let cssa = self.word(tcs + CSSA).unwrap() as u32 - 1;
            self.memory.write_all_at(&cssa.to_le_bytes(), tcs + CSSA).unwrap();
        }
        self.ptrace.go_on(thread);
    }
}
