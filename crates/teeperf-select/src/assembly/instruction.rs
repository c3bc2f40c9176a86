//! What an instruction does to the registers, as far as it matters: where addresses of symbols come from, and how
//! they are handed on. Of anything else it is enough to know which registers it may write.

use super::state::State;
use super::text::{Memory, is_whole, operands, register, registers, unquoted};
use super::values::{OTHER, Value, Values};

/// Registers that a call may write: rax, rcx, rdx, rsi, rdi, r8 to r11.
const OF_THE_CALLER: [usize; 9] = [0, 1, 2, 6, 7, 8, 9, 10, 11];

/// Where control goes from an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow<'a> {
    /// On.
    Next,
    /// To a function, and on; with its operand.
    Call(&'a str),
    /// Elsewhere; with its operand.
    Jump(&'a str),
    /// On, or elsewhere.
    Branch(&'a str),
    /// Back to the caller, or nowhere.
    End,
}

/// Where control goes.
pub(super) fn flow<'a>(mnemonic: &str, rest: &'a str) -> Flow<'a> {
    match mnemonic {
        "call" | "callq" => Flow::Call(rest),
        "jmp" | "jmpq" => Flow::Jump(rest),
        "ret" | "retq" | "ud2" | "hlt" | "iretq" | "sysretq" => Flow::End,
        _ if mnemonic.starts_with('j') || mnemonic.starts_with("loop") || mnemonic == "xbegin" => {
            Flow::Branch(rest)
        }
        _ => Flow::Next,
    }
}

/// The registers after an instruction that is neither call nor jump.
pub(super) fn step<'a>(state: &mut State, mnemonic: &str, rest: &'a str, values: &mut Values<'a>) {
    if moves_stack(state, mnemonic, rest) {
        return;
    }
    for &written in written_unnamed(mnemonic, rest) {
        state.forget(written);
    }
    if only_reads(mnemonic) {
        return;
    }
    let mut list = operands(rest);
    let (first, second, third) = (list.next(), list.next(), list.next());
    let (Some(source), Some(target), None) = (first, second, third) else {
        forget(state, rest);
        return;
    };
    let Some(number) = register(target) else {
        // To memory, or to a register of another kind: only an exchange writes the source.
        let stored =
            register(source).filter(|_| matches!(mnemonic, "mov" | "movq") && is_whole(source));
        state.store(target, stored.map_or(OTHER, |source| state[source]));
        if !mnemonic.starts_with("mov") {
            forget(state, source);
        }
        return;
    };
    let value = match mnemonic {
        _ if !is_whole(target) => OTHER,
        "lea" | "leaq" | "leal" => address(state, source, values),
        "mov" | "movq" | "movl" | "movabs" | "movabsq" | "movslq" => {
            contents(state, source, values)
        }
        "add" | "addq" => {
            let added = contents(state, source, values);
            values.add(state[number], added)
        }
        _ if mnemonic.starts_with("cmov") => {
            let moved = contents(state, source, values);
            values.merge(state[number], moved)
        }
        _ => {
            forget(state, source);
            OTHER
        }
    };
    state.set(number, value);
}

/// Whether the instruction does nothing but move rsp by some bytes; a `pop` writes its register, too.
fn moves_stack(state: &mut State, mnemonic: &str, rest: &str) -> bool {
    match (mnemonic, rest.strip_suffix(", %rsp")) {
        ("push" | "pushq", _) => state.move_by(-8),
        ("pop" | "popq", _) => {
            forget(state, rest);
            state.move_by(8);
        }
        ("add" | "addq" | "sub" | "subq", Some(bytes)) => {
            let Some(bytes) = bytes.strip_prefix('$').and_then(|bytes| bytes.parse::<i32>().ok())
            else {
                return false;
            };
            state.move_by(if mnemonic.starts_with("add") {
                bytes.into()
            } else {
                -i64::from(bytes)
            });
        }
        ("lea" | "leaq", Some(place)) => {
            let bytes = place.strip_suffix("(%rsp)").and_then(|bytes| bytes.parse::<i32>().ok());
            let Some(bytes) = bytes else { return false };
            state.move_by(bytes.into());
        }
        _ => return false,
    }
    true
}

/// After what somebody wrote by hand.
pub(super) fn step_foreign(state: &mut State, text: &str) {
    for statement in text.split(';') {
        let mut words = statement.split_whitespace();
        if words.any(|word| !written_unnamed(word, "").is_empty()) {
            for written in [0, 1, 2, 3, 6, 7] {
                state.forget(written);
            }
        }
    }
    // It leaves rsp where it was.
    for written in registers(text).filter(|&written| written != 4) {
        state.forget(written);
    }
}

