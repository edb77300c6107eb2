# SPDX-License-Identifier: MIT
"""The figures of Geneves 2012, for which the report has no bench yet."""

from __future__ import annotations

from .figure import Figure, State
from .osdi import COUNTERS

STUDY = "the page has none of flexsc bench study yet, which has two small workloads"

FIGURES = [
    Figure("geneves-t1", State.NOT_BUILT, "benches don't record these settings yet"),
    Figure("geneves-setup", State.NOT_BUILT, STUDY),
    Figure("geneves-f1", State.NOT_BUILT, STUDY),
    # Servers and clients have half of the machine each.
    Figure("geneves-f2", State.NOT_BUILT, STUDY, cores=16),
    Figure("geneves-f4", State.NOT_BUILT, STUDY, cores=8),
    Figure("geneves-t2", State.COUNTERS, COUNTERS),
    Figure("geneves-f3", State.COUNTERS, COUNTERS),
    Figure("geneves-f5", State.COUNTERS, "takes the memory bus' counters"),
    Figure("geneves-memory", State.NOT_BUILT, "the memory's speed isn't measured yet"),
]
