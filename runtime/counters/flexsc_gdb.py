# SPDX-License-Identifier: MIT
"""User threads in gdb, of a live process under flexsc run or of its core file.

    (gdb) source flexsc_gdb.py
    (gdb) info uthreads
    (gdb) uthread TID COMMAND
    (gdb) uthread apply all COMMAND

gdb shows kernel threads. While a user thread waits or runs elsewhere, gdb shows
its host thread, which is asleep. With these commands, COMMAND (bt, up, info
locals...) sees the user thread itself. Nothing in the process changes. A user
thread that doesn't run appears as the caller of its host's innermost frame: an
unwinder takes its registers from where flexsc__switch saved them.

Needs gdb 12, and the debug information of libflexsc-runtime.so, but none of the
program.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import gdb  # type: ignore[import-untyped]
import gdb.unwinder  # type: ignore[import-untyped]

LIBRARY = "libflexsc-runtime"


@dataclass(frozen=True)
class Machine:
    """How flexsc__switch saves registers: context_switch.S in arch/."""

    sp: str  # the stack pointer's name
    pc: str
    saved: dict[str, int]  # offsets from a saved stack pointer
    size: int  # of all that is saved, in bytes


X86_64 = Machine(
    "rsp",
    "rip",
    {"r15": 8, "r14": 16, "r13": 24, "r12": 32, "rbx": 40, "rbp": 48, "rip": 56},
    64,
)
AARCH64 = Machine(
    "sp",
    "pc",
    {f"x{19 + i}": 8 * i for i in range(11)} | {"x30": 88, "pc": 88},
    176,
)
FRAMES = 50  # searched for a user thread's function
LIBC = re.compile(r"/(libc|libpthread|ld-linux[^/]*)[-.]")


# The library's variables


def library() -> gdb.Objfile:
    for objfile in gdb.objfiles():
        if LIBRARY in (objfile.filename or ""):
            return objfile
    raise gdb.GdbError(
        f"{LIBRARY}.so isn't loaded; was the program started by flexsc run?"
    )


def value_of(name: str) -> gdb.Value:
    """A variable or enumerator of the library; the program may have the same name."""
    there = library()
    symbols = [there.lookup_global_symbol(name), *gdb.lookup_static_symbols(name)]
    for symbol in symbols:
        if symbol is not None and symbol.symtab.objfile.filename == there.filename:
            return symbol.value()
    raise gdb.GdbError(
        f"{there.filename} has no debug information; use an unstripped library"
    )


def machine() -> Machine:
    name = gdb.selected_inferior().architecture().name()
    return AARCH64 if name.startswith("aarch64") else X86_64


def carriers() -> list[gdb.Value]:
    count = int(value_of("flexsc__runtime")["count"])
    first = value_of("flexsc__runtime")["carriers"]
    return [first[i] for i in range(count)]


def call_name(nr: int) -> str:
    """A call's name in the library's table, or its number."""
    try:
        name = value_of("flexsc__calls")[nr]["name"]
        return name.string() if int(name) else str(nr)
    except gdb.error:
        return str(nr)


def pthread_offset(all_carriers: list[gdb.Value]) -> int:
    """From a thread pointer to the pthread_t; the same for all threads."""
    for carrier in all_carriers:
        return int(carrier["thread"]) - int(carrier["k"]["tp"])
    return 0


class Uthread:
    """A user thread, as it is while the process is stopped."""

    def __init__(self, value: gdb.Value, all_carriers: list[gdb.Value]) -> None:
        self.value = value
        self.tid = int(value["host"]["k"]["tid"])
        self.pthread = int(value["tp"]) + pthread_offset(all_carriers)
        self.runs_on = 0  # the kernel thread; 0: none
        self.state = self._find(all_carriers)

    def _find(self, all_carriers: list[gdb.Value]) -> str:
        address = int(self.value.address)
        for carrier in all_carriers:
            if int(carrier["k"]["current"]) == address:
                self.runs_on = int(carrier["k"]["tid"])
                return f"on carrier {int(carrier['number'])}"
        if int(self.value["host"]["k"]["current"]) == address:
            self.runs_on = self.tid
            return "on its host"
        return self._find_wait()

    def _find_wait(self) -> str:
        wait = int(self.value["wait"])
        if wait == value_of("WAIT_CALL"):
            return f"call {call_name(int(self.value['nr']))}"
        if wait == value_of("WAIT_TIMER"):
            return "timer"
        if wait == value_of("WAIT_FUTEX"):
            return f"futex {int(self.value['futex']['word']):#x}"
        if int(self.value["host"]["word"]) == value_of("HOST_RESUMES"):
            return "goes to its host"
        carrier = self.value["carrier"]
        if int(carrier):
            return f"queue of carrier {int(carrier['number'])}"
        return "queue"


def uthreads() -> list[Uthread]:
    """All user threads, the oldest first."""
    at = value_of("all")
    there = carriers()
    found = []
    while int(at):
        found.append(Uthread(at.dereference(), there))
        at = at["all_next"]
    return found[::-1]


def find(tid: int) -> Uthread:
    for uthread in uthreads():
        if uthread.tid == tid:
            return uthread
    raise gdb.GdbError(f"no user thread {tid}; see info uthreads")


# Selecting one user thread


class FrameId:
    def __init__(self, sp: gdb.Value, pc: gdb.Value) -> None:
        self.sp = sp
        self.pc = pc


class Saved(gdb.unwinder.Unwinder):  # type: ignore[misc]
    """While "sp" is set, the innermost frame's caller is the context saved at "sp"."""

    def __init__(self) -> None:
        super().__init__("flexsc-uthread")
        self.sp = 0
        self.innermost = 0  # the innermost frame's stack pointer

    def begin(self, sp: int) -> None:
        self.innermost = stack_pointer(gdb.newest_frame())
        self.sp = sp
        gdb.invalidate_cached_frames()

    def end(self) -> None:
        if self.sp:
            self.sp = 0
            gdb.invalidate_cached_frames()

    def __call__(self, pending: gdb.PendingFrame) -> gdb.UnwindInfo | None:
        at = machine()
        if not self.sp or int(pending.read_register(at.sp)) != self.innermost:
            return None
        word = pending.architecture().integer_type(64, False)
        saved = {
            name: gdb.Value(self.sp + offset).cast(word.pointer()).dereference()
            for name, offset in at.saved.items()
        }
        top = gdb.Value(self.sp).cast(word)
        info = pending.create_unwind_info(FrameId(top, saved[at.pc]))
        for name, value in saved.items():
            info.add_saved_register(name, value)
        info.add_saved_register(at.sp, top + at.size)
        add_signing(pending, info)
        return info


