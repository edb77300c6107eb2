# SPDX-License-Identifier: MIT
"""The web server study: what Geneves 2012 and ATC's figure 9 stand beside, and the
figures beyond the papers.

A model's gain has a verdict where FlexSC is in one of two models that are otherwise
alike (TWINS). Other models are told beside each other without one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flexbench import chart, table
from flexbench.chart import Scale, curves_of
from flexbench.samples import Measurement, distinct

from ..papers import Data
from ..webserver import breakdown, subjects, tuning
from ..webserver import offered as open_loop
from ..webserver.limits import limited
from .figure import Bench, Row, number_pair
from .runs import Runs, gain

# The names of the study's measurements and series.
STUDY, TUNE, REQUESTS = subjects.BENCH, tuning.TUNE, tuning.SERIES
PEAK, OFFERED, ANSWERS = open_loop.PEAK, open_loop.OFFERED, open_loop.ANSWERS
BREAKDOWN = breakdown.BENCH
MBIT, RESPONSE = "answers_mbit_per_s", "response_{}_us"
SPECWEB, PAGES = "specweb", "pages"
TWICE, LOADED = "2", 0.8  # times the best model's peak
CLASSES = range(4)

# A model with FlexSC, and the model that it would be without.
TWINS = {
    "loops": subjects.EVENTS,
    "threads-flexsc": "threads",
    "stages-flexsc": "stages",
    subjects.SERVE: subjects.NGINX,
}


def bench(workload: str, kind: str = OFFERED) -> Bench:
    return Bench(("webserver", workload), kind, {"workload": workload, "cores": 1})


def has(m: Measurement, name: str) -> bool:
    return all(name in one["samples"] for one in m.rounds)


def model(m: Measurement) -> str:
    return str(m.settings["model"])


def of_model(found: Sequence[Measurement], name: str) -> Measurement | None:
    return next((m for m in found if model(m) == name), None)


def twin(m: Measurement, found: Sequence[Measurement]) -> Measurement | None:
    return of_model(found, TWINS.get(model(m), ""))


def row_of(
    where: str,
    m: Measurement,
    found: Sequence[Measurement],
    series: str,
    unit: str,
    less: bool = False,
) -> Row:
    """A model's row: beside its twin, with a verdict, or alone."""
    other = twin(m, found)
    if other is None:
        here = f"{table.number(m.median(series))} {unit}"
        return Row(f"{where}, {model(m)}", here=here)
    medians = m.median(series), other.median(series)
    here = number_pair(*medians, f"{unit}, {model(other)}")
    return Row(f"{where}, {model(m)}", here=here, ratio=gain(m, other, series, less))


# Good answers against what is offered (S1).


def offered(runs: Runs, workload: str, cores: int = 1) -> list[Measurement]:
    return runs.of(OFFERED, workload=workload, cores=cores)


def peaks(runs: Runs, workload: str, cores: int = 1) -> list[Measurement]:
    return runs.of(PEAK, workload=workload, cores=cores)


def peak_rows(workloads: Sequence[str], runs: Runs, data: Data) -> list[Row]:
    rows = []
    for workload in workloads:
        found = peaks(runs, workload)
        where = f"{workload}, peak"
        rows += [row_of(where, m, found, ANSWERS, "answers/s") for m in found]
    return rows


def offered_panel(
    workload: str, cores: int, axes: Any, runs: Runs, rows: Sequence[Row]
) -> None:
    offered_curves(axes, offered(runs, workload, cores), workload, cores)


def offered_curves(
    axes: Any, found: Sequence[Measurement], workload: str, cores: int
) -> None:
    if not found:
        axes.set_axis_off()
        return
    curves = curves_of(found, "offered_per_s", ANSWERS, model, limited)
    scale = Scale("requests a second, offered", "good answers a second", log_x=False)
    chart.curves(axes, curves, scale)
    axes.set_title(f"{workload}, {table.cores(cores)}")


# Peaks against cores (S2).

LEAST_CORES = 4  # physical ones of the smallest machine whose server may have two


def several(kind: str) -> Bench:
    """The bench of a run that has servers on several cores. A peak is compared only with
    peaks of its own run.
    """
    words = ("webserver", SPECWEB, "--cores", "all")
    return Bench(words, kind, {"workload": SPECWEB, "scaling": 1})


