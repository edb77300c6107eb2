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
from flexstudy.report import figures
from flexstudy.report.figure import State

ROOT = Path(__file__).resolve().parents[2]

FILES = sorted(path.name for path in [*papers.FOLDER.glob("*.csv"), machine.TUNING])


@pytest.mark.parametrize("name", FILES)
def test_each_file_has_its_columns(name: str) -> None:
    data = papers.read(name)
    assert data.cells
    assert {len(row) for row in data.cells} == {len(data.head)}


COMMANDS = {"bench": BENCH, "study": STUDY}
BENCHES = {
    bench.command: bench
    for one in figures.FIGURES.values()
    for bench in one.benches
    if bench.words
}


@pytest.mark.parametrize("command", BENCHES)
def test_each_command_of_the_report_exists(command: str) -> None:
    """The report's page, its record and --measure take commands from nowhere else."""
    flexsc, name, *words = command.split()
    assert flexsc == "flexsc"
    check(COMMANDS[name], parse(COMMANDS[name], words))


def test_a_command_that_does_not_exist_is_found() -> None:
    for words in (["counters", "study"], ["programs", "memcache"], ["calls", "--cpus"]):
        name = "bench" if words[0] == "calls" else "study"
        with pytest.raises((BenchError, SystemExit)):
            check(COMMANDS[name], parse(COMMANDS[name], words))


def test_each_figure_has_a_command_or_a_reason() -> None:
    """Figures without a command are drawings, machines, or rows of a table."""
    results = (ROOT / "docs/explanation/results.md").read_text(encoding="utf-8")
    _, there, rows = results.partition("## Not built, and why")
    assert there
    assert {item.id for item in papers.index()} == set(figures.FIGURES)
    for name, one in figures.FIGURES.items():
        if not one.benches and one.state not in (State.DIAGRAM, State.RECORDED):
            assert f"`{name}`" in rows, name


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
