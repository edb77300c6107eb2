# SPDX-License-Identifier: MIT
"""Measures what the figures lack: each command of theirs once, whose file is kept, so
that a report that was interrupted goes on where it was.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from ..samples import BenchError
from .figure import Bench, Figure
from .runs import Runs, load

CHECK, CHECK_S = "check.txt", 60
QUICK = "-quick"
END_S = 30


def kept(folder: Path) -> list[Path]:
    """Thorough measurements first."""
    return sorted(folder.glob("*.json"), key=lambda p: (QUICK in p.stem, p.name))


def wanted(figures: Iterable[Figure], runs: Runs) -> list[Bench]:
    """A bench for each command that no file has."""
    found: dict[str, Bench] = {}
    for figure in figures:
        for bench in figure.benches:
            if not runs.has(bench):
                found.setdefault(bench.name, bench)
    return list(found.values())


def run(command: list[str], out: Path) -> str:
    """Why there is no file of measurements; empty if there is."""
    part = out.with_suffix(".part")
    process = subprocess.Popen(
        [*command, "--out", str(part)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        said = process.communicate()[1].strip().splitlines()
    finally:
        # It ends its servers itself.
        process.terminate()
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    if process.returncode == 0:
        part.replace(out)
        return ""
    if said:
        return said[-1].removeprefix("flexsc: bench: ")
    with suppress(BenchError, OSError):
        notes = load([part])[0].run.notes
        part.unlink()
        return "; ".join(notes)
    return f"ended with {process.returncode}"


def measure(
    flexsc: str, figures: Iterable[Figure], runs: Runs, folder: Path, quick: bool
) -> None:
    """Leaves files in the folder, and what failed in the runs."""
    benches = wanted(figures, runs)
    for index, bench in enumerate(benches):
        print(
            f"flexsc: report: {index + 1} of {len(benches)}: {bench.command}",
            file=sys.stderr,
        )
        out = folder / f"{bench.name}{QUICK if quick else ''}.json"
        command = [flexsc, "bench", *bench.words, *(["--quick"] if quick else [])]
        try:
            reason = run(command, out)
        except OSError as error:
            raise BenchError(f"{flexsc}: {error.strerror}") from error
        if reason:
            runs.failed[bench.name] = reason


def check(flexsc: str, folder: Path) -> None:
    """Keep what flexsc check says."""
    try:
        done = subprocess.run(
            [flexsc, "check"],
            capture_output=True,
            text=True,
            timeout=CHECK_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return
    (folder / CHECK).write_text(done.stdout, encoding="utf-8")
