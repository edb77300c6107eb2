# SPDX-License-Identifier: MIT
"""The papers' numbers: their files are complete."""

from __future__ import annotations

from pathlib import Path

import pytest
from flexbench import machine
from flexbench.__main__ import COMMAND as BENCH
from flexbench.command import check, parse
from flexbench.samples import BenchError
from flexstudy import papers
from flexstudy.__main__ import COMMAND as STUDY

FILES = sorted(path.name for path in [*papers.FOLDER.glob("*.csv"), machine.TUNING])


@pytest.mark.parametrize("name", FILES)
def test_each_file_has_its_columns(name: str) -> None:
    data = papers.read(name)
    assert data.cells
    assert {len(row) for row in data.cells} == {len(data.head)}


def test_each_recipe_is_a_command() -> None:
    """The words of the recipe up to the first remark."""
    commands = 0
    for item in papers.index():
        for part in item.recipe.split(";"):
            words = part.partition("(")[0].split()
            for name, command in (("bench", BENCH), ("study", STUDY)):
                if words[:2] == ["flexsc", name] and words[2] != "--raw":
                    check(command, parse(command, words[2:]))
                    commands += 1
    assert commands > 20


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a,b\n1,2\n", "the columns must be workload, server"),
        ("workload,server,instructions_per_syscall\n1,2\n", "shorter"),
        ("workload,server,instructions_per_syscall\na,b,one\n", "'one'"),
        (None, "No such file"),
    ],
)
def test_a_broken_file_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None, reason: str
) -> None:
    monkeypatch.setattr(papers, "FOLDER", tmp_path)
    papers.read.cache_clear()
    if text is not None:
        (tmp_path / "osdi-t2.csv").write_text(text)
    try:
        with pytest.raises(BenchError, match=reason) as error:
            papers.read("osdi-t2.csv")
        assert "\n" not in str(error.value)
    finally:
        papers.read.cache_clear()
