#!/bin/sh
# Makes the seeds of the fuzz targets that are made by compilers or by hand. Needs gcc and python3.
#
# The others are recordings of the programs in programs/, made in a folder /demo by
#     teeperf cc -g -O0 -pthread calls.c -o calls; teeperf cc -g -O0 forks.c -o forks
#     teeperf record --clock tick -o tick -- ./calls       (cycle and forks likewise)
set -eu
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p corpus/recording corpus/words corpus/drain corpus/wire corpus/symbols corpus/demangle

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
text = open("../docs/format.md", encoding="utf-8").read()
def example(name):
    return bytes.fromhex("".join(re.findall(rf"^```hex {name}\n(.*?)^```", text, re.S | re.M)))
def write(path, data):
    with open(f"corpus/{path}", "wb") as file:
        file.write(data)
whole = example("recording")
write("recording/document", whole)
write("wire/packet", whole[:80])
write("wire/fields", example("fields"))
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
