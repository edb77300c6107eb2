# SPDX-License-Identifier: MIT
"""The figures of README.md that are from runs kept in docs/runs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

from flexbench import samples, serve, table  # noqa: E402
from flexbench.compare import ratio  # noqa: E402

MODES = {
    "plain": "1 KiB, 128 connections, opening the file for each request",
    "cached": "the same, keeping it open",
}
NETWORKS = {"lo": "loopback", "rps": "two namespaces"}


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("mode", MODES)
def test_the_readme_has_the_kept_run(mode: str, network: str) -> None:
    run = samples.load(ROOT / "docs" / "runs" / f"serve-{network}.json")
    ours = run.find(serve.BENCH, mode=mode, variant=serve.OURS)
    theirs = run.find(serve.BENCH, mode=mode, variant=serve.THEIRS)
    assert ours and theirs
    assert ours.settings["network"] == network
    times = [f"{m.median('cpu_us'):.3g} us" for m in (ours, theirs)]
    both = [("cpu_us", theirs, ours), ("requests_per_s", ours, theirs)]
    gains = [table.ratio(ratio(a.series(s), b.series(s))) for s, a, b in both]
    cells = [MODES[mode], NETWORKS[network], *times, *gains]
    assert "| " + " | ".join(cells) + " |" in (ROOT / "README.md").read_text()
