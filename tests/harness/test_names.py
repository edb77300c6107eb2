# SPDX-License-Identifier: MIT
"""Test programs refuse names that don't exist.

Without that, a misspelled name would select no test, and the run would pass.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from fixtures import PATIENCE, command

BUILD = Path(command()).resolve().parents[1]
FOLDERS = ("tests", "study/tests", "bindings")
HARNESS = b"FLEXSC_TEST_ENGINE"  # the variables that main() reads


def programs() -> Iterator[Path]:
    """The programs that are linked with the harness."""
    for folder in FOLDERS:
        for path in sorted((BUILD / folder).rglob("*")):
            is_program = path.is_file() and os.access(path, os.X_OK)
            if is_program and path.suffix == "" and HARNESS in path.read_bytes():
                yield path


def refusal(path: Path, *words: str, **environment: str) -> str:
    """Return the only line that a program prints."""
    done = subprocess.run(
        [path, *words],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, ""), path
    lines = done.stderr.splitlines()
    assert len(lines) == 1, path
    return lines[0].replace(str(path), "PROGRAM")


def test_a_test_that_does_not_exist_is_refused() -> None:
    found = list(programs())
    if not found:
        pytest.skip("the tests aren't built: build them with ninja -C build")
    folders = {path.parent.relative_to(BUILD) for path in found}
    assert len(found) > 100 and len(folders) > 3
    for path in found:
        assert refusal(path, "no_test") == "PROGRAM: no such test: no_test"


def test_an_engine_that_does_not_exist_is_refused() -> None:
    for path in list(programs())[:5]:
        said = refusal(path, FLEXSC_TEST_ENGINE="thread")
        assert said == "PROGRAM: no such engine: thread"


def test_one_name_of_several_that_does_not_exist_is_refused() -> None:
    path = BUILD / "tests/unit-entry"
    if not path.is_file():
        pytest.skip("the tests aren't built: build them with ninja -C build")
    assert "no such test: no_test" in refusal(path, "", "no_test", "seconds=1")
