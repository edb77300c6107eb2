# SPDX-License-Identifier: MIT
"""The Debian packages, for each release: built twice, checked, installed, upgraded,
used, removed and purged in a clean root. `scripts/test packages` runs this file.

Roots are unpacked from apt's mirror into build-test/RELEASE; scripts/root describes
them.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RELEASES = ("bookworm", "trixie")
LIMIT = 1400  # seconds for a hang


def in_root(root: str, *command: str | Path, **env: str) -> str:
    """Run a command in a release's root, or in another root of the release:
    RELEASE/NAME.
    """
    done = subprocess.run(
        ["scripts/root", root, "--", *map(str, command)],
        cwd=ROOT,
        env={**os.environ, **env, "LC_ALL": "C.UTF-8"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
        timeout=LIMIT,
    )
    assert done.returncode == 0, done.stdout[-20_000:]
    return done.stdout


@dataclass
class Release:
    name: str
    packages: Path  # the folder where the packages were built

    def debs(self, folder: Path | None = None) -> dict[str, Path]:
        """Return the packages by their names, without those of debug information."""
        paths = (folder or self.packages).glob("*.deb")
        found = {path.name.partition("_")[0]: path for path in paths}
        return {k: v for k, v in found.items() if not k.endswith("-dbgsym")}


@pytest.fixture(scope="module", params=RELEASES)
def release(request: pytest.FixtureRequest) -> Release:
    if os.getuid() != 0 or not shutil.which("mmdebstrap"):
        pytest.skip("needs root and mmdebstrap, to make a root file system")
    name: str = request.param
    folder = ROOT / "build-test" / name / "packages"
    shutil.rmtree(folder, ignore_errors=True)
    in_root(name, "scripts/package", "--install", folder)
    return Release(name, folder)


def test_all_packages_are_built(release: Release) -> None:
    control = (ROOT / "debian/control").read_text()
    packages = set(re.findall(r"^Package: (.*)$", control, re.MULTILINE))
    assert set(release.debs()) == packages


def test_lintian_finds_nothing(release: Release) -> None:
    (changes,) = release.packages.glob("*.changes")
    install = "apt-get install --yes --no-install-recommends lintian >/dev/null"
    check = f"lintian --allow-root --fail-on error,warning {changes}"
    said = in_root(release.name, "sh", "-ec", f"{install}; {check}")
    assert not re.search(r"^[EW]: ", said, re.MULTILINE), said


@pytest.fixture(scope="module")
def programs(
    release: Release, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[Path]]:
    """All programs and libraries of the packages."""
    folder = tmp_path_factory.mktemp(release.name)
    for path in release.debs().values():
        subprocess.run(["dpkg-deb", "--extract", path, folder], check=True)
    files = (path for path in folder.rglob("*") if path.is_file())
    yield [path for path in files if path.open("rb").read(4) == b"\x7fELF"]
    shutil.rmtree(folder)


def test_programs_are_hardened(programs: list[Path]) -> None:
    assert len(programs) > 10
    checked = ""
    for path in programs:
        done = subprocess.run(
            ["readelf", "--wide", "--headers", "--dynamic", "--symbols", path],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        said = done.stdout
        assert re.search(r"Type: +DYN", said), f"{path}: not position-independent"
        assert "GNU_RELRO" in said, path
        assert re.search(r"FLAGS.*NOW", said), f"{path}: binds symbols lazily"
        assert re.search(r"GNU_STACK .* RW +0x", said), f"{path}: executable stack"
        assert not re.search(r"\((RPATH|RUNPATH)\)", said), path
        checked += said
    assert "__stack_chk_fail" in checked
    assert re.search(r" __\w+_chk@", checked), "no function is fortified"


def test_another_path_gives_the_same_packages(release: Release) -> None:
    folder = release.packages / "elsewhere" / "longer-name"
    in_root(
        release.name, "scripts/package", folder, TZ="Asia/Tokyo", DEB_BUILD_OPTIONS=""
    )
    paths = list(release.packages.glob("*.deb"))
    others = [folder / path.name for path in paths]
    differ = [a.name for a, b in zip(paths, others, strict=True) if not same(a, b)]
    assert differ == []


def same(a: Path, b: Path) -> bool:
    return a.read_bytes() == b.read_bytes()


def test_packages_are_installed_upgraded_removed_and_purged(release: Release) -> None:
    clean = f"{release.name}/clean"
    shutil.rmtree(ROOT / "build-test" / clean / "root", ignore_errors=True)
    said = in_root(clean, "tests/packages/install.sh", release.packages)
    assert said.splitlines()[-1] == "nothing is left", said[-20_000:]


def test_the_packages_own_tests_pass(release: Release) -> None:
    """Runs in the root of the previous test, which has apt's lists."""
    (source,) = release.packages.glob("*.dsc")
    install = "apt-get install --yes --no-install-recommends autopkgtest >/dev/null"
    debs = " ".join(map(str, release.debs().values()))
    check = f"autopkgtest {debs} {source} -- null"
    in_root(f"{release.name}/clean", "sh", "-ec", f"{install}; {check}")
