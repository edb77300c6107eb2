# SPDX-License-Identifier: MIT
"""Tables for people."""

from __future__ import annotations

from collections.abc import Sequence

from . import compare
from .compare import Interval
from .machine import Cores
from .samples import Measurement

NOTHING = "-"


def number(value: float | None) -> str:
    """A number with at least three digits, and no meaningless ones."""
    if value is None:
        return NOTHING
    if abs(value) >= 100:
        return f"{value:,.0f}"
    if abs(value) >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if abs(value) >= 1 else f"{value:.3f}"


def ratio(value: Interval | None) -> str:
    """The median, and its interval."""
    if value is None:
        return NOTHING
    return f"{value.median:.2f} ({value.low:.2f}-{value.high:.2f})"


# A server that was busy for a smaller share of the time could have done more. Its
# clients were the limit, so its rate isn't its maximum.
BUSY_PERCENT = 95.0
LIMITED = "*"


def limited(measurement: Measurement) -> bool:
    """Were the server's clients the limit? An older version's file doesn't contain
    this."""
    busy = "busy_percent" in measurement.rounds[0]["samples"]
    return busy and measurement.median("busy_percent") < BUSY_PERCENT


def rate(measurement: Measurement, series: str) -> str:
    """The median rate of a server, marked if its clients were the limit."""
    mark = LIMITED if limited(measurement) else ""
    return number(measurement.median(series)) + mark


RATE = "requests_per_s"


def beside(
    rows: Sequence[tuple[str, str]],
    shown: Sequence[Measurement],
    a: Measurement,
    b: Measurement,
) -> list[list[str]]:
    """Rows of titles and series: the medians of the variants shown, and the ratio of a
    to b. A series that an older version's file lacks has no row.
    """
    found = []
    for title, series in rows:
        if series in a.rounds[0]["samples"]:
            cells = [
                rate(m, series) if series == RATE else number(m.median(series))
                for m in shown
            ]
            both = compare.ratio(a.series(series), b.series(series))
            found.append([title, *cells, ratio(both)])
    return found


def explained(text: str) -> str:
    """A table, with an explanation of the mark if the table contains it."""
    if LIMITED not in text:
        return text
    return f"{text}\n{LIMITED} the server wasn't busy: its clients were the limit"


def cores(count: int) -> str:
    return "1 core" if count == 1 else f"{count} cores"


def on(server: Cores) -> str:
    """Describes the number of a server's cores; empty for one core."""
    count = len(server.server)
    return f" on {cores(count)}" if count > 1 else ""


def how(measurement: Measurement) -> str:
    """How the measurement was made: cores, network and rounds. An older file may lack
    some of these.
    """
    settings = measurement.settings
    text = f"network {settings.get('network', 'lo')}, {len(measurement.rounds)} rounds"
    count = int(settings.get("cores", 1))
    if count > 1:
        text = f"{cores(count)}, {text}"
    return text + (f" of {settings['seconds']} s" if "seconds" in settings else "")


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns of sufficient width; the first one left-aligned, the others
    right-aligned."""
    lines = [list(head), *(list(row) for row in rows)]
    widths = [max(len(cell) for cell in column) for column in zip(*lines, strict=True)]
    text = []
    for line in lines:
        cells = [line[0].ljust(widths[0])]
        cells += [c.rjust(w) for c, w in zip(line[1:], widths[1:], strict=True)]
        text.append("  ".join(cells).rstrip())
    return "\n".join(text)