/// After a call.
pub(super) fn step_call(state: &mut State) {
    for written in OF_THE_CALLER {
        state.forget(written);
    }
}

/// Registers that are operands themselves are written, and places on the stack: all of them, which may be too many.
fn forget(state: &mut State, list: &str) {
    for operand in operands(list) {
        match register(operand) {
            Some(number) => state.forget(number),
            None => state.store(operand, OTHER),
        }
    }
}

/// The symbol that an expression is; with `@GOTPCREL` and the like, or on its own.
pub(super) fn symbol(expression: &str) -> Option<&str> {
    let quoted = expression.strip_prefix('"').and_then(|rest| rest.split_once('"'));
    let (name, rest) = match quoted {
        Some((name, rest)) => (name, rest),
        None => expression.split_at(expression.find('@').unwrap_or(expression.len())),
    };
    let is_one = quoted.is_some()
        || name.starts_with(|c: char| !c.is_ascii_digit())
            && !name.contains(['+', '-', '*', '(', ' ', '%']);
    (is_one && !rest.contains(['+', '-'])).then_some(unquoted(name)).filter(|name| !name.is_empty())
}

/// An address, as `lea` makes it.
fn address<'a>(state: &State, place: &'a str, values: &mut Values<'a>) -> Value {
    let Some(Memory { displacement, base, index }) = Memory::read(place) else { return OTHER };
    let displaced = match displacement {
        "" | "0" => None,
        _ => match expression(displacement, values) {
            OTHER => return OTHER,
            value => Some(value),
        },
    };
    let mut sum = displaced;
    for part in [base, index] {
        if part.is_empty() || part == "%rip" {
            continue;
        }
        let value = register(part).map_or(OTHER, |number| state[number]);
        sum = Some(match sum {
            Some(sum) => values.add(sum, value),
            None => value,
        });
    }
    sum.unwrap_or(OTHER)
}

/// What `mov` gets: a register, a number that is a symbol's address, or what the table of addresses has of a symbol;
/// of a table of jumps, the table.
fn contents<'a>(state: &State, source: &'a str, values: &mut Values<'a>) -> Value {
    if let Some(number) = register(source) {
        return if is_whole(source) { state[number] } else { OTHER };
    }
    match source.strip_prefix('$') {
        Some(number) => expression(number, values),
        None => state.load(source).unwrap_or_else(|| address(state, source, values)),
    }
}

fn expression<'a>(text: &'a str, values: &mut Values<'a>) -> Value {
    if text.starts_with("_GLOBAL_OFFSET_TABLE_-") || text.starts_with("$_GLOBAL_OFFSET_TABLE_") {
        return values.symbol("_GLOBAL_OFFSET_TABLE_");
    }
    symbol(text).map_or(OTHER, |name| values.symbol(name))
}

/// Whether nothing that it names is written.
fn only_reads(mnemonic: &str) -> bool {
    const READS: [&str; 6] = ["cmp", "test", "push", "prefetch", "nop", "ucomis"];
    READS.iter().any(|start| mnemonic.starts_with(start)) && !mnemonic.starts_with("cmpxchg")
        || matches!(mnemonic, "bt" | "btl" | "btq")
}

