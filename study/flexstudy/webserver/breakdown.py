# SPDX-License-Identifier: MIT
"""Where a request's processor time goes, and what calls are made for it: each model by
turns, with kept connections that ask for one small file.

In a round wrk loads a server twice. First perf samples what the server's core does;
then perf counts system calls, which would slow down what is sampled. The drivers count
calls themselves, as --stats says, over their whole lives.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from flexbench import clients, pair, servers, tools
from flexbench.idle import fields
from flexbench.runner import Plan, measure_all
from flexbench.samples import BenchError, Json, Run, Settings
from flexbench.servers import Server
from flexbench.tools import Load

from . import stacks, subjects

BENCH = "study-breakdown"
CONNECTIONS = 128
COUNT_S = 1
SPARE_S = 60  # for reading the samples
EVENT = ["-e", "cpu-clock", "-F", "1999"]  # not in step with the kernel's ticks

# The drivers' and perf's names for the counts of a request, by the series.
COUNTED = {
    "receive": "receive",
    "send": "send",
    "file": "file",
    "close": "close",
    "epoll_wait": "waits",
    "epoll_ctl": "watches",
    "eagain": "again",
    "handed": "handed",
}
EVENTS = {
    "calls": "raw_syscalls:sys_enter",
    "futex": "syscalls:sys_enter_futex",
    "io_uring_enter": "syscalls:sys_enter_io_uring_enter",
}


def perf(plan: Plan, words: Sequence[str], command: Sequence[str]) -> list[str]:
    """A command under perf, which has the clients' cores."""
    cores = servers.listed(plan.cores.load)
    return servers.pinned(cores, [tools.need("perf"), *words, "--", *command])


def execute(command: list[str]) -> str:
    """What perf prints. BenchError: perf failed, as its last line says."""
    done = clients.execute("perf", command, SPARE_S)
    if done.returncode:
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        raise BenchError(f"perf: {lines[-1] if lines else done.returncode}")
    return done.stdout


def record(plan: Plan, file: Path) -> list[str]:
    """Words of perf: sample the measured core with its stacks, while a command runs."""
    core = str(plan.cores.measured)
    quiet = ["-q", "--no-buildid", "--no-buildid-cache", "-o", str(file)]
    return ["record", *quiet, *EVENT, "-a", "-C", core, "-g"]


def script(plan: Plan, file: Path) -> str:
    fields = ["--no-inline", "-F", "comm,pid,tid,ip,sym,dso", "-i", str(file)]
    cores = servers.listed(plan.cores.load)
    command = servers.pinned(cores, [tools.need("perf"), "script", *fields])
    return execute(command)


def subject(server: Server) -> stacks.Subject:
    program = Path(f"/proc/{server.pid}/exe").readlink().name
    return stacks.Subject(server.pid, program)


def load(plan: Plan, server: Server, words: Sequence[str], seconds: int) -> Load:
    """Load a server with wrk. words: of perf, under which wrk runs; or none."""
    connections = plan.connections or CONNECTIONS
    command = clients.wrk(plan, connections, seconds, server.url + pair.FILE)
    return clients.run_wrk(perf(plan, words, command) if words else command, seconds)


def sampled(plan: Plan, server: Server, folder: Path) -> tuple[Load, Json]:
    file = folder / "samples"
    found = load(plan, server, record(plan, file), plan.seconds)
    try:
        samples = stacks.parse(script(plan, file))
        shares = stacks.shares(samples, subject(server))
    finally:
        file.unlink(missing_ok=True)
    return found, {f"share_{part}": [share] for part, share in shares.items()}


def counted_by_perf(plan: Plan, server: Server, folder: Path) -> Json:
    """System calls for a request."""
    file = folder / "counts"
    words = ["stat", "-x,", "-e", ",".join(EVENTS.values()), "-o", str(file)]
    found = load(plan, server, [*words, "-p", str(server.pid)], COUNT_S)
    text = file.read_text(encoding="utf-8")
    return {
        series: [tools.parse_perf(text, event) / found.requests]
        for series, event in EVENTS.items()
    }


def switches(pid: int) -> int:
    """How often the threads that a process has now have gone to sleep."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(
        fields(str(task / "status"))["voluntary_ctxt_switches"] for task in tasks
    )


def counted_by_driver(file: Path) -> Json:
    found = json.loads(file.read_text(encoding="ascii"))
    return {series: [found[key] / found["requests"]] for series, key in COUNTED.items()}


class Bench:
    """The servers' files, and what perf may do here."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        self.plan, self.folder = plan, folder
        self.content = (folder / "root" / pair.FILE).read_bytes()
        self.samples = self.counts = True

    def busy(self) -> list[str]:
        """A command that has the kernel work on the measured core for a moment: a core
        that idles has no functions to be named.
        """
        zeros = ["dd", "if=/dev/zero", "of=/dev/null", "bs=64k", "count=8000"]
        return servers.pinned(str(self.plan.cores.measured), zeros)

    def look(self, run: Run) -> None:
        """What perf can't do is left out, for a reason that the run notes once."""
        file = self.folder / "look"
        events = ["stat", "-x,", "-e", ",".join(EVENTS.values()), "-o", str(file)]
        try:
            execute(perf(self.plan, record(self.plan, file), self.busy()))
            stacks.check(stacks.parse(script(self.plan, file)))
        except BenchError as error:
            self.samples = False
            run.note(f"{BENCH}: where time goes is left out: {error}")
        try:
            execute(perf(self.plan, events, ["true"]))
        except BenchError as error:
            self.counts = False
            run.note(f"{BENCH}: system calls by perf are left out: {error}")

    def loaded(self, server: Server) -> Json:
        plan, folder = self.plan, self.folder
        servers.check(plan.network, server, pair.FILE, self.content)
        before = switches(server.pid)
        if self.samples:
            found, samples = sampled(plan, server, folder)
        else:
            found, samples = load(plan, server, [], plan.seconds), {}
        samples["switches"] = [(switches(server.pid) - before) / found.requests]
        samples["requests_per_s"] = [found.requests_per_s]
        if self.counts:
            samples |= counted_by_perf(plan, server, folder)
        return samples

    def once(self, settings: Settings) -> Json:
        name, tuning = str(settings["model"]), str(settings["tuning"]).split()
        stats = self.folder / "stats"
        if subjects.model_of(name):
            tuning += ["--stats", str(stats)]
        with subjects.started(self.plan, name, tuning, self.folder) as server:
            samples = self.loaded(server)
        if subjects.model_of(name):
            samples |= counted_by_driver(stats)
        return {"samples": samples, "counts": {}}


def measure(run: Run, plan: Plan, part: str, names: Sequence[str]) -> None:
    for program in ("wrk", "taskset"):
        tools.need(program)
    connections = plan.connections or CONNECTIONS
    variants: list[Settings] = [
        {
            "model": name,
            "tuning": " ".join(subjects.tunings(name, connections)[0]),
            "connections": connections,
            "bytes": plan.bytes,
            "seconds": plan.seconds,
            "network": plan.network.kind,
        }
        for name in names
    ]
    with pair.file_of(plan.bytes) as folder:
        bench = Bench(plan, folder)
        bench.look(run)
        measure_all(run, plan, BENCH, variants, bench.once)
