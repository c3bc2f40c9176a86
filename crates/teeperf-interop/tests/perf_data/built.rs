//! Files written here number by number, in either order of bytes.

/// Bits of `sample_type`.
pub(crate) const IP: u64 = 1;
pub(crate) const TID: u64 = 1 << 1;
pub(crate) const TIME: u64 = 1 << 2;
pub(crate) const ADDR: u64 = 1 << 3;
pub(crate) const READ: u64 = 1 << 4;
pub(crate) const CALLCHAIN: u64 = 1 << 5;
pub(crate) const ID: u64 = 1 << 6;
pub(crate) const CPU: u64 = 1 << 7;
pub(crate) const PERIOD: u64 = 1 << 8;
pub(crate) const RAW: u64 = 1 << 10;
pub(crate) const BRANCH_STACK: u64 = 1 << 11;
pub(crate) const REGS_USER: u64 = 1 << 12;
pub(crate) const STACK_USER: u64 = 1 << 13;
pub(crate) const IDENTIFIER: u64 = 1 << 16;
/// Bit of the flags, in a file of the usual order.
pub(crate) const SAMPLE_ID_ALL: u64 = 1 << 18;

/// Bytes, in the order of a file.
#[derive(Clone, Default)]
pub(crate) struct Out {
    pub(crate) bytes: Vec<u8>,
    pub(crate) big: bool,
}

impl Out {
    pub(crate) fn u16(mut self, number: u16) -> Self {
        self.bytes.extend(if self.big { number.to_be_bytes() } else { number.to_le_bytes() });
        self
    }

    pub(crate) fn u32(mut self, number: u32) -> Self {
        self.bytes.extend(if self.big { number.to_be_bytes() } else { number.to_le_bytes() });
        self
    }

    pub(crate) fn u64(mut self, number: u64) -> Self {
        self.bytes.extend(if self.big { number.to_be_bytes() } else { number.to_le_bytes() });
        self
    }

    pub(crate) fn all(self, numbers: &[u64]) -> Self {
        numbers.iter().fold(self, |out, &number| out.u64(number))
    }

    pub(crate) fn raw(mut self, bytes: &[u8]) -> Self {
        self.bytes.extend_from_slice(bytes);
        self
    }

    /// Text and zeroes, to a length.
    pub(crate) fn text(mut self, text: &str, length: usize) -> Self {
        let end = self.bytes.len() + length;
        self.bytes.extend_from_slice(text.as_bytes());
        self.bytes.resize(end, 0);
        self
    }

    fn empty(&self) -> Self {
        Self { bytes: Vec::new(), big: self.big }
    }
}

/// An event.
#[derive(Clone, Default)]
pub(crate) struct Attr {
    pub(crate) kind: u32,
    pub(crate) config: u64,
    pub(crate) period: u64,
    pub(crate) sample_type: u64,
    pub(crate) read_format: u64,
    pub(crate) flags: u64,
    pub(crate) branch_type: u64,
    pub(crate) registers: u64,
    pub(crate) stack: u32,
    pub(crate) ids: Vec<u64>,
    /// Bytes of the attributes; 0: 112.
    pub(crate) size: u32,
}

/// A file.
#[derive(Clone, Default)]
pub(crate) struct File {
    pub(crate) big: bool,
    pub(crate) attrs: Vec<Attr>,
    pub(crate) data: Vec<u8>,
    pub(crate) features: Vec<(u32, Vec<u8>)>,
}

impl File {
    pub(crate) fn of(attr: Attr) -> Self {
        Self { attrs: vec![attr], ..Self::default() }
    }

    pub(crate) fn out(&self) -> Out {
        Out { bytes: Vec::new(), big: self.big }
    }

    pub(crate) fn record(&mut self, kind: u32, misc: u16, body: Out) -> &mut Self {
        let size = 8 + body.bytes.len() as u16;
        let record = self.out().u32(kind).u16(misc).u16(size).raw(&body.bytes);
        self.data.extend(record.bytes);
        self
    }

    /// A sample of these numbers, of a program.
    pub(crate) fn sample(&mut self, numbers: &[u64]) -> &mut Self {
        let body = self.out().all(numbers);
        self.record(9, 2, body)
    }

    pub(crate) fn attr(&self, attr: &Attr) -> Vec<u8> {
        let size = if attr.size == 0 { 112 } else { attr.size };
        let flags: [u8; 8] = attr.flags.to_le_bytes();
        let flags = if self.big { flags.map(u8::reverse_bits) } else { flags };
        let out = self.out().u32(attr.kind).u32(size);
        let out = out.all(&[attr.config, attr.period, attr.sample_type, attr.read_format]);
        let out = out.raw(&flags).all(&[0, 0, 0, attr.branch_type, attr.registers]);
        let mut bytes = out.u32(attr.stack).bytes;
        bytes.resize(size as usize, 0);
        bytes
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        const HEAD: u64 = 104;
        let empty = self.out();
        let ids: u64 = self.attrs.iter().map(|attr| 8 * attr.ids.len() as u64).sum();
        let (mut attrs, mut at) = (empty.empty(), HEAD);
        for attr in &self.attrs {
            let length = 8 * attr.ids.len() as u64;
            attrs = attrs.raw(&self.attr(attr)).u64(at).u64(length);
            at += length;
        }
        let begin = HEAD + ids + attrs.bytes.len() as u64;
        let mut bits = [0u64; 4];
        for (number, _) in &self.features {
            bits[*number as usize / 64] |= 1 << (number % 64);
        }
        let head = empty.empty().raw(if self.big { b"2ELIFREP" } else { b"PERFILE2" });
        let head = head.u64(HEAD).u64(128).u64(HEAD + ids).u64(attrs.bytes.len() as u64);
        let head = head.u64(begin).u64(self.data.len() as u64).u64(0).u64(0).all(&bits);
        let mut out = self.attrs.iter().fold(head, |out, attr| out.all(&attr.ids));
        out = out.raw(&attrs.bytes).raw(&self.data);
        let mut at = (out.bytes.len() + 16 * self.features.len()) as u64;
        for (_, bytes) in &self.features {
            out = out.u64(at).u64(bytes.len() as u64);
            at += bytes.len() as u64;
        }
        self.features.iter().fold(out, |out, (_, bytes)| out.raw(bytes)).bytes
    }

    /// The same as perf writes it into a pipe.
    pub(crate) fn piped(&self) -> Vec<u8> {
        let mut head = self.clone();
        head.data.clear();
        for attr in &self.attrs {
            let body = self.out().raw(&self.attr(attr)).all(&attr.ids);
            head.record(64, 0, body);
        }
        for (number, bytes) in &self.features {
            let body = self.out().u64((*number).into()).raw(bytes);
            head.record(80, 0, body);
        }
        let magic = self.out().raw(if self.big { b"2ELIFREP" } else { b"PERFILE2" }).u64(16);
        magic.raw(&head.data).raw(&self.data).bytes
    }
}
