# SPDX-License-Identifier: MIT
"""The Python package flexsc: built as by its users, and its own tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest
from fixtures import command

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(command()).resolve().parents[1]
PACKAGE = ROOT / "bindings" / "python"
VERSION = (ROOT / "VERSION").read_text().strip()
LIMIT = 900  # seconds for a hang: on a busy machine it took more than 120
SDIST = "import setuptools.build_meta as b, sys; print(b.build_sdist(sys.argv[1]))"
WHEEL = "import setuptools.build_meta as b, sys; print(b.build_wheel(sys.argv[1]))"


def python(*words: str | Path, folder: Path, **env: str | Path) -> str:
    done = subprocess.run(
        [sys.executable, *map(str, words)],
        cwd=folder,
        env={**os.environ, **{name: str(value) for name, value in env.items()}},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the package from sources to an archive, a wheel and files. Yields the
    folder.
    """
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        pytest.skip("Python.h is missing: install python3-dev")
    work = tmp_path_factory.mktemp("python")
    copy = work / "copy"
    shutil.copytree(PACKAGE, copy)
    archive = python("-c", SDIST, work, folder=copy).splitlines()[-1]
    assert archive == f"flexsc-{VERSION}.tar.gz"
    with tarfile.open(work / archive) as tar:
        tar.extractall(work)
    sources = work / f"flexsc-{VERSION}"
    pkgconfig = BUILD / "meson-uninstalled"
    said = python("-c", WHEEL, work, folder=sources, PKG_CONFIG_PATH=pkgconfig)
    with zipfile.ZipFile(work / said.splitlines()[-1]) as wheel:
        wheel.extractall(work / "installed")
    return work / "installed"


def test_the_package_passes_its_tests(installed: Path) -> None:
    said = python(
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        PACKAGE / "tests",
        folder=installed.parent,
        PYTHONPATH=installed,
        LD_LIBRARY_PATH=BUILD / "lib",
        PYTHONDONTWRITEBYTECODE="1",
    )
    assert " passed" in said


def test_the_example_of_the_package_s_readme_runs(installed: Path) -> None:
    text = (PACKAGE / "README.md").read_text()
    example = text.split("```python\n", 1)[1].split("```", 1)[0]
    (installed.parent / "example.py").write_text(example)
    said = python(
        installed.parent / "example.py",
        "README.md",
        "nowhere",
        folder=PACKAGE,
        PYTHONPATH=installed,
        LD_LIBRARY_PATH=BUILD / "lib",
    )
    size = len(text.encode())
    assert said.splitlines() == [
        f"README.md: {size} bytes, {len(text.splitlines())} lines",
        "nowhere: No such file or directory",
    ]
