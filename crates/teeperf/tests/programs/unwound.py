"""Steps through `stepped` of unwound.c, and has gdb tell the callers at each instruction.

The calls and returns that it steps over tell who the callers are. `LATE`, where the environment
has it, is what hooks look at: 0 has them go the long way where nobody records. What it found is on
standard error: `saw` and the functions in which it stepped, or `WRONG`.
"""

import os
import sys

import gdb

# What a callee leaves as it was.
KEPT = ("rsp", "rbx", "rbp", "r12", "r13", "r14", "r15")
MOST_STEPS, MOST_WRONG = 20000, 5

instructions = {}


def tell(*words):
    print(*words, file=sys.stderr)


def instruction(frame):
    """Mnemonic and length of the next one."""
    at = frame.pc()
    if at not in instructions:
        (found,) = frame.architecture().disassemble(at)
        instructions[at] = found["asm"].split()[0], found["length"]
    return instructions[at]


def registers(frame):
    return {name: int(frame.read_register(name)) for name in KEPT}


def on_the_stack(frame):
    """All frames but those that gdb makes of debug information alone."""
    while frame is not None:
        if frame.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME):
            yield frame
        frame = frame.older()


def is_right(callers):
    """Whether gdb has each caller where it called, with its registers, and `main` as the last."""
    innermost, *frames = on_the_stack(gdb.newest_frame())
    found = [(frame.pc(), registers(frame)) for frame in frames]
    if found == callers[::-1] and frames[-1].name() == "main":
        return True
    tell("WRONG", gdb.execute("x/i $pc", to_string=True))
    tell([frame.name() for frame in (innermost, *frames)])
    for name, whole in (("found", found), ("is", callers[::-1])):
        for pc, kept in whole:
            tell(name, f"{pc:#x}", {name: hex(value) for name, value in kept.items()})
    return False


def begin():
    """Goes to the second call: the first has the runtime make ready."""
    for setting in ("confirm off", "startup-with-shell off", "auto-solib-add off"):
        gdb.execute(f"set {setting}")
    gdb.execute("handle all nostop noprint pass", to_string=True)
    gdb.execute("break *stepped")
    gdb.execute("run")
    gdb.execute("continue")
    gdb.execute("delete")
    gdb.execute("set scheduler-locking on")
    if "LATE" in os.environ:
        gdb.execute(f"set var *((int *)&teeperf_gate + 2) = {os.environ['LATE']}")


def step():
    frame = gdb.newest_frame()
    kept = registers(frame)
    word = gdb.selected_inferior().read_memory(kept["rsp"], 8)
    caller = int.from_bytes(bytes(word), "little")
    callers = [(caller, {**kept, "rsp": kept["rsp"] + 8})]
    steps, wrong, saw = 0, 0, set()
    while callers and steps < MOST_STEPS and wrong < MOST_WRONG:
        wrong += not is_right(callers)
        frame = gdb.newest_frame()
        name = frame.name()
        mnemonic, length = instruction(frame)
        back, kept = frame.pc() + length, registers(frame)
        gdb.execute("stepi", to_string=True)
        saw.add(name)
        steps += 1
        if mnemonic == "ret":
            callers.pop()
        elif mnemonic == "call" and name == "teeperf_late_event":
            # The runtime, which is no hook.
            gdb.Breakpoint(f"*{back:#x}", temporary=True)
            gdb.execute("continue", to_string=True)
        elif mnemonic == "call":
            callers.append((back, kept))
    if callers:
        tell("WRONG", steps, "steps, and no end")
    tell("saw", *sorted(saw))


try:
    begin()
    step()
    gdb.execute("set scheduler-locking off")
    gdb.execute("continue")
except Exception as error:
    tell("WRONG", repr(error))
