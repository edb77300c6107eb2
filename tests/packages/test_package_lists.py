# SPDX-License-Identifier: MIT
"""debian/ agrees with the rest of the tree. Building the packages takes long, so only
`scripts/test packages` does that, with releases.py. This test finds what a change
has forgotten.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from fixtures import command

ROOT = Path(__file__).resolve().parents[2]
DEBIAN = ROOT / "debian"
BUILD = Path(command()).resolve().parents[1]
# The lists of these packages name files of the sources, and of setuptools.
NOT_OF_MESON = ("flexsc-dkms", "flexsc-doc", "python3-flexsc")


def fields(name: str) -> list[dict[str, str]]:
    """Return the paragraphs of a file in Debian's format."""
    found = []
    for paragraph in (DEBIAN / name).read_text().strip().split("\n\n"):
        parts = re.findall(r"^(\S+): ?(.*(?:\n[ \t].*)*)$", paragraph, re.MULTILINE)
        found.append(dict(parts))
    return found


def introspected(what: str) -> dict[str, object]:
    done = subprocess.run(
        ["meson", "introspect", f"--{what}", BUILD],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout)
    if isinstance(found, list):
        return {option["name"]: option["value"] for option in found}
    return dict(found)


def installed() -> list[str]:
    """Return the files and folders that Meson installs, as paths below /usr."""
    prefix = str(introspected("buildoptions")["prefix"])
    paths = [str(path) for path in introspected("installed").values()]
    assert all(path.startswith(f"{prefix}/") for path in paths)
    return ["usr" + path.removeprefix(prefix) for path in paths]


def patterns() -> dict[str, str]:
    """Return the patterns of the packages' lists, with their packages."""
    found = {}
    for path in DEBIAN.glob("*.install"):
        if path.stem not in NOT_OF_MESON:
            lines = path.read_text().splitlines()
            found |= {line.split()[0]: path.stem for line in lines}
    lines = (DEBIAN / "not-installed").read_text().splitlines()
    return found | {line: "none" for line in lines if line[0] != "#"}


def covers(pattern: str, path: str) -> bool:
    """Does the pattern match the path, or a folder that contains it?"""
    parts = path.split("/")[: pattern.count("/") + 1]
    names = pattern.split("/")
    return len(parts) == len(names) and all(map(fnmatchcase, parts, names))


def test_each_installed_file_is_in_one_package() -> None:
    lists = patterns()
    for path in installed():
        owners = {lists[pattern] for pattern in lists if covers(pattern, path)}
        # A folder needs no owner if the lists name its parts.
        parts = any(pattern.startswith(f"{path}/") for pattern in lists)
        assert len(owners) == 1 or (parts and not owners), f"{path}: {owners}"


def test_each_line_of_a_list_names_a_file() -> None:
    paths = installed()
    if introspected("buildoptions")["nginx"] != "enabled":
        pytest.skip("this build may be without the nginx module")
    for pattern, package in patterns().items():
        inside = any(pattern.startswith(f"{path}/") for path in paths)
        assert inside or any(covers(pattern, path) for path in paths), package


def test_each_package_has_files() -> None:
    packages = {one["Package"] for one in fields("control") if "Package" in one}
    assert packages == {path.stem for path in DEBIAN.glob("*.install")}


def test_links_of_packaged_documents_work(tmp_path: Path) -> None:
    for line in (DEBIAN / "flexsc-doc.install").read_text().splitlines():
        *sources, place = line.split()
        folder = tmp_path / place.removeprefix("usr/share/doc/flexsc").lstrip("/")
        folder.mkdir(parents=True, exist_ok=True)
        for source in sources:
            paths = list(ROOT.glob(source))
            # A build makes the site.
            assert paths or source.startswith("build-"), source
            for path in paths:
                copy = shutil.copytree if path.is_dir() else shutil.copy
                copy(path, folder / path.name)
    documents = list(tmp_path.rglob("*.md"))
    assert documents
    for document in documents:
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text()):
            assert (document.parent / link).exists(), f"{document.name}: {link}"


def test_the_library_s_package_is_named_after_its_interface() -> None:
    (number,) = re.findall(
        r"soversion: '(\d+)'", (ROOT / "lib/meson.build").read_text()
    )
    symbols = (DEBIAN / f"libflexsc{number}.symbols").read_text()
    assert symbols.startswith(f"libflexsc.so.{number} libflexsc{number} #MINVER#\n")
    exported = (ROOT / "lib/libflexsc.map").read_text()
    nodes = re.findall(r"^(\S+) {", exported, re.MULTILINE)
    assert re.findall(r"^ \(symver\)(\S+) ", symbols, re.MULTILINE) == nodes


def test_the_copyright_file_has_each_file_s_license() -> None:
    licenses = {
        "GPL-2.0-only": "GPL-2",
        "((GPL-2.0-only WITH Linux-syscall-note) OR MIT)": (
            "GPL-2 with Linux-syscall-note exception or Expat"
        ),
        "MIT": "Expat",
    }
    names = [one for one in fields("copyright") if "Files" in one]
    done = subprocess.run(
        ["git", "grep", "-m1", r"^.\{0,4\} *[S]PDX-License-Identifier: "],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.skip("needs git and a repository")
    for line in done.stdout.splitlines():
        path, _, text = line.partition(":")
        (name,) = re.findall(r"Identifier: (.*?)(?: \*/| -->)?$", text)
        # The last matching paragraph applies.
        found = [
            one["License"].split("\n")[0]
            for one in names
            if any(fnmatchcase(path, pattern) for pattern in one["Files"].split())
        ]
        assert found[-1] == licenses[name], path