def add_signing(pending: gdb.PendingFrame, info: gdb.UnwindInfo) -> None:
    """How aarch64 signs return addresses, which gdb reads for each further frame."""
    names = [register.name for register in pending.architecture().registers()]
    masks = [name for name in names if name.startswith("pauth_")]
    for name in masks:
        info.add_saved_register(name, pending.read_register(name))
    if masks:
        word = pending.architecture().integer_type(64, False)
        for number in nameless():
            info.add_saved_register(number, gdb.Value(0).cast(word))


def nameless() -> list[int]:
    """Words without a name: one of them is whether a return address is signed."""
    table = gdb.execute("maintenance print registers", to_string=True)
    rows = re.findall(r"^ '' +(\d+) +-?\d+ +\S+ +8 ", table, re.MULTILINE)
    return [int(row) for row in rows]


def stack_pointer(frame: gdb.Frame) -> int:
    return int(frame.read_register(machine().sp))


def older(level: int) -> gdb.Frame:
    """The selected thread's frame of this level."""
    frame = gdb.newest_frame()
    while frame.level() < level:
        frame = frame.older()
    return frame


def first_saved() -> gdb.Frame:
    """The first saved frame; inlined functions of the innermost frame precede it."""
    frame = gdb.newest_frame()
    while frame is not None and stack_pointer(frame) == saved_context.innermost:
        frame = frame.older()
    if frame is None:
        raise gdb.GdbError("can't read the saved registers of this user thread")
    return frame


