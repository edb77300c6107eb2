# SPDX-License-Identifier: MIT
"""flexbench's study: how evenly copies share clients."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from flexbench import clients
from flexbench.machine import Cores
from flexbench.runner import Plan
from flexbench.samples import BenchError, Json, Measurement, Run, Settings
from flexbench.servers import Server
from flexbench.tools import Load
from flexstudy import webserver
from flexstudy.webserver import copies, subjects

LOAD = Load(requests=40, seconds=2.0, mean_us=1.0, p50_us=1.0, p99_us=1.0, errors="")


def test_the_fullest_copy_has_a_share() -> None:
    assert copies.fullest([30, 10], 2) == (75, 1.5)
    assert copies.fullest([25, 25, 25, 25], 4) == (25, 1)
    # A copy that has had no request isn't listed.
    assert copies.fullest([80], 4) == (100, 4)
    with pytest.raises(BenchError, match="no copy"):
        copies.fullest([], 2)


def test_copies_are_counted_by_themselves(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    begun: list[list[str]] = []

    @contextmanager
    def started(plan: Plan, name: str, tuning: list[str], at: Path) -> Iterator[Server]:
        begun.append(tuning)
        yield Server(name, "http://127.0.0.1:1/", os.getpid())
        (at / copies.STATS).write_text(json.dumps({"requests": 40, "each": [30, 10]}))

    monkeypatch.setattr(subjects, "started", started)
    monkeypatch.setattr(clients, "wrk", lambda *_: [])
    monkeypatch.setattr(clients, "run_wrk", lambda *_: LOAD)
    settings: Settings = {"copies": 2, "accept": "port", "connections": 8}
    plan = Plan("flexsc", Cores(1, 0, [0]), False, 3, 2, 1024, None)
    samples = copies.once(plan, tmp_path, settings)["samples"]
    # The others' share is read while all copies run.
    assert 0 <= samples["disturbed_percent"][0] <= 100
    assert samples["fullest_percent"] == [75]
    assert samples["requests_per_s"] == [20]
    assert begun[0][:4] == ["--copies", "2", "--accept", "port"]


def test_copies_have_a_table() -> None:
    samples: Json = {
        "requests_per_s": [50000.0],
        "fullest_percent": [29.75],
        "fullest_times": [1.19],
    }
    settings: Settings = {
        "model": "events",
        "copies": 4,
        "accept": "port",
        "connections": 128,
        "seconds": 5,
        "network": "lo",
    }
    run = Run(machine={}, command=[])
    rounds: list[Json] = [{"samples": samples, "counts": {}}]
    run.measurements.append(Measurement("study-copies", settings, rounds))
    (text,) = webserver.show(run)
    assert text.startswith("study copies: 128 kept connections among copies of web-")
    cells = re.split(r"  +", text.splitlines()[-1])
    assert cells == ["4, port", "50,000", "29.8", "1.19"]
