# SPDX-License-Identifier: MIT
"""How many switches know about system calls by number.

    python3 tests/lint/switches.py

What is known of a call stands in lib/calls/syscalls.tbl. A switch over call numbers
is knowledge that the table lacks, and a new call has to be added to each of them. So
their number may fall, but not rise.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PARTS = "bench cmd events http kmod lib nginx runtime serve".split()
LIMIT = 4  # lower it with each switch that goes

NUMBER = re.compile(r"\bcase (?:SYS_|__NR_|FUTEX2_)\w+")
SWITCH = re.compile(r"\bswitch \(|\{|\}|" + NUMBER.pattern)


def switches(text: str) -> list[int]:
    """The lines of the switches with a case that is a call's number."""
    found: set[int] = set()
    blocks: list[int] = []  # the line of the switch that each open brace is of, or 0
    pending = 0
    for match in SWITCH.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        if match[0] == "{":
            blocks.append(pending)
            pending = 0
        elif match[0] == "}":
            blocks[-1:] = []
        elif match[0].startswith("switch"):
            pending = line
        else:
            found.add(next((block for block in reversed(blocks) if block), line))
    return sorted(found)


def main() -> int:
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for part in PARTS
        for path in sorted((ROOT / part).rglob("*.[ch]"))
        for line in switches(path.read_text(encoding="utf-8"))
    ]
    if len(found) == LIMIT:
        return 0
    print(
        f"{len(found)} switches over call numbers, where switches.py allows {LIMIT}; "
        "put what they know into lib/calls/syscalls.tbl, or lower the limit:"
        if len(found) > LIMIT
        else f"only {len(found)} switches over call numbers: lower LIMIT to that"
    )
    print("\n".join(found))
    return 1


if __name__ == "__main__":
    sys.exit(main())
