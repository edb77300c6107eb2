# SPDX-License-Identifier: MIT
"""report.json: all numbers that the page compares, with their claims and verdicts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from flexbench.samples import Json

from .figure import Row
from .runs import Runs
from .shown import Shown

FORMAT = 1


def row_of(row: Row) -> Json:
    return {
        "where": row.where,
        "paper": asdict(row.point) if row.point else row.paper,
        "paper_gain": row.gain,
        "ours": row.here,
        "gain": asdict(row.ratio) if row.ratio else None,
        "verdict": row.verdict.value if row.verdict else None,
        "reason": row.reason,
    }


def figure_of(shown: Shown) -> Json:
    return {
        "id": shown.item.id,
        "figure": f"{shown.item.paper}, {shown.item.figure}",
        "title": shown.item.title,
        "claim": shown.item.claim,
        "state": shown.state.value,
        "why": shown.why,
        "commands": [b.command for b in shown.figure.benches if b.words],
        "files": list(dict.fromkeys(source.name for source, _ in shown.sources)),
        "disturbed_percent": shown.disturbed,
        "rows": [row_of(row) for row in shown.rows],
    }


def record(all_shown: Sequence[Shown], runs: Runs) -> str:
    found = {
        "flexsc_report": FORMAT,
        "files": {source.name: source.machine for source in runs.sources},
        "figures": [figure_of(shown) for shown in all_shown],
    }
    return json.dumps(found, indent=1) + "\n"
