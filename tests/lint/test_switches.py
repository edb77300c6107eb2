# SPDX-License-Identifier: MIT
"""The count of switches over call numbers, on made-up text."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import switches


def test_a_switch_over_numbers_is_found_once() -> None:
    text = "f()\n{\n\tswitch (nr) {\n\tcase SYS_read:\n\tcase SYS_write:\n\t}\n}\n"
    assert switches.switches(text) == [3]


def test_another_switch_does_not_count() -> None:
    text = "f()\n{\n\tswitch (kind) {\n\tcase KIND_A:\n\t}\n\tif (nr == SYS_read)\n}\n"
    assert switches.switches(text) == []


def test_the_outer_switch_is_distinguished_from_the_inner_one() -> None:
    text = (
        "switch (a) {\ncase ONE:\nswitch (nr) {\ncase __NR_read:\n{\n}\n}\nbreak;\n}\n"
        "switch (nr) {\ncase FUTEX2_WAIT:\nswitch (b) {\ncase TWO:\n}\n"
        "case SYS_read:\n}\n"
    )
    assert switches.switches(text) == [3, 10]


def test_comparisons_are_found_with_their_calls() -> None:
    text = "return nr == SYS_read ||\n       nr != __NR_write || nr < SYS_open;\n"
    assert switches.comparisons(text) == [(1, "read"), (2, "write")]


def test_an_additional_comparison_fails(tmp_path: Path) -> None:
    for part in switches.PARTS:
        shutil.copytree(switches.ROOT / part, tmp_path / part)
    (tmp_path / "lib" / "new.c").write_text("if (nr == SYS_read) {}\n")
    assert switches.main(tmp_path) == 1


def test_a_call_that_too_many_files_compare_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lib").mkdir()
    for name in range(3):
        (tmp_path / "lib" / f"{name}.c").write_text("if (nr == SYS_read) {}\n")
    monkeypatch.setattr(switches, "SWITCHES", 0)
    monkeypatch.setattr(switches, "COMPARISONS", 3)
    assert switches.main(tmp_path) == 1
    (tmp_path / "lib" / "2.c").write_text("if (nr == SYS_write) {}\n")
    assert switches.main(tmp_path) == 0
