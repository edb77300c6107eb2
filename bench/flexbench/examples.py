# SPDX-License-Identifier: MIT
"""The example servers that "threads" measures: echo and http, with a thread per
connection, natively or under flexsc run, and with epoll. Each runs for the duration of
a with-block, on a free port of 127.0.0.1.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from . import servers
from .runner import Plan
from .running import Program, way
from .samples import BenchError

EPOLL = "epoll"

# Relative to the command: in the build tree, or installed.
SERVERS, INSTALLED = "../bench/servers", "../libexec/flexsc"


def find(flexsc: str, name: str, folder: str = SERVERS) -> Path:
    beside = Path(shutil.which(flexsc) or flexsc).resolve().parent
    for place in (folder, INSTALLED):
        path = (beside / place / name).resolve()
        if path.exists():
            return path
    raise BenchError(f"no server {name} beside {flexsc}: build or install it")


def command(plan: Plan, mode: str, variant: str, entries: int = 0) -> list[str]:
    """entries: the limit of executing calls for flexsc run; 0: its default."""
    kind = "epoll" if variant == EPOLL else "threads"
    program = [str(find(plan.flexsc, f"{mode}-{kind}")), "0"]
    options = ["--entries", str(entries)] if entries else []
    return [*way(plan, variant, *options), *program]


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
