# SPDX-License-Identifier: MIT
"""How Sphinx makes the documentation site, whose source folder is the repository.

Nothing lists the pages. The folder of a document below docs/ decides its chapter, and
so does the section of a manual page, NAME.SECTION.md. mandoc converts the built manual
pages to HTML, so the site shows what man(1) shows.
"""

from __future__ import annotations

import html
import os
import re
import subprocess
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[2]
MANUAL = Path(os.environ["FLEXSC_MANUAL"])  # the folder man/ of a build
CHAPTERS = {
    "docs/tutorial": "Tutorials",
    "docs/how-to": "How to",
    "docs/explanation": "Explanation",
    "1": "Commands",
    "3": "Library",
    "7": "Conventions",
    "others": "Project",
}

project = "FlexSC"
version = release = (ROOT / "VERSION").read_text(encoding="utf-8").strip()
root_doc = "README"
include_patterns = ["*.md", "docs/**.md", "man/*.md", "study/docs/*.md"]
# Without these Sphinx looks through all builds as well.
folders = {path.name for path in ROOT.iterdir() if path.is_dir()}
exclude_patterns = sorted(folders - {"docs", "man", "study"})
extensions = ["myst_parser"]
myst_heading_anchors = 4
smartquotes = False  # "--" is the beginning of an option
html_theme = "furo"
html_title = f"FlexSC {release}"
html_copy_source = False
html_show_copyright = False


def contents(names: set[str]) -> str:
    """The navigation, which the first page has."""
    chapters: dict[str, list[str]] = {key: [] for key in CHAPTERS}
    for name in sorted(names - {root_doc}):
        section = re.search(r"\.(\d)$", name)
        key = section[1] if section else name.rpartition("/")[0]
        chapters[key if key in CHAPTERS else "others"].append(f"/{name}")
    form = "\n\n```{{toctree}}\n:hidden:\n:caption: {}\n\n{}\n```\n"
    used = [
        (CHAPTERS[key], "\n".join(pages)) for key, pages in chapters.items() if pages
    ]
    return "".join(form.format(*chapter) for chapter in used)


def manual_page(name: str) -> str:
    """A manual page, with Markdown's headings for the navigation and the search."""
    command = ("mandoc", "-Thtml", "-Ofragment", MANUAL / name)
    made = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    body = made.partition('<div class="manual-text">')[2].rpartition("</div>")[0]
    # Sphinx makes anchors of the headings, which may be equal to mandoc's.
    body = re.sub(r'( id="| href="#)', r"\1item-", body)
    heading = r'<h([12]) class="S.".*?><a.*?>(.*?)</a></h\1>'
    parts = re.split(heading, re.sub(r"</?section.*?>\n?", "", body), flags=re.S)
    text = "# {}({})\n".format(*name.rsplit(".", 1))
    for level, head, block in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
        words = html.unescape(" ".join(head.split()))
        text += f"\n#{'#' * int(level)} {words}\n\n`````{{raw}} html\n{block}`````\n"
    return text


def read(app: Sphinx, docname: str, source: list[str]) -> None:
    def link(match: re.Match[str]) -> str:
        """The site has no folders of the sources: their names remain as text."""
        folder = (ROOT / docname).parent / match[2]
        return match[1] if folder.is_dir() else match[0]

    source[0] = re.sub(r"\[([^]]*)\]\(([^)#:]+)\)", link, source[0])
    if docname == root_doc:
        source[0] += contents(app.env.found_docs)
    elif re.search(r"\.\d$", docname):
        source[0] = manual_page(docname.rpartition("/")[2])


def link_pages(
    app: Sphinx, name: str, template: str, context: dict[str, Any], tree: object
) -> None:
    """Where text names a page of this manual, as "flexsc-run(1)", it becomes a link."""
    pages = {page.rpartition("/")[2]: page for page in app.env.found_docs}

    def link(match: re.Match[str]) -> str:
        page = pages.get(f"{match[2]}.{match[3]}")
        return (
            f'<a href="{context["pathto"](page)}">{match[0]}</a>' if page else match[0]
        )

    passed = r"<(a|pre|h\d)\b.*?</\1>"
    named = r"(?:<b>)?\b([a-z][\w-]*)(?:</b>)?\(([1-8])\)"
    if tree:
        context["body"] = re.sub(f"{passed}|{named}", link, context["body"], flags=re.S)


def setup(app: Sphinx) -> None:
    app.connect("source-read", read)
    app.connect("html-page-context", link_pages)