/// Registers that it writes without naming them.
fn written_unnamed(mnemonic: &str, rest: &str) -> &'static [usize] {
    const RAX_RDX: &[usize] = &[0, 2];
    const STRING: &[usize] = &[0, 1, 6, 7];
    let of_size = |start: &str| {
        let end = mnemonic.strip_prefix(start);
        end.is_some_and(|end| matches!(end, "b" | "w" | "l" | "q"))
    };
    match mnemonic {
        "mul" | "div" | "idiv" | "cltd" | "cqto" | "cwtd" | "cltq" | "cwtl" | "cbtw" | "rdtsc"
        | "rdpmc" | "xgetbv" | "rdmsr" | "lahf" | "xlatb" | "in" | "inb" | "inw" | "inl"
        | "cqo" | "cdq" | "cdqe" => RAX_RDX,
        "rdtscp" => &[0, 1, 2],
        "syscall" | "sysenter" | "int" | "vmcall" => &[0, 1, 2, 8, 9, 10, 11],
        "cpuid" => &[0, 1, 2, 3],
        "leave" | "leaveq" | "enter" => &[4, 5],
        _ if mnemonic.starts_with("cmpxchg") => RAX_RDX,
        _ if mnemonic.starts_with("loop")
            || mnemonic.contains("pcmpestr")
            || mnemonic.contains("pcmpistr") =>
        {
            &[1]
        }
        _ if of_size("mul") || of_size("div") || of_size("idiv") => RAX_RDX,
        _ if (of_size("imul") || mnemonic == "imul") && operands(rest).count() < 2 => RAX_RDX,
        _ if ["movs", "stos", "lods", "scas", "cmps", "ins", "outs"].into_iter().any(of_size)
            && operands(rest).filter(|operand| !operand.contains('(')).count() < 2 =>
        {
            STRING
        }
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What rdi holds after these, by name.
    fn rdi(text: &str) -> Option<String> {
        let mut values = Values::new(Default::default());
        let mut state = State::new();
        for line in text.split('\n') {
            let (mnemonic, rest) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
            match flow(mnemonic, rest) {
                Flow::Call(_) => step_call(&mut state),
                _ => step(&mut state, mnemonic, rest, &mut values),
            }
        }
        values.only_symbol(state[7]).map(str::to_owned)
    }

    #[test]
    fn addresses_are_loaded_in_many_ways() {
        for text in [
            "leaq f(%rip), %rdi",
            "movl $f, %edi",
            "movq f@GOTPCREL(%rip), %rdi",
            "movabsq $f, %rdi",
            "leaq f(%rip), %rax\nmovq %rax, %rdi",
            "leaq f(%rip), %rbx\ncall g@PLT\nmovq %rbx, %rdi",
            "leaq .L6(%rip), %r15\nmovabsq $_GLOBAL_OFFSET_TABLE_-.L6, %r11\naddq %r11, %r15\n\
             movabsq $f@GOTOFF, %rax\nleaq (%r15,%rax), %rdi",
            "leaq .L6(%rip), %r15\nmovabsq $_GLOBAL_OFFSET_TABLE_-.L6, %r11\naddq %r11, %r15\n\
             movabsq $f@GOT, %rax\nmovq (%r15,%rax), %rdi",
            "leaq \"a b\"(%rip), %rdi",
            "leaq f(%rip), %rax\nmovq %rax, 8(%rsp)\ncall g\npushq %rbx\nsubq $16, %rsp\nmovq 32(%rsp), %rdi",
            "movq %rsp, %rbp\nleaq f(%rip), %rax\nmovq %rax, -8(%rbp)\nsubq %rcx, %rsp\nmovq -8(%rbp), %rdi",
            "leaq f(%rip), %rdi\nmovq %rdi, 8(%rsp)\ncmpq %rdi, %rax\npushq %rdi\nmovq %rdi, %xmm0\nmovsbl 1(%rdi), %eax",
        ] {
            let expected = if text.contains('"') { "a b" } else { "f" };
            assert_eq!(rdi(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_may_have_changed_is_not_known() {
        for text in [
            "leaq f+8(%rip), %rdi",
            "leaq f(%rip), %rdi\ncall g",
            "leaq f(%rip), %rdi\nxorl %edi, %edi",
            "leaq f(%rip), %rdi\nmovb $1, %dil",
            "leaq f(%rip), %rdi\nxchgq %rax, %rdi",
            "leaq f(%rip), %rdi\nxchgq %rdi, %rax",
            "leaq f(%rip), %rdi\npopq %rdi",
            "leaq f(%rip), %rdi\nincq %rdi",
            "leaq f(%rip), %rdi\nstosq",
            "leaq f(%rip), %rdi\nmovsb",
            "leaq f(%rip), %rax\nmulq %rcx\nmovq %rax, %rdi",
            "leaq f(%rip), %rax\nlock cmpxchgl %ecx, (%rdx)\nmovq %rax, %rdi",
            "leaq f(%rip), %rax\nmovq 8(%rax), %rdi",
            "leaq f(%rip), %rax\nmovq %rax, 8(%rsp)\npushq %rbx\nmovq 8(%rsp), %rdi",
            "leaq f(%rip), %rax\nmovq %rax, 8(%rsp)\nmovl %ecx, 8(%rsp)\nmovq 8(%rsp), %rdi",
            "leaq f(%rip), %rax\nmovq %rax, 8(%rsp)\naddq $1, 8(%rsp)\nmovq 8(%rsp), %rdi",
            "leaq f(%rip), %rax\nmovq %rax, 8(%rsp)\nandq $-16, %rsp\nmovq 8(%rsp), %rdi",
            "leaq f(%rip), %rax\nmovq %rax, 8(%rbp)\nmovq %rcx, %rbp\nmovq 8(%rbp), %rdi",
            "leaq f(%rip), %rdi\nmulxq %rax, %rbx, %rdi",
        ] {
            // As it is read, prefixes are gone.
            assert_eq!(rdi(&text.replace("lock ", "")), None, "{text}");
        }
    }
}
