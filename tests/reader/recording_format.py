"""The bytes of a teeperf recording taken apart: packets, fields, chunks, words.

Sections 1 to 6 of docs/format.md; what the words mean is in read_recording.py.
"""

import itertools
import struct
import subprocess
import zlib

MAX_PAYLOAD = 1 << 20
MAX_WORDS = 16384
MAX_BYTES = 147456
MAX_NODES = 16384
MAX_TREE_BYTES = 1 << 20
MAX_FRAMES_BYTES = 1 << 20
MAX_PART = 1 << 19
HEADER = struct.Struct("<4sHHIII")
FIELD = struct.Struct("<HHI")
CHUNK = struct.Struct("<IIIIIIQQQBBHI")
TREE = struct.Struct("<IIIIQQQBB6x")
SAMPLES = struct.Struct("<IIQIB3x")
SAMPLE = struct.Struct("<IHBBQIIIIQQQII")
OUTER = struct.Struct("<QI4x")
MAX_SAMPLES_BYTES = MAX_PAYLOAD - SAMPLES.size
MAX_CHAIN = 8192
UNKNOWN_MODE, KERNEL, USER = 0, 1, 2
# Entries of call chains from here on say what those behind them ran in; of others than these nothing is told.
FIRST_CONTEXT = 2**64 - 4095
CONTEXTS = {0xFFFFFFFFFFFFFF80: KERNEL, 0xFFFFFFFFFFFFFE00: USER}
TICK_CLOCK, CYCLE_CLOCK = 1, 2

# Tags of fields by type of packet (section 4): name in the output, and kind of value.
START_TAGS = {
    2: ("writer", "text"), 3: ("clock", "number"), 4: ("hz", "number"), 5: ("period", "number"),
    6: ("clock_reason", "text"), 7: ("clock_start", "number"), 8: ("wall_ns", "number"),
    9: ("arguments", "texts"), 10: ("host", "text"), 11: ("system", "text"),
    12: ("machine", "text"), 13: ("processor", "text"), 14: ("processors", "number"),
    15: ("on_full", "number"), 16: ("directory", "text"), 17: ("hook_cost_ps", "bytes"),
    18: ("least_cost_ps", "number"), 19: ("ordered", "number"),
    20: ("counter_hz", "number"), 21: ("counter_start", "number"),
}
PROCESS_TAGS = {
    1: ("id", "number"), 2: ("pid", "number"), 3: ("parent_pid", "number"),
    4: ("executable", "text"), 5: ("arguments", "texts"), 6: ("time", "number"),
    7: ("exec_of", "number"),
}
PROCESS_END_TAGS = {
    1: ("id", "number"), 2: ("end_time", "number"), 3: ("exit_status", "signed"),
    4: ("signal", "number"),
}
THREAD_TAGS = {
    1: ("process", "number"), 2: ("serial", "number"), 3: ("tid", "number"), 4: ("name", "text"),
}
SYMBOLS_TAGS = {
    1: ("process", "number"), 2: ("first_site", "number"), 3: ("symbols", "list"),
    4: ("anchor", "number"),
}
FILTER_TAGS = {
    1: ("number", "number"), 2: ("rules", "texts"), 3: ("process", "number"), 4: ("first_site", "number"),
    5: ("sites", "number"), 6: ("others_pass", "number"), 7: ("lists", "list"),
}
LOSS_TAGS = {1: ("process", "number"), 2: ("events", "number")}
NOTICE_TAGS = {1: ("level", "number"), 2: ("text", "text"), 3: ("process", "number"), 4: ("unrecorded", "number")}
KEYFRAME_TAGS = {
    1: ("process", "number"), 2: ("thread", "number"), 3: ("tid", "number"), 4: ("time", "number"),
    5: ("stack", "number"), 6: ("recent", "number"), 7: ("debt", "number"), 8: ("below", "number"),
    9: ("frames", "bytes"), 10: ("frames_zstd", "bytes"), 11: ("marks", "list"),
    12: ("modules", "list"), 13: ("sequence", "number"), 14: ("first", "number"),
    15: ("left", "number"), 16: ("filter", "number"), 17: ("floor", "number"),
}
SAMPLED_TAGS = {
    1: ("event", "number"), 2: ("name", "text"), 3: ("unit", "number"), 4: ("period", "number"),
    5: ("frequency", "number"), 6: ("random", "number"), 7: ("zero_ns", "number"),
    8: ("source", "number"), 9: ("machine", "number"), 10: ("registers", "number"),
    11: ("stack", "number"), 12: ("chain", "number"), 13: ("perf_type", "number"),
    14: ("perf_config", "number"), 15: ("outer_registers", "number"), 16: ("outer_stack", "number"),
    17: ("precise", "number"), 18: ("branches", "number"),
}
MAP_TAGS = {
    1: ("pid", "number"), 2: ("tid", "number"), 3: ("time_ns", "number"), 4: ("address", "number"),
    5: ("length", "number"), 6: ("offset", "number"), 7: ("protection", "number"),
    8: ("flags", "number"), 9: ("path", "text"), 10: ("build_id", "bytes"), 11: ("mode", "number"),
    12: ("file", "number"),
}
FILE_TAGS = {1: ("file", "number"), 2: ("size", "number"), 3: ("offset", "number"), 4: ("data", "bytes")}
TASK_TAGS = {
    1: ("what", "number"), 2: ("pid", "number"), 3: ("tid", "number"), 4: ("parent_pid", "number"),
    5: ("parent_tid", "number"), 6: ("time_ns", "number"), 7: ("name", "text"),
}
END_TAGS = {
    1: ("time", "number"), 2: ("words", "number"), 3: ("exit_status", "signed"),
    4: ("signal", "number"), 5: ("reason", "text"), 6: ("recorder_cpu_ns", "number"),
}


