# SPDX-License-Identifier: MIT
"""The flexsc command itself: help, check, stat, and its error messages."""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from filters import forbidden
from fixtures import PATIENCE, Server, command, eventually, flexsc

IO_URING_SETUP = 425  # the same port everywhere
COMMANDS = ("run", "serve", "check", "stat", "top", "bench", "study")


def one_line(text: str) -> bool:
    return text.count("\n") == 1 and text.startswith("flexsc: ")


def counters(text: str) -> dict[str, float]:
    found = re.findall(r"^  (\w[\w ]*?) +([\d.]+)  \w", text, re.MULTILINE)
    return {name: float(value) for name, value in found}


# Help


@pytest.mark.parametrize("word", ["--help", "-h", "help"])
def test_help_names_the_commands(word: str) -> None:
    done = flexsc(word)
    assert done.returncode == 0 and not done.stderr
    assert all(f"  {name} " in done.stdout for name in COMMANDS)


def test_a_missing_command_prints_the_help() -> None:
    done = flexsc()
    assert done.returncode == 2 and not done.stdout
    assert "usage: flexsc COMMAND" in done.stderr


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name: str) -> None:
    done = flexsc(name, "--help")
    assert done.returncode == 0 and not done.stderr
    assert f"usage: flexsc {name}" in done.stdout


def test_the_version_is_that_of_the_repository() -> None:
    version = Path(__file__).resolve().parents[2] / "VERSION"
    assert flexsc("--version").stdout == f"flexsc {version.read_text().strip()}\n"


def test_an_unknown_command_is_reported_in_one_line() -> None:
    done = flexsc("surve")
    assert done.returncode == 2 and not done.stdout
    assert one_line(done.stderr) and '"surve"' in done.stderr


@pytest.mark.parametrize(
    ("args", "package"),
    [(("run", "true"), "flexsc-run"), (("bench", "--help"), "flexsc-study")],
)
def test_a_missing_package_is_named(
    tmp_path: Path, args: tuple[str, ...], package: str
) -> None:
    copy = shutil.copy(command(), tmp_path)
    done = subprocess.run(
        [copy, *args], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    if not done.returncode:
        pytest.skip("FlexSC is installed on this machine")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.endswith(f"; install Debian's package {package}\n")
    assert one_line(done.stderr)


# check


def test_check_has_a_line_for_each_engine() -> None:
    done = flexsc("check")
    lines = done.stdout.splitlines()
    names = [re.split(r" (?!kmod|uring|faults|changes)", line)[0] for line in lines]
    engines = ["uring", "threads", "kmod", "sync"]
    events = ["kmod", "uring", "faults", "changes"]
    assert names == [*engines, *(f"events: {name}" for name in events), "run"]
    works = [re.search(" works(, but|$)", line) is not None for line in lines]
    needed = [works[i] for i in (0, 1, 3, 5, 8)]
    assert done.returncode == int(not all(needed))
    assert works[3]


def test_check_fails_where_io_uring_is_forbidden() -> None:
    """The default profiles of containers forbid io_uring like this."""
    done = subprocess.run(
        [command(), "check"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        preexec_fn=forbidden(IO_URING_SETUP, errno.EPERM),
    )
    assert done.returncode == 1
    assert "events: uring    doesn't work: " in done.stdout


def test_check_takes_an_engine() -> None:
    done = flexsc("check", "sync")
    assert (done.returncode, done.stdout) == (0, "sync     works\n")


def test_check_takes_run() -> None:
    done = flexsc("check", "run")
    assert done.stdout == flexsc("check").stdout.splitlines(keepends=True)[-1]
    assert done.returncode == int(" works" not in done.stdout)


def test_check_refuses_unknown_engines() -> None:
    done = flexsc("check", "warp")
    assert (done.returncode, done.stdout) == (2, "")
    assert 'unknown engine "warp"' in done.stderr
    assert flexsc("check", "sync", "threads").returncode == 2


def test_check_reports_the_warning_of_flexsc_run(tmp_path: Path) -> None:
    for version in ("4.0", "4.1"):
        (tmp_path / f"libZydis.so.{version}").touch()
    done = flexsc("check", LD_LIBRARY_PATH=str(tmp_path))
    last = done.stdout.splitlines()[-1]
    assert last.startswith("run      works, but libc can't be patched")


def test_check_ignores_flexsc_engine() -> None:
    assert flexsc("check", FLEXSC_ENGINE="sync").stdout == flexsc("check").stdout


# stat


def test_stat_shows_a_server_s_counters(server: Server, engine: str) -> None:
    def seen() -> dict[str, float]:
        done = flexsc("stat", str(server.process.pid))
        assert done.returncode == 0 and not done.stderr
        assert f"engine {engine}" in done.stdout
        return counters(done.stdout)

    server.get("/hello.txt")
    before = seen()
    for _ in range(20):
        assert server.get("/hello.txt").status == 200
    # Each request takes at least five calls.
    assert eventually(lambda: seen()["completed"] >= before["completed"] + 100)

    def executed() -> float:
        return sum(after[f"by_{how}"] for how in ("inline", "uring", "thread"))

    def is_counted() -> bool:
        """A syscall thread counts its calls after their delivery."""
        after.update(seen())
        return executed() >= after["completed"] - after["cancelled"]

    after: dict[str, float] = {}
    assert eventually(is_counted)
    assert executed() <= after["posted"]
    assert after["outstanding"] == after["posted"] - after["completed"]
    assert after["batches"] > before["batches"]
    assert after["mode_switches"] > before["mode_switches"]
    assert after["entries"] <= after["max_entries"]


def test_stat_reports_a_process_without_a_loop() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=-1) as process:
        done = flexsc("stat", str(process.pid))
        process.communicate(b"\n")
    assert done.returncode == 1 and not done.stdout
    assert one_line(done.stderr) and str(process.pid) in done.stderr


def test_stat_reports_a_missing_process() -> None:
    process = subprocess.Popen(["true"])
    process.wait()
    done = flexsc("stat", str(process.pid))
    assert done.returncode == 1 and one_line(done.stderr)


@pytest.mark.parametrize("words", [[], ["--prometheus"]])
@pytest.mark.parametrize("word", ["", "0", "-1", "x", "1x", "../self"])
def test_stat_accepts_only_a_process_id(word: str, words: list[str]) -> None:
    done = flexsc("stat", *words, word)
    assert done.returncode == 2 and "usage: flexsc stat" in done.stderr


# FLEXSC_ENGINE


def test_the_environment_chooses_the_engine(tree: Path) -> None:
    def say_threads() -> None:
        os.environ["FLEXSC_ENGINE"] = "threads"

    kept = os.environ.get("FLEXSC_ENGINE")
    say_threads()
    try:
        server = Server(tree)
    finally:
        del os.environ["FLEXSC_ENGINE"]
        if kept is not None:
            os.environ["FLEXSC_ENGINE"] = kept
    try:
        assert "engine threads" in "\n".join(server.messages)
        assert server.get("/hello.txt").status == 200
    finally:
        server.end()


@pytest.mark.parametrize("name", ["warp", "sync"])
def test_an_engine_that_cannot_serve_is_reported_in_one_line(
    name: str, tree: Path
) -> None:
    done = flexsc("serve", str(tree), "-p", "0", FLEXSC_ENGINE=name)
    assert done.returncode != 0 and not done.stdout
    assert one_line(done.stderr) and name in done.stderr
