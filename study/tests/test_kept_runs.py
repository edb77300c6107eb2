# SPDX-License-Identifier: MIT
"""The figures of README.md and study/docs/figures.md that are from runs in study/runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from flexbench import (
    samples,
    serve,
    table,
)
from flexbench.compare import ratio
from flexbench.samples import Measurement
from flexstudy.webserver import (
    breakdown,
    breakdown_tables,
    subjects,
)

ROOT = Path(__file__).resolve().parents[2]

MODES = {
    "plain": "1 KiB, 128 connections, opening the file for each request",
    "cached": "the same, keeping it open",
}
NETWORKS = {"lo": "loopback", "rps": "two namespaces"}


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("mode", MODES)
def test_the_readme_has_the_kept_run(mode: str, network: str) -> None:
    run = samples.load(ROOT / "study" / "runs" / f"serve-{network}.json")
    ours = run.find(serve.BENCH, mode=mode, variant=serve.OURS)
    theirs = run.find(serve.BENCH, mode=mode, variant=serve.THEIRS)
    assert ours and theirs
    assert ours.settings["network"] == network
    times = [f"{m.median('cpu_us'):.3g} us" for m in (ours, theirs)]
    both = [("cpu_us", theirs, ours), ("requests_per_s", ours, theirs)]
    gains = [table.ratio(ratio(a.series(s), b.series(s))) for s, a, b in both]
    cells = [MODES[mode], NETWORKS[network], *times, *gains]
    assert "| " + " | ".join(cells) + " |" in (ROOT / "README.md").read_text()


# Rows of the table of where a request's time goes, and the parts that each sums up.
PARTS = {
    "HTTP": ["core"],
    "the rest in user mode": ["driver", "library"],
    "to the kernel and back": ["entry"],
    "sockets and packets": ["receive", "send", "softirq"],
    "files": ["files"],
    "waiting, switching": ["waiting"],
    "io_uring itself": ["uring"],
    "otherwise": ["other"],
}


def time_of(measurement: Measurement, parts: list[str]) -> str:
    us = sum(breakdown_tables.part_us(measurement, part) for part in parts)
    return f"{us:.2f}"


def test_figures_say_where_the_kept_run_s_time_goes() -> None:
    run = samples.load(ROOT / "study" / "runs" / "study-breakdown.json")
    found = run.of(breakdown.BENCH)
    assert [m.settings["model"] for m in found] == subjects.NAMES
    rows = {row: [time_of(m, parts) for m in found] for row, parts in PARTS.items()}
    every = [part for parts in PARTS.values() for part in parts]
    rows["in all"] = [time_of(m, every) for m in found]
    for row, series in (("system calls", "calls"), ("switched", "switches")):
        rows[row] = [f"{m.median(series):.2f}" for m in found]
    text = (ROOT / "study" / "docs" / "figures.md").read_text(encoding="utf-8")
    missing = [
        line
        for row, cells in rows.items()
        if (line := "| " + " | ".join([row, *cells]) + " |") not in text
    ]
    assert missing == []
