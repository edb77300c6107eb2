# SPDX-License-Identifier: MIT
"""flexsc study counts: a program's system calls per request, and its instructions
between two calls, OSDI 2010, table 2, and ATC 2011, table 1. Counts don't depend on
other load of the machine.

perf counts the calls of the unmodified program. Instructions are those of user mode,
counted by valgrind's tool callgrind, which executes the program itself. So neither the
kernel's instructions nor cycles are counted. Both counts are made with some requests,
and then with twice as many. The difference is divided by the additional requests. So it
excludes the program's start and end, and the making of connections that are kept.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from flexbench import clients, table, tools
from flexbench.runner import Plan, chosen, progress
from flexbench.running import NATIVE, Program
from flexbench.samples import BenchError, Measurement, Run, distinct

from . import apache, looping, loops, mariadb, threaded
from .threaded import Variant

BENCH = "counts"
CALLS, INSTRUCTIONS = "calls_per_request", "instructions_per_request"
BETWEEN = "instructions_per_call"

ROUNDS = 2  # ignores --rounds, because counts hardly vary
# Time limit in seconds for the requests of one count under callgrind.
LIMIT_S = 240
# The soft and the hard limit of descriptors under valgrind. Programs may raise the soft
# limit to the hard one.
DESCRIPTORS = "1024:4096"


# valgrind can't map the memory that MariaDB reserves for a growing buffer pool, and
# io_uring doesn't terminate in it.
ARGUMENTS = ["--loose-innodb-buffer-pool-size-max=256M", "--innodb-use-native-aio=0"]
MARIADB = Variant(NATIVE, "connection", NATIVE, ARGUMENTS)
WORKER = Variant(NATIVE, "worker", NATIVE)


# Programs: how each is started and loaded.


# Arguments: the folder of "prepare", this start's own folder, and the number of clients.
Start = Callable[[Plan, Path, Path, int], AbstractContextManager[Program]]
# Returns the number of requests made, which may exceed the requested number. The words
# go in front of the client's command.
Ask = Callable[[Plan, Program, str, int, Sequence[str]], int]


@dataclass(frozen=True)
class Mode:
    """A load of a program: the number of clients, and of requests."""

    clients: int
    requests: int


@dataclass(frozen=True)
class Kind:
    """The specific parts of a program. paper: its name in the papers' tables."""

    paper: str
    modes: dict[str, Mode]
    tools: list[str]
    start: Start
    ask: Ask
    prepare: threaded.Prepare = threaded.nothing


def ask_in_rounds(
    plan: Plan, program: Program, mode: str, requests: int, counter: Sequence[str]
) -> int:
    found = loops.in_rounds(plan, program, mode, {"count": requests}, counter)
    return int(found["counts"]["warmed"])


def parse_ab(text: str) -> int:
    """The number of correct answers. A single incorrect answer is an error."""
    total = re.search(r"^Complete requests:\s+(\d+)$", text, re.MULTILINE)
    if not total:
        raise BenchError("ab: " + (" ".join(text.split())[-200:] or "no output"))
    wrong = r"^(?:Failed requests|Write errors|Non-2xx responses):\s+[1-9]\d*$"
    errors = re.findall(wrong, text, re.MULTILINE)
    if errors:
        raise BenchError("ab: " + " ".join("; ".join(errors).split()))
    return int(total[1])


def ask_by_ab(
    plan: Plan, program: Program, mode: str, requests: int, counter: Sequence[str]
) -> int:
    url = f"http://{plan.network.address}:{program.port}/{apache.FILE}"
    command = [tools.need("ab"), "-q", "-n", str(requests)]
    command += ["-c", str(KINDS["apache"].modes[mode].clients)]
    command += [*(["-k"] if mode == apache.KEPT else []), url]
    done = clients.execute("ab", [*counter, *clients.placed(plan, command)], LIMIT_S)
    return parse_ab(done.stdout or done.stderr)


def ask_by_sysbench(
    plan: Plan, program: Program, mode: str, requests: int, counter: Sequence[str]
) -> int:
    threads = KINDS["mariadb"].modes[mode].clients
    options = [f"--threads={threads}", f"--events={requests}", "--time=0"]
    options += ["--histogram=on"]
    command = mariadb.sysbench(plan, program, f"oltp_{mode}", "run", *options)
    said = mariadb.run_sysbench([*counter, *command], LIMIT_S)
    return mariadb.parse_sysbench(said).requests


def looping_kind(name: str, paper: str, requests: int, modes: Sequence[str]) -> Kind:
    return Kind(
        paper=paper,
        modes={mode: Mode(loops.CONNECTIONS[mode], requests) for mode in modes},
        tools=[looping.KINDS[name].program],
        start=lambda plan, base, own, count: looping.started(
            plan, looping.KINDS[name], NATIVE, own
        ),
        ask=ask_in_rounds,
    )


KINDS = {
    "apache": Kind(
        paper="Apache",
        modes={apache.KEPT: Mode(32, 4000), apache.CLOSED: Mode(32, 4000)},
        tools=["apache2", "ab"],
        prepare=apache.prepare,
        start=lambda plan, *more: apache.started(plan, WORKER, *more),
        ask=ask_by_ab,
    ),
    "mariadb": Kind(
        paper="MySQL",
        modes={mariadb.SELECT: Mode(4, 20000), mariadb.READ_WRITE: Mode(4, 400)},
        tools=mariadb.KIND.tools,
        prepare=mariadb.prepare,
        start=lambda plan, *more: mariadb.started(plan, MARIADB, *more),
        ask=ask_by_sysbench,
    ),
    "bind": looping_kind("bind", "BIND", 6400, [loops.ONE, loops.KEPT]),
    "memcached": looping_kind("memcached", "memcached", 12800, [loops.KEPT]),
    "nginx": looping_kind("nginx", "nginx", 6400, [loops.KEPT, loops.NEW]),
}