class Unreadable(Exception):
    """A chunk whose words cannot be had, a tree whose nodes cannot, a packet whose samples cannot."""


def text_of(value):
    return value.decode("utf-8", "replace")


# ---------------------------------------------------------------- packets and fields


def packets(data, warn):
    """Offset, type and payload of each packet, in order (section 2)."""
    at, expected, damaged = 0, None, None
    while at < len(data):
        packet = packet_at(data, at)
        if packet is None:
            damaged = at if damaged is None else damaged
            at = data.find(b"TPRF", at + 1)
            if at < 0:
                break
            continue
        if damaged is not None:
            warn(f"{at - damaged} bytes from offset {damaged} on are damaged")
            damaged = None
        kind, sequence, payload = packet
        if expected is not None and sequence != expected:
            warn(f"before offset {at}: packet {sequence} follows packet {(expected - 1) % 2**32}")
        expected = (sequence + 1) % 2**32
        yield at, kind, payload
        at += HEADER.size + len(payload)
    if damaged is not None:
        warn(f"the last {len(data) - damaged} bytes, from offset {damaged} on, are no packet")


def packet_at(data, at):
    """Type, sequence number and payload, if a packet is there."""
    if at + HEADER.size > len(data):
        return None
    sync, kind, _, length, sequence, checksum = HEADER.unpack_from(data, at)
    start = at + HEADER.size
    if sync != b"TPRF" or length > MAX_PAYLOAD or start + length > len(data):
        return None
    payload = data[start:start + length]
    if zlib.crc32(payload, zlib.crc32(data[at:at + 16])) != checksum:
        return None
    return kind, sequence, payload


def fields(payload, tags, warn):
    """The known fields by name (section 3)."""
    found, at = {}, 0
    while at < len(payload):
        if at + FIELD.size > len(payload):
            warn(f"a field at byte {at} of a payload is cut off")
            break
        tag, _, length = FIELD.unpack_from(payload, at)
        value = payload[at + FIELD.size:at + FIELD.size + length]
        if len(value) < length:
            warn(f"a field at byte {at} of a payload is cut off")
            break
        at += FIELD.size + length
        if tag not in tags:
            continue
        name, kind = tags[tag]
        if kind in ("texts", "list"):
            found.setdefault(name, []).append(text_of(value) if kind == "texts" else value)
        elif kind in ("number", "signed"):
            if len(value) <= 8:
                found[name] = int.from_bytes(value.ljust(8, b"\0"), "little", signed=kind == "signed")
        else:
            found[name] = text_of(value) if kind == "text" else value
    return found


# ---------------------------------------------------------------- chunks and words


