# SPDX-License-Identifier: MIT
"""A model's tuning, which is a set of its server's options. The default is the built-in
tuning; with --tune it is the one with the most requests per second in short runs. The
run keeps the figures of all tried tunings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from flexbench.runner import Plan, progress
from flexbench.samples import Json, Measurement, Run, Settings
from flexbench.servers import Server

from . import subjects
from .subjects import Tuning

TUNE = "study-tune"
SERIES = "requests_per_s"
TUNE_S = 2


@dataclass(frozen=True)
class Tuner:
    """folder: has the served files. load: loads a server for TUNE_S, and returns
    samples with SERIES.
    """

    run: Run
    plan: Plan
    folder: Path
    workload: str
    connections: int
    load: Callable[[Server], dict[str, list[float]]]
    copies: Sequence[int] = ()

    def attempt(self, name: str, tuning: Tuning) -> float:
        words = " ".join(tuning)
        progress(f"study: tuning {name} for {self.connections} connections: {words}")
        with subjects.started(self.plan, name, tuning, self.folder) as server:
            samples = self.load(server)
        settings: Settings = {
            "workload": self.workload,
            "model": name,
            "connections": self.connections,
            "cores": len(self.plan.cores.server),
            "tuning": words,
        }
        found: Json = {"samples": samples, "counts": {}}
        self.run.measurements.append(Measurement(TUNE, settings, [found]))
        return samples[SERIES][0]

    def best(self, name: str) -> Tuning:
        cores = len(self.plan.cores.server)
        tunings = subjects.tunings(name, self.connections, cores)
        if name == subjects.EVENTS:
            tunings += [["--copies", str(number * cores)] for number in self.copies]
        if not self.plan.tune or len(tunings) == 1:
            return tunings[0]
        speeds = [self.attempt(name, tuning) for tuning in tunings]
        progress("")
        return tunings[speeds.index(max(speeds))]
