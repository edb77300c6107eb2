# SPDX-License-Identifier: MIT
"""The web server study: its models, their tunings, and its tables."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from flexbench.machine import Cores
from flexbench.runner import Plan
from flexbench.samples import Json, Measurement, Run, Settings
from flexbench.servers import Server
from flexstudy import webserver
from flexstudy.webserver import subjects
from flexstudy.webserver.tuning import Tuner


def plan(tune: bool = False) -> Plan:
    cores = Cores(1, 0, [0])
    return Plan("flexsc", cores, False, 3, 5, 1024, None, tune=tune)


def empty() -> Run:
    return Run(machine={}, command=[])


def add(run: Run, model: str, requests: list[float], busy: float = 99.0) -> None:
    settings: Settings = {
        "workload": "page",
        "connections": 128,
        "bytes": 1024,
        "model": model,
        "tuning": "",
        "seconds": 5,
        "network": "lo",
    }
    rounds: list[Json] = [
        {
            "samples": {
                "requests_per_s": [n],
                "cpu_us": [1e6 / n],
                "p99_us": [1000.0],
                "busy_percent": [busy],
            },
            "counts": {},
        }
        for n in requests
    ]
    run.measurements.append(Measurement("study", settings, rounds))


def test_a_server_has_something_for_each_core() -> None:
    built_in = {name: subjects.tunings(name, 128, 4)[0] for name in subjects.NAMES}
    assert built_in["events"] == ["--copies", "4", "--accepts", "16"]
    assert built_in["helpers"] == ["--copies", "4", "--helpers", "2"]
    assert built_in["loops"] == ["--loops", "4"]
    assert built_in["stages"][:6] == ["--read", "4", "--file", "4", "--write", "4"]
    assert built_in["threads"] == subjects.tunings("threads", 128)[0]
    assert not [
        name for name in subjects.NAMES if not built_in[name] and name != "nginx"
    ]


def test_kept_connections_have_a_thread_each() -> None:
    for tuning in subjects.threads(1024, 1):
        assert int(tuning[1]) > 1024
    most = [["--threads", "10016"], ["--threads", "20032"], ["--threads", "32000"]]
    assert subjects.threads(10_000, 1) == most
    assert subjects.threads(20_000, 1) == [["--threads", "20016"], most[-1]]
    # Too many threads: the program reports that.
    assert subjects.threads(40_000, 1) == [["--threads", "40016"]]


def test_models_are_compared_with_events() -> None:
    run = empty()
    add(run, "loops", [150.0, 300.0, 160.0])
    add(run, "events", [100.0, 200.0, 100.0])
    (text,) = webserver.show(run)
    assert "kept connections, 128 of them, a file of 1024 bytes; network lo" in text
    rows = {line.split(":")[0]: line for line in text.splitlines()}
    assert rows["loops"].count("1.50 (1.50-1.60)") == 2
    assert rows["events"].count("1.00 (1.00-1.00)") == 2
    assert "*" not in text


def test_the_best_tuning_wins_and_all_are_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made = {"1": 5.0, "2": 9.0, "8": 7.0}

    @contextmanager
    def started(plan: Plan, name: str, tuning: list[str], at: Path) -> Iterator[Server]:
        yield Server(tuning[1], "http://127.0.0.1:1/", 1)

    def load(server: Server) -> dict[str, list[float]]:
        return {"requests_per_s": [made[server.name]]}

    monkeypatch.setattr(subjects, "started", started)
    run = empty()
    tuner = Tuner(run, plan(True), tmp_path, "page", 128, load)
    assert tuner.best("helpers") == ["--helpers", "2"]
    assert len(run.of("study-tune", model="helpers")) == 3
    (text,) = webserver.show(run)
    assert "helpers, page, 128 connections: --helpers 8" in text
    again = Tuner(run, plan(), tmp_path, "page", 128, load)
    assert again.best("helpers") == subjects.tunings("helpers", 128)[0]


def test_copies_are_tried_for_each_core(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tried: list[str] = []

    @contextmanager
    def started(plan: Plan, name: str, tuning: list[str], at: Path) -> Iterator[Server]:
        tried.append(" ".join(tuning))
        yield Server(name, "http://127.0.0.1:1/", 1)

    monkeypatch.setattr(subjects, "started", started)
    run, some = empty(), replace(plan(True), cores=Cores(3, 1, [0, 1], [2]))
    load = {"requests_per_s": [1.0]}
    Tuner(run, some, tmp_path, "pages", 9, lambda _: load, copies=(2, 4)).best("events")
    assert tried[-2:] == ["--copies 4", "--copies 8"]
    assert {m.settings["cores"] for m in run.of("study-tune")} == {2}
    (text,) = webserver.show(run)
    assert "events, pages, 9 connections, 2 cores: --copies 8" in text
