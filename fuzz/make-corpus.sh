#!/bin/sh
# Makes the seeds of the fuzz targets that are made by compilers or by hand. Needs gcc and python3; and
# for other processors' files of gprof Debian's cross compilers and qemu-user.
#
# The others are recordings of the programs in programs/, made in a folder /demo by
#     teeperf cc -g -O0 -pthread calls.c -o calls; teeperf cc -g -O0 forks.c -o forks
#     teeperf record --clock tick -o tick -- ./calls       (cycle and forks likewise)
#     teeperf record --probe tree --clock tick -o tree -- ./calls
#     teeperf record --probe tree --clock cycle --tree-size 4KiB --fold-recursion --interval 1ms -o tree-folded -- ./calls
# And the pieces are of conformance/take.c in crates/teeperf-tee, built with the library of `teeperf install-sdk`, once with
# -finstrument-functions and once with -pg:
#     ./take tree 256; ./take lines 0; ./take-pg arcs 300
set -eu
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p corpus/recording corpus/words corpus/drain corpus/wire corpus/symbols corpus/demangle corpus/gmon corpus/pieces corpus/tee_perf corpus/perf_data \
    corpus/assembly corpus/stacks corpus/rings corpus/enclaves corpus/perf_map corpus/companions

# Small ELF files: both classes, with lines, with stubs, stripped, compressed.
printf 'extern int far(int);\nint near(int x) { return far(x) + 1; }\n' > "$work/a.c"
build() { name=$1; shift; gcc -nostdlib -shared -fPIC -ffile-prefix-map="$work=/seed" \
    -ffile-prefix-map="$PWD=/seed" -Wl,-z,noseparate-code,-z,max-page-size=64 "$@" \
    "$work/a.c" -o "corpus/symbols/$name"; chmod 644 "corpus/symbols/$name"; }
build lines -g1
build stubs -s -O1
build compressed -g1 -gz=zlib
build class32 -m32 -O1
build dwarf4 -gdwarf-4 -O1
# What Rust programs have of `#[profile]`: two sites, one of which has a symbol with a type in it.
cat > "$work/a.c" <<'END'
__attribute__((used)) static void site(void) __asm__("_ZN4core3ptr90drop_in_place$LT$p..f..teeperf_site$LT$p..f$LT$u8$GT$..$u7b$$u7b$closure$u7d$$u7d$$GT$$GT$17h0123456789abcdefE");
static void site(void) {}
__asm__(".pushsection .note.teeperf,\"\",%note\n"
	".macro note address name\n.balign 4\n.long 8, 5f - 4f, 1\n.asciz \"TeePerf\"\n"
	"4: .quad \\address\n.long 7\n.byte 1\n.asciz \"\\name\"\n.asciz \" [polled again]\"\n.asciz \"src/a.rs\"\n5: .balign 4\n.endm\n"
	"note _ZN4core3ptr90drop_in_place$LT$p..f..teeperf_site$LT$p..f$LT$u8$GT$..$u7b$$u7b$closure$u7d$$u7d$$GT$$GT$17h0123456789abcdefE f\n"
	"note near g\n.popsection");
__attribute__((visibility("hidden"))) int near(int x) { return x + 1; }
END
build sites -O1

python3 - <<'PYTHON'
import pathlib
import struct
import subprocess

# A stack that leads through `near` again and again, by the tables and by frame pointers.
corpus = pathlib.Path("corpus")
for name in ("lines", "stubs", "dwarf4", "compressed"):
    path = corpus / "symbols" / name
    table = subprocess.run(["nm", "-D", path], check=True, capture_output=True, text=True).stdout
    near = next(int(line.split()[0], 16) for line in table.splitlines() if line.endswith(" near"))
    code = (1 << 33) + near
    registers = [0x1000 + 8 * n for n in range(33)]
    registers[6], registers[7], registers[8] = 0x1040, 0x1000, code + 4
    registers[29], registers[31], registers[32] = 0x1040, 0x1000, code + 4
    stack = []
    for frame in range(8):
        stack += [0x1000 + 64 * (frame + 1) + 16, code + 9] * 4
    words = struct.pack(f"<{len(registers) + len(stack)}Q", *registers, *stack)
    data = path.read_bytes()
    (corpus / "stacks" / name).write_bytes(struct.pack("<H", len(data)) + data + words)
