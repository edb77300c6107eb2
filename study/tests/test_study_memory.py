# SPDX-License-Identifier: MIT
"""flexbench's study: what silent connections take of memory."""

from __future__ import annotations

import os
import re
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from flexbench.machine import Cores
from flexbench.runner import Plan
from flexbench.samples import BenchError, Json, Measurement, Run, Settings
from flexbench.servers import Server
from flexstudy import webserver
from flexstudy.webserver import idle, memory, subjects
from flexstudy.webserver.memory import Weight


def plan(connections: int | None = None, quick: bool = False) -> Plan:
    return Plan("flexsc", Cores(1, 0, [0]), quick, 3, 5, 1024, connections)


def test_one_connection_s_memory_is_taken_off(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    weighed = []

    def weigh(plan: Plan, folder: Path, name: str, count: int) -> Weight:
        weighed.append(count)
        return Weight(100 + 8 * count, 40 + 4 * count, 7)

    monkeypatch.setattr(memory, "weigh", weigh)
    settings: Settings = {"model": "threads", "connections": 500}
    samples = memory.once(plan(), tmp_path, settings)["samples"]
    assert samples["rss_bytes"] == [8192]
    assert samples["kernel_bytes"] == [4096]
    assert samples["threads"] == [7]
    assert weighed == [1, 501]


def test_a_server_is_made_for_its_connections(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A thread is part of its connection: the server with one has few."""
    begun: dict[str, list[str]] = {}

    @contextmanager
    def started(plan: Plan, name: str, tuning: list[str], at: Path) -> Iterator[Server]:
        begun[name] = tuning
        yield Server(name, "http://127.0.0.1:1/", os.getpid())

    @contextmanager
    def silent(plan: Plan, server: Server, count: int) -> Iterator[None]:
        yield

    monkeypatch.setattr(subjects, "started", started)
    monkeypatch.setattr(idle, "silent", silent)
    monkeypatch.setattr(memory, "SETTLE_S", 0)
    for name in ("threads", "nginx"):
        assert memory.weigh(plan(), tmp_path, name, 100).resident_kib > 0
    assert begun["threads"] == [*subjects.tunings("threads", 100)[0], *idle.PATIENCE]
    assert begun["nginx"] == []


def test_there_are_as_many_as_have_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    allowed = resource.RLIM_INFINITY
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, allowed))
    assert memory.connections(plan()) == 10_000
    assert memory.connections(plan(quick=True)) == 1_000
    assert memory.connections(plan(64)) == 64
    allowed = 5_000
    assert memory.connections(plan()) == idle.permitted() < 5_000
    allowed = 100
    with pytest.raises(BenchError, match="ulimit -Hn"):
        memory.connections(plan())


def add(run: Run, model: str, resident: float) -> None:
    samples: Json = {"rss_bytes": [resident], "kernel_bytes": [-20.0], "threads": [2.0]}
    settings: Settings = {
        "model": model,
        "tuning": "",
        "connections": 10_000,
        "network": "lo",
    }
    rounds: list[Json] = [{"samples": samples, "counts": {}}]
    run.measurements.append(Measurement("study-memory", settings, rounds))


def test_memory_has_a_table() -> None:
    run = Run(machine={}, command=[])
    add(run, "loops", 14829.0)
    (text,) = webserver.show(run)
    title, head, row = text.splitlines()
    assert title == "study memory: 10,000 silent connections; network lo, 1 rounds"
    assert re.split(r"  +", row) == ["loops: libflexsc", "14,829", "-20.0", "2"]
    assert head.startswith("bytes a connection")


def test_memory_is_a_part_that_is_asked_for() -> None:
    assert webserver.parse(["memory"])[0] == ["memory"]
    assert "memory" not in webserver.parse([])[0]
