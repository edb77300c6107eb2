# SPDX-License-Identifier: MIT
"""flexsc study cost: what a system call costs the program around it, OSDI 2010, figures
1 to 4 and table 1, by the processor's clock. The program executes the same instructions
between any two calls, so its relative speed equals its relative number of instructions
per cycle.

Each measurement has a control that is made without the call. Everything is also
measured with the call "none", which makes no call. The largest apparent cost of "none"
is the resolution; smaller figures are shown as below the resolution.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate
from statistics import fmean, median
from tempfile import TemporaryDirectory

from flexbench import table
from flexbench.compare import Interval, median_interval, ratio
from flexbench.runner import Plan, measure_all
from flexbench.samples import BenchError, Json, Measurement, Run, Settings, distinct

from .raw import raw

STEPS, LOST, POLLUTE, FOOTPRINT = "steps", "lost", "pollute", "footprint"
# The instructions of a call, in a guest: tests/kmod/vm/instructions.py adds them to a
# file.
INSTRUCTIONS = "instructions"

NONE = "none"
PERIOD = 256  # units of work per period whose instructions are counted

LOST_CALLS = [NONE, "getppid", "stat", "pwrite"]
SHOWN = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64]  # numbers of slices in the table
WINDOW = 2  # consecutive slices: their mean is the program's speed
SPEEDS = [0.95, 0.98, 1.00]

POLLUTING = "pwrite"
EVERY = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]
QUICK_EVERY = [1, 16, 256]
LEAST = 0.001  # smallest resolution of a relative speed
WORKS = {
    "tree": "figure 2, the paper's is Xalan",
    "heap": "figure 3, the paper's is SPEC JBB",
}

FOOTPRINT_CALLS = [
    NONE,
    "stat",
    "pread",
    "pwrite",
    "open-close",
    "mmap-munmap",
    "open-write-close",
]
SCALE = 17
# Caches, and the number of repetitions for each.
LEVELS = {"l1i": 500, "l1d": 500, "l2": 60, "dtlb": 1000}


# Measuring.


def count_steps(run: Run, plan: Plan) -> None:
    """Count the instructions of each kind of work; once, because all counts are equal."""
    for work in WORKS:
        settings: Settings = {"work": work}
        try:
            found = raw(plan.flexsc, STEPS, settings)
        except BenchError as error:
            run.note(f"cost: can't count the instructions of work={work}: {error}")
            continue
        run.measurements.append(Measurement(STEPS, settings, [found]))


def lost_variants(plan: Plan) -> list[Settings]:
    return [
        {
            "call": call,
            "work": "tree",
            "core": plan.cores.measured,
            "calls": 1000 if plan.quick else 4000,
        }
        for call in LOST_CALLS
    ]


def pollute_variants(plan: Plan) -> list[Settings]:
    return [
        {
            "call": call,
            "work": work,
            "every": every,
            "core": plan.cores.measured,
            "reps": 100 if plan.quick else 300,
        }
        for work in WORKS
        for every in (QUICK_EVERY if plan.quick else EVERY)
        for call in (NONE, POLLUTING)
    ]


def footprint_variants(plan: Plan) -> list[Settings]:
    return [
        {
            "call": call,
            "level": level,
            "core": plan.cores.measured,
            "reps": reps // 2 if plan.quick else reps,
        }
        for level, reps in LEVELS.items()
        for call in FOOTPRINT_CALLS
    ]


CASES: dict[str, Callable[[Plan], list[Settings]]] = {
    LOST: lost_variants,
    POLLUTE: pollute_variants,
    FOOTPRINT: footprint_variants,
}


def measure(run: Run, plan: Plan) -> None:
    """Measure all cases. The calls' file is in a folder that is removed at the end,
    even if the program that makes the calls is killed.
    """
    count_steps(run, plan)
    with TemporaryDirectory(prefix="flexsc-bench-") as folder:
        before = ["env", f"TMPDIR={folder}"]
        for case, variants in CASES.items():
            once = partial(raw, plan.flexsc, case, before=before)
            measure_all(run, plan, case, variants(plan), once)


# Statistics of all tables.


def middle(samples: Sequence[float]) -> float:
    """The mean of the middle half of the samples. It is finer than the clock's large
    steps.
    """
    ordered = sorted(samples)
    quarter = len(ordered) // 4
    return fmean(ordered[quarter : len(ordered) - quarter])


def series(measurement: Measurement, name: str) -> list[float]:
    """One value per round: the mean of the middle of its samples."""
    return [middle(r["samples"][name]) for r in measurement.rounds]


def ranged(values: Sequence[float], least: float) -> str:
    """The median with its interval, or "below" if it is within the resolution."""
    found = median_interval(values)
    if found.median <= least:
        return f"below {table.number(least)}"
    low, high = table.number(found.low), table.number(found.high)
    return f"{table.number(found.median)} ({low}-{high})"


def instructions_of(run: Run, work: str) -> float | None:
    """The instructions of a unit of work. None: they weren't counted."""
    found = run.find(STEPS, work=work)
    return found.count("instructions") / PERIOD if found else None


