//! Structures of the manual (Intel SDM, volume 3D, chapter "Enclave Access Control and Data Structures"), from bytes
//! that an enclave or its host may have written as they like.

/// Bytes of a page.
pub const PAGE: u64 = 4096;

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// What is wanted of an enclave's control structure (SECS), as it is given to the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Secs {
    /// Bytes of the enclave's range, a power of two.
    pub size: u64,
    /// Where it begins, a multiple of its size.
    pub base: u64,
    /// Bytes of a frame of the state save area.
    pub frame: u64,
    /// Whether the kernel lets its memory be read: ATTRIBUTES.DEBUG.
    pub is_debug: bool,
}

impl Secs {
    /// Bytes that are looked at.
    pub const BYTES: usize = 56;
    const DEBUG: u64 = 1 << 1;

    /// Nothing where no processor would make an enclave of it.
    pub fn of(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        let (size, base, pages) = (u64_at(bytes, 0), u64_at(bytes, 8), u32_at(bytes, 16));
        let frame = u64::from(pages) * PAGE;
        let is_whole = size.is_power_of_two() && size >= PAGE && base.is_multiple_of(size);
        (is_whole && base.checked_add(size).is_some() && (1..=size).contains(&frame))
            .then_some(Self { size, base, frame, is_debug: u64_at(bytes, 48) & Self::DEBUG != 0 })
    }
}

/// What is wanted of a thread control structure (TCS): from [`Tcs::OFFSET`] on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tcs {
    /// Where its frames begin, from the enclave's base on.
    pub ossa: u64,
    /// Frames in use: the next exit's index.
    pub cssa: u32,
    /// Frames that there are.
    pub nssa: u32,
}

impl Tcs {
    /// Where in a TCS the bytes are from.
    pub const OFFSET: u64 = 16;
    /// Bytes that are looked at.
    pub const BYTES: usize = 16;

    /// Of its bytes.
    pub fn of(bytes: &[u8; Self::BYTES]) -> Self {
        Self { ossa: u64_at(bytes, 0), cssa: u32_at(bytes, 8), nssa: u32_at(bytes, 12) }
    }

    /// Where the registers of a frame are, from the enclave's base on; frames count from one, so that `cssa` is the
    /// latest exit's. Nothing when there is no such frame within `size` bytes.
    pub fn registers_at(&self, number: u32, frame: u64, size: u64) -> Option<u64> {
        if number == 0
            || number > self.cssa
            || self.cssa > self.nssa
            || !self.ossa.is_multiple_of(PAGE)
        {
            return None;
        }
        let end = frame.checked_mul(number.into())?.checked_add(self.ossa)?;
        (end <= size).then(|| end - Registers::REGION)
    }
}

/// General registers of an SSA frame (GPRSGX), by perf's numbers for this processor (Linux's `asm/perf_regs.h`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registers(pub [u64; Registers::COUNT]);

impl Registers {
    /// Bytes of the region at a frame's end.
    pub const REGION: u64 = 184;
    /// Bytes of it that are looked at: up to RIP.
    pub const BYTES: usize = 144;
    /// How many there are.
    pub const COUNT: usize = 18;
    /// Which of perf's numbers they have: AX to FLAGS, and R8 to R15.
    pub const MASK: u64 = 0xff_03ff;
    /// Number of IP.
    pub const IP: u32 = 8;
    /// Those that are the host's behind an asynchronous exit, the others being synthetic: BP SP IP.
    pub const HOST: u64 = 0x1c0;
    /// Where in the region each is, by perf's numbers: AX BX CX DX SI DI BP SP IP FLAGS R8 … R15.
    const PLACES: [u8; Self::COUNT] =
        [0, 24, 8, 16, 48, 56, 40, 32, 136, 128, 64, 72, 80, 88, 96, 104, 112, 120];

    /// Of a region's bytes.
    pub fn of(bytes: &[u8; Self::BYTES]) -> Self {
        Self(Self::PLACES.map(|place| u64_at(bytes, place.into())))
    }

    /// [`Registers::HOST`] of a row of registers.
    pub fn host<T>(registers: &[T]) -> &[T] {
        registers.get(6..9).unwrap_or_default()
    }

    /// RBP.
    pub fn frame_pointer(&self) -> u64 {
        self.0[6]
    }

