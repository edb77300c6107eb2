# SPDX-License-Identifier: MIT
"""Is an entry's status written only in the files of its transitions?

    arrows.py

<linux/flexsc.h> draws the transitions ("arrows") of an entry. Each arrow is a
function in one file of the library and in one file of the module. If another file
writes a status, the line is printed, and the exit status is 1.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from floors import NOT_CODE

ROOT = Path(__file__).resolve().parents[2]
ARROWS = {"lib": "lib/loop/entry.h", "kmod": "kmod/base/entry.h"}
STORES = (
    r"WRITE_ONCE|smp_store_\w+|\w*xchg\w*|atomic_\w+"
    r"|__atomic_(?!load)\w+|__sync_\w+"
)
MEMBER = r"(?:->|\.)\s*status\b"
WRITE = re.compile(
    rf"{MEMBER}\s*(?:(?:[-+|&^]|<<|>>)?=(?!=)|\+\+|--)"
    rf"|(?:\+\+|--)[\w>.\[\]-]*{MEMBER}"
    rf"|\b(?:{STORES})\s*\((?:[^;,()]|\([^;()]*\))*?{MEMBER}\s*,"
)


def writes(text: str) -> Iterator[int]:
    """Yield the numbers of the lines that write a status."""

    def blank(found: re.Match[str]) -> str:
        return "\n" * found[0].count("\n")

    code = NOT_CODE.sub(blank, text)
    for found in WRITE.finditer(code):
        yield code.count("\n", 0, found.start()) + 1


def wrong(root: Path) -> Iterator[str]:
    for folder, arrows in ARROWS.items():
        home = root / arrows
        if not any(writes(home.read_text())):
            yield f"{arrows} makes no transitions"
        for path in sorted((root / folder).rglob("*.[ch]")):
            if path != home:
                for line in writes(path.read_text()):
                    name = path.relative_to(root)
                    yield f"{name}:{line} writes a status, which only {arrows} may do"


def main() -> int:
    found = list(wrong(ROOT))
    for line in found:
        print(line)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