# Figure 1.


def slices(measurement: Measurement, name: str) -> list[float]:
    """The ticks of each slice, the median over the rounds."""
    rounds = [r["samples"][name] for r in measurement.rounds]
    return [median(column) for column in zip(*rounds, strict=True)]


def speeds(measurement: Measurement) -> list[float]:
    control = slices(measurement, "control_ticks")
    called = slices(measurement, "called_ticks")
    return [a / b for a, b in zip(control, called, strict=True)]


def windows(speed: Sequence[float]) -> list[float]:
    return [fmean(speed[i : i + WINDOW]) for i in range(len(speed) - WINDOW + 1)]


def lost_in_all(measurement: Measurement) -> list[float]:
    """The total ticks that a call costs all slices, one value per round."""
    return [
        sum(r["samples"]["called_ticks"]) - sum(r["samples"]["control_ticks"])
        for r in measurement.rounds
    ]


def ticks_until(measurement: Measurement, speed: float) -> str:
    """The program's own ticks from a call until its speed, the mean of WINDOW slices,
    reaches `speed`."""
    called = slices(measurement, "called_ticks")
    for index, here in enumerate(windows(speeds(measurement))):
        if here >= speed:
            return f"{sum(called[:index]):,.0f}"
    return f"over {sum(called):,.0f}"


def lost_slices(found: list[Measurement]) -> str:
    ends = list(accumulate(slices(found[0], "control_ticks")))
    columns = [speeds(m) for m in found]
    rows = [
        [f"{ends[i - 1]:,.0f}", *(f"{column[i - 1]:.3f}" for column in columns)]
        for i in SHOWN
        if i <= len(ends)
    ]
    head = ["until tick", *(str(m.settings["call"]) for m in found)]
    return table.table(head, rows)


def show_lost(run: Run) -> list[str]:
    found = run.of(LOST)
    none = run.find(LOST, call=NONE)
    if not none:
        return []
    unsure = max(abs(1 - speed) for speed in windows(speeds(none)))
    least = max(abs(ticks) for ticks in lost_in_all(none))
    rows = []
    for m in found:
        # A speed that occurs for "none" as well can't be distinguished from 1.00.
        until = [
            ticks_until(m, min(s, 1 - unsure)) if unsure < 1 - s or s == 1 else "-"
            for s in SPEEDS
        ]
        call = str(m.settings["call"])
        rows.append([call, *until, ranged(lost_in_all(m), least)])
    head = ["call", *(f"until {s:.2f}" for s in SPEEDS), "ticks lost in total"]
    return [
        "lost: a program's speed after a call, relative to its speed without a call "
        "(figure 1), work=tree\n" + lost_slices(found),
        "lost: ticks of the program after the call until it reaches each speed again, and "
        f"ticks lost\n(the resolution of a speed is {unsure:.3f}, by {NONE}; 1.00 means "
        f"above {1 - unsure:.3f}; a tick is {tick_ns(none):.2f} ns)\n"
        + table.table(head, rows),
    ]


def tick_ns(measurement: Measurement) -> float:
    return 1000 / measurement.count("ticks_per_us")


# Figures 2 to 4.


def net_call(measurement: Measurement) -> list[float]:
    """The ticks of the call without those of the clock readings, one value per round."""
    clock = series(measurement, "clock_ticks")
    call = series(measurement, "call_ticks")
    return [b - a for a, b in zip(clock, call, strict=True)]


