# SPDX-License-Identifier: MIT
"""The example servers that "threads" measures: echo and http, each with a
thread for each connection, natively or under flexsc run, and with epoll. Each
lives as long as a with-block, on a free port of 127.0.0.1.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from . import servers
from .samples import BenchError

NATIVE, FLEXSC, EPOLL = "native", "flexsc", "epoll"

# flexsc run runs a program as it is where it can't do better, and says so.
COMPLAINT = "flexsc"

# Beside the command: in the build tree, or installed.
PLACES = ["../../examples", "../libexec/flexsc"]


@dataclass(frozen=True)
class Program:
    """One that runs."""

    name: str
    pid: int
    port: int
    stderr: IO[str]

    def last_words(self) -> str:
        """The last line that it has written to its standard error."""
        self.stderr.seek(0)
        lines = self.stderr.read().strip().splitlines()
        return lines[-1] if lines else ""

    def check(self) -> None:
        """Does it run in the way it was asked to?"""
        if self.last_words().startswith(COMPLAINT):
            raise self.error("runs natively")

    def error(self, reason: object) -> BenchError:
        """What went wrong, and what the program says to it."""
        words = self.last_words()
        return BenchError(f"{self.name}: {reason}" + (f" ({words})" if words else ""))


def find(flexsc: str, name: str) -> Path:
    beside = Path(shutil.which(flexsc) or flexsc).resolve().parent
    for place in PLACES:
        path = (beside / place / name).resolve()
        if path.exists():
            return path
    raise BenchError(f"the server {name} isn't beside {flexsc}: build or install it")


def command(flexsc: str, mode: str, variant: str, entries: int = 0) -> list[str]:
    """entries: those of flexsc run; 0: as many as it likes."""
    kind = "epoll" if variant == EPOLL else "threads"
    program = [str(find(flexsc, f"{mode}-{kind}")), "0"]
    if variant != FLEXSC:
        return program
    options = ["--entries", str(entries)] if entries else []
    return [flexsc, "run", *options, "--", *program]


@contextmanager
def started(name: str, cores: str, args: list[str]) -> Iterator[Program]:
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8") as stderr,
        servers.process(
            name, servers.pinned(cores, args), subprocess.PIPE, stderr
        ) as process,
    ):
        assert process.stdout
        line = servers.line_within(process.stdout, servers.START_S).strip()
        if not line.isdigit():
            nowhere = Program(name, process.pid, 0, stderr)
            raise nowhere.error("didn't start")
        yield Program(name, process.pid, int(line), stderr)
