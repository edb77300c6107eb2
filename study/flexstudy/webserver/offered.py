# SPDX-License-Identifier: MIT
"""Models under a rising number of offered sessions: from a fifth of the best model's
peak to twice that peak.

First a closed loop of sessions without think times finds each model's peak. The best
model's peak is the scale of the open loop, so all models get the same offers,
alternately. The number of the closed loop's sessions, and of the clients that servers
are prepared for, is proportional to the server's cores.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from flexbench import servers, table, tools
from flexbench.runner import Plan, measure_all
from flexbench.samples import BenchError, Json, Run, Settings
from flexbench.servers import Server

from . import fileset, sessions, subjects
from .sessions import SESSIONS, Site
from .subjects import BENCH, Tuning
from .tuning import SERIES, TUNE_S, Tuner

PEAK, OFFERED = "study-peak", "study-offered"
ANSWERS = "answers_per_s"

TIMES = ["0.2", "0.4", "0.6", "0.8", "0.9", "1", "1.1", "1.2", "1.5", "2"]
QUICK_TIMES = ["0.5", "1", "2"]
# Defaults of the command line's rounds and seconds.
ROUNDS, QUICK_ROUNDS, ROUNDS_MAX = 2, 1, 3
SECONDS = 1

# Per core of the server: sessions of the closed loop, and concurrent clients that the
# server is prepared for.
CONNECTIONS = 128
CLIENTS = 4096
COPIES = (2, 4)  # copies of the epoll server per core that are tried


@dataclass
class Sweep:
    """The common state of one workload's measurements. plan: has the rounds of a sweep."""

    run: Run
    plan: Plan
    name: str
    site: Site
    found: dict[str, tuple[Server, Tuning]] = field(default_factory=dict)

    @property
    def cores(self) -> int:
        return len(self.plan.cores.server)

    @property
    def title(self) -> str:
        return self.name + table.on(self.plan.cores)

    # The servers.

    def tuning(self, name: str, folder: Path) -> Tuning:
        def short(server: Server) -> dict[str, list[float]]:
            samples: dict[str, list[float]] = self.closed(server, TUNE_S)["samples"]
            return {**samples, SERIES: samples[ANSWERS]}

        run, plan = self.run, self.plan
        clients = min(self.cores * CLIENTS, subjects.CLIENTS_MAX)
        tuner = Tuner(*(run, plan, folder, self.name, clients, short), copies=COPIES)
        return tuner.best(name)

    def start(self, stack: ExitStack, names: Sequence[str]) -> None:
        """Start the models; one that can't run is skipped."""
        file = self.site.files[0]
        for name in names:
            try:
                tuning = self.tuning(name, self.site.folder)
                server = stack.enter_context(
                    subjects.started(self.plan, name, tuning, self.site.folder)
                )
                content = bytes(fileset.content(file))
                servers.check(self.plan.network, server, file.name, content)
                self.found[name] = server, tuning
            except BenchError as error:
                self.run.note(f"{BENCH} {self.title}: skipping {name}: {error}")

    # One round.

    def load(
        self, server: Server, seconds: int, warm_s: int, **more: str | int
    ) -> Json:
        return sessions.load(self.plan, self.site, server, seconds, warm_s, **more)

    def closed(self, server: Server, seconds: int) -> Json:
        connections = self.cores * CONNECTIONS
        return self.load(*(server, seconds, 1), connections=connections, think=0)

    def peak(self, server: Server, settings: Settings) -> Json:
        return self.closed(server, int(settings["seconds"]))

    def open(self, server: Server, settings: Settings) -> Json:
        load = self.site.load
        return self.load(
            *(server, int(settings["seconds"]), load.warm_s),
            rate=settings["rate"],
            arrivals="poisson",
            think=load.think,
        )

    # All rounds.

    def settings(self, name: str, **more: str | int) -> Settings:
        _, tuning = self.found[name]
        return {
            "workload": self.name,
            "model": name,
            "tuning": " ".join(tuning),
            **more,
            "cores": self.cores,
            # 1: the run also has servers on more than one core.
            "scaling": int(max(self.plan.numbers, default=1) > 1),
            "folders": sessions.folders(self.plan),
            "seconds": self.plan.seconds,
            "seed": sessions.SEED,
            "spin_us": sessions.SPIN_US,
            "network": self.plan.network.kind,
        }

    def measure(
        self,
        bench: str,
        once: Callable[[Server, Settings], Json],
        **more: str | int,
    ) -> None:
        def named(settings: Settings) -> Json:
            name = str(settings["model"])
            try:
                return once(self.found[name][0], settings)
            except BenchError as error:
                raise BenchError(f"{self.title}: {name}: {error}") from error

        variants = [self.settings(name, **more) for name in self.found]
        measure_all(self.run, self.plan, bench, variants, named)

    def scale(self) -> float:
        """The best model's peak, in requests per second."""
        peaks = self.run.of(PEAK, workload=self.name, cores=self.cores)
        best = max((m.median(ANSWERS) for m in peaks), default=0)
        if not best:
            raise BenchError(f"{self.title}: all models failed")
        return best

    def sweep(self) -> None:
        load = self.site.load
        self.measure(PEAK, self.peak, connections=self.cores * CONNECTIONS)
        best, due = self.scale(), self.site.due(self.plan.seconds)
        for times in QUICK_TIMES if self.plan.quick else TIMES:
            offered = float(times) * best
            self.measure(
                *(OFFERED, self.open),
                times=times,
                rate=max(1, round(offered / due)),
                offered_per_s=round(offered),
                think=load.think,
                warm_ms=1000 * load.warm_s,
                timeout_ms=sessions.TIMEOUT_MS,
            )


def shortened(plan: Plan) -> Plan:
    """A sweep has many points, so its rounds are few and short by default."""
    rounds = plan.asked_rounds or (QUICK_ROUNDS if plan.quick else ROUNDS)
    seconds = plan.asked_seconds or SECONDS
    return replace(plan, rounds=min(rounds, ROUNDS_MAX), seconds=seconds)


@contextmanager
def started(
    run: Run,
    plan: Plan,
    name: str,
    names: Sequence[str],
) -> Iterator[Sweep]:
    """Prepare the workload's files and servers."""
    tools.need("taskset")
    with tempfile.TemporaryDirectory(prefix="flexbench-") as made, ExitStack() as stack:
        site = sessions.prepare(plan, SESSIONS[name], Path(made))
        sweep = Sweep(run, shortened(plan), name, site)
        sweep.start(stack, names)
        yield sweep


def measure(run: Run, plan: Plan, name: str, names: Sequence[str]) -> None:
    with started(run, plan, name, names) as sweep:
        sweep.sweep()