def decompress(data, most=MAX_BYTES):
    """What one zstd frame holds, if it is not more than a packet may have."""
    try:
        import zstandard
    except ImportError:
        done = subprocess.run(["zstd", "-d", "-c"], input=data, capture_output=True, check=False)
        if done.returncode != 0:
            raise Unreadable("its data does not decompress") from None
        out = done.stdout
    else:
        try:
            with zstandard.ZstdDecompressor().stream_reader(data) as reader:
                out = reader.read(most + 1)
        except zstandard.ZstdError:
            raise Unreadable("its data does not decompress") from None
    if len(out) > most:
        raise Unreadable("its data decompresses to too much")
    return out


def words_of(header, data):
    """The words of a chunk packet (section 5)."""
    if header["clock"] not in (TICK_CLOCK, CYCLE_CLOCK):
        raise Unreadable(f"clock {header['clock']} is not known")
    encoding = header["encoding"]
    if encoding == 0:
        words = as_words(data)
    elif encoding == 1:
        words = as_words(decompress(data))
    elif encoding == 2 and header["clock"] == TICK_CLOCK:
        raise Unreadable("encoding 2 is not for the tick clock")
    elif encoding == 2:
        words = join_planes(header, decompress(data))
    else:
        raise Unreadable(f"encoding {encoding} is not known")
    if len(words) != header["count"]:
        raise Unreadable(f"it has {len(words)} words, not {header['count']}")
    return words


def as_words(data):
    if len(data) % 4:
        raise Unreadable("its data is not whole words")
    return [word for (word,) in struct.iter_unpack("<I", data)]


def join_planes(header, data):
    """Puts the time words of the second plane behind the events of the first."""
    if header["words_bytes"] > len(data):
        raise Unreadable("its first plane is cut off")
    plane = as_words(data[:header["words_bytes"]])
    times = iter(data[header["words_bytes"]:])
    time = header["time"] % 2**32
    words, at = [], 0
    while at < len(plane):
        word = plane[at]
        size = 1
        if word >= 0xE0000000 and word >> 24 & 31 >= 16 and at + 1 < len(plane):
            size = 2 + (plane[at + 1] & 0x7FFFFFFF if plane[at + 1] >> 31 else 0)
        words += plane[at:at + size]
        at += size
        if 2 <= word < 0xE0000000 and len(words) < header["count"]:
            time = (time + leb128(times)) % 2**32
            words.append(time)
    return words


def leb128(octets, bits=35, what="its second plane is cut off"):
    value = 0
    for shift in range(0, bits, 7):
        octet = next(octets, None)
        if octet is None:
            break
        value |= (octet & 0x7F) << shift
        if octet < 0x80:
            return value
    raise Unreadable(what)


def nodes_of(header, data):
    """The nodes of a tree packet, and what is wrong with the rest (section 5, Trees): for each the place
    of its caller's among them, its function as the word of a call, calls, own time, and shortest and
    longest call or None."""
    if header["encoding"] == 1:
        data = decompress(data, MAX_TREE_BYTES)
    elif header["encoding"] != 0:
        raise Unreadable(f"encoding {header['encoding']} is not known")
    numbers, nodes = iter(data), []

    def number():
        value = leb128(numbers, 70, f"node {len(nodes)} is cut off")
        if value >= 2**64:
            raise Unreadable(f"node {len(nodes)} has a number of more than 64 bits")
        return value

    try:
        for at in range(header["nodes"]):
            back, function = number(), number()
            if back > at or (back == 0) != (at == 0):
                raise Unreadable(f"node {at} has no caller before it")
            if function >= 2**32:
                raise Unreadable(f"node {at} has a function that is no word")
            address = number() if function == 0 else None
            calls, own, least, most = (number() for _ in range(4))
            extremes = (least - 1, max(most, least - 1)) if least else None
            nodes.append((at - back, function, address, calls, own, extremes))
    except Unreadable as why:
        return nodes, str(why)
    return nodes, None


def frames_of(keyframe):
    """Open frames of a keyframe, as (function's word, 0 or address, count), and what is wrong with the rest."""
    data, frames = keyframe.get("frames", b""), []
    try:
        if "frames_zstd" in keyframe:
            data = decompress(keyframe["frames_zstd"], MAX_FRAMES_BYTES)
        octets = iter(data)
        for octet in octets:
            word = leb128(itertools.chain([octet], octets), 70, "a frame is cut off")
            address = leb128(octets, 70, "a frame is cut off") if word == 1 else 0
            count = leb128(octets, 70, "a frame is cut off")
            if word > 1 and (word % 2 == 1 or word >= 0xE0000000):
                raise Unreadable("a frame has no call's word")
            frames.append((word, address, count))
    except Unreadable as why:
        return frames, str(why)
    return frames, None


