# SPDX-License-Identifier: MIT
"""The manual: each public function, counter and option is in it, and its examples
compile."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from fixtures import PATIENCE, command

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(command()).resolve().parents[1]
PAGES = {path.stem: path.read_text() for path in (ROOT / "man").glob("*.3.md")}


def section(page: str, name: str) -> str:
    found = re.search(rf"^## {name}\n(.*?)(?=^## |\Z)", PAGES[page], re.M | re.S)
    assert found, (page, name)
    return found[1]


def names(page: str) -> list[str]:
    return [n for n in PAGES[page].split("\n\n")[1].split() if n != "flexsc"]


def public() -> set[str]:
    """The functions that the headers declare, but for those of single calls."""
    found: set[str] = set()
    for header in (ROOT / "include" / "flexsc").glob("*.h"):
        code = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.S)
        # At the beginning of a line, as no call of one is.
        found.update(re.findall(r"^\w[\w\s*]*?\b(flexsc_\w+)\(", code, re.M))
    # What netdb.h has posted by flexsc_loop_work().
    found -= {"flexsc_getaddrinfo_run"}
    return {name for name in found if not name.startswith("flexsc__")}


def test_each_public_function_has_a_page() -> None:
    assert len(public()) > 50
    named = [name for page in PAGES for name in names(page)]
    assert sorted(named) == sorted(public())


MADE = [f"man/{path.stem}" for path in sorted((ROOT / "man").glob("*.md"))]


@pytest.mark.parametrize("page", [*MADE, "man/flexsc-study.1"])
def test_a_page_is_clean(page: str) -> None:
    if not shutil.which("mandoc"):
        pytest.skip("no mandoc")
    made = BUILD / page
    subprocess.run(
        ["mandoc", "-Tlint", "-Wwarning", made], timeout=PATIENCE, check=True
    )
    assert "`" not in made.read_text().replace("\\`", "")


@pytest.mark.parametrize("page", sorted(PAGES))
def test_examples_compile(page: str, tmp_path: Path) -> None:
    text = re.search(r"^```c\n(.*?)^```", section(page, "EXAMPLES"), re.M | re.S)
    assert text
    source = tmp_path / "example.c"
    source.write_text(text[1])
    subprocess.run(
        [
            "cc",
            "-std=gnu11",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-fsyntax-only",
            f"-I{ROOT / 'include'}",
            f"-I{ROOT / 'include/uapi'}",
            f"-I{BUILD / 'include'}",
            source,
        ],
        timeout=PATIENCE,
        check=True,
    )


@pytest.mark.parametrize(
    ("page", "header", "name"),
    [
        ("flexsc-stats.3", "stats.h", "flexsc_stats"),
        ("flexsc-loop.3", "loop.h", "flexsc_options"),
    ],
)
def test_the_manual_has_every_counter_and_option(
    page: str, header: str, name: str
) -> None:
    text = (ROOT / "include" / "flexsc" / header).read_text()
    body = re.search(rf"^struct {name} {{(.*?)^}}", text, re.M | re.S)
    assert body
    code = re.sub(r"/\*.*?\*/", "", body[1], flags=re.S)
    fields = set(re.findall(r"(\w+);", code)) - {"size"}
    assert len(fields) > 5
    tagged = re.findall(r"^- (.*?): ", PAGES[page], re.M)
    assert fields - set(re.findall(r"\w+", " ".join(tagged))) == set()


def test_man_finds_a_function(tmp_path: Path) -> None:
    if not shutil.which("man"):
        pytest.skip("no man")
    subprocess.run(
        ["meson", "install", "-C", BUILD, "--no-rebuild", "--destdir", tmp_path],
        timeout=PATIENCE,
        stdout=subprocess.DEVNULL,
        check=True,
    )
    folder = next(tmp_path.rglob("man3")).parent
    shown = subprocess.run(
        ["man", "-M", folder, "flexsc_loop_deadline"],
        timeout=PATIENCE,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert "FLEXSC-CALL(3)" in shown.stdout