# Counting.


def under_callgrind(plan: Plan, log: Path) -> Plan:
    """The plan with callgrind in front of a program's command. callgrind writes to the
    log."""
    # Without this the library selects the engine threads under valgrind.
    command = [tools.need("env"), "FLEXSC_ENGINE=uring"]
    command += [tools.need("prlimit"), f"--nofile={DESCRIPTORS}"]
    # A server may switch to a user that can't open files, so the log is opened before.
    command += [tools.need("valgrind"), "--tool=callgrind", "--vgdb=no"]
    command += ["--callgrind-out-file=/dev/null", f"--log-file={log}"]
    return replace(plan, under=command)


def collected(log: str, pid: int) -> int:
    """The instructions of a process, from callgrind's output at its end."""
    found = re.search(rf"^=={pid}== Collected : (\d+)$", log, re.MULTILINE)
    if not found:
        lines = log.strip().splitlines()
        raise BenchError(f"callgrind counted nothing: {lines[-1] if lines else ''}")
    return int(found[1])


@contextmanager
def folder_of(base: Path) -> Iterator[Path]:
    """A folder for one start, usable by a server that switches to another user."""
    with tempfile.TemporaryDirectory(dir=base.parent) as name:
        Path(name).chmod(0o755)
        yield Path(name)


@dataclass(frozen=True)
class Count:
    """Counts, and the requests that were made meanwhile."""

    counted: int
    requests: int


def instructions(plan: Plan, kind: Kind, base: Path, mode: str, requests: int) -> Count:
    count = kind.modes[mode].clients
    with folder_of(base) as own:
        log = own / "callgrind"
        with kind.start(under_callgrind(plan, log), base, own, count) as program:
            made = kind.ask(plan, program, mode, requests, [])
        return Count(collected(log.read_text("utf-8"), program.pid), made)


def calls(plan: Plan, kind: Kind, program: Program, mode: str, requests: int) -> Count:
    return Count(
        *tools.count_calls(
            [program.pid], lambda c: kind.ask(plan, program, mode, requests, c)
        )
    )


def each(count: Callable[[int], Count], requests: int) -> float:
    """The cost of one additional request."""
    few, many = count(requests), count(2 * requests)
    if many.counted <= few.counted or many.requests <= few.requests:
        raise BenchError("other processes' load hides the cost of requests; try again")
    return (many.counted - few.counted) / (many.requests - few.requests)


def round_of(plan: Plan, kind: Kind, base: Path, mode: str) -> dict[str, list[float]]:
    requests = kind.modes[mode].requests // (2 if plan.quick else 1)
    with folder_of(base) as own:
        with kind.start(plan, base, own, kind.modes[mode].clients) as program:
            made = each(partial(calls, plan, kind, program, mode), requests)
    executed = each(partial(instructions, plan, kind, base, mode), requests)
    return {
        CALLS: [made],
        INSTRUCTIONS: [executed],
        BETWEEN: [executed / made],
    }


def measure_mode(run: Run, plan: Plan, name: str, mode: str, base: Path) -> None:
    kind = KINDS[name]
    found = Measurement(
        BENCH,
        {
            "program": name,
            "mode": mode,
            "connections": kind.modes[mode].clients,
            "network": plan.network.kind,
        },
    )
    for index in range(1 if plan.quick else ROUNDS):
        progress(f"{BENCH}: {name} {mode}, round {index + 1}")
        samples = round_of(plan, kind, base, mode)
        found.rounds.append({"samples": samples, "counts": {}})
    run.measurements.append(found)


def measure_one(run: Run, plan: Plan, name: str) -> None:
    kind = KINDS[name]
    for tool in ("taskset", "perf", "valgrind", *kind.tools):
        tools.need(tool)
    with tempfile.TemporaryDirectory(prefix="flexbench-") as above:
        Path(above).chmod(0o755)
        base = Path(above) / "base"
        base.mkdir()
        kind.prepare(plan, base)
        for mode in kind.modes:
            try:
                measure_mode(run, plan, name, mode, base)
            except (BenchError, OSError) as error:
                run.note(f"{BENCH}: skipping {name} {mode}: {error}")


def parse(words: Sequence[str]) -> list[str]:
    return chosen(BENCH, words, KINDS)


def measure(run: Run, plan: Plan) -> None:
    # The modes define the number of clients.
    plan = replace(plan, connections=None)
    for name in parse(plan.words):
        try:
            measure_one(run, plan, name)
        except BenchError as error:
            run.note(f"{BENCH}: skipping {name}: {error}")
        progress("")


# The table.


def row(measurement: Measurement) -> list[str]:
    settings = measurement.settings
    cells = [
        table.number(measurement.median(s)) for s in (CALLS, INSTRUCTIONS, BETWEEN)
    ]
    return [
        f"{settings['program']} {settings['mode']}, {settings['connections']}",
        cells[0],
        cells[1],
        cells[2],
    ]


def show(run: Run) -> list[str]:
    rows = [
        row(m)
        for name in distinct(run.of(BENCH), "program")
        for m in run.of(BENCH, program=name)
        if name in KINDS
    ]
    if not rows:
        return []
    head = [
        "program, clients",
        "calls",
        "instructions",
        "between calls",
    ]
    return [
        "counts: system calls and user instructions for a request (of mariadb: a "
        "transaction), and user instructions\nbetween two calls (OSDI 2010, table 2; ATC "
        "2011, table 1); IPC needs hardware counters\n" + table.table(head, rows)
    ]