def all_cores(runs: Runs, kind: str = PEAK) -> list[Measurement]:
    bench = several(kind)
    return runs.of(bench.bench, **bench.settings)


def scaling_rows(runs: Runs, data: Data) -> list[Row]:
    found = all_cores(runs)
    rows = []
    for name in distinct(found, "model"):
        mine = [m for m in found if model(m) == name]
        least = mine[0].median(ANSWERS)
        for m in mine:
            times = m.median(ANSWERS) / least
            here = f"{table.number(m.median(ANSWERS))} answers/s, {times:.2f} times"
            rows.append(
                Row(f"{name}, {table.cores(int(m.settings['cores']))}", here=here)
            )
    return rows


def scaling_panel(axes: Any, runs: Runs, rows: Sequence[Row]) -> None:
    curves = curves_of(all_cores(runs), "cores", ANSWERS, model, limited)
    chart.curves(axes, curves, Scale("cores", "good answers a second, peak"))


# Latency against what is offered (S3), and evenness (S4).

PERCENTILES = ("p50", "p90", "p99", "p999")


def loaded(runs: Runs, workload: str) -> list[Measurement]:
    """The models at the highest load up to 0.8 times the best peak."""
    found = offered(runs, workload)
    below = [t for t in distinct(found, "times") if float(t) <= LOADED] if found else []
    at = max(below, key=float) if below else None
    return [m for m in found if m.settings["times"] == at]


def latency_rows(runs: Runs, data: Data) -> list[Row]:
    rows = []
    for workload in (SPECWEB, PAGES):
        found = loaded(runs, workload)
        for m in found:
            where = f"{workload} at {m.settings['times']} times the peak, p99"
            series = RESPONSE.format("p99")
            rows.append(row_of(where, m, found, series, "us", less=True))
    return rows


def latency_panel(
    workload: str, percentile: str, axes: Any, runs: Runs, rows: Sequence[Row]
) -> None:
    series = RESPONSE.format(percentile)
    found = offered(runs, workload)
    curves = curves_of(found, "offered_per_s", series, model, limited)
    scale = Scale("requests a second, offered", f"{percentile}, us", False, True)
    chart.curves(axes, curves, scale)


def slowdown(m: Measurement, klass: int) -> float | None:
    """How many times longer than the median one of a class' slow answers takes."""
    names = [f"class{klass}_response_{p}_us" for p in ("p50", "p99")]
    if not all(has(m, name) for name in names):
        return None
    middle, slow = (m.median(name) for name in names)
    return slow / middle if middle else None


def evenness_rows(runs: Runs, data: Data) -> list[Row]:
    rows = []
    for workload in (SPECWEB, PAGES):
        for m in peaks(runs, workload):
            here = f"Jain's index {m.median('jain'):.3f}"
            rows.append(Row(f"{workload}, kept connections, {model(m)}", here=here))
    for m in loaded(runs, SPECWEB):
        slow = [slowdown(m, klass) for klass in CLASSES]
        here = "p99/p50 by class " + ", ".join(map(table.number, slow))
        rows.append(Row(f"{SPECWEB} at {m.settings['times']}, {model(m)}", here=here))
    return rows


# Twice the saturation (S8).


def best_of(runs: Runs, m: Measurement) -> float:
    """The most that the model of a measurement answered of this workload."""
    workload = str(m.settings["workload"])
    found = [*peaks(runs, workload), *offered(runs, workload)]
    return max(x.median(ANSWERS) for x in found if model(x) == model(m))


def overload_rows(runs: Runs, data: Data) -> list[Row]:
    rows = []
    for workload in (PAGES, SPECWEB):
        found = runs.of(OFFERED, workload=workload, cores=1, times=TWICE)
        for m in found:
            row = row_of(f"{workload}, twice the peak", m, found, ANSWERS, "answers/s")
            share = m.median(ANSWERS) / best_of(runs, m)
            here = f"{row.here}; {share:.0%} of its peak"
            rows.append(Row(row.where, here=here, ratio=row.ratio))
    return rows
