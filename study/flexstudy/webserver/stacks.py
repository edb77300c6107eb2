# SPDX-License-Identifier: MIT
"""Samples of a core, as perf script prints them, and the part of a request's processor
time that each of them belongs to.

The kernel's frames tell the part of a sample in the kernel: packets and switches
wherever they occur, and else the system call, or io_uring's operation, that is nearest
to the outermost frame. In user mode it is the innermost function, since the programs
are built without frame pointers. Where interrupts are disabled, a sample is taken, and
its time is counted, when they are enabled again.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from flexbench.samples import BenchError

UNKNOWN = "[unknown]"

# The parts of the core's time, which are all of it.
PARTS = {
    "core": "HTTP, which all drivers share",
    "driver": "the driver",
    "library": "libc, libflexsc, flexsc run",
    "entry": "to the kernel and back",
    "receive": "receiving",
    "send": "sending",
    "files": "files: open, look, read, close",
    "waiting": "waiting: epoll, futex, switches",
    "uring": "io_uring itself",
    "softirq": "packets, in soft interrupts",
    "napi": "packets, in a NAPI thread",
    "other": "the server, otherwise",
    "others": "other processes",
    "idle": "idle",
}


@dataclass(frozen=True)
class Frame:
    symbol: str
    place: str  # a file, or "[vdso]" and the like
    in_kernel: bool


@dataclass(frozen=True)
class Sample:
    """frames: the innermost first."""

    comm: str
    pid: int
    frames: Sequence[Frame]


@dataclass(frozen=True)
class Subject:
    """A server's process, and the name of the program's file."""

    pid: int
    program: str


# Reading.

HEAD = re.compile(r"(.*?)\s+(-?\d+)/-?\d+\s*")  # -1: the thread has ended
LINE = re.compile(r"\s+([0-9a-f]+) (.+) \((.*)\)\s*")
KERNEL = 1 << 63  # the kernel's addresses are above


def frame(line: str) -> Frame:
    found = LINE.fullmatch(line)
    if not found:
        raise BenchError(f"perf script printed a line that is no frame: {line.strip()}")
    address, symbol, place = found.groups()
    # The compiler calls a part of a function "name.part.0" and the like.
    return Frame(symbol.partition(".")[0], place, int(address, 16) >= KERNEL)


def parse(text: str) -> Iterator[Sample]:
    """The samples in the output of perf script -F comm,pid,tid,ip,sym,dso."""
    for block in re.split(r"\n\s*\n", text.strip("\n")):
        if not block.strip():
            continue
        first, *rest = block.splitlines()
        found = HEAD.fullmatch(first)
        if not found:
            raise BenchError(f"perf script printed no process, but {first.strip()}")
        yield Sample(found[1].strip(), int(found[2]), [frame(line) for line in rest])


# User mode.

CORE = re.compile(
    r"(web|files|cache|request|response|path|condition|mime|clock|text|file|llhttp)_\w+"
    # Functions of one file each: study/servers/webserver/web.c, calls.c, files.c; http/.
    r"|answer_(file|head|message|redirect)|answered|begin_answer|cut|dated|describe"
    r"|dropped|find|is_late|lingered|load|loaded|looked|make_room|next_request|opened"
    r"|parse|part_loaded|passed|received|refuse|release|rest|rewind_input|send_bytes"
    r"|sent|sent_bytes|shut_down|patience|remaining|set|set_receive|drop"
    r"|buffer_(get|put)|buffers_fini|evict|look_up|unmap"
    r"|civil|days_before|leap|put_(date|log|time)"
    r"|is_(blank|newer|news|wanted)|listed|matches|not_modified|number"
    r"|range_(applies|parse|resolve)|skip_blanks|trimmed"
    r"|add|compare|load_line|set_extension"
    r"|close_segment|decode|finish|hex|plain|skip_authority|split_query"
    r"|check_(head|size)|chunked|empty_lines|extend|status_of"
    r"|on_(begin|complete|head_complete|name|name_complete|target|value)"
    r"|find_status|place|put_(detail|end|length|line|page)"
)
# The driver that is linked with libflexsc, whose functions have all other names.
LOOPS = "web-loops"
LOOPS_DRIVER = re.compile(
    r"(command|patience|queue|crew)_\w+|main|run|run_in_batches|post|begin|take_turns"
    r"|accept_again|on_accept|on_done|engine_(start|try|waits)"
    r"|allow_descriptors|arguments|block_signals|die|help|help_of|listener|no_option"
    r"|option_(find|parse|set)|sum|take_cores|thread_count|write_(each|stats)"
)


def user_part(frame: Frame, program: str) -> str:
    if PurePath(frame.place).name != program:
        return "library"
    if CORE.fullmatch(frame.symbol):
        return "core"
    if program == LOOPS and not LOOPS_DRIVER.fullmatch(frame.symbol):
        return "library"
    return "driver"


# The kernel.

CALL = r"__(?:x64|ia32|arm64|se)_sys_"
Table = Sequence[tuple[str, re.Pattern[str]]]


def table(*rows: tuple[str, str]) -> Table:
    return [(part, re.compile(pattern)) for part, pattern in rows]


# The first row that any frame has.
ANYWHERE = table(
    ("softirq", r"handle_softirqs|__do_softirq|net_[rt]x_action"),
    ("waiting", r"(__)?schedule|schedule_\w+|preempt_schedule\w*|finish_task_switch"),
)
# Any row, of the outermost frame that has one.
CALLS = table(
    (
        "receive",
        CALL + r"(recv(from|msg|mmsg)|readv|accept4?)|io_(recv|recvmsg|accept)",
    ),
    ("send", CALL + r"(send(to|msg|mmsg|file64|file)|writev)|io_(send|sendmsg)(_zc)?"),
    ("files", CALL + r"(open|openat2?|statx|newf?stat|newfstatat|pread64|preadv2?)"),
    ("files", CALL + r"close|io_(openat2?|statx|read|read_fixed|close)|_*fput"),
    ("waiting", CALL + r"(epoll_\w+|futex\w*|p?poll|pselect6|select|read|write)"),
    ("waiting", CALL + r"(sched_yield|\w*nanosleep|rt_sigtimedwait)"),
)
# The first row that any frame has.
REST = table(
    ("uring", CALL + r"io_uring_\w+|_*io_\w+|tctx_task_work\w*"),
    ("other", CALL + r"\w+|asm_\w+"),
    ("entry", r"entry_SYS\w+|do_syscall_64|el0t?_\w*svc\w*|syscall_return_via_sysret"),
)


def first(rows: Table, symbols: Sequence[str]) -> str:
    """The part of the first symbol that a row has; or ""."""
    for symbol in symbols:
        for part, pattern in rows:
            if pattern.fullmatch(symbol):
                return part
    return ""


def anywhere(rows: Table, symbols: Sequence[str]) -> str:
    """The part of the first row that a symbol has; or ""."""
    return next((part for row in rows if (part := first([row], symbols))), "")


def kernel_part(symbols: Sequence[str]) -> str:
    """symbols: of the kernel's frames, the outermost first."""
    return (
        anywhere(ANYWHERE, symbols)
        or first(CALLS, symbols)
        or anywhere(REST, symbols)
        or "other"
    )


