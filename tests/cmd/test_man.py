# SPDX-License-Identifier: MIT
"""The manual describes each public function, counter and option, and its examples
compile.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
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
    """Return the functions that the headers declare, without those of single calls."""
    found: set[str] = set()
    for header in (ROOT / "include" / "flexsc").glob("*.h"):
        code = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.S)
        # Declarations begin in the first column, calls don't.
        found.update(re.findall(r"^\w[\w\s*]*?\b(flexsc_\w+)\(", code, re.M))
    # netdb.h posts this function by flexsc_loop_work().
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
        pytest.skip("mandoc is missing: install mandoc")
    made = BUILD / page
    subprocess.run(
        ["mandoc", "-Tlint", "-Wwarning", made], timeout=PATIENCE, check=True
    )
    assert "`" not in made.read_text().replace("\\`", "")


LONG = "`" + "`, `".join(["--an-option"] * 9) + "`"
TERM = "\\fB\\-\\-an\\-option\\fP, " * 8 + "\\fB\\-\\-an\\-option\\fP"


@pytest.mark.parametrize(
    ("markdown", "roff"),
    [
        pytest.param(f"- {LONG}: Text", f".TP\n{TERM}\nText", id="long term"),
        pytest.param(
            "1. one\n1. two\n  * dot\n1. three\n\nText\n\n1. one",
            ".IP 1. 4\none\n.IP 2. 4\ntwo\n.RS\n.IP \\(bu 4\ndot\n.RE\n"
            ".IP 3. 4\nthree\n.PP\nText\n.IP 1. 4\none",
            id="numbers",
        ),
        pytest.param(r"a\b, `c\d`", r"a\eb, \fBc\ed\fP", id="backslash"),
        pytest.param(
            "| a | b |\n|---|:-:|\n| `c` | - |",
            ".TS\nlB1 lB\nl1 l.\na\tb\n\\fBc\\fP\t\\-\n.TE",
            id="table",
        ),
        pytest.param(
            "Text\n```\ncode\n\n .more\n```\nText",
            "Text\n.PP\n.RS 4\n.EX\ncode\n.sp\n\\& .more\n.EE\n.RE\n.PP\nText",
            id="fence without a blank line",
        ),
        pytest.param(
            "* a\n    * b\n\nText\n\n    * c",
            ".IP \\(bu 4\na\n.RS\n.RS\n.IP \\(bu 4\nb\n.RE\n.RE\n.PP\nText\n"
            ".RS\n.RS\n.IP \\(bu 4\nc\n.RE\n.RE",
            id="levels",
        ),
    ],
)
def test_markdown_becomes_roff(markdown: str, roff: str, tmp_path: Path) -> None:
    source = tmp_path / "name.1.md"
    source.write_text(f"<!-- -->\n# name(1) - a page\n\n## TEXT\n\n{markdown}\n")
    script = ROOT / "man" / "page.py"
    words = ["1.2.3", "2026-01-01", tmp_path, *[tmp_path] * 2, source]
    subprocess.run(
        [sys.executable, "-B", script, *words],
        timeout=PATIENCE,
        check=True,
    )
    text = source.with_suffix("").read_text()
    assert '.TH NAME 1 2026-01-01 "FlexSC 1.2.3"\n' in text
    assert text.split(".SH TEXT\n")[1] == roff + "\n"


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
        pytest.skip("man is missing: install man-db")
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