saved_context = Saved()
gdb.unwinder.register_unwinder(None, saved_context, replace=True)


@contextmanager
def seen(uthread: Uthread) -> Iterator[int]:
    """Select a user thread in gdb; yields the level of its innermost frame."""
    selected = gdb.selected_thread()
    selected_level = gdb.selected_frame().level()
    lwp = uthread.runs_on or uthread.tid
    thread = next(
        (t for t in gdb.selected_inferior().threads() if t.ptid[1] == lwp), None
    )
    if thread is None:
        raise gdb.GdbError(f"gdb doesn't list kernel thread {lwp}")
    try:
        thread.switch()
        frame = gdb.newest_frame()
        if not uthread.runs_on:
            saved_context.begin(int(uthread.value["sp"]))
            frame = first_saved()
        frame.select()
        yield frame.level()
    finally:
        saved_context.end()
        if selected is not None and selected.is_valid():
            selected.switch()
            older(selected_level).select()


def functions(uthread: Uthread) -> str:
    """The innermost function outside the runtime; for one of libc also its caller."""
    names: list[str] = []
    with seen(uthread):
        frame: gdb.Frame | None = gdb.selected_frame()
        for _ in range(FRAMES):
            if frame is None:
                break
            where = gdb.solib_name(frame.pc()) or ""
            if LIBRARY not in where:
                if not names or not LIBC.search(where):
                    names.append(frame.name() or f"{frame.pc():#x}")
                if not LIBC.search(where):
                    break
            frame = frame.older()
    return " < ".join(names) or "?"


def run(uthread: Uthread, command: str) -> None:
    """Run a gdb command on this user thread."""
    with seen(uthread) as level:
        text = gdb.execute(command, to_string=True)
    if level and re.match(r"(bt|ba|backtrace|where)\b", command):
        text = without_host(text, level)
    gdb.write(text)


def without_host(trace: str, level: int) -> str:
    """Remove the host's frames; the user thread's innermost frame becomes number 0."""
    own = re.search(rf"^#{level} ", trace, re.MULTILINE)
    return re.sub(
        r"^#(\d+)( *)",
        lambda m: f"#{int(m[1]) - level}".ljust(len(m[0])),
        trace[own.start() :] if own else "",
        flags=re.MULTILINE,
    )


# Commands


class InfoUthreads(gdb.Command):  # type: ignore[misc]
    """List the user threads of flexsc run, their states and functions."""

    def __init__(self) -> None:
        super().__init__("info uthreads", gdb.COMMAND_STACK)

    def invoke(self, argument: str, from_tty: bool) -> None:
        rows = uthreads()
        if not rows:
            gdb.write("no user threads\n")
            return
        gdb.write(f"{'Tid':>8}  {'Pthread':<14}  {'State':<22}  Function\n")
        for row in rows:
            gdb.write(f"{row.tid:>8}  {row.pthread:#014x}  {row.state:<22}  ")
            gdb.write(f"{functions(row)}\n")


class OneUthread(gdb.Command):  # type: ignore[misc]
    """uthread TID COMMAND, uthread apply all COMMAND

    Run a gdb command on one user thread, or on all that info uthreads lists.
    Examples: uthread 4711 bt, uthread apply all bt."""

    def __init__(self) -> None:
        super().__init__("uthread", gdb.COMMAND_STACK)

    def invoke(self, argument: str, from_tty: bool) -> None:
        found = re.fullmatch(r"\s*(\d+|apply\s+all)\s+(\S.*)", argument)
        if found is None:
            raise gdb.GdbError("usage: uthread TID COMMAND, uthread apply all COMMAND")
        if found[1].isdigit():
            run(find(int(found[1])), found[2])
            return
        for uthread in uthreads():
            gdb.write(
                f"\nUser thread {uthread.tid} ({uthread.pthread:#x}), "
                f"{uthread.state}:\n"
            )
            try:
                run(uthread, found[2])
            except gdb.error as error:
                gdb.write(f"{error}\n")


InfoUthreads()
OneUthread()
