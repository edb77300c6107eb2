# SPDX-License-Identifier: MIT
"""When a program of harness/programs.py fails to start, all its processes end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from fixtures import eventually, gone
from programs import Program

TWO = "sleep 60 & echo $$ $!; wait"
ONE_ENDS = "sleep 60 & echo $$ $!; exit 3"


class Waiting(Program):
    """A program whose constructor waits for two processes, and then fails."""

    def __init__(self, script: str, log: Path, ready: Callable[[], bool]) -> None:
        super().__init__("native", ["sh", "-c", script], log)
        self.wait_until(lambda: self.output().endswith("\n"))
        self.wait_until(ready, 0.1)


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
