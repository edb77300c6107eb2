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
    """What went wrong and what to do, in one line."""


@dataclass
class Measurement:
    """One variant under one set of settings: what each round has printed.

    A round is an object with "samples", a list for each name, and "counts".
    """

    bench: str
    settings: Settings
    rounds: list[Json] = field(default_factory=list)

    def series(self, name: str) -> list[float]:
        """One figure a round: the median of its repetitions."""
        return [median(r["samples"][name]) for r in self.rounds]

    def median(self, name: str) -> float:
        return median(self.series(name))

    def count(self, name: str) -> float:
        """A count of the last round."""
        return float(self.rounds[-1]["counts"][name])

    def fits(self, settings: Settings) -> bool:
        return all(self.settings.get(k) == v for k, v in settings.items())


@dataclass
class Run:
    """All that one command has measured, on what, and what it left out."""

    machine: Json
    command: list[str]
    measurements: list[Measurement] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Something to tell, once."""
        if text not in self.notes:
            self.notes.append(text)

    def of(self, bench: str, **settings: str | int) -> list[Measurement]:
        return [m for m in self.measurements if m.bench == bench and m.fits(settings)]

    def find(self, bench: str, **settings: str | int) -> Measurement | None:
        found = self.of(bench, **settings)
        return found[0] if found else None


def distinct(measurements: Iterable[Measurement], key: str) -> list[Any]:
    """The values of a setting, each once, in the order measured."""
    return list(dict.fromkeys(m.settings[key] for m in measurements))


def save(run: Run, path: Path) -> None:
    """A line for each measurement: a file that is kept can be compared with another."""
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


# Reading a file, which may be of an older version, or edited.

# Errors of using what a file has, if it lacks something.
UNREADABLE = (
    ArithmeticError,
    AttributeError,
    LookupError,
    StopIteration,
    TypeError,
    ValueError,
)


def run_of(found: Any) -> Run:
    """The run that a file of this version has; or one of UNREADABLE."""
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
        raise BenchError(f"{path}: not a file of flexbench") from error
