# SPDX-License-Identifier: MIT
"""memcached on libflexsc, as flexsc study measures and reports it: the changed lines,
the commands of the variants, and the rows of the report. No server runs.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from bench_runs import plan
from flexbench import servers, tools
from flexbench.machine import Cores
from flexbench.runner import DISTURBED, Plan
from flexbench.samples import BenchError, Json, Measurement, Run, Settings
from flexstudy import looping, loops, ported, ports, programs
from test_flexbench_counters import rows_of

VARIANTS = ["stock", "ported", "remote"]

# Lines changed.

STOCK = {
    "same.c": "one\ntwo\n",
    "replaced.c": "one\ntwo\nthree\nfour\n",
    "added.c": "one\ntwo\n",
    "removed.h": "one\ntwo\nthree\n",
    "notes.txt": "one\n",
}
PORTED = {
    "same.c": "one\ntwo\n",
    "replaced.c": "one\n2\n3\nfour\n",
    "added.c": "one\n1.1\n1.2\n1.3\ntwo\n",
    "removed.h": "one\n",
    "notes.txt": "two\n",
    "new.c": "/* A comment\n * of two lines. */\n\nint a;\n\nint b; /* here */\n",
}
CHANGED = {"added.c": 3, "new.c": 2, "removed.h": 2, "replaced.c": 2}


@pytest.fixture
def built(tmp_path: Path) -> ports.Built:
    found = ports.Built(tmp_path / "stock", tmp_path / "ported")
    for folder, files in ((found.stock, STOCK), (found.ported, PORTED)):
        folder.mkdir()
        for name, text in files.items():
            (folder / name).write_text(text, encoding="ascii")
    return found


def test_changed_lines_are_counted_by_file(built: ports.Built) -> None:
    """A replaced line counts once. A new file counts without comments."""
    assert ports.changes(built) == CHANGED
    assert list(ports.changes(built)) == sorted(CHANGED)
    assert ports.changes(replace(built, ported=built.stock)) == {}


# Measuring.


@dataclass
class Started:
    """What the bench starts: servers, and the settings and prefixes of clients."""

    servers: list[list[str]] = field(default_factory=list)
    rounds: list[Settings] = field(default_factory=list)
    loads: list[tuple[Settings, list[str]]] = field(default_factory=list)


@pytest.fixture
def started(built: ports.Built, monkeypatch: pytest.MonkeyPatch) -> Started:
    """Nothing starts. Each answer of a client is made up."""
    found = Started()

    @contextmanager
    def process(name: str, words: list[str], *_: Any) -> Iterator[Any]:
        found.servers.append(words)
        yield SimpleNamespace(pid=os.getpid())

    def in_rounds(plan: Plan, program: Any, mode: str, length: Settings) -> Json:
        found.rounds.append({"mode": mode, **length, **program.settings})
        return {"samples": {loops.SERIES: [5.0], DISTURBED: [0.0]}, "counts": {}}

    def raw(flexsc: str, case: str, args: Settings, before: Sequence[str]) -> Json:
        found.loads.append((args, list(before)))
        series = ported.SERIES, "p50_us", "p99_us"
        return {"samples": {name: [9.0] for name in series}, "counts": {"answers": 9}}

    monkeypatch.setattr(tools, "need", lambda name: name)
    monkeypatch.setattr(ports, "memcached", lambda _: built)
    monkeypatch.setattr(servers, "process", process)
    monkeypatch.setattr(looping, "wait", lambda *_: {"question": "get"})
    monkeypatch.setattr(loops, "in_rounds", in_rounds)
    monkeypatch.setattr(loops, "calls", lambda *_: 1.5)
    monkeypatch.setattr(ported, "raw", raw)
    return found


def how(load: list[int]) -> Plan:
    cores = Cores(measured=0, other=1, load=load)
    return replace(plan(rounds=2), cores=cores, connections=4, words=["memcached-port"])


def test_the_port_is_measured_beside_the_stock_one(
    started: Started, built: ports.Built
) -> None:
    run = Run({}, [])
    programs.measure(run, how([1, 2]))
    assert run.notes == []
    assert [m.settings for m in run.of(ported.BENCH)] == [
        {"variant": name, "connections": 4, "seconds": 1, "network": "lo"}
        for name in VARIANTS
    ]
    for m in run.of(ported.BENCH):
        assert len(m.rounds) == 2
        assert m.rounds[-1]["counts"][loops.CALLS] == 1.5
        assert m.rounds[0]["samples"]["loaded_us"][0] >= 0
    (lines,) = run.of(ported.LINES)
    assert lines.rounds[-1]["counts"] == CHANGED
    text = "\n".join(programs.show(run))
    for title in ("on libflexsc", "on libflexsc, calls on another core"):
        assert f"programs: memcached {title}, GET of 64 bytes;" in text
    assert (
        "programs: memcached on libflexsc: 9 lines changed: added.c 3, new.c 2, "
        "removed.h 2, replaced.c 2"
    ) in text


def test_each_variant_has_its_program_and_cores(
    started: Started, built: ports.Built
) -> None:
    """All have one worker. The remote one may use a second core, for its calls."""
    programs.measure(Run({}, []), how([1, 2]))
    heads = [words[: words.index("-l")] for words in started.servers]
    env = ["env", "MEMCACHED_KERNEL_CORES=1", "MEMCACHED_POLL_US=1000"]
    assert heads == [
        ["taskset", "-c", "0", str(built.stock / "memcached")],
        ["taskset", "-c", "0", str(built.ported / "memcached")],
        ["taskset", "-c", "0,1", *env, str(built.ported / "memcached")],
    ]
    for words in started.servers:
        assert words[words.index("-t") + 1] == "1"
        assert int(words[words.index("-c", 3) + 1]) > max(ported.COUNTS)


@pytest.mark.parametrize(
    ("load", "clients"), [([1, 2], "2"), ([1, 2, 3], "2,3"), ([1], "1")]
)
def test_clients_leave_the_core_of_the_calls(
    started: Started, load: list[int], clients: str
) -> None:
    programs.measure(Run({}, []), how(load))
    assert len(started.loads) == len(started.rounds) == 2 * len(VARIANTS)
    for args, before in started.loads:
        assert before == ["taskset", "-c", clients]
        assert (args["connections"], args["question"]) == (4, "get")
        assert args["threads"] == len(clients.split(","))


def test_without_a_number_there_are_the_papers_ones(started: Started) -> None:
    run = Run({}, [])
    programs.measure(run, replace(how([1, 2]), connections=None))
    assert [m.settings["connections"] for m in run.of(ported.BENCH)] == [
        count for count in ported.QUICK_COUNTS for _ in VARIANTS
    ]
    assert {1, 64, 1024} <= set(ported.COUNTS)


def test_a_port_with_one_worker_refuses_several_cores() -> None:
    with pytest.raises(BenchError, match="--cores doesn't apply to memcached-port"):
        programs.parse_several(["memcached-port"])


# The report.

# Of each variant: requests in a second, and us of the processor for a request.
FIGURES = {"stock": (100.0, 10.0), "ported": (130.0, 8.0), "remote": (190.0, 4.0)}


def measured(variant: str, rate: float, cpu_us: float) -> Measurement:
    samples = {ported.SERIES: [rate], loops.SERIES: [cpu_us], "busy_percent": [99.0]}
    settings: Settings = {"variant": variant, "connections": 64, "seconds": 1}
    return Measurement(ported.BENCH, settings, [{"samples": samples, "counts": {}}] * 3)


@pytest.fixture
def run() -> Run:
    counts = {"memcached.c": 120, "flexsc.c": 80}
    lines = Measurement(ported.LINES, {}, [{"samples": {}, "counts": counts}])
    every = [measured(name, *figures) for name, figures in FIGURES.items()]
    return Run({}, [], [lines, *every])


def test_the_report_has_the_sum_of_changed_lines(run: Run) -> None:
    memcached, nginx = rows_of("atc-t2", run)
    assert (memcached.paper, memcached.here) == ("293 in 3 files", "200 in 2 files")
    assert (nginx.paper, nginx.here) == ("255 in 16 files", "0, and a module")
    assert rows_of("atc-t2", Run({}, [])) == []


def test_the_report_has_the_port_s_gains(run: Run) -> None:
    both = [
        "memcached on libflexsc, 1 core, 64 connections",
        "memcached on libflexsc, calls on another core, 1 core, 64 connections",
    ]
    rows = rows_of("atc-f5", run)
    assert [(r.where, r.point.value if r.point else "") for r in rows] == [
        *[(where, value) for value in ("1.25", "1.35") for where in both],
        *[(where, "") for _ in ("rate", "time") for where in both],
    ]
    gains = [r.ratio.median if r.ratio else None for r in rows]
    assert gains == pytest.approx([1.3, 1.9] * 3 + [10 / 8, 10 / 4])
    verdicts = [r.verdict.value if r.verdict else "" for r in rows[:4]]
    assert verdicts == ["reached", "reached", "in part", "reached"]
    assert [r.here for r in rows[4:]] == [
        "130 beside 100 requests/s, stock",
        "190 beside 100 requests/s, stock",
        "8.00 beside 10.0 us of the processor a request, stock",
        "4.00 beside 10.0 us of the processor a request, stock",
    ]
