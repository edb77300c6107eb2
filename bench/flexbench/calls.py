# SPDX-License-Identifier: MIT
"""The cost of a call against the size of its batch: OSDI 2010, figures 9
(everything on one core) and 10 (executed on another core).
"""

from __future__ import annotations

from . import table
from .compare import Interval, ratio
from .runner import Plan, measure_all_raw
from .samples import Measurement, Run, Settings, distinct

BENCH = "calls"
SERIES = "ns_per_call"
SPIN_US = 200

CALLS = ["getppid", "close", "read", "pread"]
BATCHES = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
QUICK_BATCHES = [1, 8, 64, 512]

# Where calls are executed, which variants can do that, and what they are compared with.
SAME, ASLEEP, POLLING = "same", "asleep", "polling"
VARIANTS = {
    SAME: ["plain", "liburing", "sync", "threads", "uring"],
    ASLEEP: ["plain", "threads"],
    POLLING: ["plain", "threads", "uring-sqpoll"],
}
TITLES = {
    SAME: "on the same core (figure 9)",
    ASLEEP: "on another core, whose syscall thread sleeps (figure 10)",
    POLLING: "on another core, which polls",
}
COMPARED = {
    SAME: [("uring", "liburing"), ("uring", "plain")],
    ASLEEP: [("threads", "plain")],
    POLLING: [("threads", "plain"), ("uring-sqpoll", "plain")],
}


def variants(plan: Plan, call: str, place: str, batch: int) -> list[Settings]:
    cores = plan.cores
    helper = cores.measured if place == SAME else cores.other
    return [
        {
            "variant": variant,
            "call": call,
            "batch": batch,
            "core": cores.measured,
            "cores": str(helper),
            "spin_us": SPIN_US if place == POLLING else 0,
            "calls": 16384,
            "reps": 3,
        }
        for variant in VARIANTS[place]
        # io_uring lacks this operation, so the engine makes a plain call.
        if not (call == "getppid" and variant in ("liburing", "uring-sqpoll"))
    ]


def measure(run: Run, plan: Plan) -> None:
    for place in VARIANTS:
        for call in CALLS:
            for batch in QUICK_BATCHES if plan.quick else BATCHES:
                measure_all_raw(run, plan, BENCH, variants(plan, call, place, batch))


def place_of(measurement: Measurement) -> str:
    settings = measurement.settings
    if settings["cores"] == str(settings["core"]):
        return SAME
    return POLLING if settings["spin_us"] else ASLEEP


def compared(found: dict[str, Measurement], a: str, b: str) -> Interval | None:
    if a not in found or b not in found:
        return None
    return ratio(found[a].series(SERIES), found[b].series(SERIES))


def show_call(measurements: list[Measurement], place: str) -> str:
    names = distinct(measurements, "variant")
    pairs = [(a, b) for a, b in COMPARED[place] if a in names and b in names]
    rows = []
    for batch in distinct(measurements, "batch"):
        found = {
            str(m.settings["variant"]): m
            for m in measurements
            if m.settings["batch"] == batch
        }
        medians = [found[n].median(SERIES) if n in found else None for n in names]
        ratios = [table.ratio(compared(found, a, b)) for a, b in pairs]
        rows.append([str(batch), *map(table.number, medians), *ratios])
    head = ["batch", *names, *(f"{a}/{b}" for a, b in pairs)]
    return table.table(head, rows)


def show(run: Run) -> list[str]:
    parts = []
    for place, title in TITLES.items():
        for call in distinct(run.of(BENCH), "call"):
            here = [m for m in run.of(BENCH, call=call) if place_of(m) == place]
            # A table needs at least two variants to compare.
            if len(distinct(here, "variant")) > 1:
                parts.append(
                    f"{call}: nanoseconds a call, {title}\n" + show_call(here, place)
                )
    return parts
