# SPDX-License-Identifier: MIT
"""The command line of "flexsc study overload": its parts and words, and how often and
how long it measures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from flexbench.samples import BenchError

from . import mix

BENCH = "overload"
SERVER = "http-events"
FOLDER = "../study/servers/overload"  # the server's folder, relative to the command
SATURATION, RESPONSES, GOODPUT = "saturation", "responses", "goodput"
TRACE = "trace"
PARTS = [SATURATION, RESPONSES, GOODPUT, TRACE]
QUICK_PARTS = [SATURATION, RESPONSES, GOODPUT]

TIMES = ["0.2", "0.5", "0.8", "1", "1.2", "1.5", "2", "3"]
QUICK_TIMES = {RESPONSES: ["0.5", "1", "2"], GOODPUT: ["2"]}
TRACE_TIMES = ["1.2"]

ROUNDS = 3
REQUESTS = 25000
QUICK_S = 1
GIVE_UP_MS = 1000
MIX = "barford"

# The search for the saturation point: a second per probe. A server holds a rate if it
# answers all requests, nearly as fast as they are sent.
PROBES, QUICK_PROBES = 7, 5
FIRST_RATE = 500
HELD = 0.97


@dataclass(frozen=True)
class Options:
    """The words after "flexsc study overload"."""

    parts: list[str] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    size: list[str] = field(default_factory=lambda: ["1"])
    rate: list[str] = field(default_factory=list)
    admission: list[str] = field(default_factory=lambda: ["none"])
    work: int = 100
    backlog: int = 128


NUMBERS = {"work": (0, 100000), "backlog": (1, 65535)}
WORDS = {
    "admission": ["none", "age"],
    "mix": [MIX],
}
LISTS = ["events", "size", "rate", "admission"]


def is_number(text: str, low: float, high: float) -> bool:
    try:
        return low <= float(text) <= high
    except ValueError:
        return False


def check(key: str, value: str) -> None:
    if key in WORDS and value not in WORDS[key]:
        raise BenchError(f"{key}={value}: give {', '.join(WORDS[key])}")
    if key == "size" and not (value.isdigit() and is_number(value, 1, mix.KIB_MAX)):
        raise BenchError(f"size={value}: give KiB from 1 to {mix.KIB_MAX}")
    if key == "rate" and not is_number(value.removesuffix("x"), 0.01, 100):
        raise BenchError(
            f"rate={value}: give 0.01x to 100x, times the saturation point"
        )
    if key in NUMBERS:
        low, high = NUMBERS[key]
        if not (value.isdigit() and is_number(value, low, high)):
            raise BenchError(f"{key}={value}: give a number from {low} to {high}")


def put(options: Options, key: str, value: str) -> Options:
    for one in value.split(",") if key in LISTS else [value]:
        check(key, one)
    if key == "mix":
        return replace(options, size=[value])
    if key == "rate":
        value = value.replace("x", "")
    made: Any = value.split(",") if key in LISTS else value
    if key in NUMBERS:
        made = int(value)
    return replace(options, **{key: made})


def parse(words: Sequence[str]) -> Options:
    """Parse the words. The first error raises BenchError."""
    options = Options()
    keys = [*LISTS, *NUMBERS, "mix"]
    for word in words:
        key, equals, value = word.partition("=")
        if word in PARTS:
            options = replace(options, parts=[*options.parts, word])
        elif equals and key in keys:
            options = put(options, key, value)
        else:
            raise BenchError(
                f'overload: unknown word "{word}": give '
                f'{", ".join(PARTS)}, or KEY=VALUE '
                f"with the keys {', '.join(keys)}"
            )
    return options
