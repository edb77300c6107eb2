# SPDX-License-Identifier: MIT
"""Medians, ratios, and their intervals.

The distribution of samples isn't assumed to be known. The interval of a median runs
between two of the sorted samples. By the binomial distribution they are chosen so that
the true median lies between them with at least the requested confidence. With too few
samples for that, the interval is the whole range, and the coverage is its actual
confidence.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from statistics import median

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Interval:
    low: float
    median: float
    high: float
    coverage: float


def coverage_of(n: int, rank: int) -> float:
    """The probability that the rank-th smallest and largest of n samples enclose the
    median."""
    outside: int = sum(comb(n, i) for i in range(rank))
    return 1 - 2 * outside / float(2**n)


def median_interval(
    samples: Sequence[float], confidence: float = CONFIDENCE
) -> Interval:
    if not samples:
        raise ValueError("no samples")
    ordered = sorted(samples)
    n = len(ordered)
    rank = 1
    while rank < (n + 1) // 2 and coverage_of(n, rank + 1) >= confidence:
        rank += 1
    return Interval(
        low=ordered[rank - 1],
        median=median(ordered),
        high=ordered[n - rank],
        coverage=coverage_of(n, rank),
    )


def ratio(a: Sequence[float], b: Sequence[float]) -> Interval:
    """The median of a[i] / b[i]; both were measured side by side in round i."""
    if len(a) != len(b):
        raise ValueError("not measured in the same rounds")
    return median_interval(
        [x / y if y else math.inf for x, y in zip(a, b, strict=True)]
    )
