"""Tests of what the reader makes of samples, as test_read_recording.py has those of the rest."""

import struct
import unittest

import read_recording
import recording_format
from test_read_recording import DOCUMENT, example, field, packet, start

KERNEL, USER, GUEST = 2**64 - 128, 2**64 - 512, 2**64 - 2048


def sample(ip=0, period=1, pid=7, tid=7, mode=2, chain=(), mask=0, stack=b"", branches=(), event=1, behind=b"",
           lies=()):
    """`lies` are what the head says in place of what is true."""
    parts = struct.pack(f"<{len(chain)}Q", *chain) + bytes(8 * bin(mask).count("1"))
    parts += stack + bytes(-len(stack) % 8) + struct.pack(f"<{len(branches)}Q", *branches) + behind
    head = {"size": 64 + len(parts), "event": event, "mode": mode, "abi": 2 if mask else 0, "time": 5, "pid": pid,
            "tid": tid, "cpu": 0, "chain": len(chain), "ip": ip, "period": period, "mask": mask, "stack": len(stack),
            "branches": len(branches) // 2, **dict(lies)}
    return struct.pack("<IHBBQIIIIQQQII", *head.values()) + parts


def samples(*list_of, lost=0, event=0, encoding=0, count=None, size=None, data=None):
    plain = b"".join(list_of)
    head = struct.pack("<IIQIB3x", len(list_of) if count is None else count, len(plain) if size is None else size,
                       lost, event, encoding)
    return 15, head + (plain if data is None else data)


def zstd(data):
    """A frame with one raw block: magic number, single segment with a size of four bytes, header of the last block."""
    block = (len(data) << 3 | 1).to_bytes(3, "little")
    return bytes.fromhex("28B52FFDA0") + struct.pack("<I", len(data)) + block + data


def mapped(address, length, path, pid=7, offset=0, extra=b""):
    return 16, field(1, pid) + field(4, address) + field(5, length) + field(6, offset) + field(9, path) + extra


def task(what, pid, tid, parent_pid=0, parent_tid=0, name=b""):
    return 17, (field(1, what) + field(2, pid) + field(3, tid) + field(4, parent_pid) + field(5, parent_tid)
                + (field(7, name) if name else b""))


def forked(pid, tid, parent_pid, parent_tid):
    return task(1, pid, tid, parent_pid, parent_tid)


EVENT = 14, field(1, 1) + field(2, b"cycles:u") + field(3, 2)


class Case(unittest.TestCase):
    maxDiff = None

    def read(self, *packets, event=EVENT):
        payloads = [(1, start(minor=4)), event, *packets, (8, b"")]
        return read_recording.read(b"".join(packet(kind, n, payload) for n, (kind, payload) in enumerate(payloads)))

    def event(self, *packets):
        """The one event, of a recording in which nothing is wrong."""
        read = self.read(*packets)
        self.assertEqual(read["warnings"], [])
        (event,) = read["samples"]
        return event

    def places(self, *packets):
        """Places of the one thread by weight: each sample should have a weight of its own."""
        (thread,) = self.event(*packets)["threads"]
        return {weight: place for place, weight in thread["self"].items()}


class Examples(Case):
    def test_the_example_of_the_document(self):
        told = [(16, example("map")), (15, example("samples"))]
        read = self.read(*told, event=(14, example("sampled")))
        self.assertEqual(read["warnings"], [])
        self.assertEqual(read["samples"], [{
            "event": 1, "name": "cpu-clock", "unit": 1, "samples": 2, "lost": 3, "weight": 1_500_000, "threads": [{
                "pid": 77, "tid": 78, "name": None, "samples": 2, "weight": 1_500_000,
                "self": {"[unknown]": 1_000_000, "/bin/a+0x1200": 500_000}}]}])

    def test_its_parts(self):
        header, data = recording_format.samples_header(example("samples"))
        (first, second), rest = recording_format.samples_of(header, data)
        self.assertEqual(rest, b"")
        self.assertEqual(first["chain"], (KERNEL, 0xFFFFFFFF81000010, USER, 0x555555555210, 0x555555555110))
        self.assertEqual((first["time_ns"], first["cpu"], first["registers"]), (2_000_000, 0, {}))
        self.assertEqual(second["registers"], {6: 0x7FFFFFFFE010, 7: 0x7FFFFFFFE000, 8: 0x555555555200})
        self.assertEqual((second["stack"], second["cpu"], second["abi"]), (bytes(range(1, 13)), 2**32 - 1, 2))

    def test_an_outer_stack(self):
        told = recording_format.sample_at(example("sample-outer"), 0)
        self.assertEqual((told["chain"], told["registers"]), ((USER, 0x7F0000001210), {}))
        self.assertEqual(told["outer"], {
            "registers": {6: 0x7FFFFFFFE010, 7: 0x7FFFFFFFE000, 8: 0x555555555300}, "stack": bytes(range(1, 13))})
        for behind in (b"", bytes(8), bytes(16), bytes(24)):
            self.assertIsNone(recording_format.sample_at(sample(behind=behind), 0)["outer"])

    def test_contexts_are_those_of_the_document(self):
        for context in (KERNEL, USER, GUEST):
            self.assertIn(f"| `{context:X}` |", DOCUMENT)
        self.assertIn(f"from `{recording_format.FIRST_CONTEXT:X}` on", DOCUMENT)


class Sums(Case):
    def test_events_threads_and_weights(self):
        read = self.read(
            (14, field(1, 2)), samples(sample(period=5), sample(period=6, tid=8), sample(period=7), sample(pid=9, tid=9)),
            samples(sample(event=2, period=30), lost=4, event=2), samples(lost=2, event=1), samples(lost=1, event=1))
        self.assertEqual(read["warnings"], [])
        first, second = read["samples"]
        self.assertEqual((first["name"], first["unit"], first["samples"], first["lost"], first["weight"]),
                         ("cycles:u", 2, 4, 3, 19))
        figures = [(thread["pid"], thread["tid"], thread["samples"], thread["weight"]) for thread in first["threads"]]
        self.assertEqual(figures, [(7, 7, 2, 12), (7, 8, 1, 6), (9, 9, 1, 1)])
        self.assertEqual((second["name"], second["samples"], second["lost"], second["weight"]), (None, 1, 4, 30))

    def test_compressed_samples(self):
        many = [sample(period=n, stack=bytes(range(13)), branches=(1, 2, 3, 4), mask=0x1FF) for n in range(50)]
        plain = b"".join(many)
        event = self.event(samples(*many, encoding=1, data=zstd(plain)))
        self.assertEqual((event["samples"], event["weight"]), (50, sum(range(50))))

    def test_parts_that_are_new_are_skipped(self):
        event = self.event(samples(sample(period=5, stack=b"abc", behind=bytes(24)), sample(period=6)))
        self.assertEqual((event["samples"], event["weight"]), (2, 11))

    def test_lost_samples_of_no_event(self):
        read = self.read(samples(lost=9))
        self.assertEqual([(event["event"], event["lost"]) for event in read["samples"]], [(0, 9), (1, 0)])


class Places(Case):
    A = mapped(0x1000, 0x1000, b"/a", offset=0x400)

    def test_the_last_map_lies_over_those_before(self):
        over = mapped(0x1400, 0x100, b"/b")
        addresses = (0xFFF, 0x1000, 0x13FF, 0x1400, 0x14FF, 0x1500, 0x2000)
        found = self.places(self.A, over, samples(*(sample(ip, 10**n) for n, ip in enumerate(addresses))))
        self.assertEqual(found, {
            1 + 10**6: "[unknown]", 10: "/a+0x400", 100: "/a+0x7ff", 1000: "/b+0x0", 10**4: "/b+0xff",
            10**5: "/a+0x900"})

    def test_what_stands_before_counts_whatever_its_time(self):
        late = mapped(0x1000, 0x1000, b"/b", extra=field(3, 1))
        one = self.A[0], self.A[1] + field(3, 99)
        self.assertEqual(self.places(samples(sample(0x1010, 1)), one, samples(sample(0x1010, 2)), late,
                                     samples(sample(0x1010, 4))),
                         {1: "[unknown]", 2: "/a+0x410", 4: "/b+0x10"})

    def test_exec_takes_maps_of_the_process_alone(self):
        other = mapped(0x1000, 0x1000, b"/c", pid=8)
        event = self.event(self.A, other, task(3, 7, 7, name=b"new"), samples(sample(0x1010), sample(0x1010, pid=8)))
        first, second = event["threads"]
        self.assertEqual((first["self"], first["name"]), ({"[unknown]": 1}, "new"))
        self.assertEqual((second["self"], second["name"]), ({"/c+0x10": 1}, None))

    def test_a_fork_has_what_its_parent_had(self):
        later = mapped(0x1000, 0x1000, b"/later")
        old = mapped(0x5000, 0x1000, b"/old", pid=8)
        event = self.event(self.A, old, task(2, 8, 8, name=b"old"), task(2, 7, 5, name=b"seven"), forked(8, 8, 7, 5),
                           later, samples(sample(0x1010, 1, pid=8, tid=8), sample(0x5010, 2, pid=8, tid=8),
                                          sample(0x1010, 4)))
        own, child = event["threads"]
        self.assertEqual((child["self"], child["name"]), ({"/a+0x410": 1, "[unknown]": 2}, "seven"))
        self.assertEqual(own["self"], {"/later+0x10": 4})

    def test_a_fork_of_nobody_known_has_nothing(self):
        old = mapped(0x5000, 0x1000, b"/old", pid=8)
        event = self.event(old, task(2, 8, 8, name=b"old"), forked(8, 8, 6, 6), samples(sample(0x5010, pid=8, tid=8)))
        (child,) = event["threads"]
        self.assertEqual((child["self"], child["name"]), ({"[unknown]": 1}, None))

    def test_names_of_threads(self):
        event = self.event(
            task(2, 7, 7, name=b"one"), forked(7, 8, 7, 7), samples(sample(), sample(tid=8)), task(2, 7, 8, name=b"two"),
            task(4, 7, 7), samples(sample(), sample(tid=8)), task(2, 7, 8, name=b"nobody sees"))
        self.assertEqual([thread["name"] for thread in event["threads"]], ["one", "two"])

    def test_the_kernel(self):
        ours = mapped(0xFFFF0000, 0x1000, b"[kernel.kallsyms]_text", pid=0xFFFFFFFF, offset=3)
        module = mapped(0xFFFFA000, 0x1000, b"[module]", offset=3, extra=field(11, 1))
        places = self.places(
            ours, module, samples(
                sample(0xFFFF0010, 1, mode=1), sample(0xFFFFA010, 2, mode=1), sample(0xFFFF0010, 4, mode=2),
                sample(0x9, 8, chain=(KERNEL, 0xFFFF0020, USER, 0x1010)), sample(0xFFFF0010, 16, mode=4)))
        self.assertEqual(places, {
            1: "[kernel.kallsyms]_text+0xffff0010", 2: "[module]+0xffffa010", 4 + 16: "[unknown]",
            8: "[kernel.kallsyms]_text+0xffff0020"})

    def test_the_first_address_of_a_chain(self):
        chains = [(0x1020, 0x1030), (USER, 0x1040), (KERNEL, USER, 0x1050), (GUEST, 0x1060), (KERNEL,), (USER,)]
        places = self.places(self.A, samples(*(sample(0x1010, 10**n, chain=chain) for n, chain in enumerate(chains))))
        self.assertEqual(places, {
            1: "/a+0x420", 10: "/a+0x440", 100: "/a+0x450", 1000: "[unknown]", 110000: "/a+0x410"})

    def test_maps_that_are_none(self):
        guests = mapped(0x1000, 0x1000, b"/b", extra=field(11, 5))
        for lie in (mapped(0x1000, 0, b"/b"), mapped(0x1000, 2**64 - 0x1000, b"/b"), guests):
            self.assertEqual(self.places(self.A, lie, samples(sample(0x1010))), {1: "/a+0x410"})


class Lies(Case):
    def figures(self, read):
        """Samples and lost of all events, and what was said."""
        events = read["samples"]
        sums = sum(event["samples"] for event in events), sum(event["lost"] for event in events)
        return *sums, [text.split(": ", 1)[1] for text in read["warnings"]]

    def test_samples_that_are_not_whole(self):
        good, bad = sample(stack=b"abc"), sample(chain=(1, 2), mask=3, stack=b"abc", branches=(1, 2))
        lies = [bad[:length] for length in (1, 8, 63, 64, len(bad) - 1)]
        lies += [sample(lies={"size": size}) for size in (0, 8, 56, 60, 65, 72, 2**32 - 8)]
        lies += [sample(lies={name: 1}) for name in ("chain", "mask", "stack", "branches")]
        lies += [sample(lies={name: 2**32 - 1}) for name in ("chain", "mask", "stack", "branches")]
        lies += [sample(stack=b"abcdefgh", lies={"size": 64}), sample(branches=(1, 2), lies={"size": 72})]
        lies += [sample(behind=bytes(8), lies={"size": 65}), sample(chain=(0,) * 8193)]
        lies += [sample(behind=struct.pack("<QQ", 3, 0) + bytes(8)), sample(behind=struct.pack("<QQQ", 1, 1, 0))]
        for lie in lies:
            told = samples(good, lie, lost=4, event=1)
            self.assertEqual(self.figures(self.read(told, samples(good))),
                             (2, 4, [f"1 of 2 samples could be read, and {len(lie)} bytes are left"]), lie[:64].hex())

    def test_other_numbers_of_samples(self):
        for count in (0, 1, 3):
            read = self.read(samples(sample(), sample(), count=count))
            self.assertEqual(self.figures(read), (2, 0, [f"2 of {count} samples could be read"]))
        read = self.read(samples(sample(), bytes(8), count=1))
        self.assertEqual(self.figures(read), (1, 0, ["1 of 1 samples could be read, and 8 bytes are left"]))

    def test_headers_that_lie(self):
        good = sample()
        for told, text in (
            (samples(good, lost=4, size=56), "it has 64 bytes, not 56"),
            (samples(good, lost=4, size=72), "it has 64 bytes, not 72"),
            (samples(good, lost=4, encoding=2), "encoding 2 is not known"),
            (samples(good, lost=4, encoding=1), "its data does not decompress"),
            (samples(good, lost=4, encoding=1, data=zstd(good)[:-1]), ""),
            (samples(good, lost=4, encoding=1, data=zstd(good + good)), "it has 128 bytes, not 64"),
        ):
            used, lost, (said,) = self.figures(self.read(told, samples(good)))
            self.assertEqual((used, lost), (1, 4))
            self.assertIn(text, said)

    def test_packets_that_are_none(self):
        cut = 15, samples(lost=4)[1][:23]
        for told, text in ((cut, "its header is cut off"),
                           (samples(sample(), lost=4, size=1_048_553), "it claims more bytes than a packet has")):
            self.assertEqual(self.figures(self.read(told, samples(sample()))), (1, 0, [text]))

    def test_samples_that_decompress_to_too_much(self):
        # Nine blocks of 128 KiB, each one byte over and over.
        block = (0x20000 << 3 | 1 << 1).to_bytes(3, "little") + b"\0"
        last = (0x20000 << 3 | 1 << 1 | 1).to_bytes(3, "little") + b"\0"
        frame = bytes.fromhex("28B52FFD0058") + 8 * block + last
        read = self.read(samples(encoding=1, count=3, size=1_048_552, data=frame))
        self.assertEqual(self.figures(read), (0, 0, ["its data decompresses to too much"]))

    def test_an_event_that_nobody_told_of(self):
        read = self.read(samples(sample(event=3), sample(event=3)))
        self.assertEqual(read["warnings"], ["samples are of event 3, which no packet told of before"])
        self.assertEqual([(event["event"], event["samples"]) for event in read["samples"]], [(1, 0), (3, 2)])

    def test_parts_of_files(self):
        part = 18, example("file")
        again = self.read(part, part, samples(sample()))
        self.assertEqual(self.figures(again), (1, 0, ["bytes 0 and on of file 3, 5 came before, of 5"]))
        self.assertEqual(self.figures(self.read(part, (18, field(4, b"no frame")), samples(sample()))), (1, 0, [
            "its data does not decompress"]))

    def test_fields_that_are_missing(self):
        read = self.read((16, b""), (17, b""), (17, field(1, 1)), (17, field(1, 99)), samples(sample()))
        self.assertEqual((read["warnings"], read["samples"][0]["samples"]), ([], 1))


if __name__ == "__main__":
    unittest.main()
