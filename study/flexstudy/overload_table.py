# SPDX-License-Identifier: MIT
"""The tables of overload.py."""

from __future__ import annotations

from collections.abc import Sequence

from flexbench import table
from flexbench.samples import Measurement, Run, distinct

from .overload_plan import BENCH, GOODPUT, MIX, RESPONSES, SATURATION

SERIES = {RESPONSES: "responses_per_s", GOODPUT: "goodput_per_s"}
TITLES = {
    RESPONSES: "answers per second, no client gives up",
    GOODPUT: "answers per second, clients give up after a second",
}
# If requests were later than this, the clients were too slow, or disturbed.
BEHIND_MS = 20.0


def label(m: Measurement) -> str:
    admission = m.settings["admission"]
    name = str(m.settings["variant"])
    return name if admission == "none" else f"{name}, {admission}"


def milliseconds(m: Measurement, series: str) -> str:
    return table.number(m.median(series) / 1000)


def labels(found: Sequence[Measurement]) -> list[str]:
    return list(dict.fromkeys(label(m) for m in found))


def title(found: Sequence[Measurement], what: str) -> str:
    s = found[0].settings
    size = "sizes mixed" if s["size"] == MIX else f"{s['size']} KiB"
    text = f"overload: {what}; {size}, {s['work']} us of work, backlog {s['backlog']}"
    return f"{text}, network {s['network']}"


def rates(found: list[Measurement], part: str) -> str:
    """A row per offered rate, a column per model."""
    names = labels(found)
    rows = []
    for times in distinct(found, "times"):
        at = {label(m): m for m in found if m.settings["times"] == times}
        first = next(iter(at.values()))
        row = [f"{times}x", f"{first.settings['rate']:,}"]
        for name in names:
            m = at.get(name)
            row.append(table.number(m.median(SERIES[part]) if m else None))
        rows.append(row)
    return (
        title(found, TITLES[part]) + "\n" + table.table(["", "offered", *names], rows)
    )


def details(found: list[Measurement], part: str) -> str:
    """Further results at the rates beyond the saturation point."""
    rows = []
    for m in found:
        if float(str(m.settings["times"])) < 1:
            continue
        count = m.count
        lost = count("offered") - count("answered")
        rows.append(
            [
                f"{m.settings['times']}x {label(m)}",
                milliseconds(m, "connect_mean_us"),
                milliseconds(m, "connect_p99_us"),
                milliseconds(m, "response_mean_us"),
                milliseconds(m, "response_p50_us"),
                milliseconds(m, "response_p99_us"),
                table.number(100 * lost / max(1, count("offered"))),
                f"{count('listen_overflows'):,.0f}",
                table.number(m.median("disturbed_percent")),
            ]
        )
    head = ["ms from when it was due", "connect", "p99", "answer", "p50", "p99"]
    head += ["% lost", "overflows", "% disturbed"]
    return title(found, TITLES[part]) + "\n" + table.table(head, rows)


def shares(found: list[Measurement], part: str) -> str:
    """At twice the saturation point: relative to the model's own best, and to the best
    of all."""
    peaks = {
        name: max(m.median(SERIES[part]) for m in found if label(m) == name)
        for name in labels(found)
    }
    rows = []
    for m in found:
        if float(str(m.settings["times"])) != 2:
            continue
        value = m.median(SERIES[part])
        shared = [value / max(1, peaks[label(m)]), value / max(1, *peaks.values())]
        rows.append([label(m), *(table.number(share) for share in shared)])
    if not rows:
        return ""
    what = f"at twice the saturation point: {TITLES[part]}"
    head = ["model", "of its peak", "of the best's"]
    return title(found, what) + "\n" + table.table(head, rows)


def saturation(found: list[Measurement]) -> str:
    first = found[0].median("saturation_per_s")
    rows = []
    for m in found:
        value = m.median("saturation_per_s")
        rows.append(
            [
                str(m.settings["variant"]),
                table.number(value),
                table.number(value / first),
            ]
        )
    head = ["saturation point", "a second", f"of {found[0].settings['variant']}"]
    return (
        title(found, "the highest rate that is answered")
        + "\n"
        + table.table(head, rows)
    )


def doubts(run: Run) -> None:
    """Note measurements in which the clients were too slow: these don't measure the
    server."""
    for m in run.of(BENCH):
        if m.settings["part"] == SATURATION:
            continue
        what = f"overload: {m.settings['part']} at {m.settings['times']}x, {label(m)}"
        late = m.median("behind_p99_us") / 1000
        if late > BEHIND_MS:
            run.note(
                f"{what}: the clients sent requests {late:.0f} ms late (99th "
                "percentile)"
            )
        if m.count("unsent"):
            run.note(
                f"{what}: the clients had no descriptor or port left for "
                f"{m.count('unsent'):,.0f} requests (ulimit -Hn)"
            )


def of_size(run: Run, size: str) -> list[str]:
    text = []
    found = run.of(BENCH, part=SATURATION, size=size)
    if found:
        text.append(saturation(found))
    for part in SERIES:
        found = run.of(BENCH, part=part, size=size)
        if found:
            text += [rates(found, part), details(found, part), shares(found, part)]
    return [part for part in text if part]


def show(run: Run) -> list[str]:
    found = run.of(BENCH)
    if not found:
        return []
    head = ["server", "delivery", "notification", "accepts", "by"]
    text = ["overload: the models (SEND, figure 4.11)"]
    text[0] += "\n" + table.table(head, run.machine["models"])
    for size in distinct(found, "size"):
        text += of_size(run, size)
    doubts(run)
    return text
