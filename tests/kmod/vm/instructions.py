# SPDX-License-Identifier: MIT
"""Count the instructions of system calls in a guest, for OSDI 2010, table 1.

    instructions.py --kernel VMLINUZ --flexsc FLEXSC [RUN.json]

The guest's clock counts instructions, of user and kernel mode together: one tick
that "flexsc study --raw pollute" reports is one instruction. A repeated move counts
once per repetition: 512 times for a page, because this guest's kernel moves words
(WORDS).

With RUN.json, a file of "flexsc study cost --out", the counts are added to the file.
"flexsc bench --show" and "flexsc study report" then show them beside the paper's.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from guest import Guest, GuestError

CALLS = [
    *("getppid", "stat", "pread", "pwrite"),
    *("open-close", "mmap-munmap", "open-write-close"),
]
BENCH = "instructions"
SECONDS = 400
# Make the kernel copy and clear pages by moves of words.
WORDS = "clearcpuid=erms,fsrm"
SETTINGS = "core=0 work=tree every=16 reps=20"


def guest_output(kernel: Path, flexsc: Path) -> list[str]:
    """Return the guest's output: its kernel's version, and a line for each call."""
    each = f"flexsc study --raw pollute {SETTINGS} call=$c || exit 1"
    script = f"uname -r; for c in {' '.join(CALLS)}; do {each}; done"
    guest = Guest(kernel, files=[flexsc], cpus=1, icount="shift=0", parameters=WORDS)
    with tempfile.NamedTemporaryFile(suffix=".log") as log:
        output = io.StringIO()
        status = guest.run(f"sh -c '{script}'", SECONDS, Path(log.name), output)
    if status:
        raise GuestError(f"the guest ended with {status}: {output.getvalue()[-300:]}")
    return output.getvalue().splitlines()


def measurements(lines: Sequence[str]) -> list[dict[str, Any]]:
    """Return the guest's counts in the form of flexbench's measurements."""
    version, *runs = lines
    found = [json.loads(line) for line in runs]
    return [
        {
            "bench": BENCH,
            "settings": {"call": one["settings"]["call"], "kernel": version},
            "rounds": [{"samples": one["samples"], "counts": one["counts"]}],
        }
        for one in found
    ]


def instructions(measurement: dict[str, Any]) -> float:
    """Return the call's instructions, without those for reading the clock."""
    samples = measurement["rounds"][0]["samples"]
    return float(median(samples["call_ticks"]) - median(samples["clock_ticks"]))


def add(path: Path, found: list[dict[str, Any]]) -> None:
    """Add measurements to a file, in place of earlier ones."""
    run = json.loads(path.read_text(encoding="utf-8"))
    others = [m for m in run["measurements"] if m["bench"] != BENCH]
    run["measurements"] = others + found
    path.write_text(json.dumps(run, indent=1) + "\n", encoding="utf-8")


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="Count system calls' instructions.")
    parser.add_argument("--kernel", type=Path, required=True, help="the guest's")
    parser.add_argument("--flexsc", type=Path, required=True, help="a release build's")
    parser.add_argument("run", type=Path, nargs="?", help="add them to this file")
    given = parser.parse_args(words)
    try:
        found = measurements(guest_output(given.kernel, given.flexsc))
        for one in found:
            print(f"{one['settings']['call']:20}{instructions(one):8,.0f}")
        if given.run:
            add(given.run, found)
    except (GuestError, OSError, ValueError, KeyError) as error:
        print(f"instructions.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
