# SPDX-License-Identifier: MIT
"""Measures the figures that are missing in all files: each bench's command runs once.
Its file is kept, so an interrupted report continues where it stopped.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from flexbench import machine, servers
from flexbench.samples import BenchError

from .figure import Bench, Figure, command_of
from .runs import Runs, load

CHECK, CHECK_S = "check.txt", 60
QUICK = "-quick"
END_S = 30


def kept(folder: Path) -> list[Path]:
    """The files that earlier reports measured, those of --quick last."""
    return sorted(folder.glob("*.json"), key=lambda p: (QUICK in p.stem, p.name))


def wanted(figures: Iterable[Figure], runs: Runs, cores: int) -> list[Bench]:
    """The benches of figures without measurements, one per command. cores: the number
    of physical cores of this machine. Figures that need more are skipped.
    """
    found: dict[str, Bench] = {}
    for figure in figures:
        for bench in figure.benches if figure.cores <= cores else []:
            if bench.words and not runs.has(bench):
                found.setdefault(bench.name, bench)
    return list(found.values())


def run(command: list[str]) -> tuple[int, str]:
    """Run a command. Returns its status, and the last line of its standard error."""
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    try:
        said = process.communicate()[1].strip().splitlines()
    finally:
        # A bench that gets SIGTERM ends its servers first.
        servers.end(process, END_S)
    return process.returncode, said[-1] if said else ""


def kept_or_why(command: list[str], out: Path) -> str:
    """Measure into the file out. Returns "", or the reason for a failure."""
    part = out.with_suffix(".part")
    try:
        status, said = run([*command, "--out", str(part)])
        if status == 0:
            part.replace(out)
            return ""
        if said:
            for prefix in ("flexsc: bench: ", "flexsc: study: "):
                said = said.removeprefix(prefix)
            return said
        with suppress(BenchError):
            return "; ".join(load([part])[0].run.notes)
        return f"exit status {status}"
    finally:
        part.unlink(missing_ok=True)


def measure(
    flexsc: str, figures: Iterable[Figure], runs: Runs, folder: Path, quick: bool
) -> None:
    """Measure for the figures. Files are left in the folder, and the reasons of failed
    benches in runs.failed.
    """
    benches = wanted(figures, runs, len(machine.whole(os.sched_getaffinity(0))))
    for bench in benches if quick else []:
        if bench.slow:
            runs.failed[bench.name] = "--quick leaves it out"
    benches = [bench for bench in benches if bench.name not in runs.failed]
    for index, bench in enumerate(benches):
        print(
            f"flexsc: study: report: {index + 1} of {len(benches)}: {bench.command}",
            file=sys.stderr,
        )
        out = folder / f"{bench.name}{QUICK if quick else ''}.json"
        command = [flexsc, *command_of(bench.words), *(["--quick"] if quick else [])]
        try:
            reason = kept_or_why(command, out)
        except OSError as error:
            raise BenchError(f"{flexsc}: {error.strerror}") from error
        if reason:
            runs.failed[bench.name] = reason


def check(flexsc: str, folder: Path) -> None:
    """Keep the output of flexsc check in the folder."""
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
