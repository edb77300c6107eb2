# SPDX-License-Identifier: MIT
"""A file of measurements, with the form and size of a real file of flexsc bench calls
--quick.
"""

from __future__ import annotations

import copy
import json
import tempfile
from pathlib import Path

from bench_runs import MACHINE
from flexbench.samples import Json

# Nanoseconds per call in batches of 1 and of 64, by the core of the syscall threads and
# their polling time.
NS = {
    ("1", 0): {"plain": (121, 118), "threads": (7500, 345), "uring": (200, 110)},
    ("0", 0): {"plain": (130, 112), "threads": (69000, 500)},
    ("0", 200): {"plain": (120, 115), "threads": (540, 430)},
}
NOISE = (1.0, 1.04, 0.97)  # factors for the rounds


def rounds(ns: float) -> list[Json]:
    return [
        {
            "samples": {
                "ns_per_call": [factor * ns * part for part in (0.99, 1.0, 1.01)],
                "disturbed_percent": [0.0],
            },
            "counts": {},
        }
        for factor in NOISE
    ]


def calls() -> Json:
    """The contents of the file."""
    return {
        "flexbench": 1,
        "machine": {**copy.deepcopy(MACHINE), "online": 2},
        "command": ["calls", "--quick", "--rounds", "3", "--out", "calls.json"],
        "measurements": [
            {
                "bench": "calls",
                "settings": {
                    **{"variant": variant, "call": call, "batch": batch, "core": 1},
                    **{
                        "kernel_cores": core,
                        "poll_us": spin,
                        "calls": 16384,
                        "reps": 3,
                    },
                },
                "rounds": rounds(ns),
            }
            for (core, spin), variants in NS.items()
            for call in ("getppid", "close")
            for index, batch in enumerate((1, 64))
            for variant, ns in ((name, both[index]) for name, both in variants.items())
        ],
        "notes": [],
    }


def kept(path: Path, run: Json) -> Path:
    path.write_text(json.dumps(run), encoding="utf-8")
    return path


FOLDER = tempfile.TemporaryDirectory(prefix="flexsc-measured-")
CALLS = kept(Path(FOLDER.name) / "calls.json", calls())
