# SPDX-License-Identifier: MIT
"""The documentation site: all links lead to existing targets inside it, it shows
nothing from outside, and a browser opens and searches it without a network.
"""

from __future__ import annotations

import html
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from fixtures import PATIENCE, command

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(command()).resolve().parents[1]


@pytest.fixture(scope="module")
def site() -> Path:
    tools = Path(sys.prefix)
    words = [ROOT / "scripts/docs", BUILD, tools]
    subprocess.run(words, timeout=6 * PATIENCE, check=True)
    return BUILD / "site"


def wrong(path: Path, texts: dict[Path, str]) -> Iterator[str]:
    """Yield a page's references without a target, and shown references to the outside."""
    for tag, found in re.findall(r'<(\w+)\b[^>]*? (?:href|src)="(.*?)"', texts[path]):
        url = urlsplit(html.unescape(found))
        target = (path.parent / unquote(url.path)).resolve() if url.path else path
        if url.scheme or url.netloc:
            if tag != "a":
                yield f"{path.name} shows {found}"
        elif not target.is_file() or (
            url.fragment and f' id="{url.fragment}"' not in texts[target]
        ):
            yield f"{path.name}: no such target: {found}"


def test_links_have_targets_and_nothing_outside_is_shown(site: Path) -> None:
    texts = {path: path.read_text() for path in site.resolve().rglob("*.html")}
    assert [one for path in texts for one in wrong(path, texts)] == []
    styles = [path.read_text() for path in site.rglob("*.css")]
    assert styles
    assert not [s for s in styles if re.search(r"(url\(|@import)\W*(http|//)", s)]
    # The sources are found by their names, so the index must link every one of them.
    index = texts[site.resolve() / "index.html"]
    sources = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "man").glob("*.md")]
    names = [path.relative_to(ROOT).with_suffix(".html") for path in sources]
    assert [name for name in names if f'href="{name}"' not in index] == []


def test_a_wrong_reference_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    good = '<a href="https://x/"><p id="a"><a href="#a"><a href="page.html#a">'
    bad = '<a href="gone.html"><a href="page.html#b"><img src="//x/i.png">'
    page.touch()
    assert [line.split()[-1] for line in wrong(page, {page: good + bad})] == [
        "gone.html",
        "page.html#b",
        "//x/i.png",
    ]


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("index.html", "libflexsc"),
        ("man/flexsc-run.1.html", '<h2>SYNOPSIS<a class="headerlink"'),
        (
            "docs/explanation/design.html",
            '<li class="toctree-l1 current current-page">',
        ),
        ("search.html?q=flexsc_loop_deadline", '<a href="man/flexsc-call.3.html"'),
    ],
)
def test_a_browser_shows_the_site(url: str, text: str, site: Path) -> None:
    browser = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    if not browser:
        pytest.skip("chromium is missing: install chromium")
    # Virtual time runs as fast as the page's scripts permit, and no host name resolves.
    options = ("--virtual-time-budget=10000", "--host-resolver-rules=MAP * ~NOTFOUND")
    address = f"{site.resolve().as_uri()}/{url}"
    shown = subprocess.run(
        [browser, "--headless", "--no-sandbox", *options, "--dump-dom", address],
        timeout=3 * PATIENCE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=True,
    )
    assert text in shown.stdout
