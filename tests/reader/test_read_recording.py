"""Tests of read_recording.py and of the examples in docs/format.md.

    python3 -m unittest discover -s tests/reader

Recordings are made here from numbers, by a few lines that share nothing with the reader or with
teeperf; the expected results are worked out by hand from the rules in the document.
"""

import json
import pathlib
import re
import struct
import subprocess
import sys
import unittest
import zlib

FOLDER = pathlib.Path(__file__).resolve().parent
DOCUMENT = (FOLDER.parent.parent / "docs" / "format.md").read_text(encoding="utf-8")
sys.path.insert(0, str(FOLDER))

import read_recording  # noqa: E402
import recording_format  # noqa: E402


def example(name):
    """Bytes of the blocks of this name in the document, one behind the other."""
    blocks = re.findall(rf"^```hex {name}\n(.*?)^```", DOCUMENT, re.S | re.M)
    assert blocks, f"the document has no example {name}"
    return bytes.fromhex("".join(blocks))


def example_words(name):
    return [word for (word,) in struct.iter_unpack("<I", example(name))]


# ------------------------------------------------------------ recordings by hand


def packet(kind, sequence, payload, flags=0):
    head = b"TPRF" + struct.pack("<HHII", kind, flags, len(payload), sequence)
    return head + struct.pack("<I", zlib.crc32(head + payload)) + payload


def field(tag, value):
    if isinstance(value, int):
        value = value.to_bytes(8, "little", signed=value < 0)
    return struct.pack("<HHI", tag, 0, len(value)) + value


def start(clock=1, major=1, minor=0, extra=b""):
    return field(1, struct.pack("<HH", major, minor)) + field(3, clock) + field(4, 1000) + extra


def words_bytes(words):
    return struct.pack(f"<{len(words)}I", *words)


def chunk(words, time=0, process=1, thread=1, sequence=1, first=0, stack=0, clock=1, flags=1,
          encoding=0, count=None, data=None):
    count = len(words) if count is None else count
    head = struct.pack("<IIIIIIQQQBBHI", process, thread, 78, sequence, first, count, time,
                       2**64 - 1, stack, clock, encoding, flags, 0)
    return head + (words_bytes(words) if data is None else data)


def recording(*chunks, clock=1, end=True):
    payloads = [(1, start(clock)), (2, field(1, 1) + field(2, 77))]
    payloads += [(3, payload) for payload in chunks]
    if end:
        payloads.append((8, field(1, 0)))
    return b"".join(packet(kind, n, payload) for n, (kind, payload) in enumerate(payloads))


def call(site):
    return site << 1


def ret(site):
    return site << 1 | 1


def escape(code, argument=0, payload=None):
    first = 7 << 29 | code << 24 | argument
    return [first] if payload is None else [first, 1 << 31 | len(payload), *payload]


def low(*values):
    return [1 << 31 | value for value in values]


def wide(value):
    return [1 << 31 | value & 0x7FFFFFFF, 1 << 31 | value >> 31]


def tick(units):
    return escape(0, units)


def gap(reason, lost=0, popped=0, pushed=0, units=0):
    return escape(17, reason, [*wide(lost), *low(popped, pushed), *wide(units)])


def flat(*parts):
    return [word for part in parts for word in (part if isinstance(part, list) else [part])]


A, B, C = 0x2200, 0x2240, 0x2280


