# SPDX-License-Identifier: MIT
"""flexsc study report, from its users' view."""

from __future__ import annotations

import subprocess
from pathlib import Path

from fixtures import command, flexsc
from measured import CALLS

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT = 120


def report(
    folder: Path, *args: str | Path, **env: str
) -> subprocess.CompletedProcess[str]:
    return flexsc("study", "report", *args, cwd=folder, patience=TIMEOUT, **env)


def test_a_report_is_made_of_a_file(tmp_path: Path) -> None:
    done = report(tmp_path, "--from", CALLS)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("report: flexsc-report/report.html\n")
    page = (tmp_path / "flexsc-report" / "report.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>\n")
    assert '<section id="osdi-f9">' in page


def test_without_its_package_it_says_so(tmp_path: Path) -> None:
    done = report(tmp_path, FLEXBENCH_DIR="/nonexistent")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "flexsc: study: the Python package flexbench isn't in /nonexistent; set "
        "FLEXBENCH_DIR to the folder that has it\n"
    )


def test_the_installed_command_has_the_papers_numbers(tmp_path: Path) -> None:
    build = Path(command()).resolve().parents[1]
    done = subprocess.run(
        ["meson", "install", "-C", build, "--no-rebuild", "--destdir", tmp_path],
        capture_output=True,
        timeout=TIMEOUT,
        check=False,
    )
    assert done.returncode == 0
    (package,) = tmp_path.rglob("share/flexsc/flexstudy")
    source = ROOT / "study" / "flexstudy" / "papers"
    names = sorted(path.name for path in source.iterdir())
    assert sorted(path.name for path in (package / "papers").iterdir()) == names
    assert (package / "report" / "__main__.py").is_file()
    assert list(package.rglob("__pycache__")) == []
    assert list(tmp_path.rglob("man1/flexsc-study.1"))