def samples_header(payload):
    """Header and data of a packet of samples (section 5, Samples)."""
    if len(payload) < SAMPLES.size:
        raise Unreadable("its header is cut off")
    header = dict(zip(("samples", "bytes", "lost", "event", "encoding"), SAMPLES.unpack_from(payload)))
    if header["bytes"] > MAX_SAMPLES_BYTES:
        raise Unreadable("it claims more bytes than a packet has")
    return header, payload[SAMPLES.size:]


def samples_of(header, data):
    """The whole samples, and the bytes behind them."""
    if header["encoding"] == 1:
        data = decompress(data, MAX_SAMPLES_BYTES)
    elif header["encoding"] != 0:
        raise Unreadable(f"encoding {header['encoding']} is not known")
    if len(data) != header["bytes"]:
        raise Unreadable(f"it has {len(data)} bytes, not {header['bytes']}")
    samples, at = [], 0
    while at < len(data):
        sample = sample_at(data, at)
        if sample is None:
            break
        samples.append(sample)
        at += sample["size"]
    return samples, data[at:]


def sample_at(data, at):
    """The sample there, if it is whole."""
    begin = at
    if at + SAMPLE.size > len(data):
        return None
    names = ("size", "event", "mode", "abi", "time_ns", "pid", "tid", "cpu", "chain", "ip", "period", "mask", "stack",
             "branches")
    sample = dict(zip(names, SAMPLE.unpack_from(data, at)))
    size, chain = sample["size"], sample["chain"]
    registers = [number for number in range(64) if sample["mask"] >> number & 1]
    filled = -(-sample["stack"] // 8) * 8
    if size % 8 or size < SAMPLE.size + 8 * (chain + len(registers)) + filled + 16 * sample["branches"] \
            or at + size > len(data) or chain > MAX_CHAIN:
        return None
    at += SAMPLE.size
    sample["chain"] = struct.unpack_from(f"<{chain}Q", data, at)
    at += 8 * chain
    sample["registers"] = dict(zip(registers, struct.unpack_from(f"<{len(registers)}Q", data, at)))
    at += 8 * len(registers)
    sample["stack"] = data[at:at + sample["stack"]]
    at += filled
    branches = 16 * sample["branches"]
    sample["branches"] = list(struct.iter_unpack("<QQ", data[at:at + branches]))
    at += branches
    sample["outer"] = None
    behind = data[at:begin + size]
    if len(behind) >= OUTER.size:
        mask, length = OUTER.unpack_from(behind)
        registers = [number for number in range(64) if mask >> number & 1]
        if registers:
            at = OUTER.size + 8 * len(registers)
            if len(behind) < at + length:
                return None
            values = struct.unpack_from(f"<{len(registers)}Q", behind, OUTER.size)
            sample["outer"] = {"registers": dict(zip(registers, values)), "stack": behind[at:at + length]}
    return sample


def join(words):
    """Value of two or three payload words."""
    return sum((word & 0x7FFFFFFF) << 31 * i for i, word in enumerate(words)) % 2**64


def packed(words):
    """Bytes of payload words, three in each, without zeros at the end."""
    return b"".join(word.to_bytes(4, "little")[:3] for word in words).rstrip(b"\0")


def items(words, clock):
    """Events and escapes of a piece (section 6): ("event", word, time word) or
    ("escape", code, argument, payload); at last ("lost", number of words) if the rest of
    the piece cannot be read."""
    at = 0
    while at < len(words):
        word = words[at]
        if word < 2:
            yield "lost", len(words) - at
            return
        if word < 0xE0000000:
            if clock == TICK_CLOCK:
                yield "event", word, None
                at += 1
                continue
            if at + 1 == len(words):
                yield "lost", 1
                return
            yield "event", word, words[at + 1]
            at += 2
            continue
        code, argument = word >> 24 & 31, word & 0xFFFFFF
        if code < 16:
            yield "escape", code, argument, []
            at += 1
            continue
        count = words[at + 1] if at + 1 < len(words) else 0
        size = count & 0x7FFFFFFF
        if not count >> 31 or at + 2 + size > len(words):
            yield "lost", len(words) - at
            return
        yield "escape", code, argument, words[at + 2:at + 2 + size]
        at += 2 + size