PYTHON

# A program, behind its size, and the file with a part of its debug information: split off by a compiler, in both versions of
# DWARF, packed, and moved by dwz.
cat > "$work/a.c" <<'END'
struct pair { int first, second; };
static inline __attribute__((always_inline)) int inlined(struct pair *pair) { return pair->first + pair->second; }
__attribute__((visibility("default"))) int near(struct pair *pair) { return inlined(pair) * 2; }
END
companion() { # NAME PROGRAM COMPANION
    python3 -c 'import struct, sys
program, companion = (open(name, "rb").read() for name in sys.argv[1:])
sys.stdout.buffer.write(struct.pack("<H", len(program)) + program + companion)' "$2" "$3" > "corpus/companions/$1"; }
(cd "$work" && for version in 4 5; do
    small="-O1 -nostdlib -shared -fPIC -Wl,--build-id,-z,noseparate-code,-z,max-page-size=64 -ffile-prefix-map=$work=/seed"
    gcc -c $small -gdwarf-$version -gsplit-dwarf a.c -o a.o
    gcc $small a.o -o p$version; mv a.dwo a$version.dwo
done
cp a5.dwo a.dwo; llvm-dwp-19 a.dwo -o p5.dwp
for one in p other; do gcc $small -g -fno-eliminate-unused-debug-types a.c -o $one; done
dwz -m alt -M /seed/alt p other)
companion dwo4 "$work/p4" "$work/a4.dwo"
companion dwo5 "$work/p5" "$work/a5.dwo"
companion dwp5 "$work/p5" "$work/p5.dwp"
companion dwz "$work/p" "$work/alt"

# Files of gprof: of one program, by the processors' own C libraries; the sum of two; both byte orders and
# widths.
profiled() { name=$1; compiler=$2; shift 2; $compiler -pg -O1 -fno-optimize-sibling-calls \
    programs/profiled.c -o "$work/profiled"; (cd "$work" && "$@" ./profiled); cp "$work/gmon.out" "corpus/gmon/$name"; }
profiled i686 i686-linux-gnu-gcc env
profiled aarch64 aarch64-linux-gnu-gcc qemu-aarch64 -L /usr/aarch64-linux-gnu
profiled arm arm-linux-gnueabihf-gcc qemu-arm -L /usr/arm-linux-gnueabihf
profiled powerpc powerpc-linux-gnu-gcc qemu-ppc -L /usr/powerpc-linux-gnu
profiled s390x s390x-linux-gnu-gcc qemu-s390x -L /usr/s390x-linux-gnu
profiled x86_64 gcc env
(cd "$work" && gprof -s profiled gmon.out gmon.out >/dev/null)
cp "$work/gmon.sum" corpus/gmon/sum

# The file of a trusted application, as `cargo xtask optee --from-source gprof` leaves it: OP-TEE interrupted it in `compute`,
# and of the histogram what stands behind that is cut off.
optee=${TEEPERF_OPTEE_CACHE:-${CARGO_TARGET_DIR:-../target}/optee}/boots/from-source-counted/out/compute.out
[ ! -f "$optee" ] || python3 - "$optee" <<'PYTHON'
import struct
import sys
HEAD, KEPT, PART = 20, 384, 4
whole = open(sys.argv[1], "rb").read()
kind, low, high, parts, *rest = struct.unpack_from("<BQQII16s", whole, HEAD)
assert kind == 0 and high - low == PART * parts
bins = HEAD + struct.calcsize("<BQQII16s")
head = struct.pack("<BQQII16s", kind, low, low + PART * KEPT, KEPT, *rest)
with open("corpus/gmon/optee", "wb") as file:
    file.write(whole[:HEAD] + head + whole[bins:bins + 2 * KEPT] + whole[bins + 2 * parts:])
PYTHON

# Logs of the original TEE-Perf: of a program in both forms, the second full; switched off and on.
programs=../crates/teeperf/tests/programs
gcc -O2 -c "$programs/tee_perf_log.c" -o "$work/log.o"
gcc -O1 -finstrument-functions "$programs/tee_perf_calls.c" "$work/log.o" -pthread -o "$work/logged"
logged() { name=$1; shift; env TEE_PERF_LOG="corpus/tee_perf/$name" "$@" > /dev/null; chmod 644 "corpus/tee_perf/$name"; }
logged single TEE_PERF_SIZE=10000 "$work/logged"
logged threads TEE_PERF_SIZE=8000 TEE_PERF_THREADS=1 "$work/logged" threads
logged switched TEE_PERF_SIZE=1100 TEE_PERF_THREADS=1 "$work/logged" pauses

# Files of perf, which the tests of its reader have.
for name in fp dwarf per-thread pipe compressed events killed; do
    cp "../crates/teeperf-interop/tests/data/perf/$name.data" "corpus/perf_data/$name"
done
# Cut off, and with some bytes flipped, the same ones each time.
python3 - <<'PYTHON'
import pathlib
import random
corpus = pathlib.Path("corpus/perf_data")
for name in ("fp", "dwarf", "pipe", "compressed", "events"):
    whole = (corpus / name).read_bytes()
    dice = random.Random(name)
    (corpus / f"{name}-cut").write_bytes(whole[:dice.randrange(len(whole) // 3, len(whole))])
    flipped = bytearray(whole)
    for _ in range(12):
        flipped[dice.randrange(len(flipped))] ^= 1 << dice.randrange(8)
    (corpus / f"{name}-flipped").write_bytes(flipped)
PYTHON

# What just-in-time compilers tell perf: as node writes it; and stretches over one another, in all orders.
cat > corpus/perf_map/node <<'END'
7f2c80000f60 1c RegExp:[a-z]+
7f2c80001000 2a4 JS:~all /demo/x.js:6:13
7f2c800012c0 118 JS:*fib /demo/x.js:1:13
7f2c80001000 180 JS:^sorting /demo/x.js:4:17
END
printf '%s\n' '100 100 outer' '140 40 inner' '0x1f0 0x20 behind' '140 8 again' '0 ffffffffffffffff all' '3000 0 none' 'zz 1 bad' \
    '80 100 before' '' '17f 2 Ljava/lang/String;::hashCode' > corpus/perf_map/over
printf '1000 10 cut of\377\n1000 8' > corpus/perf_map/cut

# Names.
i=0
for name in _ZN5shape4Area3sumERKSt6vectorIiSaIiEE _RNvMs_NtCs4fqI2P2rA04_1a1bNtB4_1C1d _Z1fSt4pairIiiES_IS0_S0_E \
    _ZN4core3fmt9Formatter3pad17h5b1a7f0d2c3e4f56E _Znwm@plt _ZNKSt8functionIFvvEEclEv _ZZ4mainENKUlvE_clEv
do
    i=$((i + 1))
    printf %s "$name" > "corpus/demangle/$i"
done

# The examples of docs/format.md.
python3 - <<'PYTHON'
import re
import struct
import zlib
text = open("../docs/format.md", encoding="utf-8").read()
def example(name):
    return bytes.fromhex("".join(re.findall(rf"^```hex {name}\n(.*?)^```", text, re.S | re.M)))
def write(path, data):
    with open(f"corpus/{path}", "wb") as file:
        file.write(data)
# A file of gprof with what is rare in one: counts of basic blocks, histograms that overlap, of another
# unit, with parts of less than two bytes, and without a rate; a call by nobody, and one beyond all functions.
def gmon(*records):
    return b"gmon" + struct.pack("<I12x", 1) + b"".join(records)
def histogram(low, high, rate, unit, *bins):
    head = struct.pack("<BQQII15s1s", 0, low, high, len(bins), rate, unit, unit[:1])
    return head + struct.pack(f"<{len(bins)}H", *bins)
def arc(caller, callee, calls):
    return struct.pack("<BQQI", 1, caller, callee, calls)
write("gmon/rare", gmon(
    histogram(0x1000, 0x1010, 100, b"seconds", 1, 0, 65535, 2),
    struct.pack("<BIQQQQ", 2, 2, 0x1000, 7, 0x1004, 8),
    histogram(0x1000, 0x1010, 100, b"seconds", 1, 0, 65535, 2),
    histogram(0x1008, 0x1018, 100, b"seconds", 1, 2, 3, 4),
    histogram(0x2000, 0x2006, 0, b"clocks", *range(12)),
    histogram(2**64 - 4, 2**64 - 1, 1000, b"seconds", 5),
    arc(0, 0x1000, 3), arc(0x1002, 0x1008, 2**32 - 1), arc(0x1002, 0x1008, 5), arc(0x1009, 2**64 - 2, 1)))
# A log with what is rare in one: times that go back and leap, code all over the address space, entries never written, more
# begun than there was room for, a small thread id.
def log(entries, begun, flags):
    rows = b"".join(struct.pack("<3Q", *entry) for entry in entries)
    return struct.pack("<7Q", 2**40, flags, 2**47, 4711, 56 + len(rows), begun, 0x401000) + rows + b"\0"
RETURN, THREADS = 2**63, 2**16
write("tee_perf/rare", log([
    (RETURN | 5, 0x401900, 7), (10, 0x401100, 7), (2**33, 0x401200, 2**46 + 64), (20, 0x7f0000401200, 7), (0, 0, 0),
    (RETURN | 9, 0x401100, 7), (12, 0, 0), (2**62 + 1, 2**64 - 1, 7), (RETURN | 2**32, 0, 0), (RETURN | 13, 2**64 - 1, 7),
    ] + [(40 + n, (n << 56) + 0x1000, n % 3) for n in range(130)] + [(RETURN | 2**40, 0x401200, 2**46 + 64)],
    2**40, 1 | THREADS | 2**64 - 2**31))
whole = example("recording")
write("recording/document", whole)
write("wire/packet", whole[:80])
# Samples, one of them with two stacks; and as perf has that one: a chain, and a stack whose callers are behind it.
def packets(*all):
    out = b""
    for number, (kind, payload) in enumerate(all):
        head = b"TPRF" + struct.pack("<HHII", kind, 0, len(payload), number)
        out += head + struct.pack("<I", zlib.crc32(head + payload)) + payload
    return out
outer = example("sample-outer")
write("recording/samples", packets((1, whole[20:80]), (14, example("sampled")), (16, example("map")), (15, example("samples")),
    (15, struct.pack("<IIQII", 1, len(outer), 0, 0, 0) + outer)))
write("wire/sample", outer)
SAMPLE_TYPE = 1 | 1 << 1 | 1 << 5 | 1 << 12 | 1 << 13
attr = struct.pack("<IIQQQQQIIQQQQIiQQ", 1, 112, 0, 1000, SAMPLE_TYPE, 0, 0, 0, 0, 0, 0, 0, 0x1c0, 16, 0, 0, 0)
sample = struct.pack("<QIIQQQQQQQQ", 0x7f0000001210, 77, 78, 2, 2**64 - 512, 0x7f0000001210, 2, 0x7fffffffe010, 0x7fffffffe000,
    0x555555555300, 16) + bytes(range(16)) + struct.pack("<Q", 16)
data = struct.pack("<IHH", 9, 2, 8 + len(sample)) + sample
write("perf_data/outer", b"PERFILE2" + struct.pack("<12Q", 104, 128, 104, 128, 232, len(data), 0, 0, 0, 0, 0, 0) + attr
    + bytes(16) + data)
write("wire/fields", example("fields"))
write("pieces/document", example("piece"))
write("wire/chunk", example("chunk-cycle"))
write("wire/hello", b"TPHi" + bytes([1, 0, 0, 0]) + bytes(24))
write("wire/welcome", b"TPOk" + bytes([1, 0, 0, 0]) + bytes(40))
words = b"".join(example(f"words-{name}") for name in ("gap", "far", "name", "switch"))
chunk = whole[whole.index(b"TPRF", 90) + 76:][:92]
write("words/tick", b"\x00" + chunk + words)
write("words/pieces", b"\x04" + chunk + chunk)
write("words/cycle", b"\x01" + example("chunk-cycle-words"))
for name in ("tick", "cycle", "pieces"):
    write(f"drain/{name}", open(f"corpus/words/{name}", "rb").read())
write("drain/hello", b"TPHi" + bytes([1, 0, 0, 0]) + bytes(24))
PYTHON

# What a program that is sampled writes: samples of two threads in rings, and runtimes' lists of enclaves, in memory that begins at 0.
python3 - <<'PYTHON'
import struct
def words(*numbers):
    return struct.pack(f"<{len(numbers)}Q", *(number % 2**64 for number in numbers))
def write(path, *parts):
    with open(f"corpus/{path}", "wb") as file:
        file.write(b"".join(parts))
# A head of a place has its owner, and how much was written, read and lost; then comes the ring.
PLACE, HEAD = 12288 + 4096, 12288
def wrote(at, data):
    assert at % 8 == len(data) % 8 == 0
    return struct.pack("<II", at // 8, len(data) // 8) + data
def sample(thread, event, chain=(), registers=(), stack=b""):
    size = 64 + 8 * (len(chain) + len(registers)) + len(stack)
    mask = REGISTERS if registers else 0
    head = struct.pack("<IHBBQIIIIQQQII", size, event, 2, 2 if registers else 0, 99, 7, thread, 0, len(chain), 0x401000, 1000, mask, len(stack), 0)
    return head + words(*chain, *registers) + stack
REGISTERS = 0xff03ff
def place(number, thread, data, ended=0):
    begin = number * PLACE
    return wrote(begin + HEAD, data) + wrote(120, words(3)) + wrote(begin, words(thread | ended << 31, len(data), 0, 0))
chain = sample(8, 1, [-512, 0x401000, 0x402000])
whole = sample(9, 3, registers=range(REGISTERS.bit_count()), stack=bytes(64))
write("rings/chain", place(0, 8, chain + sample(8, 2)))
write("rings/threads", place(0, 8, chain), place(1, 9, whole + whole), place(0, 8, chain, 1), place(0, 10, sample(10, 3)))
write("rings/nonsense", place(1, 9, sample(8, 3)), wrote(8, words(2**64 - 1, 5, 7)), place(0, 8, b"x" * 64))
# Each begins with where the list does, and with an enclave.
BASE, SIZE, NAME = 1 << 20, 1 << 16, b"/enclave.so\0\0\0\0\0"
def memory(first, *parts):
    return words(first, BASE, SIZE) + b"".join(parts)
write("enclaves/intel", memory(40, NAME, words(80, 5, 0, 11 << 32, 24), words(0, BASE, 0, 11 << 32, 24)))
write("enclaves/gramine", memory(40, NAME, words(24, BASE, 64), words(24, BASE + 4096, 88), words(24, 0, 0)))
ENCLAVE, MODULE = 0xabc540ee14fa48ce, 0xf67ae6230a18a2ce
write("enclaves/open-enclave", memory(40, NAME, words(ENCLAVE, 1, 0, 24, 11, BASE, SIZE, 0, 0, 0, 128), words(MODULE, 1, 0, 24, 11, BASE + 8192, 4096)))
PYTHON

# Assembly with hooks, as two compilers write it.
cat > "$work/b.cc" <<'END'
int far(int);
static inline int small(int x) { return x * 3; }
int f(int x) { switch (x) { case 0: return far(1); case 1: return 7; case 2: return far(x); case 3: return small(x); case 4: return 5; default: throw x; } }
int g(int x) { try { return f(x); } catch (int) { return small(x); } }
END
written() { name=$1; compiler=$2; shift 2; $compiler -S "$@" -ffile-prefix-map="$work=/seed" "$work/b.cc" -o "corpus/assembly/$name"; }
written gcc g++ -O1 -finstrument-functions
written gcc-lines g++ -O2 -g1 -dA -fPIC -finstrument-functions
written gcc-large g++ -O1 -mcmodel=large -finstrument-functions
written clang clang++ -O1 -finstrument-functions-after-inlining
