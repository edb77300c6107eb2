# SPDX-License-Identifier: MIT
"""A draft release of this commit, checked and used as by its users."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 900  # seconds for a hang: the release builds everything
pytestmark = pytest.mark.long


def run(*words: str | Path, folder: Path = ROOT) -> str:
    done = subprocess.run(
        words,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def draft(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not shutil.which("git") or not (ROOT / ".git").exists():
        pytest.skip("needs git and a repository: this is a source archive")
    if not re.match(r"cargo 1\.(9\d|\d{3})\.", run("cargo", "--version")):
        pytest.skip("cargo is older than 1.90: it cannot package both crates")
    folder = tmp_path_factory.mktemp("release") / "draft"
    run(ROOT / "scripts" / "release", "--draft", folder)
    return folder


@pytest.fixture(scope="module")
def version() -> str:
    return run("git", "show", "HEAD:VERSION").strip()


def test_the_sources_are_those_of_the_commit(draft: Path, version: str) -> None:
    with tarfile.open(draft / f"flexsc-{version}.tar.gz") as tar:
        names = {one.name for one in tar if not one.isdir()}
    listed = run("git", "ls-tree", "-r", "--name-only", "HEAD").splitlines()
    assert names == {f"flexsc-{version}/{name}" for name in listed}


def test_the_checksums_are_those_of_all_files(draft: Path) -> None:
    said = run("sha256sum", "--check", "SHA256SUMS", folder=draft)
    files = (path for path in draft.rglob("*") if path.is_file())
    names = {str(path.relative_to(draft)) for path in files} - {"SHA256SUMS"}
    assert {line.removesuffix(": OK") for line in said.splitlines()} == names


def test_the_bill_of_materials_lists_compiled_in_code(
    draft: Path, version: str
) -> None:
    bill = json.loads((draft / f"flexsc-{version}.cdx.json").read_text())
    assert bill["metadata"]["component"]["version"] == version
    names = {one["name"] for one in bill["components"]}
    assert {"libc6-dev", "liburing-dev", "uthash-dev", "libzydis-dev"} <= names
    assert any("llhttp" in name for name in names)


def test_both_crates_are_packaged(draft: Path, version: str) -> None:
    names = {path.name for path in (draft / "rust").iterdir()}
    assert names == {f"flexsc-{version}.crate", f"flexsc-sys-{version}.crate"}


def test_the_wheel_needs_no_other_package(draft: Path, tmp_path: Path) -> None:
    (wheel,) = (draft / "python").glob("*.whl")
    assert "-manylinux_2_" in wheel.name
    run(sys.executable, "-m", "venv", tmp_path)
    python = tmp_path / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "--no-index", wheel)
    text = (ROOT / "bindings" / "python" / "README.md").read_text()
    (tmp_path / "example.py").write_text(
        text.split("```python\n", 1)[1].split("```", 1)[0]
    )
    said = run(python, "example.py", "nowhere", "pyvenv.cfg", folder=tmp_path)
    lines = (tmp_path / "pyvenv.cfg").read_text().splitlines()
    assert said.splitlines()[0] == "nowhere: No such file or directory"
    assert said.splitlines()[1].endswith(f" bytes, {len(lines)} lines")
    maps = "import flexsc; print(open('/proc/self/maps').read())"
    loaded = run(python, "-c", maps, folder=tmp_path)
    paths = {line.split()[-1] for line in loaded.splitlines() if "libflexsc" in line}
    assert paths
    assert all(path.startswith(os.path.realpath(tmp_path)) for path in paths)