def number(value):
    """Unsigned LEB128."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out + bytes([value]))


def tree(*nodes, thread=1, count=None, begin=0, end=100, mended=0, encoding=0, cut=None):
    """Nodes as rows of numbers."""
    data = b"".join(number(value) for node in nodes for value in node)[:cut]
    count = len(nodes) if count is None else count
    head = struct.pack("<IIIIQQQBB6x", 1, thread, 78, count, begin, end, mended, encoding, 0)
    return head + data


def tree_recording(*trees):
    payloads = [(1, start(minor=1)), (2, field(1, 1) + field(2, 77))]
    payloads += [(10, payload) for payload in trees] + [(8, field(1, 0))]
    return b"".join(packet(kind, n, payload) for n, (kind, payload) in enumerate(payloads))


class Case(unittest.TestCase):
    maxDiff = None

    def thread(self, *parts, time=0, clock=1):
        """The one thread that does these words."""
        read = read_recording.read(recording(chunk(flat(*parts), time, clock=clock), clock=clock))
        self.assertEqual(read["warnings"], [])
        (thread,) = read["threads"]
        return thread

    def figures(self, thread):
        """calls, self, total of each function by the number of its site."""
        return {entry["name"].replace("site ", ""): (entry["calls"], entry["self"], entry["total"])
                for entry in thread["functions"]}


# ------------------------------------------------------------ the document's examples


class Examples(Case):
    def test_the_whole_recording(self):
        read = read_recording.read(example("recording"))
        self.assertEqual(read["warnings"], [])
        self.assertEqual(read["version"], "1.6")
        self.assertEqual(read["start"], {"clock": 1, "hz": 1_000_000, "clock_start": 5000})
        self.assertEqual(read["processes"], [
            {"id": 1, "pid": 77, "executable": "/bin/a", "time": 5000}])
        self.assertEqual(read["modules"], [{
            "process": 1, "first_site": 0x1000, "sites": 0x3000, "address": 0x555555554000,
            "bias": 0x555555554000, "build_id": "abcd", "path": "/bin/a"}])
        self.assertEqual(read["end"], {"time": 5200, "words": 23, "exit_status": 0})
        (thread,) = read["threads"]
        self.assertEqual((thread["tid"], thread["events"], thread["calls"]), (78, 4, 2))
        for count in ("lost_events", "lost_words", "mended", "unopened", "open", "outside"):
            self.assertEqual(thread[count], 0, count)
        self.assertEqual(thread["functions"], [
            {"name": "outer", "module": "/bin/a", "address": 0x1200, "file": "/a.c", "line": 3,
             "calls": 1, "self": 8, "total": 15},
            {"name": "inner", "module": "/bin/a", "address": 0x1240, "file": None, "line": None,
             "calls": 1, "self": 7, "total": 7}])

    def test_the_command_prints_the_same(self):
        command = [sys.executable, str(FOLDER / "read_recording.py"), "-"]
        done = subprocess.run(command, input=example("recording"), capture_output=True, check=True)
        self.assertEqual(json.loads(done.stdout), read_recording.read(example("recording")))

    def test_fields(self):
        tags = {1: ("one", "number"), 2: ("two", "text")}
        found = recording_format.fields(example("fields"), tags, self.fail)
        self.assertEqual(found, {"one": 300, "two": "a"})

    def test_compressed_words(self):
        read = read_recording.read(recording(example("chunk-zstd"), end=True))
        self.assertEqual(read["warnings"], [
            "chunk at offset 116: words are missing before it: the thread begins with chunk 2 "
            "from word 0"])
        (thread,) = read["threads"]
        self.assertEqual((thread["events"], thread["mended"], thread["open"]), (4, 0, 0))
        self.assertEqual(self.figures(thread), {"0x2200": (1, 0, 0), "0x2240": (1, 0, 0)})

    def test_two_planes(self):
        payload = example("chunk-cycle")
        header = {"clock": 2, "encoding": 2, "count": 12, "time": 0x1FFFFFF01, "words_bytes": 32}
        self.assertEqual(recording_format.words_of(header, payload[56:]),
                         example_words("chunk-cycle-words"))
        read = read_recording.read(recording(payload, clock=2))
        (thread,) = read["threads"]
        # A is called at 1FFFFFF11, B at 20000000B, they return at 200000191 and 200000193.
        self.assertEqual(self.figures(thread), {
            "0x2200": (1, 0xFA + 2, 0xFA + 0x186 + 2), "0x2240": (1, 0x186, 0x186)})
        self.assertEqual(thread["outside"], 0x10)

    def test_escapes(self):
        def only(name):
            (item,) = recording_format.items(example_words(name), 1)
            return item
        _, code, reason, payload = only("words-gap")
        self.assertEqual((code, reason, recording_format.join(payload[:2])), (17, 1, 10))
        self.assertEqual((payload[2], payload[3]), (0x80000001, 0x80000002))
        self.assertEqual(recording_format.join(payload[4:]), 1000)
        _, code, kind, payload = only("words-far")
        self.assertEqual((code, kind), (21, 0))
        self.assertEqual(recording_format.join(payload), 0xFFFF800012345678)
        _, code, _, payload = only("words-name")
        self.assertEqual((code, recording_format.packed(payload)), (23, b"main"))
        timed, (_, *event) = recording_format.items(example_words("words-timed"), 1)
        self.assertEqual((timed[1], recording_format.join(timed[3])), (27, 1_000_000))
        _, code, _, payload = only("words-switch")
        self.assertEqual(code, 18)
        self.assertEqual(recording_format.join(payload[:2]), 0)
        self.assertEqual(recording_format.join(payload[2:]), 0x7F0000001000)

    def test_the_checksum(self):
        self.assertEqual(zlib.crc32(b"123456789"), 0xCBF43926)
        self.assertIn("CBF43926", DOCUMENT)


# ------------------------------------------------------------ replay


class Keyframes(Case):
    def window(self, keyframes, *words, first=0, sequence=2, time=0, stack=0):
        payloads = [(1, start(minor=2)), (2, field(1, 1) + field(2, 77))]
        payloads += [(12, payload) for payload in keyframes]
        payloads += [(3, chunk(flat(*words), time=time, sequence=sequence, first=first, stack=stack)),
                     (8, field(1, 0))]
        read = read_recording.read(
            b"".join(packet(kind, n, payload) for n, (kind, payload) in enumerate(payloads)))
        self.assertEqual(read["warnings"], [])
        return read["threads"][0]

    def keyframe(self, *frames, fields=b"", time=0, thread=1):
        data = b"".join(number(n) for frame in frames for n in frame)
        return (field(1, 1) + field(2, thread) + field(3, 78) + field(4, time) + field(13, 2)
                + field(9, data) + fields)

    def test_the_example_of_the_document(self):
        thread = self.window([example("keyframe")], ret(0x9999), time=5100)
        self.assertEqual((thread["open"], thread["tid"], thread["mended"]), (1 + 10000 + 1, 78, 1))

    def test_frames_are_open_and_their_calls_do_not_count(self):
        thread = self.window([self.keyframe((A << 1, 1), (B << 1, 2))],
                             tick(4), ret(B), ret(B), tick(3), call(C), tick(1), ret(C), ret(A))
        self.assertEqual(self.figures(thread), {
            "0x2200": (0, 3, 8), "0x2240": (0, 4, 4), "0x2280": (1, 1, 1)})
        self.assertEqual((thread["open"], thread["unopened"], thread["mended"]), (0, 0, 0))

    def test_what_passed_before_is_not_charged_and_gaps_do_not_take_it_twice(self):
        thread = self.window([self.keyframe((A << 1, 1), fields=field(6, 5) + field(7, 6))],
                             tick(10), gap(4, units=7), ret(A))
        # 10 pass, 4 of them here. The gap's 7 take these, and 3 of the 5 before.
        self.assertEqual(self.figures(thread), {"0x2200": (0, 0, 0)})

    def test_stacks_marks_and_parts(self):
        mark = field(11, struct.pack("<IQQ", 7, 3, 1))
        thread = self.window(
            [self.keyframe((A << 1, 1), (B << 1, 1), fields=field(5, 3) + mark),
             self.keyframe((C << 1, 1), fields=field(8, 4)),
             self.keyframe((B << 1, 1), fields=field(15, 1))],
            escape(3, 7), ret(A), escape(18, 0, [*wide(3), *wide(0)]), tick(2), ret(B), stack=3)
        self.assertEqual((thread["open"], thread["mended"], thread["unopened"]), (0, 0, 0))
        self.assertEqual(self.figures(thread)["0x2240"], (0, 2, 2))


class Filters(Case):
    FILTER = field(1, 2) + field(3, 1) + field(4, 0x1000) + field(5, 0x3000)

    def filtered(self, payload, *words):
        payloads = [(1, start(minor=2)), (2, field(1, 1) + field(2, 77)), (13, field(1, 2) + field(2, b"only B")),
                    (13, payload), (3, chunk(flat(*words))), (8, field(1, 0))]
        read = read_recording.read(
            b"".join(packet(kind, n, payload) for n, (kind, payload) in enumerate(payloads)))
        self.assertEqual(read["warnings"], [])
        self.assertEqual(read["filters"], [["only B"]])
        thread = read["threads"][0]
        self.assertEqual((thread["mended"], thread["unopened"]), (0, 0))
        return thread

    def test_the_example_of_the_document_leaves_others_out(self):
        # The frame of C is closed, those of A and B stay.
        thread = self.filtered(example("filter"), call(A), call(B), call(C), escape(7, 2), tick(3), ret(B), tick(5))
        self.assertEqual(self.figures(thread)["0x2240"], (1, 3, 3))
        self.assertEqual(self.figures(thread)["0x2200"], (1, 5, 8))

    def test_a_frame_below_is_closed_when_it_comes_on_top(self):
        leaves_out_b = self.FILTER + field(6, 1) + field(7, struct.pack("<I", B))
        thread = self.filtered(leaves_out_b, call(A), call(B), call(C), escape(7, 2), ret(C), tick(3), ret(A), tick(5))
        self.assertEqual(self.figures(thread), {"0x2200": (1, 3, 3), "0x2240": (1, 0, 0), "0x2280": (1, 0, 0)})
        self.assertEqual((thread["open"], thread["outside"]), (0, 5))

    def test_returns_of_calls_that_were_left_out(self):
        only_a = self.FILTER + field(7, struct.pack("<I", A))
        thread = self.filtered(only_a, call(A), escape(7, 2), call(A), escape(7, 0), ret(B), ret(C), call(B), ret(B),
                               tick(2), ret(A), ret(C), tick(4), ret(A), ret(B))
        self.assertEqual(self.figures(thread), {"0x2200": (2, 6, 6), "0x2240": (1, 0, 0)})
        self.assertEqual(thread["open"], 0)

    LEAVES_OUT_B = FILTER + field(6, 1) + field(7, struct.pack("<I", B))

    def test_what_returns_in_a_gap_is_not_what_the_filter_leaves_out(self):
        # Of A, B, A, C two return: the second is that of the upper A, and B's may be over as well.
        thread = self.filtered(self.LEAVES_OUT_B, call(A), call(B), call(A), call(C), escape(7, 2),
                               gap(1, lost=2, popped=2), tick(3), ret(A), tick(5))
        self.assertEqual(self.figures(thread)["0x2200"], (2, 3, 3))
        self.assertEqual((thread["open"], thread["outside"]), (0, 5))

    def test_a_jump_onto_what_is_left_out_closes_it(self):
        thread = self.filtered(self.LEAVES_OUT_B, call(A), call(B), escape(2, 9), call(C), escape(7, 2), call(C),
                               escape(3, 9), tick(3), ret(A), tick(5))
        self.assertEqual(self.figures(thread)["0x2200"], (1, 3, 3))

    def test_a_filter_that_came_and_went_untold(self):
        # The thread tells of filter 3 alone; under 2, B may have returned.
        thread = self.filtered(self.LEAVES_OUT_B, call(A), call(B), escape(7, 3), call(C), tick(3), ret(C), ret(A))
        self.assertEqual(self.figures(thread), {"0x2200": (1, 0, 3), "0x2240": (1, 0, 0), "0x2280": (1, 3, 3)})

    def test_who_catches_and_is_left_out_has_no_frame_below(self):
        thread = self.filtered(self.LEAVES_OUT_B, call(B), call(A), escape(7, 2), call(C), escape(20, 0, low(B)),
                               tick(3), ret(C), ret(A))
        self.assertEqual(self.figures(thread)["0x2280"], (1, 3, 3))


class Replay(Case):
    def test_recursion_is_counted_once(self):
        thread = self.thread(call(A), tick(1), call(B), tick(2), call(A), tick(4), ret(A),
                             tick(8), ret(B), tick(16), ret(A), tick(32))
        self.assertEqual(self.figures(thread), {"0x2200": (2, 21, 31), "0x2240": (1, 10, 14)})
        self.assertEqual(thread["outside"], 32)

    def test_returns_that_do_not_fit(self):
        thread = self.thread(ret(C), call(A), call(B), ret(C), call(C), ret(A), ret(A))
        # The first and the last have no frame below; the return of C under B is skipped; that of
        # A closes C and B.
        self.assertEqual((thread["unopened"], thread["mended"], thread["open"]), (2, 3, 0))

    def test_open_frames_keep_their_time(self):
        thread = self.thread(call(A), tick(5), call(B), tick(6))
        self.assertEqual(self.figures(thread), {"0x2200": (1, 5, 11), "0x2240": (1, 6, 6)})
        self.assertEqual(thread["open"], 2)

    def test_jumps(self):
        thread = self.thread(call(A), escape(2, 9), call(B), call(C), escape(3, 9), tick(3), ret(A))
        self.assertEqual((thread["mended"], thread["open"]), (0, 0))
        self.assertEqual(self.figures(thread)["0x2200"], (1, 3, 3))
        # A jump opens nothing, and an unknown key changes nothing.
        thread = self.thread(call(A), call(B), escape(2, 9), ret(B), escape(3, 9), escape(3, 8))
        self.assertEqual(thread["open"], 1)

    def test_vfork(self):
        thread = self.thread(call(A), escape(4), call(B), call(C), escape(5), ret(A))
        self.assertEqual((thread["mended"], thread["open"], thread["calls"]), (0, 0, 3))

    def test_catch(self):
        thread = self.thread(call(A), call(B), call(C), escape(20, 0, low(A)), tick(2), ret(A))
        self.assertEqual((thread["mended"], thread["open"]), (0, 0))
        self.assertEqual(self.figures(thread)["0x2200"], (1, 2, 2))
        thread = self.thread(call(A), escape(20, 0, low(B)))
        self.assertEqual(thread["open"], 1)

    def test_stacks(self):
        def to(left, entered):
            return escape(18, 0, [*wide(left), *wide(entered)])
        thread = self.thread(call(A), to(0, 5), call(B), tick(1), to(5, 0), tick(2), to(0, 5),
                             tick(4), ret(B), to(2**62 - 1, 0), ret(A))
        self.assertEqual(self.figures(thread), {"0x2200": (1, 2, 2), "0x2240": (1, 5, 5)})
        self.assertEqual((thread["open"], thread["mended"]), (0, 0))
        # Abandoned and begun anew, a stack is empty.
        thread = self.thread(to(0, 5), call(B), to(2**62 - 1, 0), to(0, 5), ret(B))
        self.assertEqual(thread["unopened"], 1)
        thread = self.thread(to(0, 5), call(B), to(5, 0), escape(19, 0, wide(5)), to(0, 5), ret(B))
        self.assertEqual(thread["unopened"], 1)

    def test_a_stack_goes_on_in_another_thread(self):
        to = escape(18, 0, [*wide(0), *wide(5)])
        back = escape(18, 0, [*wide(5), *wide(0)])
        read = read_recording.read(recording(
            chunk(flat(to, call(B), back)), chunk(flat(to, tick(3), ret(B)), thread=2)))
        first, second = read["threads"]
        self.assertEqual(self.figures(first), {"0x2240": (1, 0, 0)})
        self.assertEqual(self.figures(second), {"0x2240": (0, 3, 3)})
        self.assertEqual((second["unopened"], second["open"]), (0, 0))

    def test_a_chunk_on_another_stack_is_a_switch(self):
        read = read_recording.read(recording(
            chunk([call(A)]), chunk([call(B)], sequence=2, stack=5), chunk([ret(A)], sequence=3)))
        (thread,) = read["threads"]
        self.assertEqual((thread["unopened"], thread["open"]), (0, 0))
        self.assertEqual(read["open_on_stacks_left"], 1)

    def test_a_later_piece_stays_on_the_stack_it_is_on(self):
        to = escape(18, 0, [*wide(0), *wide(5)])
        read = read_recording.read(recording(
            chunk(flat(call(A), to, call(B)), flags=0), chunk([ret(B)], first=8)))
        (thread,) = read["threads"]
        self.assertEqual((thread["unopened"], thread["mended"], thread["open"]), (0, 0, 0))
        self.assertEqual(read["open_on_stacks_left"], 1)

    def test_frames_of_a_gap(self):
        thread = self.thread(call(A), call(B), gap(2, lost=7, popped=1, pushed=2), tick(4),
                             ret(C), ret(C), tick(1), ret(A))
        self.assertEqual(self.figures(thread), {
            "0x2200": (1, 1, 5), "0x2240": (1, 0, 0), "[unknown]": (0, 4, 4)})
        self.assertEqual((thread["lost_events"], thread["mended"], thread["open"]), (7, 0, 0))
        self.assertEqual(thread["gaps"], [{"reason": "dropped", "times": 1, "units": 0}])

    def test_losses_that_no_gap_speaks_of(self):
        data = recording(end=False) + b"".join(
            packet(9, n, field(1, 1) + field(2, n)) for n in (2, 3)) + packet(8, 4, field(1, 0))
        read = read_recording.read(data)
        self.assertEqual(read["processes"][0]["lost_events"], 5)
        self.assertEqual(read["warnings"], [])

    def test_events_left_out_by_wish_are_not_lost(self):
        gaps = [gap(reason, lost=10**reason) for reason in range(1, 10)]
        thread = self.thread(*gaps)
        self.assertEqual((thread["left_out"], thread["lost_events"]), (111000010, 1000111100))

    def test_time_of_a_gap_before_and_behind_it(self):
        before = self.thread(call(A), tick(10), gap(4, units=8), tick(1), ret(A))
        behind = self.thread(call(A), gap(4, units=8), tick(10), tick(1), ret(A))
        both = self.thread(call(A), tick(5), gap(4, units=8), tick(6), ret(A))
        for thread in (before, behind, both):
            self.assertEqual(self.figures(thread), {"0x2200": (1, 3, 3)})
            self.assertEqual(thread["waited"], 8)
        # What is left of it does not outlast the next event.
        thread = self.thread(call(A), gap(1, units=8), call(B), tick(10))
        self.assertEqual(self.figures(thread)["0x2240"], (1, 10, 10))

    def test_holes_names_notes_and_pads(self):
        thread = self.thread(escape(1), escape(6), escape(23, 0, low(0x6261)),
                             escape(24, 0, low(0x6261)), call(A))
        self.assertEqual((thread["lost_events"], thread["name"], thread["events"]), (1, "ab", 1))

    def test_far_code(self):
        address = 0xFFFF800012345678
        payload = [*wide(address)[:1], 1 << 31 | address >> 31 & 0x7FFFFFFF, 1 << 31 | address >> 62]
        thread = self.thread(escape(21, 0, payload), tick(3), escape(21, 1, payload))
        self.assertEqual(self.figures(thread), {"0xffff800012345678": (1, 3, 3)})
        self.assertEqual(thread["events"], 2)

    def test_far_code_with_cycles(self):
        payload = low(0x1000, 0, 0)
        thread = self.thread(escape(21, 0, [*payload, 0x11]), escape(21, 1, [*payload, 0x21]),
                             clock=2)
        self.assertEqual(self.figures(thread), {"0x1000": (1, 16, 16)})

    def test_samples(self):
        def sample(bits, missed=0, site=0x2210, cpu_ns=1):
            address = low(0x7FFFFFC0, 0x7FFFFFFF, 3)
            return escape(29, bits, [*low(site), *address, *wide(cpu_ns), *low(missed, 1000)])

        words = flat(call(A), sample(4), sample(5, 2), tick(3), sample(16), sample(2 | 8, site=0), ret(A))
        thread = self.thread(*words)
        # An event and its two that found no place, and two of a timer, beside the first.
        self.assertEqual(thread["samples"], 6)
        self.assertEqual((thread["calls"], thread["events"]), (1, 2))
        self.assertEqual(self.figures(thread), {"0x2200": (1, 3, 3)})
        # The end is none, but tells of those before it.
        self.assertEqual(self.thread(sample(32, site=0))["samples"], 0)
        self.assertEqual(self.thread(sample(32 | 16, 3, site=0))["samples"], 3)
        self.assertEqual(self.thread(call(A), ret(A))["samples"], 0)
        # More payload than is known, and one of the words that is not.
        self.assertEqual(self.thread(escape(29, 4, low(*[0] * 9)))["samples"], 1)
        self.assertEqual(self.thread(escape(29, 4, [*low(*[0] * 7), 1]))["samples"], 0)

    def test_a_sample_of_too_few_words_is_skipped(self):
        read = read_recording.read(recording(chunk(flat(call(A), escape(29, 4, low(*[0] * 7)), ret(A)))))
        self.assertEqual(read["warnings"], ["escapes of code 29 were skipped"])
        self.assertEqual((read["threads"][0]["samples"], read["threads"][0]["calls"]), (0, 1))

    def test_waits(self):
        def off(units, *waits):
            return escape(30, 0, [*wide(units), *low(*waits)])

        def told(*words):
            thread = self.thread(call(A), *words, tick(9), ret(A))
            self.assertEqual(self.figures(thread), {"0x2200": (1, 9, 9)})
            return thread["off_cpu"], thread["waits"]

        self.assertEqual(told(), (0, 0))
        self.assertEqual(told(off(5, 1)), (5, 1))
        # Waits may be missing, or be followed by what is not known.
        self.assertEqual(told(off(2**40, 3), off(7), off(1, 2, 99)), (2**40 + 8, 5))
        self.assertEqual(told(off(4, 0)), (4, 0))
        # The third word was never written.
        self.assertEqual(told(escape(30, 0, [*wide(6), 1])), (6, 0))

    def test_an_off_cpu_of_too_few_words_is_skipped(self):
        for payload in (low(5), [*low(5), 1]):
            read = read_recording.read(recording(chunk(flat(call(A), escape(30, 0, payload), ret(A)))))
            self.assertEqual(read["warnings"], ["escapes of code 30 were skipped"])
            (thread,) = read["threads"]
            self.assertEqual((thread["off_cpu"], thread["waits"], thread["calls"]), (0, 0, 1))

    def test_cycles(self):
        thread = self.thread(call(A), 0xF0000001, ret(A), 0xF0000011,
                             escape(16, 0, wide(0x200000003)), call(B), 0x5, ret(B), 0x3,
                             time=0x100000001, clock=2)
        # 0x6FFFFFFF units pass with no event; a time before the last one moves nothing.
        self.assertEqual(self.figures(thread), {"0x2200": (1, 16, 16), "0x2240": (1, 0, 0)})

    def test_a_long_silence_between_cycles(self):
        thread = self.thread(call(A), 0x1, ret(A), 0xF0000001, time=0x100000001, clock=2)
        self.assertEqual(self.figures(thread), {"0x2200": (1, 0xF0000000, 0xF0000000)})

    def test_an_event_whose_writing_a_signal_handler_interrupted(self):
        # What passed in the handler, B, is not counted a second time behind it.
        thread = self.thread(call(B), 0x11, ret(B), 0x80000001, call(A), 0x1, ret(A), 0x80000011,
                             time=0x100000001, clock=2)
        self.assertEqual(self.figures(thread),
                         {"0x2240": (1, 0x7FFFFFF0, 0x7FFFFFF0), "0x2200": (1, 16, 16)})

    def test_a_header_may_tell_an_earlier_time(self):
        read = read_recording.read(recording(
            chunk([call(A), 0x11, ret(A), 0x81], time=0x100000001, clock=2),
            chunk([call(A), 0x51, ret(A), 0x61], time=0x100000041, sequence=2, clock=2), clock=2))
        [thread] = read["threads"]
        self.assertEqual(self.figures(thread), {"0x2200": (2, 0x80, 0x80)})

    def test_time_between_pieces(self):
        read = read_recording.read(recording(
            chunk(flat(call(A), tick(2)), time=100, flags=0),
            chunk(flat(tick(1)), time=107, first=2),
            chunk([ret(A)], time=110, sequence=2)))
        self.assertEqual(read["warnings"], [])
        self.assertEqual(self.figures(read["threads"][0]), {"0x2200": (1, 10, 10)})


# ------------------------------------------------------------ names of functions


class Names(Case):
    def names(self, words, *symbols):
        """Of all functions, after symbol packets of the given (site, size, name) each."""
        data = recording(chunk(flat(*words)), end=False)
        for i, packet_symbols in enumerate(symbols):
            values = (struct.pack("<IIIH", site, size, 0, len(name)) + name.encode()
                      for site, size, name in packet_symbols)
            fields = b"".join(field(3, value) for value in values)
            data += packet(4, 3 + i, field(1, 1) + field(2, 0x7000) + fields)
        read = read_recording.read(data)
        (thread,) = read["threads"]
        told = sorted((entry["name"], entry["module"]) for entry in thread["functions"])
        return told, read["warnings"]

    @staticmethod
    def module(opens, path):
        octets = path.encode() + bytes(-len(path) % 3)
        text = [int.from_bytes(octets[i:i + 3], "little") for i in range(0, len(octets), 3)]
        return escape(22, 0, low(opens, 0x2000, 0x1000, 0x2000, 0, 0, 0, 0, 0, 0, *text))

    def test_a_symbol_needs_no_window(self):
        told, _ = self.names([call(A + 8), call(B)], [(A, 16, "work"), (B, 16, "")])
        self.assertEqual(told, [("site 0x2240", None), ("work", None)])

    def test_the_last_symbol_before_a_site_counts(self):
        told, _ = self.names(
            [call(A), call(B), call(C)],
            [(A, 16, "early"), (A - 1, 0x1000, "wide"), (B + 1, 16, "behind")], [(A, 8, "work")])
        # "work" is the last that begins before B, "behind" before C; they do not reach as far.
        self.assertEqual(told, [("site 0x2240", None), ("site 0x2280", None), ("work", None)])

    def test_the_module_that_retires_a_window_tells_of_it(self):
        told, _ = self.names([call(A), self.module(0, "/a.so")], [(A, 16, "work")])
        self.assertEqual(told, [("work", "/a.so")])

    def test_of_two_files_for_a_window_the_first_counts(self):
        words = [self.module(1, "/a.so"), self.module(0, "/a.so"), call(A)]
        told, warnings = self.names(words)
        self.assertEqual((told, len(warnings)), ([("a.so+0x2200", "/a.so")], 1))
        told, warnings = self.names([*words, self.module(1, "/b.so")])
        self.assertEqual(told, [("a.so+0x2200", "/a.so")])
        self.assertIn("process 1: sites from 0x2000 are of two files", warnings)


# ------------------------------------------------------------ what is new, damaged, cut off


class Growth(Case):
    def test_unknown_packets_fields_and_flags(self):
        extra = field(900, b"later") + field(2, b"writer")
        data = b"".join([
            packet(1, 0, start(minor=7, extra=extra), flags=3), packet(99, 1, b"later"),
            packet(3, 2, chunk([call(A), ret(A)], flags=0x8001)), packet(99, 3, b""),
            packet(8, 4, field(2, 2) + field(77, 1))])
        read = read_recording.read(data)
        self.assertEqual(read["version"], "1.7")
        self.assertEqual(read["start"]["writer"], "writer")
        self.assertEqual(read["warnings"], ["packets of type 99 were skipped"])
        self.assertEqual(read["threads"][0]["calls"], 1)

    def test_unknown_escapes_and_longer_payload(self):
        thread_words = flat(call(A), escape(9, 5), escape(31, 1, low(call(B), ret(B), 0)),
                            escape(16, 0, [*wide(8), *low(1, 2)]), escape(31, 0, []), ret(A))
        read = read_recording.read(recording(chunk(thread_words)))
        self.assertEqual(read["warnings"], [
            "escapes of code 9 were skipped", "escapes of code 31 were skipped"])
        self.assertEqual(self.figures(read["threads"][0]), {"0x2200": (1, 8, 8)})

    def test_unknown_encoding_and_clock(self):
        for payload in (chunk([call(A)], encoding=9), chunk([call(A)], clock=9)):
            read = read_recording.read(recording(payload, chunk([call(B)], sequence=2)))
            self.assertEqual(len(read["warnings"]), 1)
            (thread,) = read["threads"]
            self.assertEqual((thread["lost_words"], thread["calls"]), (1, 1))

    def test_a_higher_major_version_is_refused(self):
        with self.assertRaisesRegex(read_recording.TooNew, "2.1"):
            read_recording.read(packet(1, 0, start(major=2, minor=1)))

    def test_numbers_of_other_lengths(self):
        data = packet(1, 0, start(extra=field(7, b"\x05") + field(8, b"") + field(5, bytes(9))))
        self.assertEqual(read_recording.read(data)["start"],
                         {"clock": 1, "hz": 1000, "clock_start": 5, "wall_ns": 0})

    def test_a_negative_exit_status(self):
        data = packet(1, 0, start()) + packet(6, 1, field(1, 1) + field(3, -2)) + packet(8, 2, field(3, -1))
        read = read_recording.read(data)
        self.assertEqual((read["end"], read["processes"]), ({"exit_status": -1}, [{"id": 1, "exit_status": -2}]))


class Damage(Case):
    WHOLE = recording(chunk([call(A), ret(A)]), chunk([call(B), ret(B)], sequence=2))

    def test_cut_off_anywhere(self):
        for length in range(len(self.WHOLE)):
            read = read_recording.read(self.WHOLE[:length])
            self.assertIn("the recording was cut off: it has no end packet", read["warnings"])
            calls = sum(thread["calls"] for thread in read["threads"])
            ends = [i for i in range(length + 1) if self.ends_chunk(i)]
            self.assertEqual(calls, len(ends), length)

    def ends_chunk(self, at):
        return at in (self.offset(2) + 20 + 64, self.offset(3) + 20 + 64)

    def offset(self, number):
        """Offset of a packet."""
        return [found.start() for found in re.finditer(b"TPRF", self.WHOLE)][number]

    def test_a_damaged_byte_costs_one_packet(self):
        for at in range(self.offset(2), self.offset(3)):
            data = bytearray(self.WHOLE)
            data[at] ^= 0x55
            read = read_recording.read(bytes(data))
            (thread,) = read["threads"]
            self.assertEqual(self.figures(thread), {"0x2240": (1, 0, 0)}, at)
            self.assertEqual(read["warnings"], [
                f"84 bytes from offset {self.offset(2)} on are damaged",
                f"before offset {self.offset(3)}: packet 3 follows packet 1",
                self.begins(self.offset(3))])

    def test_bytes_between_packets(self):
        at = self.offset(3)
        for noise in (b"x", b"TPRF", b"TPRF" + bytes(30), self.WHOLE[:50]):
            read = read_recording.read(self.WHOLE[:at] + noise + self.WHOLE[at:])
            self.assertEqual(read["threads"][0]["calls"], 2)
            self.assertEqual(read["warnings"], [
                f"{len(noise)} bytes from offset {at} on are damaged"])

    @staticmethod
    def begins(offset):
        return (f"chunk at offset {offset}: words are missing before it: "
                "the thread begins with chunk 2 from word 0")

    def test_a_missing_chunk_is_said(self):
        data = self.WHOLE[:self.offset(2)] + self.WHOLE[self.offset(3):]
        read = read_recording.read(data)
        self.assertEqual(read["warnings"], [
            f"before offset {self.offset(2)}: packet 3 follows packet 1", self.begins(self.offset(2))])
        read = read_recording.read(recording(chunk([call(A)]), chunk([ret(A)], sequence=3)))
        self.assertRegex(read["warnings"][0], "words are missing before it: chunk 3 from word 0")
        read = read_recording.read(recording(chunk([call(A)], flags=0), chunk([ret(A)], first=2)))
        self.assertRegex(read["warnings"][0], "chunk 1 from word 2 behind chunk 1 up to word 1")

    def test_a_missing_beginning_is_said(self):
        for place in ({"sequence": 2}, {"first": 3}):
            read = read_recording.read(recording(chunk([call(A)], **place)))
            self.assertEqual(len(read["warnings"]), 1)
            self.assertRegex(read["warnings"][0], "the thread begins with chunk")

    def test_words_that_cannot_be_read(self):
        for tail, clock in (([0, call(B)], 1), ([1, call(B)], 1), (escape(16)[:1], 1),
                            ([escape(16)[0], 5, 6], 1), ([*escape(16)[:1], *low(9), 3], 1),
                            ([call(B)], 2)):
            time = [3] if clock == 2 else []
            words = [call(A), *time, *tail]
            read = read_recording.read(recording(chunk(words, clock=clock), clock=clock))
            (thread,) = read["threads"]
            self.assertEqual((thread["calls"], thread["lost_words"]), (1, len(tail)), words)
            self.assertEqual(len(read["warnings"]), 1)

    def test_payload_that_was_never_written(self):
        cut_gap = escape(17, 2, [*low(9, 0, 0, 0), 1, *low(0)])
        cut_name = escape(23, 0, [*low(0x6261), 1])
        read = read_recording.read(recording(chunk(flat(cut_gap, cut_name, call(A)))))
        self.assertEqual(read["warnings"], [
            "escapes of code 17 were skipped", "escapes of code 23 were skipped"])
        (thread,) = read["threads"]
        self.assertEqual((thread["lost_events"], thread["gaps"], thread["name"]), (0, [], None))
        self.assertEqual((thread["calls"], thread["lost_words"]), (1, 0))

    def test_two_planes_of_the_tick_clock(self):
        header = bytearray(example("chunk-cycle"))
        header[48] = 1
        read = read_recording.read(recording(bytes(header)))
        self.assertRegex(read["warnings"][0], "encoding 2 is not for the tick clock")
        (thread,) = read["threads"]
        self.assertEqual((thread["lost_words"], thread["events"]), (12, 0))

    def test_a_version_of_another_length_is_none(self):
        for value in (b"", b"\x09\0", b"\x09\0\0\0\0"):
            read = read_recording.read(packet(1, 0, field(1, value)) + packet(8, 1, b""))
            self.assertEqual(read["version"], "1.0")
            self.assertEqual(read["warnings"], ["the start packet has no version"])

    def test_of_two_packets_of_a_process_the_last_counts(self):
        data = packet(1, 0, start()) + packet(2, 1, field(1, 1) + field(2, 7) + field(6, 5))
        data += packet(9, 2, field(1, 1) + field(2, 4)) + packet(2, 3, field(1, 1) + field(2, 8))
        (process,) = read_recording.read(data)["processes"]
        self.assertEqual(process, {"id": 1, "pid": 8, "lost_events": 4})

    def test_headers_that_lie(self):
        lies = (
            chunk([call(A)], count=2), chunk([call(A)], count=0), chunk([call(A)], data=b"abc"),
            chunk([call(A)], encoding=1), chunk([call(A)], encoding=2, clock=2),
            chunk([call(A)], count=16385), chunk([call(A)], first=16385), chunk([])[:55],
            chunk([call(A)], encoding=1, data=bytes.fromhex("28B52FFD2004210000") + bytes(3)),
        )
        for payload in lies:
            read = read_recording.read(recording(payload, chunk([call(B)], thread=2)))
            self.assertEqual(len(read["warnings"]), 1, payload.hex())
            self.assertEqual(sum(thread["calls"] for thread in read["threads"]), 1)

    def test_a_chunk_that_decompresses_to_too_much(self):
        # A run-length block of 147,457 bytes at most fills two blocks of 128 KiB at most.
        block = struct.pack("<I", 0x1FFFF << 3 | 1 << 1)[:3] + b"\x05"
        last = struct.pack("<I", 0x8000 << 3 | 1 << 1 | 1)[:3] + b"\x05"
        frame = bytes.fromhex("28B52FFD0058") + block + last
        read = read_recording.read(recording(chunk([], encoding=1, count=4, data=frame)))
        self.assertEqual(read["threads"][0]["lost_words"], 4)

    def test_fields_that_are_cut_off(self):
        data = packet(1, 0, start() + struct.pack("<HHI", 2, 0, 99) + b"abc") + packet(8, 1, b"")
        read = read_recording.read(data)
        self.assertEqual(read["start"]["hz"], 1000)
        self.assertRegex(read["warnings"][0], "is cut off")

    def test_words_that_the_end_misses(self):
        data = recording(chunk([call(A)]), end=False) + packet(8, 3, field(2, 5))
        self.assertEqual(read_recording.read(data)["warnings"], ["1 words are there, of 5"])

    def test_nothing_and_noise(self):
        for data in (b"", b"TPRF", bytes(1000), b"TPRF" * 1000):
            read = read_recording.read(data)
            self.assertEqual(read["threads"], [])
            self.assertIn("there is no start packet", read["warnings"])


class Trees(Case):
    root = (0, 0, 0, 0, 2, 0, 0)

    def summed(self, *trees):
        read = read_recording.read(tree_recording(*trees))
        self.assertEqual(read["warnings"], [])
        (thread,) = read["threads"]
        return thread

    def test_the_example(self):
        thread = self.summed(example("tree"))
        self.assertEqual(self.figures(thread), {"0x2200": (1, 8, 15), "0x2240": (3, 7, 7)})
        self.assertEqual((thread["outside"], thread["calls"], thread["events"]), (2, 4, 8))
        extremes = {entry["name"]: (entry["shortest"], entry["longest"]) for entry in thread["functions"]}
        self.assertEqual(extremes, {"site 0x2200": (15, 15), "site 0x2240": (1, 4)})

    def test_packets_of_a_thread_add_up_in_whatever_order(self):
        first = tree(self.root, (1, call(A), 1, 5, 9, 12), mended=1)
        second = tree(self.root, (1, call(A), 2, 6, 4, 8), (1, call(B), 1, 1, 0, 0), mended=2)
        for thread in (self.summed(first, second), self.summed(second, first)):
            self.assertEqual(self.figures(thread), {"0x2200": (3, 11, 12), "0x2240": (1, 1, 1)})
            self.assertEqual((thread["mended"], thread["outside"]), (3, 4))
            a = next(entry for entry in thread["functions"] if entry["name"].endswith("2200"))
            self.assertEqual((a["shortest"], a["longest"]), (3, 12))

    def test_time_of_recursion_counts_once(self):
        nodes = (self.root, (1, call(A), 1, 5, 0, 0), (1, call(A), 1, 7, 0, 0))
        self.assertEqual(self.figures(self.summed(tree(*nodes))), {"0x2200": (2, 12, 12)})

    def test_what_found_no_room_and_what_is_unknown(self):
        nodes = (self.root, (1, 1, 4, 1, 0, 0), (1, call(A), 2, 3, 0, 0), (3, 0, 0, 0, 5, 0, 0),
                 (1, call(B), 1, 1, 0, 0), (5, 0, 0x77, 1, 0, 0, 0))
        thread = self.summed(tree(*nodes))
        self.assertEqual(self.figures(thread), {
            "[no room]": (0, 1, 4), "0x2200": (2, 3, 3), "[unknown]": (0, 5, 6), "0x2240": (1, 1, 1),
            "0x77": (1, 0, 0)})
        self.assertEqual(thread["no_room"], 6)

    def test_trees_that_lie(self):
        good, bad = (1, call(A), 1, 1, 0, 0), (9, call(B), 1, 1, 0, 0)
        for payload, calls in (
            (tree(self.root, good, bad), 1), (tree(self.root, good, (0, *good[1:])), 1),
            (tree(self.root, good, count=3), 1), (tree(self.root, good, good, cut=-1), 1),
            (tree(self.root, good, (1, 1 << 32, 1, 1, 0, 0)), 1),
            (tree(self.root, good, (1, call(B), 1 << 64, 1, 0, 0)), 1),
            (tree(self.root, good, encoding=1), 0), (tree(self.root, good, encoding=7), 0),
            (tree(self.root, good, count=16385), 0), (tree()[:47], 0),
        ):
            read = read_recording.read(tree_recording(payload))
            self.assertEqual(len(read["warnings"]), 1, payload.hex())
            self.assertEqual(sum(thread["calls"] for thread in read["threads"]), calls)

    def test_a_window_that_is_told_from_an_anchor(self):
        told = flat(escape(22, 0, flat(low(2, 0x2000, 0x100, *(0x7FFFFFC0, 0x7FFFFFFF, 3), 0, 0, 0, 0),
                                       low(*b"a"))), call(0x2010))
        names = field(1, 1) + field(2, 0x2000) + field(4, 0x5000)
        data = recording(chunk(told))
        for payload, address in ((names, 0x4FD0), (field(1, 1), None)):
            read = read_recording.read(data + packet(4, 4, payload))
            (entry,) = read["threads"][0]["functions"]
            self.assertEqual((entry["module"], entry["address"]), ("a", address))


if __name__ == "__main__":
    unittest.main()
