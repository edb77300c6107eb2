# SPDX-License-Identifier: MIT
"""When a program of harness/programs.py fails to start, all its processes end."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from fixtures import eventually, gone, state
from programs import Program, started

TWO = "sleep 60 & echo $$ $!; wait"
ONE_ENDS = "sleep 60 & echo $$ $!; exit 3"


class Waiting(Program):
    """A program whose constructor waits for two processes, and then fails."""

    def __init__(self, script: str, log: Path, ready: Callable[[], bool]) -> None:
        super().__init__("native", ["sh", "-c", script], log)
        self.wait_until(lambda: self.output().endswith("\n"))
        self.wait_until(ready, 0.1)


def test_a_program_keeps_its_id_until_its_group_ends(tmp_path: Path) -> None:
    """Another process could get the ID, and end() would kill its group instead."""
    log = tmp_path / "log"
    with started(Program("native", ["sh", "-c", ONE_ENDS], log)) as program:
        assert program.wait() == 3
        assert program.status() == 3
        first, second = map(int, log.read_text().split())
        assert gone(first) and state(first)[0] == "Z"
        assert not gone(second)
    assert program.process.returncode == 3
    assert eventually(lambda: gone(second))
    with started(Program("native", ["sleep", "60"], log)) as program:
        assert program.status() is None
        assert program.stop() == -signal.SIGTERM
        assert state(program.process.pid)[0] == "Z"
        assert program.process.returncode is None


def never() -> bool:
    return False


def fails() -> bool:
    raise OSError("no answer")


@pytest.mark.parametrize(
    ("script", "ready", "message"),
    [
        (TWO, never, "not ready: timed out"),
        (TWO, fails, "no answer"),
        (ONE_ENDS, never, "not ready: exit status 3"),
    ],
)
def test_a_program_that_is_not_ready_leaves_nothing(
    script: str, ready: Callable[[], bool], message: str, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    with pytest.raises((RuntimeError, OSError), match=message) as raised:
        Waiting(script, log, ready)
    pids = [int(word) for word in log.read_text().split()]
    assert len(pids) == 2
    assert eventually(lambda: all(map(gone, pids)))
    if ready is never:
        assert log.read_text() in str(raised.value)
