# SPDX-License-Identifier: MIT
"""The cost of a call against the size of its batch: OSDI 2010, figures 9
(everything on one core) and 10 (executed on other cores). With --cores 1 only the
former, with --cores N only the latter, by N - 1 other cores.
"""

from __future__ import annotations

from . import servers, table
from .compare import Interval, ratio
from .runner import Plan, measure_all_raw, raw
from .samples import BenchError, Measurement, Run, Settings, distinct

BENCH = "calls"
SERIES = "ns_per_call"
POLL_US = 200

CALLS = ["getppid", "close", "read", "pread"]
BATCHES = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
QUICK_BATCHES = [1, 8, 64, 512]

# Where calls are executed, which variants can do that, and what they are compared with.
SAME, ASLEEP, POLLING = "same", "asleep", "polling"
KMOD = "kmod"
VARIANTS = {
    SAME: ["plain", "liburing", "sync", "threads", "uring", KMOD],
    ASLEEP: ["plain", "threads", KMOD],
    POLLING: ["plain", "threads", "uring-sqpoll", KMOD],
}
TITLES = {
    SAME: "on the same core (figure 9)",
    ASLEEP: "on another core, whose syscall thread sleeps (figure 10)",
    POLLING: "on another core, which polls",
}
COMPARED = {
    SAME: [("uring", "liburing"), ("uring", "plain"), (KMOD, "plain")],
    ASLEEP: [("threads", "plain"), (KMOD, "plain")],
    POLLING: [("threads", "plain"), ("uring-sqpoll", "plain"), (KMOD, "plain")],
}


def variants(plan: Plan, call: str, place: str, batch: int) -> list[Settings]:
    cores = plan.cores
    others = cores.more or [cores.other]
    executing = [cores.measured] if place == SAME else others
    return [
        {
            "variant": variant,
            "call": call,
            "batch": batch,
            "core": cores.measured,
            "kernel_cores": servers.listed(executing),
            "poll_us": POLL_US if place == POLLING else 0,
            "calls": 16384,
            "reps": 3,
        }
        for variant in VARIANTS[place]
        # io_uring lacks this operation, so the engine makes a plain call.
        if not (call == "getppid" and variant in ("liburing", "uring-sqpoll"))
    ]


def places(plan: Plan) -> list[str]:
    if not plan.numbers:
        return list(VARIANTS)
    return [ASLEEP, POLLING] if plan.cores.more else [SAME]


def without_module(plan: Plan) -> str:
    """Why the module can't execute calls here; empty if it can."""
    try:
        raw(plan.flexsc, BENCH, {"variant": KMOD, "calls": 1, "reps": 1})
    except BenchError as error:
        return str(error)
    return ""


def measure(run: Run, plan: Plan) -> None:
    missing = without_module(plan)
    if missing:
        run.note(f"{BENCH}: without the kernel module: {missing}")
    for place in places(plan):
        for call in CALLS:
            for batch in QUICK_BATCHES if plan.quick else BATCHES:
                every = variants(plan, call, place, batch)
                every = [s for s in every if not missing or s["variant"] != KMOD]
                measure_all_raw(run, plan, BENCH, every)


def place_of(measurement: Measurement) -> str:
    settings = measurement.settings
    if settings["kernel_cores"] == str(settings["core"]):
        return SAME
    return POLLING if settings["poll_us"] else ASLEEP


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
            found = [m for m in run.of(BENCH, call=call) if place_of(m) == place]
            for cores in distinct(found, "kernel_cores"):
                here = [m for m in found if m.settings["kernel_cores"] == cores]
                # A table needs at least two variants to compare.
                if len(distinct(here, "variant")) > 1:
                    where = title if place == SAME else f"{title}; by {cores}"
                    head = f"{call}: nanoseconds a call, {where}"
                    parts.append(f"{head}\n" + show_call(here, place))
    return parts
