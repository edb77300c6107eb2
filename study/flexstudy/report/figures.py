# SPDX-License-Identifier: MIT
"""All figures of the report, in the order of papers/index.csv."""

from __future__ import annotations

from collections.abc import Sequence

from flexbench.samples import BenchError

from .. import papers
from ..papers import Item
from . import atc, costs, geneves, osdi, send
from .figure import Figure

FIGURES = {
    figure.id: figure
    for paper in (costs, osdi, atc, geneves, send)
    for figure in paper.FIGURES
}


def chosen(only: Sequence[str]) -> list[tuple[Item, Figure]]:
    """The items with these ids and their figures; without ids, all."""
    items = papers.index()
    for name in only:
        if name not in FIGURES:
            ids = ", ".join(item.id for item in items)
            raise BenchError(f"--only {name}: unknown figure; choose from {ids}")
    return [(i, FIGURES[i.id]) for i in items if not only or i.id in only]
