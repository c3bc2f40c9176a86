#!/usr/bin/env python3
"""Reads a teeperf recording and prints what is in it as JSON.

Written from docs/format.md alone, to prove that the document suffices. It takes its time: for
use, there is `teeperf report`.

    read_recording.py FILE        (or - for standard input)

Needs nothing but Python 3.9 and, for compressed chunks, the package `zstandard` from PyPI or
the command `zstd`. Times in the output are clock units; `hz` of them make a second.
"""

import argparse
import json
import struct
import sys

import recording_format as fmt
import sampled
from recording_format import text_of

ABANDONED = 0x3FFFFFFFFFFFFFFF
STACK_NOT_TOLD = 0xFFFFFFFFFFFFFFFF
UNKNOWN = "[unknown]"
NO_ROOM = "[no room]"

GAPS = {
    1: "paused", 2: "dropped", 3: "nested", 4: "waited", 5: "stalled", 6: "filtered",
    7: "forked", 8: "stopped",
}


class TooNew(Exception):
    """A recording of a higher major version."""


class Thread:
    """What section 9 keeps for a thread."""

    def __init__(self, process, serial, tid, now):
        self.process, self.serial, self.tid = process, serial, tid
        self.stack, self.stack_id = [], 0
        self.marks = {}
        self.now, self.recent, self.debt = now, 0, 0
        # Of `recent`, what a keyframe says was charged before the recording begins.
        self.before = 0
        self.whole = now
        self.place = None
        self.events = self.calls = self.samples = 0
        # Clock units off its processor, and waits as far as they were told.
        self.off_cpu = self.waits = 0
        self.lost = self.lost_words = self.mended = self.unopened = 0
        self.waited = self.left_out = 0
        self.gaps = {}
        # By function: calls, time charged, time charged with a frame of it open.
        self.count, self.self_time, self.total = {}, {}, {}
        # The filter, 0 for none, whether it leaves a function out, and its floor.
        self.number, self.left_out_by, self.floor = 0, None, 0
        self.outside = 0
        # All that was ever charged; by function: frames open, and what `charged` was when
        # the first of them was opened.
        self.charged, self.open, self.since = 0, {}, {}
        # By function: shortest and longest call, where trees tell.
        self.extremes = {}
        self.no_room = 0

    def push(self, function):
        self.stack.append(function)
        self.opened(function)

    def pop(self):
        self.closed(self.stack.pop())

    def opened(self, function):
        if self.open.get(function, 0) == 0:
            self.since[function] = self.charged
        self.open[function] = self.open.get(function, 0) + 1

    def closed(self, function):
        self.open[function] -= 1
        if self.open[function] == 0:
            gained = self.charged - self.since[function]
            self.total[function] = self.total.get(function, 0) + gained

    def change_stack(self, frames):
        for function in self.stack:
            self.closed(function)
        self.stack = frames
        for function in self.stack:
            self.opened(function)

    def charge(self, units):
        self.charged += units
        if self.stack:
            top = self.stack[-1]
            self.self_time[top] = self.self_time.get(top, 0) + units
        else:
            self.outside += units

    def begins_at(self, time):
        """The time in the header of a piece: it is the present one even if it is earlier."""
        self.time_is(time)
        self.now = time
        self.whole = time

    def stamped(self, time):
        self.time_is(time)
        self.whole = time

    def time_is(self, time):
        passed = max(0, time - self.now)
        self.now += passed
        left_out = min(passed, self.debt)
        self.debt -= left_out
        self.recent += passed - left_out
        self.charge(passed - left_out)

    def low_time_is(self, low):
        """The time with these low 32 bits whose high ones are those of the last one given whole."""
        self.time_is(self.whole - self.whole % 2**32 + low)

    def settled(self):
        self.close_left_out()
        self.recent = self.debt = self.before = 0

    def filter(self, numbers, left_out_by):
        """Filters that came one after the other, of which the last holds now."""
        frames = self.floor = len(self.stack)
        for self.number in numbers:
            self.left_out_by = left_out_by(self.number)
            self.close_left_out()
        if len(self.stack) < frames:
            self.recent = self.before = 0

    def close_left_out(self):
        self.floor = min(self.floor, len(self.stack))
        if self.left_out_by is None:
            return
        while 0 < len(self.stack) <= self.floor and isinstance(self.stack[-1], int) and self.left_out_by(self.stack[-1]):
            self.pop()
            self.floor = len(self.stack)

    def event(self, function, is_return):
        self.events += 1
        if is_return and self.left_out_by is not None and len(self.stack) <= self.floor:
            if self.stack and self.stack[-1] in (function, UNKNOWN):
                self.pop()
        elif not is_return:
            self.push(function)
            self.calls += 1
            self.count[function] = self.count.get(function, 0) + 1
        elif not self.stack:
            self.unopened += 1
        else:
            fits = (i for i in range(len(self.stack) - 1, -1, -1)
                    if self.stack[i] in (function, UNKNOWN))
            place = next(fits, None)
            if place is None:
                self.mended += 1
            else:
                self.mended += len(self.stack) - 1 - place
                self.fall_to(place)
        self.settled()

    def fall_to(self, depth):
        while len(self.stack) > depth:
            self.pop()

    def grew(self, nodes):
        """What call paths grew by (section 5, Trees)."""
        functions, paths = [], []
        for at, (parent, word, address, calls, own, extremes) in enumerate(nodes):
            if at == 0:
                functions.append(None)
                paths.append(frozenset())
                self.outside += own
                continue
            swallowed = word == 1 or nodes[parent][1] == 1
            function = word >> 1
            if word == 0:
                function = ("far", address) if address else UNKNOWN
            elif word == 1:
                function = NO_ROOM
            elif word % 2 == 1 or word >= 0xE0000000:
                function = functions[parent]
            functions.append(function)
            path = paths[parent] if function is None else paths[parent] | {function}
            paths.append(path)
            for there in path:
                self.total[there] = self.total.get(there, 0) + own
            if function is None:
                self.outside += own
                continue
            self.self_time[function] = self.self_time.get(function, 0) + own
            self.no_room += calls if swallowed else 0
            self.events += 2 * calls
            self.calls += calls
            if function not in (NO_ROOM, UNKNOWN):
                self.count[function] = self.count.get(function, 0) + calls
            if extremes is not None:
                least, most = self.extremes.get(function, extremes)
                self.extremes[function] = min(least, extremes[0]), max(most, extremes[1])


