# SPDX-License-Identifier: MIT
"""flexsc study leaves no files and processes behind when it gets SIGTERM."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from fixtures import PATIENCE, command

BEGIN_S = 60  # time limit until its folder exists


def begun(folder: Path, *before: str) -> subprocess.Popen[str]:
    """Start a bench whose temporary folder exists now."""
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs two cores")
    process = subprocess.Popen(
        [*before, command(), "study", "cost", "--rounds", "1000"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(folder)},
    )
    end = time.monotonic() + BEGIN_S
    while not list(folder.iterdir()) and time.monotonic() < end:
        time.sleep(0.05)
    assert list(folder.iterdir())
    return process


def ended(process: subprocess.Popen[str], number: int) -> int:
    process.send_signal(number)
    try:
        process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    return process.returncode


@pytest.mark.long
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_bench_that_is_told_to_end_leaves_no_folder(
    tmp_path: Path, name: str
) -> None:
    number = signal.Signals[name]
    assert ended(begun(tmp_path), number) == 128 + number
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
def test_a_bench_without_its_terminal_goes_on(tmp_path: Path) -> None:
    process = begun(tmp_path, "nohup")
    process.send_signal(signal.SIGHUP)
    assert ended(process, signal.SIGTERM) == 128 + signal.SIGTERM
    assert list(tmp_path.iterdir()) == []
