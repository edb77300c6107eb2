# SPDX-License-Identifier: MIT
"""The papers' numbers: their files are whole."""

from __future__ import annotations

from pathlib import Path

import pytest
from flexbench import machine
from flexbench.__main__ import COMMAND as BENCH
from flexbench.command import check, parse
from flexbench.samples import BenchError
from flexstudy import papers
from flexstudy.__main__ import COMMAND as STUDY
from flexstudy.papers import Item

FILES = sorted(path.name for path in [*papers.FOLDER.glob("*.csv"), machine.TUNING])
KINDS = {
    *("value", "about", "up_to", "at_least", "at_most", "range_low", "range_high"),
    *("mean", "range", "trend"),
}


@pytest.mark.parametrize("name", FILES)
def test_each_file_has_its_columns(name: str) -> None:
    data = papers.read(name)
    assert data.cells
    assert {len(row) for row in data.cells} == {len(data.head)}


def test_each_figure_has_its_file_and_each_file_its_figure() -> None:
    items = papers.index()
    ids = [item.id for item in items]
    assert len(ids) == len(set(ids)) == 44
    named = {item.data for item in items if item.data}
    assert {item.data_in_text == "none" for item in items if not item.data} == {True}
    # The numbers of a list that another file has in words.
    assert {*named, papers.INDEX, "send-points.csv"} == set(FILES)
    for item in items:
        assert bool(papers.data_of(item).cells) == bool(item.data)


def test_each_recipe_is_a_command() -> None:
    """Its words up to the first remark."""
    commands = 0
    for item in papers.index():
        for part in item.recipe.split(";"):
            words = part.partition("(")[0].split()
            for name, command in (("bench", BENCH), ("study", STUDY)):
                if words[:2] == ["flexsc", name] and words[2] != "--raw":
                    check(command, parse(command, words[2:]))
                    commands += 1
    assert commands > 20


def test_points_have_a_known_kind_and_a_number_unless_they_are_trends() -> None:
    points = [point for name in FILES for point in papers.read(name).points]
    assert len(points) > 80
    for point in points:
        assert point.kind in KINDS, point
        assert point.says or point.kind != "trend", point
        # Two are ranges or words by nature.
        if point.value not in ("", "1-2", "cores", "improves", "rises"):
            assert point.number is not None or point.kind == "trend", point


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a,b\n1,2\n", "the columns aren't workload, server"),
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


def test_what_has_no_file_has_no_numbers() -> None:
    item = Item("x", "p", "f", "t", "diagram", "none", "", "", "", "")
    assert papers.data_of(item).rows == []
