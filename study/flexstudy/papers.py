# SPDX-License-Identifier: MIT
"""The papers' numbers, from the files in papers/; their README describes how the
numbers were read. A file's rows have one type (TYPES), whose fields are the file's
columns. geneves-t1.csv belongs to the bench, which tunes its networks by it.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from flexbench import machine
from flexbench.samples import BenchError

FOLDER = Path(__file__).resolve().parent / "papers"
INDEX = "index.csv"


@dataclass(frozen=True)
class Item:
    """A figure or table of a paper. data: the name of its file, or empty."""

    id: str
    paper: str
    figure: str
    title: str
    kind: str
    data_in_text: str
    data: str
    claim: str


@dataclass(frozen=True)
class Point:
    """A number of a figure, as stated in a sentence of the paper."""

    series: str
    cores: str
    x_name: str
    x: str
    quantity: str
    value: str
    unit: str
    kind: str
    section: str
    says: str

    @property
    def number(self) -> float | None:
        try:
            return float(self.value)
        except ValueError:
            return None


@dataclass(frozen=True)
class Footprint:
    """OSDI, table 1: a call's instructions and cycles, and the cache lines that it
    displaces."""

    syscall: str
    instructions: int
    cycles: int
    ipc: float
    icache_lines: int
    dcache_lines: int
    l2_lines: int
    l3_lines: int
    dtlb_entries: int


@dataclass(frozen=True)
class Frequency:
    """OSDI, table 2."""

    workload: str
    server: str
    instructions_per_syscall: int


@dataclass(frozen=True)
class Metrics:
    """OSDI, tables 4 and 5. mpki: misses per thousand instructions."""

    server: str
    setup: str
    cores: int
    mode: str
    ipc: float
    l3_mpki: float
    l2_mpki: float
    dcache_mpki: float
    icache_mpki: float
    tlb_mpki: float
    branch_mpki: float


@dataclass(frozen=True)
class Profile:
    """ATC, table 1."""

    server: str
    workload: str
    syscalls_per_request: int
    user_instructions_per_syscall: int
    user_ipc: float
    kernel_instructions_per_syscall: int
    kernel_ipc: float


@dataclass(frozen=True)
class Setting:
    setting: str
    value: str


@dataclass(frozen=True)
class Setup:
    what: str
    value: str
    section: str


@dataclass(frozen=True)
class SendServer:
    """SEND, figure 4.11."""

    server: str
    delivery: str
    notification: str


# The type of each file's rows; rows of all other files are points. None: the page shows
# the cells unchanged.
TYPES: dict[str, type | None] = {
    INDEX: Item,
    "osdi-t1.csv": Footprint,
    "osdi-t2.csv": Frequency,
    "osdi-t3.csv": None,
    "osdi-t4.csv": Metrics,
    "osdi-t5.csv": Metrics,
    "atc-t1.csv": Profile,
    "atc-t2.csv": None,
    "atc-t3.csv": None,
    "geneves-t1.csv": Setting,
    "geneves-t2.csv": None,
    "geneves-setup.csv": Setup,
    "send-f4.11.csv": SendServer,
    "send-figures.csv": None,
}

T = TypeVar("T")


@dataclass(frozen=True)
class Data:
    """A file. cells: the rows as written; rows: the rows as objects."""

    head: list[str]
    cells: list[list[str]]
    rows: list[Any]

    def of(self, kind: type[T]) -> list[T]:
        return [row for row in self.rows if isinstance(row, kind)]

    @property
    def points(self) -> list[Point]:
        return self.of(Point)


def columns(kind: type) -> list[str]:
    return [field.name for field in fields(kind)]


def parsed(kind: type, cells: list[str]) -> Any:
    types = get_type_hints(kind)
    names = [field.name for field in fields(kind)]
    pairs = zip(names, cells, strict=True)
    return kind(**{name: types[name](cell) for name, cell in pairs})


@cache
def read(name: str) -> Data:
    """Read a file. BenchError: the file is missing, or has other columns or invalid
    values."""
    path = machine.TUNING if name == machine.TUNING.name else FOLDER / name
    kind = TYPES.get(name, Point)
    try:
        with path.open(encoding="utf-8", newline="") as file:
            head, *cells = csv.reader(file)
        if kind is None:
            return Data(head, cells, [])
        if head != columns(kind):
            raise BenchError(f"{path}: the columns must be {', '.join(columns(kind))}")
        return Data(head, cells, [parsed(kind, row) for row in cells])
    except OSError as error:
        raise BenchError(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise BenchError(f"{path}: {error}") from error


def index() -> list[Item]:
    return read(INDEX).of(Item)


def data_of(item: Item) -> Data:
    """The item's file; empty if the paper's text has no numbers for the item."""
    return read(item.data) if item.data else Data([], [], [])
