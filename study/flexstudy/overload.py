# SPDX-License-Identifier: MIT
"""A server under more load than it can handle (SEND, chapter 4): http-events with each
of its models, at offered rates from a fifth to three times the saturation point.

    saturation  the highest rate at which a server answers (figure 4.5)
    responses   answers per second, over the time that all of them took; clients
                don't give up (figures 4.3, 4.4, 4.6 to 4.9, 4.12 to 4.14)
    goodput     answers per second to clients that give up after a second
    trace       each answer's time, in order of completion (figure 4.10)
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from flexbench import examples, servers, tools
from flexbench.runner import DISTURBED, Plan, measure_all, progress
from flexbench.running import Program
from flexbench.samples import BenchError, Json, Run, Settings

from . import mix, overload_table
from .overload_plan import (
    BENCH,
    FIRST_RATE,
    FOLDER,
    GIVE_UP_MS,
    GOODPUT,
    HELD,
    MIX,
    PARTS,
    PROBES,
    QUICK_PARTS,
    QUICK_PROBES,
    QUICK_S,
    QUICK_TIMES,
    REQUESTS,
    ROUNDS,
    SATURATION,
    SERVER,
    TIMES,
    TRACE,
    TRACE_TIMES,
    Options,
    parse,
)
from .raw import raw


@dataclass(frozen=True)
class Model:
    """A line in the output of http-events --models."""

    name: str
    delivery: str
    notification: str
    accepting: str
    by: str  # what delivers events: the kernel, or a backend of SEND


def models(flexsc: str, wanted: Sequence[str] = ()) -> list[Model]:
    """The models that the server has; it finds out which ones work here."""
    program = str(examples.find(flexsc, SERVER, FOLDER))
    done = subprocess.run(
        [program, "--models"], capture_output=True, text=True, timeout=10, check=False
    )
    found = [Model(*line.split("\t")) for line in done.stdout.splitlines()]
    names = [model.name for model in found]
    for name in wanted:
        if name not in names:
            raise BenchError(
                f"events={name}: not available; {SERVER} has "
                f"{', '.join(names)} here"
            )
    return [model for model in found if not wanted or model.name in wanted]


@dataclass
class Bench:
    """The common state of all measurements of one run."""

    run: Run
    plan: Plan
    options: Options
    saturation: dict[str, float] = field(default_factory=dict)  # by size

    @property
    def rounds(self) -> int:
        return 1 if self.plan.quick else min(self.plan.rounds, ROUNDS)

    @contextmanager
    def server(self, model: str, admission: str) -> Iterator[Program]:
        command = [str(examples.find(self.plan.flexsc, SERVER, FOLDER))]
        command += ["--events", model, "--work", str(self.options.work)]
        command += ["--backlog", str(self.options.backlog), "--admission", admission]
        net = self.plan.network
        command += ["--address", net.address]
        core = str(self.plan.cores.measured)
        with examples.started(model, core, [*net.server, *command]) as program:
            yield program

    def load(self, program: Program, size: str, **settings: str | int) -> Json:
        sizes = mix.sizes() if size == MIX else [int(size)]
        args: Settings = {
            "port": program.port,
            "pid": program.pid,
            "address": self.plan.network.address,
            "source": self.plan.network.source,
            "sizes": ",".join(str(kib) for kib in sizes),
            **settings,
        }
        cores = servers.listed(self.plan.cores.load)
        pinned = servers.pinned(cores, self.plan.network.client)
        try:
            return raw(self.plan.flexsc, "load", args, pinned)
        except BenchError as error:
            raise program.error(error) from error

    # The saturation point.

    def holds(self, program: Program, size: str, rate: int) -> bool:
        # Half a second is long enough for a backlog to fill.
        count = max(10, rate // 2 if self.plan.quick else rate)
        found = self.load(program, size, rate=rate, count=count, timeout_ms=GIVE_UP_MS)
        answered, offered = (found["counts"][k] for k in ("answered", "offered"))
        speed = float(found["samples"]["responses_per_s"][0])
        return bool(answered == offered and speed >= HELD * rate)

    def narrow(self, program: Program, size: str, low: float, high: float) -> float:
        """The highest tried rate that the server held; 0: none."""
        best = 0.0
        for _ in range(QUICK_PROBES if self.plan.quick else PROBES):
            middle = (low * high) ** 0.5
            # A disturbance by other processes seldom hits two probes in a row.
            if any(self.holds(program, size, int(middle)) for _ in range(2)):
                best = low = middle
            else:
                high = middle
        return best

    def search(self, model: str, size: str) -> float:
        """Search around the rate that its processor time allows, or below if something
        else limits it.
        """
        with self.server(model, "none") as program:
            first = self.load(program, size, rate=FIRST_RATE, count=FIRST_RATE // 2)
            counts = first["counts"]
            estimate = 1e6 * counts["answered"] / max(1.0, counts["server_cpu_us"])
            low, high = 0.4 * estimate, 2 * estimate
            best = self.narrow(program, size, low, high)
            while not best and low > 1:
                low, high = max(1.0, low / 8), low
                best = self.narrow(program, size, low, high)
        if not best:
            raise BenchError(
                f"{model}: fails at the lowest rate, one request per second"
            )
        return best

    # One measurement.

    def once(self, settings: Settings) -> Json:
        part, size = str(settings["part"]), str(settings["size"])
        model, admission = str(settings["variant"]), str(settings["admission"])
        if part == SATURATION:
            # Only some probes of a search are disturbed, so the share of other
            # processes isn't recorded.
            samples = {"saturation_per_s": [self.search(model, size)]}
            return {"samples": {**samples, DISTURBED: [0.0]}, "counts": {}}
        with self.server(model, admission) as program:
            return self.load(program, size, **self.demand(settings))

    def demand(self, settings: Settings) -> Settings:
        """The load that the clients make."""
        part, rate = str(settings["part"]), int(settings["rate"])
        if part == GOODPUT:
            seconds = QUICK_S if self.plan.quick else self.plan.seconds
            return {
                "rate": rate,
                "seconds": seconds + 1,
                "warm_ms": 1000,
                "timeout_ms": GIVE_UP_MS,
            }
        count = QUICK_S * rate if self.plan.quick else REQUESTS
        return {"rate": rate, "count": count, "order": int(part == TRACE)}

    # All measurements.

    def settings(self, part: str, model: str, size: str, times: str) -> Settings:
        rate = max(1, int(float(times or 0) * self.saturation.get(size, 0)))
        return {
            "part": part,
            "variant": model,
            "size": size,
            "times": times,
            "rate": rate,
            "admission": "none",
            "work": self.options.work,
            "backlog": self.options.backlog,
            "network": self.plan.network.kind,
        }

    def times_of(self, part: str) -> list[str]:
        if part == SATURATION:
            return [""]
        if part == TRACE:
            return self.options.rate or TRACE_TIMES
        if not self.plan.quick:
            return self.options.rate or TIMES
        return self.options.rate or QUICK_TIMES[part]

    def measure(self, part: str, names: Sequence[str], size: str) -> None:
        for times in self.times_of(part):
            variants = [self.settings(part, name, size, times) for name in names]
            if part == GOODPUT:
                variants = [
                    {**settings, "admission": admission}
                    for settings in variants
                    for admission in self.options.admission
                ]
            often = replace(self.plan, rounds=1 if part == TRACE else self.rounds)
            measure_all(self.run, often, BENCH, variants, self.once)

    def saturate(self, names: Sequence[str], size: str, wanted: bool) -> None:
        """The first model's saturation point is the scale for all models, so all get
        the same offered rates. The others' points are measured only if requested.
        """
        self.measure(SATURATION, names if wanted else names[:1], size)
        found = self.run.find(BENCH, part=SATURATION, size=size, variant=names[0])
        if not found:
            raise BenchError(f"no saturation point found for {names[0]}")
        self.saturation[size] = found.median("saturation_per_s")


def measure(run: Run, plan: Plan) -> None:
    tools.need("taskset")
    options = parse(plan.words)
    found = models(plan.flexsc, options.events)
    # In the requested order.
    order = options.events or [model.name for model in found]
    parts = options.parts or (QUICK_PARTS if plan.quick else PARTS)
    run.machine["models"] = [
        [m.name, m.delivery, m.notification, m.accepting, m.by] for m in found
    ]
    bench = Bench(run, plan, options)
    for size in options.size:
        wanted = SATURATION in parts and not plan.quick
        bench.saturate(order, size, wanted or parts == [SATURATION])
        for part in [p for p in PARTS if p in parts and p != SATURATION]:
            bench.measure(part, order, size)
    progress("")


def show(run: Run) -> list[str]:
    return overload_table.show(run)
