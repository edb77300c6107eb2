# SPDX-License-Identifier: MIT
"""How much code depends on the numbers of particular system calls?

    python3 tests/lint/switches.py

The properties of calls belong in lib/calls/syscalls.tbl. A switch over call numbers,
or a comparison with one, is a property that the table lacks, and has to be extended
for each new call. So their number may decrease, but not increase. One or two files
that are about a particular call may compare its number.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PARTS = "bench cmd events http kmod lib nginx runtime serve".split()
SWITCHES = 3  # lower it with each switch that is removed
COMPARISONS = 20  # likewise
FILES = 2  # that may compare one call's number

NUMBER = re.compile(r"\bcase (?:SYS_|__NR_|FUTEX2_)\w+")
SWITCH = re.compile(r"\bswitch \(|\{|\}|" + NUMBER.pattern)
COMPARISON = re.compile(r"[!=]= (?:SYS_|__NR_)(\w+)")


def switches(text: str) -> list[int]:
    """Return the lines of the switches with a call's number as a case."""
    found: set[int] = set()
    blocks: list[int] = []  # for each open brace, the line of its switch, or 0
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


def comparisons(text: str) -> list[tuple[int, str]]:
    """Return the lines that compare a call's number, with the call."""
    return [
        (text.count("\n", 0, match.start()) + 1, match[1])
        for match in COMPARISON.finditer(text)
    ]


def exceeded(what: str, found: list[str], limit: int, name: str) -> bool:
    """Print what was found, unless its number is exactly the limit."""
    if len(found) == limit:
        return False
    print(
        f"{len(found)} {what}, where switches.py allows {limit}; put what they know "
        "into lib/calls/syscalls.tbl:"
        if len(found) > limit
        else f"only {len(found)} {what}: lower {name} to that"
    )
    print("\n".join(found))
    return True


def main(root: Path = ROOT) -> int:
    lists: dict[str, list[str]] = {"switch": [], "compare": []}
    spread: Counter[str] = Counter()
    for part in PARTS:
        for path in sorted((root / part).rglob("*.[ch]")):
            text = path.read_text(encoding="utf-8")
            place = path.relative_to(root)
            lists["switch"] += [f"{place}:{line}" for line in switches(text)]
            compared = comparisons(text)
            lists["compare"] += [f"{place}:{line}: {call}" for line, call in compared]
            spread.update({call for _line, call in compared})
    failed = exceeded(
        "switches over call numbers", lists["switch"], SWITCHES, "SWITCHES"
    )
    failed |= exceeded(
        "comparisons with call numbers", lists["compare"], COMPARISONS, "COMPARISONS"
    )
    for call, files in sorted(spread.items()):
        if files > FILES:
            print(f"{files} files compare the number of {call}; {FILES} may")
            failed = True
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
