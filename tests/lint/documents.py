# SPDX-License-Identifier: MIT
"""Do documents name only files that exist?

    python3 tests/lint/documents.py

A path that begins with one of the repository's folders has to exist, relative to the
root or to the document's folder, or has to be a program named like a source file.
The target of a link has to exist, and so does a source file that a document below
docs/ names without its folder. CHANGELOG.md and docs/migrating.md name old files.

A command of a guide or a tutorial has to work for packages and for `meson install`. So
neither names the installed command or its data below one prefix.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = (
    "bench bindings cmd debian docs events examples http include kmod lib man nginx "
    "packaging runtime scripts serve study tests"
).split()
OLD = {"CHANGELOG.md", "docs/migrating.md"}
BUILT = {"flexsc.ko", "calls.def", "syscalls.h"}
PATH = re.compile(rf"(?<![\w/.~-])(?:{'|'.join(FOLDERS)})/[\w./*-]*\w")
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
INSTALLED = re.compile(r"/usr/(?:local/)?(?:bin|share)/flexsc\b[\w/.]*")
NAME = re.compile(r"`(\w+\.(?:c|h|S|def|tbl))`")


def missing(root: Path, document: Path, names: set[str]) -> Iterator[str]:
    """Yield the files that the document names and that don't exist."""
    text = document.read_text(encoding="utf-8")
    for match in PATH.finditer(text):
        places = (root, match[0]), (document.parent, match[0]), (root, match[0] + ".c")
        built = match[0].rpartition("/")[2] in BUILT
        if not built and not any(any(folder.glob(name)) for folder, name in places):
            yield match[0]
    for match in LINK.finditer(text):
        if not (document.parent / match[1]).exists():
            yield match[1]
    if document.parent.name in ("how-to", "tutorial"):
        yield from INSTALLED.findall(text)
    if "docs" in document.relative_to(root).parts:
        yield from (n for n in NAME.findall(text) if n not in names | BUILT)


def main(root: Path = ROOT) -> int:
    files = [p for folder in FOLDERS for p in (root / folder).rglob("*")]
    names = {path.name for path in files}
    documents = [*root.glob("*.md"), *(p for p in files if p.suffix == ".md")]
    wrong = [
        f"{document.relative_to(root)}: no such file: {name}"
        for document in sorted(documents)
        if str(document.relative_to(root)) not in OLD
        for name in missing(root, document, names)
    ]
    print("\n".join(wrong), end="\n" if wrong else "")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