def part_of(sample: Sample, subject: Subject) -> str:
    symbols = [f.symbol for f in reversed(sample.frames) if f.in_kernel]
    if sample.comm.startswith("napi/"):
        return "napi"
    ours = sample.pid == subject.pid
    if not ours and (sample.pid == 0 or sample.comm.startswith("ksoftirqd/")):
        packets = anywhere(ANYWHERE[:1], symbols)
        return packets or ("idle" if sample.pid == 0 else "others")
    if not ours:
        return "others"
    if symbols or not sample.frames:
        return kernel_part(symbols)
    return user_part(sample.frames[0], subject.program)


def check(samples: Iterable[Sample]) -> None:
    """BenchError: perf doesn't tell the names of the kernel's functions."""
    frames = [f for sample in samples for f in sample.frames if f.in_kernel]
    if not frames:
        raise BenchError("perf took no sample of the kernel on the measured core")
    if all(f.symbol == UNKNOWN for f in frames):
        raise BenchError(
            "perf sees no names of the kernel's functions (it takes root, and "
            "/proc/sys/kernel/kptr_restrict other than 2)"
        )


def shares(samples: Iterable[Sample], subject: Subject) -> dict[str, float]:
    """The percent of the samples that each part has. BenchError: there are none."""
    found = Counter(part_of(sample, subject) for sample in samples)
    if not found:
        raise BenchError("perf took no sample of the measured core")
    return {part: 100 * found[part] / found.total() for part in PARTS}
