# SPDX-License-Identifier: MIT
"""Measurements, and the file that keeps them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

Json = dict[str, Any]
Settings = dict[str, str | int]

FORMAT = 1


class BenchError(Exception):
    """The reason for a failure, and what to do, in one line."""


@dataclass
class Measurement:
    """One variant under one set of settings, with each round's output.

    A round is an object with "samples", a list per name, and "counts".
    """

    bench: str
    settings: Settings
    rounds: list[Json] = field(default_factory=list)

    def series(self, name: str) -> list[float]:
        """One value per round: the median of its repetitions."""
        return [median(r["samples"][name]) for r in self.rounds]

    def median(self, name: str) -> float:
        return median(self.series(name))

    def count(self, name: str) -> float:
        """A count, from the last round."""
        return float(self.rounds[-1]["counts"][name])

    @property
    def cores(self) -> int:
        """The number of the server's cores, which an older version's file lacks."""
        return int(self.settings.get("cores", 1))

    def fits(self, settings: Settings) -> bool:
        return all(self.settings.get(k) == v for k, v in settings.items())


@dataclass
class Run:
    """All measurements of one command, the machine, and what was skipped."""

    machine: Json
    command: list[str]
    measurements: list[Measurement] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Add a note for the reader, once."""
        if text not in self.notes:
            self.notes.append(text)

    def of(self, bench: str, **settings: str | int) -> list[Measurement]:
        return [m for m in self.measurements if m.bench == bench and m.fits(settings)]

    def find(self, bench: str, **settings: str | int) -> Measurement | None:
        found = self.of(bench, **settings)
        return found[0] if found else None


def distinct(measurements: Iterable[Measurement], key: str) -> list[Any]:
    """The distinct values of a setting, in the order of measurement."""
    return list(dict.fromkeys(m.settings[key] for m in measurements))


def by_cores(found: Iterable[Measurement]) -> dict[int, list[Measurement]]:
    """Measurements of servers by their number of cores, in ascending order."""
    every = list(found)
    counts = sorted({m.cores for m in every})
    return {n: [m for m in every if m.cores == n] for n in counts}


def save(run: Run, path: Path) -> None:
    """One line per measurement, so that kept files can be compared with each other."""
    about = {"flexbench": FORMAT, "machine": run.machine, "command": run.command}
    head = [
        f"{json.dumps(key)}: {json.dumps(value)}"
        for key, value in {**about, "notes": run.notes}.items()
    ]
    lines = ",\n".join(json.dumps(asdict(m)) for m in run.measurements)
    text = "{" + ",\n".join([*head, f'"measurements": [\n{lines}\n]']) + "}\n"
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BenchError(f"{path}: {error.strerror}") from error


# Reading a file, which may come from an older version, or may have been edited.

# Exceptions that an incomplete file causes.
UNREADABLE = (
    ArithmeticError,
    AttributeError,
    LookupError,
    StopIteration,
    TypeError,
    ValueError,
)


def run_of(found: Any) -> Run:
    """The run in a file of this version. May raise an exception of UNREADABLE."""
    return Run(
        machine=found["machine"],
        command=found["command"],
        measurements=[Measurement(**m) for m in found["measurements"]],
        notes=found["notes"],
    )


def load(path: Path) -> Run:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if found["flexbench"] != FORMAT:
            raise BenchError(f"{path}: written by another version of flexbench")
        return run_of(found)
    except OSError as error:
        raise BenchError(f"{path}: {error.strerror}") from error
    except (*UNREADABLE, RecursionError) as error:
        raise BenchError(
            f"{path}: not a result file of flexsc bench or flexsc study"
        ) from error
