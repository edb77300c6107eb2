# SPDX-License-Identifier: MIT
"""The files of measurements that a report is made of."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from flexbench import samples
from flexbench.compare import Interval, ratio
from flexbench.runner import DISTURBED
from flexbench.samples import Json, Measurement, Run

from .figure import Bench


@dataclass(frozen=True)
class Source:
    """A file of flexsc bench --out."""

    name: str
    run: Run

    @property
    def machine(self) -> Json:
        return self.run.machine

    def same(self, other: Source) -> bool:
        """Do both files have the same machine and revision?"""
        keys = ("cpu", "online", "kernel", "revision")
        return all(self.machine.get(k) == other.machine.get(k) for k in keys)

    def disturbed(self, bench: Bench) -> float:
        """The largest share of the measured cores, in percent, that other processes
        used in a round."""
        rounds = [
            r for m in self.run.of(bench.bench, **bench.settings) for r in m.rounds
        ]
        shares = [s for r in rounds for s in r["samples"].get(DISTURBED, [0.0])]
        return max(shares, default=0.0)


@dataclass
class Runs:
    """The files, in order of preference: a bench's measurements come from the first
    file that has any. failed: reasons of failed benches, by their names.
    """

    sources: list[Source] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)

    def source(self, bench: str, **settings: str | int) -> Source | None:
        for source in self.sources:
            if source.run.of(bench, **settings):
                return source
        return None

    def has(self, bench: Bench) -> Source | None:
        return self.source(bench.bench, **bench.settings)

    def of(self, bench: str, **settings: str | int) -> list[Measurement]:
        source = self.source(bench, **settings)
        return source.run.of(bench, **settings) if source else []

    def find(self, bench: str, **settings: str | int) -> Measurement | None:
        found = self.of(bench, **settings)
        return found[0] if found else None


def name_of(path: Path) -> str:
    """The file's name; bytes that aren't UTF-8 are replaced."""
    return os.fsencode(path.name).decode(errors="replace")


def load(paths: Iterable[Path]) -> list[Source]:
    """Load files. BenchError: one of them isn't a file of flexbench."""
    return [Source(name_of(path), samples.load(path)) for path in paths]


def gain(
    ours: Measurement, theirs: Measurement, series: str, less: bool = False
) -> Interval:
    """The gain of ours over theirs in a series. less: series in which less is better."""
    pair = (theirs, ours) if less else (ours, theirs)
    return ratio(pair[0].series(series), pair[1].series(series))
