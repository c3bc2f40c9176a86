"""Samples: whose code stood where when each was taken, and what weight it has.

Section 9 of docs/format.md, "Reading samples". Stacks are not unwound here: what is told is the innermost address.
"""

import recording_format as fmt

KERNEL_PID = 0xFFFFFFFF
FORK, NAME, EXEC = 1, 2, 3
UNKNOWN = "[unknown]"


class Process:
    """Maps, as (first address, address behind, offset, path) in the order in which they were told, and names of threads."""

    def __init__(self):
        self.maps, self.names = [], {}


class Spaces:
    """What holds for the next sample."""

    def __init__(self):
        self.kernel, self.processes = Process(), {}

    def of(self, pid):
        return self.processes.setdefault(pid, Process())

    def map(self, told):
        address, length = told.get("address", 0), told.get("length", 0)
        pid, mode = told.get("pid", 0), told.get("mode", fmt.USER)
        if length == 0 or address + length >= 2**64 or mode not in (fmt.UNKNOWN_MODE, fmt.KERNEL, fmt.USER):
            return
        is_kernel = pid == KERNEL_PID or mode == fmt.KERNEL
        process = self.kernel if is_kernel else self.of(pid)
        offset = address if is_kernel else told.get("offset", 0)
        process.maps.append((address, address + length, offset, told.get("path", "")))

    def task(self, told):
        what, pid, tid = told.get("what", 0), told.get("pid", 0), told.get("tid", 0)
        if what == FORK:
            parent = self.of(told.get("parent_pid", 0))
            if pid != told.get("parent_pid", 0):
                child = self.processes[pid] = Process()
                child.maps = list(parent.maps)
            name = parent.names.get(told.get("parent_tid", 0))
            if name is not None:
                self.of(pid).names[tid] = name
        elif what in (NAME, EXEC):
            process = self.of(pid)
            if what == EXEC:
                process.maps = []
            process.names[tid] = told.get("name", "")

    def place(self, sample):
        """Path and offset of the innermost address."""
        mode, address = sample["mode"], sample["ip"]
        for entry in sample["chain"]:
            if entry < fmt.FIRST_CONTEXT:
                address = entry
                break
            mode = fmt.CONTEXTS.get(entry)
        else:
            mode = sample["mode"]
        if mode == fmt.KERNEL:
            maps = self.kernel.maps
        elif mode in (fmt.UNKNOWN_MODE, fmt.USER):
            maps = self.of(sample["pid"]).maps
        else:
            return UNKNOWN
        # What was told last lies over what was told before.
        for begin, end, offset, path in reversed(maps):
            if begin <= address < end:
                return f"{path}+{(offset + address - begin) % 2**64:#x}"
        return UNKNOWN


class Samples:
    """Sums by event, and by process and thread."""

    def __init__(self):
        self.spaces = Spaces()
        self.events, self.lost, self.threads = {}, {}, {}
        self.files = {}

    def file(self, told):
        """A part of a file, which goes on where the part before ends."""
        number, size, offset = told.get("file", 0), told.get("size", 0), told.get("offset", 0)
        before = self.files.setdefault(number, b"")
        part = fmt.decompress(told.get("data", b""), fmt.MAX_PART)
        if offset != len(before) or offset + len(part) > size:
            raise fmt.Unreadable(f"bytes {offset} and on of file {number}, {len(before)} came before, of {size}")
        self.files[number] = before + part

    def event(self, told):
        self.events[told.get("event", 0)] = told

    def packet(self, payload, warn):
        """The samples of a packet, and those that are lost."""
        header, data = fmt.samples_header(payload)
        if header["lost"]:
            self.lost[header["event"]] = self.lost.get(header["event"], 0) + header["lost"]
        samples, rest = fmt.samples_of(header, data)
        for sample in samples:
            self.add(sample, warn)
        if rest or len(samples) != header["samples"]:
            left = f", and {len(rest)} bytes are left" if rest else ""
            raise fmt.Unreadable(f"{len(samples)} of {header['samples']} samples could be read{left}")

    def add(self, sample, warn):
        event, pid, tid = sample["event"], sample["pid"], sample["tid"]
        if event not in self.events:
            warn(f"samples are of event {event}, which no packet told of before")
        thread = self.threads.setdefault(event, {}).setdefault((pid, tid), {
            "pid": pid, "tid": tid, "name": None, "samples": 0, "weight": 0, "self": {}})
        thread["name"] = self.spaces.of(pid).names.get(tid, thread["name"])
        thread["samples"] += 1
        thread["weight"] += sample["period"]
        place = self.spaces.place(sample)
        thread["self"][place] = thread["self"].get(place, 0) + sample["period"]

    def as_json(self):
        return [self.event_as_json(event) for event in sorted({*self.events, *self.lost, *self.threads})]

    def event_as_json(self, event):
        threads = [thread for _, thread in sorted(self.threads.get(event, {}).items())]
        told = self.events.get(event, {})
        return {
            "event": event, "name": told.get("name"), "unit": told.get("unit"),
            "samples": sum(thread["samples"] for thread in threads), "lost": self.lost.get(event, 0),
            "weight": sum(thread["weight"] for thread in threads), "threads": threads,
        }
