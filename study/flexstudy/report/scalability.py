# SPDX-License-Identifier: MIT
"""An estimate of what a server answers on more cores than were measured, by Gunther's
universal scalability law. The estimate is drawn dashed, and is no result. The rate on N
cores is

    X(N) = rate * N / (1 + queueing * (N - 1) + crosstalk * N * (N - 1))

N / X(N) is a sum of three terms with one unknown factor each, so linear least squares
fit the law.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module

POINTS = 4  # of a curve, at least
BEYOND = 4  # times the most cores that were measured


@dataclass(frozen=True)
class Law:
    """rate: on one core. queueing: the cost that grows with the number of further cores.
    crosstalk: the cost that grows with the number of pairs of cores.
    """

    rate: float
    queueing: float
    crosstalk: float

    def at(self, cores: float) -> float:
        costs = self.queueing * (cores - 1) + self.crosstalk * cores * (cores - 1)
        return self.rate * cores / (1 + costs)


def fit(points: Sequence[tuple[float, float]]) -> Law | None:
    """The law that fits the points, each a number of cores and a rate. None: fewer than
    POINTS numbers of cores, a rate of 0, or no law with a positive rate. A cost that would
    be negative is taken as 0, and the law is fitted again without that cost.
    """
    if len({cores for cores, _ in points}) < POINTS or not all(x for _, x in points):
        return None
    solve = import_module("numpy").linalg.lstsq  # matplotlib needs it, too
    cores_a_rate = [cores / rate for cores, rate in points]
    names = ["queueing", "crosstalk"]
    while True:
        terms = [
            [1.0, *({"queueing": n - 1, "crosstalk": n * (n - 1)}[x] for x in names)]
            for n, _ in points
        ]
        whole, *costs = (float(x) for x in solve(terms, cores_a_rate, rcond=None)[0])
        if whole <= 0:
            return None
        least = min(range(len(costs)), key=costs.__getitem__, default=None)
        if least is None or costs[least] >= 0:
            found = dict(zip(names, (cost / whole for cost in costs), strict=True))
            crosstalk = found.get("crosstalk", 0.0)
            return Law(1 / whole, found.get("queueing", 0.0), crosstalk)
        del names[least]