class Recording:
    """All that a recording says."""

    def __init__(self):
        self.start, self.end = None, None
        self.version = (1, 0)
        self.processes, self.threads, self.windows = {}, {}, {}
        self.names, self.symbols, self.stacks = {}, {}, {}
        self.marks, self.marks_kept = {}, 0
        self.anchors = {}
        self.notices, self.warnings = [], []
        # Rules of the filters in order; by process and number, by first site: sites, whether others pass, those listed.
        self.rules, self.filters = [], {}
        self.words = 0
        self.samples = sampled.Samples()
        self.skipped = set()

    def warn(self, text):
        if len(self.warnings) < 1000:
            self.warnings.append(text)

    def warn_once(self, text):
        if text not in self.skipped:
            self.skipped.add(text)
            self.warn(text)

    def read(self, data):
        for at, kind, payload in fmt.packets(data, self.warn):
            self.packet(at, kind, payload)
        if self.start is None:
            self.warn("there is no start packet")
        if self.end is None:
            self.warn("the recording was cut off: it has no end packet")
        elif self.end.get("words") not in (None, self.words):
            self.warn(f"{self.words} words are there, of {self.end['words']}")

    def packet(self, at, kind, payload):
        if kind == 1:
            self.take_start(at, payload)
        elif kind == 2:
            process = fmt.fields(payload, fmt.PROCESS_TAGS, self.warn)
            known = self.processes.get(process.get("id", 0), {})
            later = ("end_time", "exit_status", "signal", "lost_events")
            self.processes[process.get("id", 0)] = {
                **{name: known[name] for name in later if name in known}, **process}
        elif kind == 3:
            self.chunk(at, payload)
        elif kind == 4:
            self.take_symbols(payload)
        elif kind == 5:
            thread = fmt.fields(payload, fmt.THREAD_TAGS, self.warn)
            if "name" in thread:
                self.names[thread.get("process", 0), thread.get("serial", 0)] = thread["name"]
        elif kind == 6:
            process = fmt.fields(payload, fmt.PROCESS_END_TAGS, self.warn)
            self.processes.setdefault(process.get("id", 0), {}).update(process)
        elif kind == 7:
            self.notices.append(fmt.fields(payload, fmt.NOTICE_TAGS, self.warn))
        elif kind == 8:
            self.end = fmt.fields(payload, fmt.END_TAGS, self.warn)
        elif kind == 9:
            loss = fmt.fields(payload, fmt.LOSS_TAGS, self.warn)
            process = self.processes.setdefault(loss.get("process", 0), {})
            process["lost_events"] = process.get("lost_events", 0) + loss.get("events", 0)
        elif kind == 10:
            self.tree(at, payload)
        elif kind == 13:
            self.take_filter(fmt.fields(payload, fmt.FILTER_TAGS, self.warn))
        elif kind == 12:
            self.keyframe(at, fmt.fields(payload, fmt.KEYFRAME_TAGS, self.warn))
        elif kind == 14:
            self.samples.event(fmt.fields(payload, fmt.SAMPLED_TAGS, self.warn))
        elif kind == 15:
            try:
                self.samples.packet(payload, self.warn_once)
            except fmt.Unreadable as why:
                self.warn(f"samples at offset {at}: {why}")
        elif kind == 16:
            self.samples.spaces.map(fmt.fields(payload, fmt.MAP_TAGS, self.warn))
        elif kind == 17:
            self.samples.spaces.task(fmt.fields(payload, fmt.TASK_TAGS, self.warn))
        elif kind == 18:
            try:
                self.samples.file(fmt.fields(payload, fmt.FILE_TAGS, self.warn))
            except fmt.Unreadable as why:
                self.warn(f"part of a file at offset {at}: {why}")
        else:
            self.warn_once(f"packets of type {kind} were skipped")

    def take_filter(self, told):
        process = told.get("process", 0)
        if process == 0:
            self.rules.append(told.get("rules", []))
            return
        windows = self.filters.setdefault((process, told.get("number", 0)), {})
        _, _, listed = windows.setdefault(
            told.get("first_site", 0), (told.get("sites", 0), told.get("others_pass", 0) == 1, set()))
        for value in told.get("lists", []):
            listed.update(site for (site,) in struct.iter_unpack("<I", value[:len(value) // 4 * 4]))

    def left_out_by(self, process, number):
        """Whether a function at a site is left out by the filter of this number."""
        windows = self.filters.get((process, number), {})

        def is_left_out(site):
            below = max((first for first in windows if first <= site), default=None)
            if below is None:
                return False
            sites, others_pass, listed = windows[below]
            return site - below < sites and (site in listed) == others_pass

        return is_left_out

    def take_start(self, at, payload):
        if self.start is not None:
            self.warn(f"a second start packet at offset {at}")
            return
        self.start = fmt.fields(payload, {**fmt.START_TAGS, 1: ("version", "bytes")}, self.warn)
        version = self.start.pop("version", b"")
        if len(version) == 4:
            self.version = struct.unpack("<HH", version)
        else:
            self.warn("the start packet has no version")
        if self.version[0] > 1:
            raise TooNew(f"format {self.version[0]}.{self.version[1]} is not known")

    def take_symbols(self, payload):
        found = fmt.fields(payload, fmt.SYMBOLS_TAGS, self.warn)
        if "anchor" in found:
            self.anchors[found.get("process", 0), found.get("first_site", 0)] = found["anchor"]
        for value in found.get("symbols", []):
            if len(value) < 14:
                self.warn("a symbol is cut off")
                continue
            site, size, line, length = struct.unpack_from("<IIIH", value)
            name, file = value[14:14 + length], value[14 + length:]
            if len(name) < length:
                self.warn("a symbol is cut off")
                continue
            if name:
                self.symbols.setdefault(found.get("process", 0), {})[site] = (
                    size, text_of(name), text_of(file) or None, line or None)

    # ------------------------------------------------------------ chunks

    def chunk(self, at, payload):
        if len(payload) < fmt.CHUNK.size:
            self.warn(f"chunk at offset {at}: its header is cut off")
            return
        names = ("process", "thread", "tid", "sequence", "first", "count", "time", "cpu_ns",
                 "stack", "clock", "encoding", "flags", "words_bytes")
        header = dict(zip(names, fmt.CHUNK.unpack_from(payload)))
        if header["first"] > fmt.MAX_WORDS or header["count"] > fmt.MAX_WORDS:
            self.warn(f"chunk at offset {at}: it claims more words than a chunk has")
            return
        self.words += header["count"]
        key = header["process"], header["thread"]
        thread = self.threads.get(key)
        if thread is None:
            thread = self.threads[key] = Thread(*key, header["tid"], header["time"])
        self.note_place(at, thread, header)
        thread.begins_at(header["time"])
        if header["first"] == 0 and header["stack"] != STACK_NOT_TOLD:
            self.resume(thread, header["stack"])
        try:
            words = fmt.words_of(header, payload[fmt.CHUNK.size:])
        except fmt.Unreadable as why:
            self.warn(f"chunk at offset {at}: {why}")
            thread.lost_words += header["count"]
            return
        for item in fmt.items(words, header["clock"]):
            if item[0] == "event":
                _, word, time = item
                if time is not None:
                    thread.low_time_is(time)
                thread.event(word >> 1, word & 1)
            elif item[0] == "escape":
                if not self.escape(thread, item, header["clock"]):
                    self.warn_once(f"escapes of code {item[1]} were skipped")
            else:
                self.warn(f"chunk at offset {at}: the last {item[1]} words cannot be read")
                thread.lost_words += item[1]

    def tree(self, at, payload):
        if len(payload) < fmt.TREE.size:
            self.warn(f"tree at offset {at}: its header is cut off")
            return
        names = ("process", "thread", "tid", "nodes", "begin", "end", "mended", "encoding", "flags")
        header = dict(zip(names, fmt.TREE.unpack_from(payload)))
        if header["nodes"] > fmt.MAX_NODES:
            self.warn(f"tree at offset {at}: it claims more nodes than a packet has")
            return
        key = header["process"], header["thread"]
        thread = self.threads.get(key)
        if thread is None:
            thread = self.threads[key] = Thread(*key, header["tid"], header["begin"])
        thread.mended += header["mended"]
        try:
            nodes, wrong = fmt.nodes_of(header, payload[fmt.TREE.size:])
        except fmt.Unreadable as why:
            nodes, wrong = [], str(why)
        if wrong is not None:
            self.warn(f"tree at offset {at}: {wrong}")
        thread.grew(nodes)

    def keyframe(self, at, told):
        process, serial = told.get("process", 0), told.get("thread", 0)
        for value in told.get("modules", []):
            words = fmt.as_words(value) if len(value) % 4 == 0 else []
            if len(words) >= 10 and all(word >> 31 for word in words):
                self.module(process, words)
        runs, wrong = fmt.frames_of(told)
        if wrong is not None:
            self.warn(f"keyframe at offset {at}: {wrong}")
        frames = []
        for word, address, count in runs:
            function = ("far", address) if word == 1 else word >> 1 if word else UNKNOWN
            frames += [function] * min(count, 1 << 20)
        stack_id, below = told.get("stack", 0), told.get("below", 0)

        def on_top_of(open_frames):
            known = open_frames[:below]
            return known + [UNKNOWN] * min(below - len(known), 1 << 20) + frames

        if told.get("left"):
            key = process, stack_id, serial if stack_id == 0 else 0
            kept = on_top_of(self.stacks.pop(key, []) if below else [])
            self.stacks.pop(key, None)
            if told["left"] != 2:
                self.stacks[key] = kept
            return
        if serial == 0:
            return
        thread = self.threads.get((process, serial))
        if thread is None:
            thread = Thread(process, serial, told.get("tid", 0), told.get("time", 0))
            self.threads[process, serial] = thread
        thread.change_stack(on_top_of(thread.stack if below else []))
        if not below:
            thread.stack_id = stack_id
            thread.now = thread.whole = told.get("time", 0)
            thread.recent = thread.before = told.get("recent", 0)
            thread.debt = told.get("debt", 0)
            thread.marks = {}
            if "filter" in told:
                thread.number = told["filter"]
                thread.left_out_by = self.left_out_by(process, thread.number)
                thread.floor = told.get("floor", 0)
            if "sequence" in told:
                # As behind a piece that ends where this one goes on.
                sequence, first = told["sequence"], told.get("first", 0)
                thread.place = (sequence, first, 0) if first else ((sequence - 1) % 2**32, 0, 1)
        for key, stack, depth in (struct.unpack("<IQQ", mark) for mark in told.get("marks", [])
                                  if len(mark) == 20):
            self.mark(thread, "vfork" if key == 0xFFFFFFFF else key, stack, depth)

    def note_place(self, at, thread, header):
        """Says so when words are missing before this piece."""
        place = header["sequence"], header["first"]
        if thread.place is None:
            if place != (1, 0):
                self.warn(f"chunk at offset {at}: words are missing before it: the thread begins "
                          f"with chunk {place[0]} from word {place[1]}")
        else:
            sequence, word, whole = thread.place
            fits = place == ((sequence + 1) % 2**32, 0) or (place == (sequence, word) and not whole)
            if not fits:
                self.warn(f"chunk at offset {at}: words are missing before it: chunk {place[0]} "
                          f"from word {place[1]} behind chunk {sequence} up to word {word}")
        thread.place = header["sequence"], header["first"] + header["count"], header["flags"] & 1

    def escape(self, thread, item, clock):
        """Does what an escape says; False if it is not known, or has too little payload or
        words in it that were never written."""
        _, code, argument, payload = item
        needed = {16: 2, 17: 6, 18: 4, 19: 2, 20: 1, 21: 3 + (clock == fmt.CYCLE_CLOCK), 22: 10,
                  25: 3, 26: 6, 27: 2, 28: 2, 29: 8, 30: 2}
        if len(payload) < needed.get(code, 0):
            return False
        used = {21: 3, 22: None, 23: None, 24: None}.get(code, needed.get(code, 0))
        if not all(word >> 31 for word in payload[:used]):
            return code == 29
        if code == 0:
            thread.time_is(thread.now + argument)
        elif code == 1:
            thread.lost += 1
        elif code in (2, 4):
            self.mark(thread, "vfork" if code == 4 else argument, thread.stack_id, len(thread.stack))
        elif code in (3, 5):
            self.jump(thread, "vfork" if code == 5 else argument)
        elif code == 6:
            pass
        elif code == 7:
            came = sorted(number for process, number in self.filters
                          if process == thread.process and thread.number < number < argument)
            thread.filter([*came[-64:], argument], lambda number: self.left_out_by(thread.process, number))
        elif code == 16:
            thread.stamped(fmt.join(payload[:2]))
        elif code == 17:
            self.gap(thread, argument, payload)
        elif code == 18:
            self.switch(thread, fmt.join(payload[:2]), fmt.join(payload[2:4]))
        elif code == 19:
            self.new_stack(thread, fmt.join(payload[:2]))
        elif code == 20:
            self.catch(thread, payload[0] & 0x7FFFFFFF)
        elif code == 21:
            if clock == fmt.CYCLE_CLOCK:
                thread.low_time_is(payload[3])
            thread.event(("far", fmt.join(payload[:3])), argument & 1)
        elif code == 22:
            self.module(thread.process, payload)
        elif code == 23:
            self.names[thread.process, thread.serial] = text_of(fmt.packed(payload))
        elif code == 28:
            self.resume(thread, fmt.join(payload[:2]))
        elif code == 29:
            is_end = argument & 32 != 0
            thread.samples += (not is_end) + (payload[6] & 0x7FFFFFFF)
        elif code == 30:
            thread.off_cpu += fmt.join(payload[:2])
            thread.waits += payload[2] & 0x7FFFFFFF if len(payload) > 2 and payload[2] >> 31 else 0
        elif code not in (24, 25, 26, 27):
            return False
        return True

    def mark(self, thread, key, stack_id, depth):
        """Marks on stacks that are no thread's own are the process's."""
        self.marks_kept += 1
        thread.marks[key] = self.marks_kept, stack_id, depth
        if stack_id != 0 and key != "vfork":
            self.marks[thread.process, key] = thread.marks[key]

    def jump(self, thread, key):
        known = [(0, thread.stack_id, len(thread.stack))]
        known += [marks[which] for marks, which in ((thread.marks, key), (self.marks, (thread.process, key)))
                  if which in marks]
        _, stack_id, depth = max(known)
        if stack_id != thread.stack_id and self.stack_key(thread, stack_id) in self.stacks:
            self.switch(thread, thread.stack_id, stack_id)
        thread.fall_to(depth)
        thread.settled()

    @staticmethod
    def catch(thread, site):
        lowest = thread.floor if thread.left_out_by is not None and thread.left_out_by(site) else 0
        place = next((i for i in range(len(thread.stack) - 1, lowest - 1, -1) if thread.stack[i] == site), None)
        if place is not None:
            thread.fall_to(place + 1)
        thread.settled()

    @staticmethod
    def stack_key(thread, stack_id):
        """Stacks belong to the process, but each thread has one of its own, 0."""
        return thread.process, stack_id, thread.serial if stack_id == 0 else 0

    def resume(self, thread, stack_id):
        if stack_id != thread.stack_id:
            self.switch(thread, thread.stack_id, stack_id)

    def switch(self, thread, left, entered):
        if left != ABANDONED:
            self.stacks[self.stack_key(thread, left)] = list(thread.stack)
        thread.change_stack(self.stacks.pop(self.stack_key(thread, entered), []))
        thread.floor = len(thread.stack)
        thread.stack_id = entered
        thread.settled()

    def new_stack(self, thread, stack_id):
        self.stacks.pop(self.stack_key(thread, stack_id), None)
        if stack_id == thread.stack_id:
            thread.fall_to(0)
        thread.settled()

    @staticmethod
    def gap(thread, reason, payload):
        lost, units = fmt.join(payload[:2]), fmt.join(payload[4:6])
        popped, pushed = payload[2] & 0x7FFFFFFF, payload[3] & 0x7FFFFFFF
        times, spent = thread.gaps.get(reason, (0, 0))
        thread.gaps[reason] = times + 1, spent + units
        if reason in (1, 6, 7, 8):
            thread.left_out += lost
        else:
            thread.lost += lost
        if reason in (4, 5):
            thread.waited += units
        back = min(units, thread.recent)
        here = min(back, thread.recent - thread.before)
        thread.charge(-here)
        thread.before -= back - here
        thread.recent -= back
        thread.debt += units - back
        if thread.left_out_by is None:
            thread.unopened += max(0, popped - len(thread.stack))
        for _ in range(popped):
            if not thread.stack:
                break
            thread.pop()
            thread.close_left_out()
        # No honest thread has more frames than its stack has bytes for.
        for _ in range(min(pushed, 1 << 20)):
            thread.push(UNKNOWN)
        if popped or pushed:
            thread.recent = thread.before = 0

    def module(self, process, payload):
        size = payload[9] & 0x7FFFFFFF
        first = payload[1] & 0x7FFFFFFF
        texts = payload[10:]
        build_id = b"".join(word.to_bytes(4, "little")[:3] for word in texts[:(size + 2) // 3])
        window = {
            "process": process, "first_site": first, "sites": payload[2] & 0x7FFFFFFF,
            "address": fmt.join(payload[3:6]), "bias": fmt.join(payload[6:9]),
            "build_id": build_id[:size].hex(), "path": text_of(fmt.packed(texts[(size + 2) // 3:])),
        }
        if payload[0] & 0x7FFFFFFF == 2:
            window["anchored"] = True
        # What retires a window says the same of it as what opened it.
        known = self.windows.setdefault(process, {}).setdefault(first, window)
        if known["path"] != window["path"]:
            self.warn(f"process {process}: sites from {first:#x} are of two files")

    # ------------------------------------------------------------ functions

    def function(self, process, word):
        """What names a function: (name, module, address in the file, file, line)."""
        if word in (UNKNOWN, NO_ROOM):
            return word, None, None, None, None
        if isinstance(word, tuple):
            return f"{word[1]:#x}", None, None, None, None
        window = next((w for w in self.windows.get(process, {}).values()
                       if w["first_site"] <= word < w["first_site"] + w["sites"]), None)
        path, address = None, None
        if window is not None:
            path = window["path"]
            base = window["address"] - window["bias"] - window["first_site"]
            anchor = self.anchors.get((process, window["first_site"]))
            if not window.get("anchored"):
                address = (base + word) % 2**64
            elif anchor is not None:
                address = (base + anchor + word) % 2**64
        symbols = self.symbols.get(process, {})
        site = max((site for site in symbols if site <= word), default=None)
        if site is not None and word < site + max(symbols[site][0], 1):
            _, name, file, line = symbols[site]
            start = None if address is None else (address - (word - site)) % 2**64
            return name, path, start, file, line
        name = f"site {word:#x}" if address is None else f"{path.rsplit('/', 1)[-1]}+{address:#x}"
        return name, path, address, None, None

    def functions_of(self, thread):
        """Sites of one function added up. Frames of both at once are rare enough that total
        times of such are not taken apart."""
        out = {}
        for function in list(thread.open):
            if thread.open[function]:
                gained = thread.charged - thread.since[function]
                thread.total[function] = thread.total.get(function, 0) + gained
        for function in {**thread.count, **thread.self_time, **thread.total}:
            name, module, address, file, line = self.function(thread.process, function)
            entry = out.setdefault((name, module, address), {
                "name": name, "module": module, "address": address, "file": file, "line": line,
                "calls": 0, "self": 0, "total": 0})
            entry["calls"] += thread.count.get(function, 0)
            entry["self"] += thread.self_time.get(function, 0)
            entry["total"] += thread.total.get(function, 0)
            extremes = thread.extremes.get(function)
            if extremes is not None:
                known = entry.get("shortest", extremes[0]), entry.get("longest", extremes[1])
                entry["shortest"] = min(known[0], extremes[0])
                entry["longest"] = max(known[1], extremes[1])
        return sorted(out.values(), key=lambda entry: (-entry["total"], entry["name"]))

    def as_json(self):
        threads = []
        for key in sorted(self.threads):
            thread = self.threads[key]
            threads.append({
                "process": thread.process, "serial": thread.serial, "tid": thread.tid,
                "pid": self.processes.get(thread.process, {}).get("pid"),
                "name": self.names.get(key), "events": thread.events, "calls": thread.calls,
                "lost_events": thread.lost, "left_out": thread.left_out, "lost_words": thread.lost_words,
                "mended": thread.mended, "unopened": thread.unopened, "open": len(thread.stack),
                "no_room": thread.no_room, "samples": thread.samples,
                "off_cpu": thread.off_cpu, "waits": thread.waits,
                "waited": thread.waited, "outside": thread.outside,
                "gaps": [{"reason": GAPS.get(reason, reason), "times": times, "units": units}
                         for reason, (times, units) in sorted(thread.gaps.items())],
                "functions": self.functions_of(thread),
            })
        return {
            "version": "{}.{}".format(*self.version), "start": self.start, "end": self.end,
            "processes": [self.processes[key] for key in sorted(self.processes)],
            "modules": [window for process in sorted(self.windows)
                        for _, window in sorted(self.windows[process].items())],
            "open_on_stacks_left": sum(len(frames) for frames in self.stacks.values()),
            "threads": threads, "samples": self.samples.as_json(), "notices": self.notices, "filters": self.rules, "warnings": self.warnings,
        }


def read(data):
    """A recording's bytes as the structure that is printed."""
    recording = Recording()
    recording.read(data)
    return recording.as_json()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("file", help="the recording; - for standard input")
    path = parser.parse_args().file
    if path == "-":
        data = sys.stdin.buffer.read()
    else:
        with open(path, "rb") as file:
            data = file.read()
    try:
        json.dump(read(data), sys.stdout, indent=1)
    except TooNew as why:
        sys.exit(f"{path}: {why}")
    print()


if __name__ == "__main__":
    main()