def speed_of(measurement: Measurement, name: str) -> Interval:
    return ratio(series(measurement, "control_ticks"), series(measurement, name))


def least_speed(run: Run, called: Measurement) -> Interval:
    """The speed relative to work with the fewest clock readings."""
    work = str(called.settings["work"])
    seldom = run.of(POLLUTE, call=POLLUTING, work=work)[-1]
    return ratio(series(seldom, "control_ticks"), series(called, "called_ticks"))


def part(loss: float, unsure: float) -> str:
    """A loss of speed in percent, or "below" if it is within the resolution."""
    if loss <= unsure:
        return f"below {100 * unsure:.1f}"
    return f"{100 * loss:.1f}"


def pollute_row(run: Run, work: str, every: int) -> list[str]:
    key: Settings = {"work": work, "every": every}
    called = run.find(POLLUTE, call=POLLUTING, **key)
    none = run.find(POLLUTE, call=NONE, **key)
    if not called or not none:
        return []
    unit = instructions_of(run, work)
    between = unit * every if unit else None
    control = median(series(called, "control_ticks"))
    user, direct = speed_of(called, "called_ticks"), speed_of(called, "direct_ticks")
    nothing, least = speed_of(none, "called_ticks"), least_speed(run, called)
    unsure = max(abs(1 - nothing.low), abs(1 - nothing.high), LEAST)
    return [
        table.number(between) if between else f"{every} units",
        table.number(unit / control if unit else None),
        table.ratio(user),
        # The two speeds come from different processes. If clock readings cost next to
        # nothing, only the processes differ, and the ratio isn't shown.
        table.ratio(least if least.median < user.median else None),
        part(1 - direct.median, unsure),
        part(direct.median - user.median, unsure),
        f"{nothing.low:.3f}-{nothing.high:.3f}",
    ]


def show_pollute(run: Run, work: str) -> str:
    every = distinct(run.of(POLLUTE, work=work), "every")
    rows = [row for e in every if (row := pollute_row(run, work, e))]
    head = [
        "instructions between calls",
        "a tick, no calls",
        "speed",
        "at least",
        "direct, %",
        "indirect, %",
        NONE,
    ]
    return (
        f"pollute: a program's speed between calls of {POLLUTING}, relative to its "
        f"speed without them ({WORKS[work]}), work={work}\n"
        "(both with clock readings around the call, which wait for earlier instructions;\n"
        "at least: relative to work without readings, so their cost counts as the "
        "call's)\n" + table.table(head, rows)
    )


def duration_row(run: Run, work: str, every: int, often: list[float]) -> list[str]:
    found = run.find(POLLUTE, call=POLLUTING, work=work, every=every)
    if not found:
        return []
    unit = instructions_of(run, work)
    ticks = net_call(found)
    return [
        work,
        table.number(unit * every) if unit else f"{every} units",
        table.number(median(ticks)),
        table.ratio(ratio(often, ticks)),
    ]


def show_durations(run: Run) -> list[str]:
    rows = []
    for work in distinct(run.of(POLLUTE), "work"):
        found = run.of(POLLUTE, call=POLLUTING, work=work)
        for m in found:
            often = net_call(found[0])
            rows.append(duration_row(run, work, int(m.settings["every"]), often))
    if not rows:
        return []
    head = ["work", "instructions between calls", "ticks", "speed"]
    return [
        f"pollute: the duration of {POLLUTING}, and its speed relative to the most "
        "frequent calls (figure 4;\nthe paper has no numbers; it states that more frequent "
        "calls are faster)\n" + table.table(head, rows)
    ]


# Table 1.


