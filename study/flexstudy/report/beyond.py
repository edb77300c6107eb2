# SPDX-License-Identifier: MIT
"""The figures beyond the papers, which are those of the web server study. They have
items of their own, as papers/index.csv has the papers' ones alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from ..papers import Data, Item
from . import choosing, inside, study
from .figure import Bench, Draw, Figure, Row, State
from .runs import Runs
from .study import PAGES, PERCENTILES, SPECWEB, bench


def item(id: str, figure: str, title: str) -> Item:
    return Item(id, "The study", figure, title, "measured", "none", "", "", "", "yes")


DIFFERS = (
    "No paper has this figure. Models with FlexSC have a gain: loops beside events, "
    "threads and stages under flexsc run beside themselves, flexsc serve beside nginx."
)
BOTH = [bench(SPECWEB), bench(PAGES)]
INSIDE = Bench(("webserver", "breakdown"), study.BREAKDOWN, slow=True)
PAGE = Bench(("webserver", "page"), study.STUDY, {"workload": "page"})
TUNED = Bench(
    ("webserver", "page", "--tune"), study.TUNE, {"workload": "page"}, slow=True
)


def figure(
    id: str,
    rows: Callable[[Runs, Data], list[Row]],
    benches: Sequence[Bench],
    draws: Sequence[Draw] = (),
) -> Figure:
    return Figure(id, State.MEASURED, "", DIFFERS, benches, rows, draws)


def panels(*workloads: str) -> list[Draw]:
    return [partial(study.offered_panel, workload, 1) for workload in workloads]


ITEMS = [
    item("study-s1", "S1", "Good answers against what is offered, on one core"),
    item("study-s2", "S2", "Peaks against cores"),
    item("study-s3", "S3", "Latency against what is offered"),
    item("study-s4", "S4", "Evenness over connections and sizes"),
    item("study-s5", "S5", "The processor's time of a request, by part"),
    item("study-s6", "S6", "System calls and switches of a request"),
    item("study-s8", "S8", "Good answers at twice the saturation"),
    item("study-s10", "S10", "What was tuned"),
    item("study-s11", "S11", "Which model for a service: requests beside events'"),
]
FIGURES = [
    figure(
        "study-s1",
        partial(study.peak_rows, (SPECWEB, PAGES)),
        BOTH,
        panels(SPECWEB, PAGES),
    ),
    Figure(
        "study-s2",
        State.MEASURED,
        differs=DIFFERS,
        benches=[study.several(study.PEAK)],
        rows=study.scaling_rows,
        draws=[study.scaling_panel],
        cores=study.LEAST_CORES,
    ),
    figure(
        "study-s3",
        study.latency_rows,
        BOTH,
        [partial(study.latency_panel, SPECWEB, p) for p in PERCENTILES],
    ),
    figure("study-s4", study.evenness_rows, BOTH),
    figure("study-s5", inside.part_rows, [INSIDE], [inside.part_panel]),
    figure("study-s6", inside.count_rows, [INSIDE]),
    figure("study-s8", study.overload_rows, BOTH),
    figure("study-s10", choosing.tuning_rows, [TUNED]),
    figure(
        "study-s11",
        choosing.choice_rows,
        [
            PAGE,
            Bench(("webserver", "new"), study.STUDY, {"workload": "new"}),
            *BOTH,
        ],
    ),
]
