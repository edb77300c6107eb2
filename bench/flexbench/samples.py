# SPDX-License-Identifier: MIT
"""Measurements, and the file that keeps them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from types import UnionType
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


def number(text: str) -> float:
    """A JSON number; ValueError: none that is finite."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


def whole(text: str) -> int:
    number(text)
    return int(text)


def has(found: Any, kind: type | UnionType, *within: type | UnionType) -> bool:
    """Is a value of a kind, and what is in it, level by level, of the kinds within?"""
    if not isinstance(found, kind):
        return False
    values = found.values() if isinstance(found, dict) else found
    return not within or all(has(value, *within) for value in values)


def is_measurement(m: Measurement) -> bool:
    """Has it the types that Run.of() needs? The bench looks at what a round has."""
    return (
        has(m.bench, str)
        and has(m.settings, dict, str | int | float)
        and has(m.rounds, list, dict)
    )


def is_machine(found: Any) -> bool:
    """Has it the types that the report needs? machine.describe() needs more."""
    return (
        has(found, dict)
        and has(found.get("cores", {}), dict)
        and has(found.get("online", 0), int)
    )


def run_of(found: Any) -> Run:
    """The run that a file of this version has; or one of UNREADABLE."""
    run = Run(
        machine=found["machine"],
        command=found["command"],
        measurements=[Measurement(**m) for m in found["measurements"]],
        notes=found["notes"],
    )
    if not (
        is_machine(run.machine)
        and has(run.command, list, str)
        and has(run.notes, list, str)
        and has(found["measurements"], list)
        and all(map(is_measurement, run.measurements))
    ):
        raise TypeError
    return run


def load(path: Path) -> Run:
    try:
        text = path.read_text(encoding="utf-8")
        found = json.loads(
            text, parse_constant=number, parse_float=number, parse_int=whole
        )
        # Halves of a pair of UTF-16 can't be written again.
        json.dumps(found, ensure_ascii=False).encode()
        if found["flexbench"] != FORMAT:
            raise BenchError(f"{path}: written by another version of flexbench")
        return run_of(found)
    except OSError as error:
        raise BenchError(f"{path}: {error.strerror}") from error
    except (*UNREADABLE, RecursionError) as error:
        raise BenchError(f"{path}: not a file of flexbench") from error
