# SPDX-License-Identifier: MIT
"""Measurements of flexbench whose figures are known."""

from __future__ import annotations

from flexbench import machine, runner
from flexbench.samples import Json, Measurement, Run, Settings

MACHINE: Json = {
    "time": "2025-01-01T00:00:00+00:00",
    "kernel": "6.1.0",
    "machine": "x86_64",
    "cpu": "A Processor",
    "virtual": True,
    "mitigations": {"spectre_v2": "Mitigation: Retpolines", "mds": "Vulnerable"},
    "online": 4,
    "load": 0.25,
    "cores": {"measured": 3, "other": 2, "load": [0, 1, 2]},
    "governor": "performance",
    "revision": "abc123",
    "versions": {"flexsc": "flexsc 0.1.0", "python": "3.11.2"},
}


def empty_run() -> Run:
    return Run(machine=MACHINE, command=["calls"])


def plan(flexsc: str = "flexsc", rounds: int = 3) -> runner.Plan:
    cores = machine.Cores(measured=3, other=2, load=[0, 1, 2])
    return runner.Plan(
        flexsc,
        cores,
        quick=True,
        rounds=rounds,
        seconds=1,
        bytes=1024,
        connections=128,
    )


def once(name: str, *values: float, **counts: float) -> list[Json]:
    """Rounds of one repetition each."""
    return [{"samples": {name: [v]}, "counts": counts} for v in values]


LOAD_RATES = {"native": 60000.0, "flexsc": 120000.0, "epoll": 100000.0}


def load_of(settings: Settings, rate: float) -> Measurement:
    figures = {"requests_per_s": rate, "p50_us": 1e9 / rate, "p99_us": 2e9 / rate}
    one: Json = {
        "samples": {k: [v] for k, v in {**figures, "busy_percent": 99.0}.items()},
        "counts": {"requests": int(rate)},
    }
    return Measurement("threads", settings, [one, one, one])
