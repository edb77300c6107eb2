# SPDX-License-Identifier: MIT
"""flexsc serve against stock nginx with one worker: the same core, the same
file, the same wrk on other cores, alternately.

    plain    open, stat, read or sendfile, and close for each request
    cached   both keep the file open for a while
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from . import clients, servers, table, tools
from .compare import ratio
from .runner import Plan, measure_all, progress, raw
from .samples import BenchError, Json, Measurement, Run, Settings, distinct
from .servers import Server
from .tools import Load

BENCH = "serve"

FILE = "index.html"
CACHE = 1000
WARM_UP_S = 1
ROUNDS_S = 1
COUNT_S = 2
CONNECTIONS = 128
ROWS = [
    ("requests/s", "requests_per_s"),
    ("latency p50, us", "p50_us"),
    ("latency p99, us", "p99_us"),
    ("core busy, %", "busy_percent"),
    ("processor time/request in rounds, us", "cpu_us"),
    ("the same with the client's, us", "both_us"),
]
MODES = {
    "plain": "opening, reading and closing the file each time",
    "cached": "keeping the file open",
}


def connections(plan: Plan) -> int:
    return plan.connections or CONNECTIONS


def wrk(plan: Plan, server: Server, seconds: int) -> list[str]:
    url = server.url + FILE
    return clients.wrk(plan.cores.load, connections(plan), seconds, url)


def load(plan: Plan, server: Server, seconds: int) -> Load:
    try:
        return clients.run_wrk(wrk(plan, server, seconds), seconds)
    except BenchError as error:
        raise BenchError(f"{server.name}: {error}") from error


def cpu_seconds(pid: int) -> float:
    """What the process has used of cores until now, all threads together."""
    text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    # The name before the last parenthesis may have blanks.
    fields = text.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def in_rounds(plan: Plan, server: Server, clients: int) -> dict[str, list[float]]:
    """What a request costs the server, whatever else the machine does: its client
    shares its core, and asks on all connections before it takes an answer."""
    settings: Settings = {
        "port": int(server.url.rpartition(":")[2].rstrip("/")),
        "pid": server.pid,
        "mode": "http",
        "core": plan.cores.measured,
        "seconds": ROUNDS_S,
        "connections": clients,
        "bytes": plan.bytes,
    }
    return dict(raw(plan.flexsc, "rounds", settings)["samples"])


def round_of(plan: Plan, server: Server) -> Json:
    before = cpu_seconds(server.pid)
    found = load(plan, server, plan.seconds)
    busy = (cpu_seconds(server.pid) - before) / found.seconds
    return {
        "samples": {
            **in_rounds(plan, server, connections(plan)),
            "requests_per_s": [found.requests_per_s],
            "p50_us": [found.p50_us],
            "p99_us": [found.p99_us],
            "busy_percent": [100 * busy],
        },
        "counts": {"requests": found.requests},
    }


# System calls for a request.


def count_perf(plan: Plan, server: Server) -> float:
    """perf counts what the server does for as long as wrk runs."""
    command = [tools.need("perf"), "stat", "-x,", "-e", "raw_syscalls:sys_enter"]
    command += ["-p", str(server.pid), "--", *wrk(plan, server, COUNT_S)]
    done = clients.execute("perf", command, COUNT_S)
    calls = tools.parse_perf(done.stderr)
    return calls / tools.parse_wrk(done.stdout).requests


def count_strace(plan: Plan, server: Server) -> float:
    """Under strace a server is slow, so its batches are large."""
    with tempfile.TemporaryDirectory(prefix="flexbench-") as name:
        output = Path(name) / "strace"
        tracing = subprocess.Popen(
            [tools.need("strace"), "-cf", "-o", str(output), "-p", str(server.pid)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            time.sleep(1)
            if tracing.poll() is not None:
                raise BenchError("strace may not trace here")
            found = load(plan, server, COUNT_S)
        finally:
            tracing.send_signal(signal.SIGINT)
            tracing.wait(clients.SPARE_S)
        return tools.parse_strace(output.read_text(encoding="ascii")) / found.requests


def count(run: Run, plan: Plan, server: Server) -> Json:
    """With the first tool that may; its name goes with the figure."""
    reasons = []
    for name, counter in (("perf", count_perf), ("strace", count_strace)):
        progress(f"serve: system calls of {server.name}, by {name}")
        try:
            return {"syscalls_per_request": counter(plan, server), "counted_by": name}
        except BenchError as error:
            reasons.append(str(error))
        finally:
            progress("")
    run.note(f"serve: system calls of {server.name} not counted: " + "; ".join(reasons))
    return {}


# Everything.


@contextmanager
def both(plan: Plan, folder: Path, root: Path, cached: bool) -> Iterator[list[Server]]:
    core = plan.cores.measured
    cache = CACHE if cached else 0
    with (
        servers.flexsc(plan.flexsc, root, core, cache) as ours,
        servers.nginx(folder, root, core, cached) as theirs,
    ):
        yield [ours, theirs]


def compare(run: Run, plan: Plan, mode: str, found: list[Server]) -> None:
    by_name = {server.name: server for server in found}
    variants: list[Settings] = [
        {
            "variant": server.name,
            "mode": mode,
            "connections": connections(plan),
            "bytes": plan.bytes,
            "seconds": plan.seconds,
        }
        for server in found
    ]
    for server in found:
        load(plan, server, WARM_UP_S)
    measure_all(
        run,
        plan,
        BENCH,
        variants,
        lambda settings: round_of(plan, by_name[str(settings["variant"])]),
    )
    for measurement in run.of(BENCH, mode=mode):
        server = by_name[str(measurement.settings["variant"])]
        measurement.rounds[-1]["counts"].update(count(run, plan, server))


def measure(run: Run, plan: Plan) -> None:
    for program in ("nginx", "wrk", "taskset"):
        tools.need(program)
    content = bytes(i % 251 for i in range(plan.bytes))
    with tempfile.TemporaryDirectory(prefix="flexbench-") as name:
        folder = Path(name)
        root = folder / "root"
        root.mkdir()
        (root / FILE).write_bytes(content)
        for mode in MODES:
            with both(plan, folder, root, mode == "cached") as found:
                for server in found:
                    servers.check(server, FILE, content)
                compare(run, plan, mode, found)


def lines(ours: Measurement, theirs: Measurement) -> list[list[str]]:
    rows = []
    for title, series in ROWS:
        # A file of an older version may lack one.
        if series not in ours.rounds[0]["samples"]:
            continue
        rows.append(
            [
                title,
                table.number(ours.median(series)),
                table.number(theirs.median(series)),
                table.ratio(ratio(ours.series(series), theirs.series(series))),
            ]
        )
    counts = [m.rounds[-1]["counts"] for m in (ours, theirs)]
    if all("counted_by" in c for c in counts):
        by = " and ".join(dict.fromkeys(c["counted_by"] for c in counts))
        calls = [float(c["syscalls_per_request"]) for c in counts]
        rows.append([f"system calls/request ({by})", *map(table.number, calls), ""])
    return rows


def show(run: Run) -> list[str]:
    parts = []
    for mode in distinct(run.of(BENCH), "mode"):
        ours = run.find(BENCH, mode=mode, variant="flexsc")
        theirs = run.find(BENCH, mode=mode, variant="nginx")
        if not ours or not theirs:
            continue
        title = (
            f"serve: {ours.settings['bytes']} bytes, "
            f"{ours.settings['connections']} connections, {MODES[mode]}; "
            f"{len(ours.rounds)} rounds of {ours.settings['seconds']} s"
        )
        head = [mode, "flexsc", "nginx", "flexsc/nginx"]
        parts.append(title + "\n" + table.table(head, lines(ours, theirs)))
    return parts
