# SPDX-License-Identifier: MIT
"""Damaged, edited or hostile files of flexsc bench --out: a message of one line, or
their text is escaped in the page.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from flexbench.__main__ import COMMAND
from flexbench.command import main
from flexstudy.report import __main__ as report
from measured import CALLS, calls

HOSTILE = "<script>alert('\"&')</script>\u202e"


@pytest.fixture(autouse=True)
def no_drawings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)


def changed(path: Path, *keys: str | int, value: Any) -> Path:
    """The file with another value in one place."""
    at: Any = calls()
    whole = at
    for key in keys[:-1]:
        at = at[key]
    at[keys[-1]] = value
    path.write_text(json.dumps(whole), encoding="utf-8")
    return path


def reports(path: Path, out: Path) -> int:
    return report.main(["--from", str(path), "--out", str(out)])


ROUND = ("measurements", 0, "rounds", 0)


# Values that the file's form doesn't require, but a bench does.
LACKS: list[tuple[tuple[str | int, ...], Any]] = [
    (("machine", "load"), None),
    (("measurements", 0, "rounds"), []),
    ((*ROUND, "samples"), {}),
    ((*ROUND, "samples", "ns_per_call"), ["fast"]),
]


@pytest.mark.parametrize(("keys", "value"), LACKS)
def test_a_file_that_lacks_something_is_one_line(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    keys: tuple[str | int, ...],
    value: Any,
) -> None:
    """The report still has the other files' figures, and all available values."""
    path = changed(tmp_path / "run.json", *keys, value=value)
    assert reports(path, tmp_path / "out") == 0
    capsys.readouterr()
    assert main(COMMAND, ["--show", str(path)]) == 1
    said = f"flexsc: bench: {path}: incomplete: values of its benches are missing\n"
    assert capsys.readouterr().err == said


def test_what_a_file_says_is_text(tmp_path: Path) -> None:
    whole = calls()
    for key in ("time", "kernel", "cpu", "revision", "governor"):
        whole["machine"][key] = HOSTILE
    whole["machine"]["versions"]["flexsc"] = HOSTILE
    whole["machine"]["mitigations"] = {HOSTILE: "Mitigation"}
    whole["command"], whole["notes"] = [HOSTILE], [HOSTILE]
    path = tmp_path / "<script>.json"
    path.write_text(json.dumps(whole))
    assert reports(path, tmp_path / "out") == 0
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert "&lt;script&gt;alert(&#x27;&quot;&amp;&#x27;)&lt;/script&gt;" in page


def test_a_full_device_leaves_the_earlier_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Path, *args: object, **options: object) -> int:
        self.touch()
        raise OSError(28, "No space left on device")

    out = tmp_path / "out"
    assert reports(CALLS, out) == 0
    before = {path: path.read_bytes() for path in out.iterdir() if path.is_file()}
    capsys.readouterr()
    monkeypatch.setattr(Path, "write_text", full)
    assert reports(CALLS, out) == 1
    said = f"flexsc: study: report: {out / 'report.html'}: No space left on device\n"
    assert capsys.readouterr().err == said
    assert before == {p: p.read_bytes() for p in out.iterdir() if p.is_file()}
