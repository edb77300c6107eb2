# SPDX-License-Identifier: MIT
"""flexsc bench: each of its measuring loops, and the command as a whole."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from conftest import command

TIMEOUT = 60


def bench(
    *args: str, cwd: Path | None = None, **env: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [command(), "bench", *args],
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
        cwd=cwd,
        env={**os.environ, **env},
    )


def raw(case: str, *args: str) -> Any:
    done = bench("--raw", case, "reps=2", *args)
    if "not supported" in done.stderr or "not permitted" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("variant", ["plain", "liburing", "sync", "threads", "uring"])
@pytest.mark.parametrize("call", ["close", "read", "pread", "getppid"])
def test_raw_calls(variant: str, call: str) -> None:
    if (variant, call) == ("liburing", "getppid"):
        pytest.skip("io_uring has no such operation")
    found = raw("calls", f"variant={variant}", f"call={call}", "batch=48", "calls=480")
    assert found["case"] == "calls"
    assert found["settings"]["batch"] == 48
    times = found["samples"]["ns_per_call"]
    assert len(times) == 2
    assert all(0 < t < 1e7 for t in times)
    if variant not in ("plain", "liburing"):
        # Two repetitions and the one before, which warms up.
        assert found["counts"]["completed"] == 3 * 480


@pytest.mark.parametrize("scenario", ["dormant", "all", "cancel", "cancel-all"])
def test_raw_timers(scenario: str) -> None:
    found = raw(
        *("timers", "variant=sync", f"scenario={scenario}"),
        *("outstanding=2000", "active=100", "calls=2000"),
    )
    assert len(found["samples"]["ns_per_completion"]) == 2
    assert all(t > 0 for t in found["samples"]["ns_per_completion"])
    assert found["counts"]["timers"] >= 3 * 2000


@pytest.mark.parametrize("variant", ["liburing", "uring"])
@pytest.mark.parametrize("scenario", ["dormant", "uniform"])
def test_raw_reads(variant: str, scenario: str) -> None:
    found = raw(
        *("reads", f"variant={variant}", f"scenario={scenario}", "sharing=3"),
        *("outstanding=600", "active=60", "calls=600"),
    )
    assert all(t > 0 for t in found["samples"]["ns_per_completion"])
    assert all(t > 0 for t in found["samples"]["ns_per_write"])
    if variant == "uring":
        # Eleven rounds of sixty, three times; all six hundred are outstanding.
        assert found["counts"]["completed"] == 3 * 11 * 60
        assert found["counts"]["posted"] == 3 * 11 * 60 + 600


@pytest.mark.parametrize(
    ("args", "status", "reason"),
    [
        (["calls", "batch=0"], 2, "batch=0: give a number from 1 to 512"),
        (["calls", "batch=ten"], 2, "batch=ten: give a number"),
        (["calls", "speed=1"], 2, '"speed=1" isn\'t KEY=VALUE with one of'),
        (["calls", 'cores="'], 2, "give a word, or a list"),
        (["calls", "call=fork"], 1, "call=fork: give close, read, pread or getppid"),
        (["calls", "core=4000"], 1, "core=4000: can't be used here"),
        (["timers", "scenario=x"], 1, "scenario=x: give dormant, all"),
        (["reads", "variant=sync"], 1, "variant=sync: give uring or liburing"),
        (["sleep"], 2, "--raw sleep: give calls, timers or reads"),
    ],
)
def test_bad_settings_are_one_line(args: list[str], status: int, reason: str) -> None:
    done = bench("--raw", *args)
    assert done.returncode == status
    assert reason in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


def test_the_command_finds_its_package() -> None:
    done = bench("--help")
    assert done.returncode == 0
    assert done.stdout.startswith("usage: flexsc bench")


def test_the_current_folder_is_no_source_of_modules(tmp_path: Path) -> None:
    for name in ("flexbench", "json"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('the wrong one')")
    done = bench("--help", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("usage: flexsc bench")


def test_a_folder_asked_for_is_the_only_one(tmp_path: Path) -> None:
    done = bench("--help", FLEXBENCH_DIR=str(tmp_path))
    assert done.returncode == 1
    assert f"flexbench isn't in {tmp_path}; set FLEXBENCH_DIR" in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_command_measures_and_keeps(tmp_path: Path) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("there is one core only")
    path = tmp_path / "run.json"
    done = bench("timers", "--quick", "--rounds", "1", "--out", str(path))
    assert done.returncode == 0, done.stderr
    assert "timers: nanoseconds" in done.stdout
    found = json.loads(path.read_text(encoding="utf-8"))
    assert found["machine"]["kernel"] == os.uname().release
    scenarios = {m["settings"]["scenario"] for m in found["measurements"]}
    assert scenarios == {"dormant", "all", "cancel", "cancel-all"}