def touched(lines: float) -> list[float]:
    """How many lines each function of the scale touches."""
    return [int(lines) * k * k // (SCALE - 1) ** 2 for k in range(SCALE)]


def scale_of(one: Json) -> list[float]:
    """How many ticks each function adds to following the chain."""
    walks = [middle(one["samples"][f"touch_{k}"]) for k in range(SCALE)]
    return [walk - walks[0] for walk in walks]


def at(ticks: float, scale: Sequence[float], lines: Sequence[float]) -> float:
    """The number of lines touched by a function that costs so many ticks. The scale
    must rise."""
    for k in range(len(scale) - 1, 0, -1):
        if scale[k - 1] < ticks:
            rise = scale[k] - scale[k - 1]
            within = min(1.0, (ticks - scale[k - 1]) / rise) if rise > 0 else 1.0
            return lines[k - 1] + within * (lines[k] - lines[k - 1])
    return 0.0


def lines_of(one: Json) -> float:
    """The lines that the call takes, by the same round's scale, which is made to rise."""
    scale = list(accumulate(scale_of(one), max))
    call = middle(one["samples"]["call"]) - middle(one["samples"]["touch_0"])
    return at(call, scale, touched(one["counts"]["lines"]))


def rises_from(scale: Sequence[float]) -> int:
    """The first function from which on every next function costs more ticks."""
    k = len(scale) - 1
    while k > 0 and scale[k] > scale[k - 1]:
        k -= 1
    return k


def scale_at(measurements: Sequence[Measurement]) -> list[float]:
    """The scale of a level: each function's median over all rounds."""
    found = [scale_of(r) for m in measurements for r in m.rounds]
    return [median(column) for column in zip(*found, strict=True)]


def least_lines(found: list[Measurement]) -> float:
    """The resolution in lines: the larger of the lines that "none" apparently takes,
    and the number of lines from which on functions that touch more cost more.
    """
    none = [m for m in found if m.settings["call"] == NONE]
    lines = touched(found[0].count("lines"))
    nothing = [lines_of(one) for m in none for one in m.rounds]
    return max([*nothing, lines[rises_from(scale_at(found))]])


def lines_cell(found: list[Measurement], call: str) -> str:
    for m in found:
        if m.settings["call"] == call:
            return ranged([lines_of(one) for one in m.rounds], least_lines(found))
    return table.NOTHING


def call_ticks(found: list[Measurement], call: str) -> str:
    for m in found:
        if m.settings["call"] == call:
            clock = m.count("clock_ticks")
            return table.number(median(series(m, "call_ticks")) - clock)
    return table.NOTHING


def footprint_row(levels: dict[str, list[Measurement]], call: str) -> list[str]:
    ticks = call_ticks(levels[next(iter(levels))], call)
    return [call, ticks, *(lines_cell(levels.get(x, []), call) for x in LEVELS)]


def show_scale(level: str, found: list[Measurement]) -> str:
    lines, scale = touched(found[0].count("lines")), scale_at(found)
    rows = [
        [f"{a:,}", table.number(b)]
        for k, (a, b) in enumerate(zip(lines, scale, strict=True))
        if k % 2 == 0
    ]
    title = (
        f"footprint: the scale of {level}, of {found[0].count('lines'):,.0f} lines: ticks "
        "after a function that touches so many lines"
    )
    return f"{title}\n" + table.table(["touched", "ticks"], rows)


def show_footprint(run: Run) -> list[str]:
    levels = {
        level: found for level in LEVELS if (found := run.of(FOOTPRINT, level=level))
    }
    if not levels:
        return []
    rows = [footprint_row(levels, call) for call in FOOTPRINT_CALLS if call != NONE]
    head = ["call", "ticks", *LEVELS]
    return [
        "footprint: cache lines and TLB entries that a call takes from the program: as many "
        "as a function that touches that number (table 1)\n" + table.table(head, rows),
        *(show_scale(level, found) for level, found in levels.items()),
    ]


def instructions_cell(found: Sequence[Measurement]) -> str:
    return table.number(median(net_call(found[0]))) if found else table.NOTHING


def show_instructions(run: Run) -> list[str]:
    found = run.of(INSTRUCTIONS)
    if not found:
        return []
    rows = [
        [call, instructions_cell(run.of(INSTRUCTIONS, call=call))]
        for call in FOOTPRINT_CALLS[1:]
    ]
    return [
        "instructions per call, counted in a guest of Linux "
        f"{found[0].settings['kernel']} (table 1)\n"
        + table.table(["call", "instructions"], rows)
    ]


def show(run: Run) -> list[str]:
    works = distinct(run.of(POLLUTE), "work")
    return [
        *show_lost(run),
        *(show_pollute(run, work) for work in works),
        *show_durations(run),
        *show_footprint(run),
        *show_instructions(run),
    ]
