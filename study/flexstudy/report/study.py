# SPDX-License-Identifier: MIT
"""The web server study, which is compared with Geneves 2012 and ATC's figure 9.

A model's gain has a verdict if two models differ only in FlexSC (TWINS). Other models
are listed side by side without a verdict.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flexbench import table
from flexbench.samples import Measurement, distinct

from ..papers import Data
from ..webserver import subjects
from ..webserver import offered as open_loop
from ..webserver.limits import limited
from . import chart
from .chart import Scale, curves_of
from .figure import Bench, Row, number_pair
from .runs import Runs, gain

# The names of the study's measurements and series.
PEAK, OFFERED, ANSWERS = open_loop.PEAK, open_loop.OFFERED, open_loop.ANSWERS
MBIT = "answers_mbit_per_s"
SPECWEB, PAGES = "specweb", "pages"

# Each model with FlexSC, and the same model without FlexSC.
TWINS = {
    "loops": subjects.EVENTS,
    "threads-flexsc": "threads",
    "stages-flexsc": "stages",
    subjects.SERVE: subjects.NGINX,
}


def bench(workload: str, kind: str = OFFERED) -> Bench:
    return Bench(("webserver", workload), kind, {"workload": workload, "cores": 1})


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
    """A model's row: compared with its twin, with a verdict, or alone."""
    other = twin(m, found)
    if other is None:
        here = f"{table.number(m.median(series))} {unit}"
        return Row(f"{where}, {model(m)}", here=here)
    medians = m.median(series), other.median(series)
    here = number_pair(*medians, f"{unit}, {model(other)}")
    return Row(f"{where}, {model(m)}", here=here, ratio=gain(m, other, series, less))


# Good answers against offered requests.


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


# Peaks against cores.

LEAST_CORES = 4  # physical cores of the smallest machine on which a server may have two


def several(kind: str) -> Bench:
    """The bench of a run with servers on several cores. A peak is compared only with
    peaks of the same run.
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