    /// RSP.
    pub fn stack_pointer(&self) -> u64 {
        self.0[7]
    }

    /// RIP.
    pub fn instruction_pointer(&self) -> u64 {
        self.0[8]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secs(size: u64, base: u64, pages: u32, attributes: u64) -> Option<Secs> {
        let mut bytes = [0; Secs::BYTES];
        bytes[..8].copy_from_slice(&size.to_le_bytes());
        bytes[8..16].copy_from_slice(&base.to_le_bytes());
        bytes[16..20].copy_from_slice(&pages.to_le_bytes());
        bytes[48..].copy_from_slice(&attributes.to_le_bytes());
        Secs::of(&bytes)
    }

    #[test]
    fn a_control_structure_is_what_a_processor_takes() {
        let expected = Secs { size: 1 << 20, base: 7 << 20, frame: 8192, is_debug: true };
        assert_eq!(secs(1 << 20, 7 << 20, 2, 6), Some(expected));
        assert_eq!(secs(1 << 20, 7 << 20, 2, 4), Some(Secs { is_debug: false, ..expected }));
        assert_eq!(secs(3 << 20, 3 << 20, 2, 6), None);
        assert_eq!(secs(1 << 20, 1 << 19, 2, 6), None);
        assert_eq!(secs(1 << 63, 1 << 63, 2, 6), None);
        assert_eq!(secs(0, 0, 2, 6), None);
        assert_eq!(secs(1 << 20, 0, 0, 6), None);
        assert_eq!(secs(1 << 20, 0, 257, 6), None);
        assert_eq!(secs(1 << 20, 0, u32::MAX, 6), None);
    }

    #[test]
    fn frames_are_within_the_enclave_and_in_use() {
        let mut bytes = [0; Tcs::BYTES];
        bytes[..8].copy_from_slice(&0x3000u64.to_le_bytes());
        bytes[8] = 2;
        bytes[12] = 3;
        let tcs = Tcs::of(&bytes);
        assert_eq!(tcs, Tcs { ossa: 0x3000, cssa: 2, nssa: 3 });
        assert_eq!(tcs.registers_at(1, 4096, 1 << 16), Some(0x4000 - 184));
        assert_eq!(tcs.registers_at(2, 8192, 1 << 16), Some(0x7000 - 184));
        assert_eq!(tcs.registers_at(2, 8192, 0x7000), Some(0x7000 - 184));
        assert_eq!(tcs.registers_at(2, 8192, 0x6fff), None);
        assert_eq!(tcs.registers_at(0, 4096, 1 << 16), None);
        assert_eq!(tcs.registers_at(3, 4096, 1 << 16), None);
        assert_eq!(Tcs { cssa: 4, ..tcs }.registers_at(1, 4096, 1 << 16), None);
        assert_eq!(Tcs { ossa: 0x3008, ..tcs }.registers_at(1, 4096, 1 << 16), None);
        assert_eq!(Tcs { ossa: !4095, ..tcs }.registers_at(1, 4096, 1 << 16), None);
        let most = Tcs { ossa: 0, cssa: u32::MAX, nssa: u32::MAX };
        assert_eq!(most.registers_at(u32::MAX, u64::MAX, u64::MAX), None);
    }

    #[test]
    fn registers_have_the_numbers_of_perf() {
        // Each register of the region has its own place in the row of the manual: rax rcx rdx rbx rsp rbp rsi rdi r8 … r15 rflags rip.
        let mut bytes = [0; Registers::BYTES];
        for (place, byte) in bytes.iter_mut().step_by(8).enumerate() {
            *byte = place as u8;
        }
        let registers = Registers::of(&bytes);
        assert_eq!(registers.0, [0, 3, 1, 2, 6, 7, 5, 4, 17, 16, 8, 9, 10, 11, 12, 13, 14, 15]);
        assert_eq!(Registers::MASK.count_ones() as usize, Registers::COUNT);
        assert_eq!(Registers::host(&registers.0), [5, 4, 17]);
        assert_eq!(Registers::HOST, 1 << 6 | 1 << 7 | 1 << 8);
        assert_eq!(
            [registers.frame_pointer(), registers.stack_pointer(), registers.instruction_pointer()],
            [5, 4, 17]
        );
    }
}
