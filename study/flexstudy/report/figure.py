# SPDX-License-Identifier: MIT
"""A figure of the report: its benches, its state and its rows. Each row is a number of
ours beside one of the paper's, with a verdict.

Ratios are gains: above 1, FlexSC or SEND is better. So if a paper states a time, its
inverse is compared.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

from flexbench import table
from flexbench.__main__ import COMMAND
from flexbench.compare import Interval

from ..papers import Data, Point

if TYPE_CHECKING:
    from .runs import Runs

# With fewer rounds than three, the interval contains the true median in at most half of
# all cases, which is too few for a verdict.
UNSURE_COVERAGE = 0.5


class State(Enum):
    """Whether a figure has measurements, and if not, why."""

    MEASURED = "measured"
    STAND_IN = "stand-in"
    RECORDED = "recorded"
    NOT_MEASURED = "not measured"
    COUNTERS = "hardware counters"
    TOO_SMALL = "machine too small"
    DIAGRAM = "diagram"


class Verdict(Enum):
    """The result of comparing our ratio with the paper's gain, or with 1 if the paper
    has none."""

    REACHED = "reached"
    IN_PART = "in part"
    AHEAD = "ahead"  # the paper has no number for it
    EVEN = "no difference"
    OTHER_WAY = "the other way"
    BELOW = "below the paper"  # the paper has a loss, and ours is larger
    UNSURE = "too few rounds"


LOST = (Verdict.OTHER_WAY, Verdict.BELOW)


def judge(ratio: Interval, gain: float | None) -> Verdict:
    """The verdict on a ratio. gain: the paper's gain, if it has one."""
    if ratio.coverage <= UNSURE_COVERAGE:
        return Verdict.UNSURE
    if gain is not None and ratio.low >= gain:
        return Verdict.REACHED
    if gain is not None and gain < 1:
        return Verdict.BELOW if ratio.high < gain else Verdict.EVEN
    if ratio.low > 1:
        return Verdict.AHEAD if gain is None else Verdict.IN_PART
    return Verdict.OTHER_WAY if ratio.high < 1 else Verdict.EVEN


# The quantities that count as gains: those where more is better, and those where less
# is.
MORE = {
    "throughput",
    "transactions",
    "BIND throughput",
    "speed beside a synchronous one",
    "saturation point",
    "throughput beyond saturation",
}
LESS = {
    "time of a call beside a synchronous one",
    "mean latency",
    "time to take the queued",
}


def gain_of(point: Point) -> float | None:
    """A point's number as a gain. None: the number isn't a ratio."""
    if point.quantity not in MORE | LESS or point.number is None:
        return None
    if point.unit == "times":
        ratio = point.number
    elif point.unit == "percent":
        # A negative percentage is a change; a positive one is a share.
        ratio = point.number / 100 + (1 if point.number < 0 else 0)
    else:
        return None
    return 1 / ratio if point.quantity in LESS else ratio


KINDS = {
    "about": "about",
    "up_to": "up to",
    "at_least": "at least",
    "at_most": "at most",
    "range_low": "from",
    "range_high": "to",
    "mean": "on average",
}


def said(point: Point) -> str:
    """A point's number, in words."""
    words = [KINDS.get(point.kind, ""), point.value, point.unit]
    return " ".join(word for word in words if word)


@dataclass(frozen=True)
class Row:
    """Our number, in `here` or `ratio`, and the paper's number, if it has one, in
    `point` or `paper`. reason: why there is no number of ours.
    """

    where: str
    point: Point | None = None
    paper: str = ""  # a number of the paper that isn't a point
    here: str = ""
    ratio: Interval | None = None
    reason: str = ""

    @property
    def gain(self) -> float | None:
        return gain_of(self.point) if self.point else None

    @property
    def verdict(self) -> Verdict | None:
        return judge(self.ratio, self.gain) if self.ratio else None

    @property
    def beside(self) -> str:
        return said(self.point) if self.point else self.paper


def command_of(words: Sequence[str]) -> list[str]:
    """flexsc's arguments without the subcommand, so that they begin with the bench's
    name.
    """
    return ["bench" if words and words[0] in COMMAND.benches else "study", *words]


@dataclass(frozen=True)
class Bench:
    """A command that measures for a figure, and how to find its measurements. slow:
    --quick skips it.
    """

    words: tuple[str, ...]
    bench: str
    settings: dict[str, str | int] = field(default_factory=dict)
    slow: bool = False

    @property
    def name(self) -> str:
        return "-".join(re.sub("[=:]", "-", word.lstrip("-")) for word in self.words)

    @property
    def command(self) -> str:
        return " ".join(["flexsc", *command_of(self.words)])


Rows = Callable[["Runs", Data], list[Row]]
Draw = Callable[[Any, "Runs", list[Row]], None]


def no_rows(runs: Runs, data: Data) -> list[Row]:
    return []


@dataclass(frozen=True)
class Figure:
    """The report's part for an item of papers/index.csv. state, why: apply if there are
    measurements or no bench is needed; COUNTERS applies if there are none.
    draws: functions, each of which draws on its own axes.
    """

    id: str
    state: State
    why: str = ""
    differs: str = ""  # differences from the paper's setup
    benches: Sequence[Bench] = ()
    rows: Rows = no_rows
    draws: Sequence[Draw] = ()
    cores: int = 0  # number of physical cores that the machine must have


def number_pair(ours: float, theirs: float, unit: str) -> str:
    return f"{table.number(ours)} beside {table.number(theirs)} {unit}"
