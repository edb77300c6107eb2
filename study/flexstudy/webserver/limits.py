# SPDX-License-Identifier: MIT
"""Finds figures that were limited by the clients instead of the server, and failures
between clients and server, such as wrong answers or packets that were sent again.
"""

from __future__ import annotations

from statistics import median

from flexbench import table
from flexbench.samples import Measurement, Run

from .offered import OFFERED, PEAK

CLIENT_PERCENT = 90.0
# A server that answers less than this share of the due requests is behind.
ENOUGH = 0.95
# If requests began later than this, the clients were the cause.
BEHIND_MS = 20.0

EXPLAINED = (
    f"{table.LIMITED} a core of the clients was busy for more than {CLIENT_PERCENT:.0f} "
    "% of the time, or each core of the server for less than "
    f"{table.BUSY_PERCENT:.0f} % although more requests were due than it answered"
)

# Counts that are 0 in a good measurement, and their descriptions.
TROUBLES = {
    "unsent": (
        "requests not sent, because the clients had no descriptor "
        "or port left (ulimit -Hn)"
    ),
    "listen_overflows": "connections refused because the server's backlog was full",
    "retransmits": "segments sent again on the server's side",
    "dropped_packets": "packets dropped on the server's side",
    "major_faults": "major faults of the server",
    "disk_read_bytes": "bytes that the server read from the disk",
    "wrong_status": "answers with a wrong status",
    "wrong_length": "answers with a wrong length",
    "wrong_body": "answers with a wrong body",
    "wrong_head": "answers with a wrong head",
}


def total(measurement: Measurement, count: str) -> float:
    """The sum over all rounds; a count that couldn't be read is 0."""
    return float(sum(one["counts"].get(count, 0) for one in measurement.rounds))


def middle(measurement: Measurement, series: str, otherwise: float) -> float:
    """The median of a series, if the measurement has it."""
    rounds = measurement.rounds
    found = [median(one["samples"].get(series, [otherwise])) for one in rounds]
    return float(median(found))


def asked_for_more(measurement: Measurement) -> bool:
    """Were requests pending all the time? In a closed loop always; in an open loop if
    the server is behind.
    """
    if measurement.bench != OFFERED:
        return True
    return total(measurement, "answered") < ENOUGH * total(measurement, "offered")


def limited(measurement: Measurement) -> bool:
    """Was anything but the server the limit? Then the figure can't be compared with
    others.
    """
    if middle(measurement, "client_percent", 0) > CLIENT_PERCENT:
        return True
    if total(measurement, "unsent"):
        return True
    if not asked_for_more(measurement):
        return False
    # The server's other cores may wait for its busiest one.
    busy = middle(measurement, "busy_percent", 100)
    return middle(measurement, "busiest_percent", busy) < table.BUSY_PERCENT


def where(measurement: Measurement) -> str:
    settings = measurement.settings
    at = f" at {settings['times']}x" if measurement.bench == OFFERED else " at its peak"
    count = int(settings["cores"])
    on = f" on {table.cores(count)}" if count > 1 else ""
    return f"{settings['model']}{at}{on}"


def troubles(run: Run, workload: str) -> list[str]:
    """A line per kind of failure, with all points at which it occurred."""
    found = [m for b in (PEAK, OFFERED) for m in run.of(b, workload=workload)]
    lines = []
    for count, title in TROUBLES.items():
        points = [(m, n) for m in found if (n := total(m, count))]
        if points:
            text = ", ".join(f"{where(m)} {n:,.0f}" for m, n in points)
            lines.append(f"study {workload}: {title}: {text}")
    late = [(m, middle(m, "behind_p99_us", 0) / 1000) for m in found]
    points = [(m, ms) for m, ms in late if ms > BEHIND_MS]
    if points:
        text = ", ".join(f"{where(m)} {ms:.0f}" for m, ms in points)
        lines.append(
            f"study {workload}: the clients sent requests late, by ms (99th "
            f"percentile): {text}"
        )
    return lines
