# SPDX-License-Identifier: MIT
"""Is the house as it is drawn?

    floors.py FOLDER...

A folder's file FLOORS names its sub-folders in order, the lowest first; "." are
the files that are in none. Wrong is

- a file that includes one of a higher floor, or of a floor that isn't named,
- a file that uses a function of a higher floor,
- a circle of headers,
- a header that declares another file's functions,
- a circle of more files than LARGEST that use each other's functions.

Prints what is wrong; the status is 1 if something is. What is a function, and
where it is defined, is told by the style of the code: a definition begins in a
line's first column, and the name of what other files use begins with "flexsc_".
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

LARGEST = 7
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
NOT_CODE = re.compile(r'/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)
DEFINITION = re.compile(
    r"^(?!static\b|extern\b|typedef\b)[A-Za-z_][\w \t\*\n]*?\b(flexsc_\w+)"
    r"\([^;{}]*\)\s*\{",
    re.MULTILINE,
)
PROTOTYPE = re.compile(
    r"^(?!static\b|typedef\b)[A-Za-z_][\w \t\*\n]*?\b(flexsc__\w+)\([^;{}]*\)[^;{}]*;",
    re.MULTILINE,
)
LABEL = re.compile(r"^(flexsc_\w+):", re.MULTILINE)


def floors_of(folder: Path) -> list[str]:
    """The names of its floors."""
    lines = (folder / "FLOORS").read_text().splitlines()
    return [line.split()[0] for line in lines if line and line[0] not in "# \t"]


@dataclass
class House:
    """A folder with floors: its files' code, without comments and strings."""

    folder: Path
    floors: list[str]
    code: dict[Path, str] = field(default_factory=dict)
    includes: dict[Path, set[Path]] = field(default_factory=dict)
    home: dict[str, Path] = field(default_factory=dict)  # of functions

    def floor(self, path: Path) -> int | None:
        """Its number; None: it isn't on one."""
        name = (*path.relative_to(self.folder).parent.parts, ".")[0]
        return self.floors.index(name) if name in self.floors else None


def read(folder: Path) -> House:
    house = House(folder, floors_of(folder))
    for path in sorted(folder.rglob("*.[chS]")):
        text = path.read_text()
        house.code[path] = NOT_CODE.sub(" ", text)
        found = (path.parent / name for name in INCLUDE.findall(text))
        house.includes[path] = {
            Path(os.path.normpath(target)) for target in found if target.exists()
        }
    for path, code in house.code.items():
        if path.suffix != ".h":
            pattern = LABEL if path.suffix == ".S" else DEFINITION
            house.home |= dict.fromkeys(pattern.findall(code), path)
    return house


def uses(house: House) -> dict[Path, set[Path]]:
    """Whose functions a file names; headers are looked at for what they include."""
    return {
        path: {
            house.home[word]
            for word in set(re.findall(r"\bflexsc_\w+", code))
            if word in house.home and house.home[word] != path
        }
        for path, code in house.code.items()
        if path.suffix != ".h"
    }


def circles(graph: Mapping[Path, set[Path]]) -> Iterator[list[Path]]:
    """Tarjan's strongly connected components, but for single files."""
    number: dict[Path, int] = {}
    lowest: dict[Path, int] = {}
    stack: list[Path] = []

    def visit(node: Path) -> Iterator[list[Path]]:
        number[node] = lowest[node] = len(number)
        stack.append(node)
        for target in sorted(graph.get(node, ())):
            if target not in number:
                yield from visit(target)
                lowest[node] = min(lowest[node], lowest[target])
            elif target in stack:
                lowest[node] = min(lowest[node], number[target])
        if lowest[node] == number[node]:
            at = stack.index(node)
            circle = stack[at:]
            del stack[at:]
            if len(circle) > 1:
                yield circle

    for node in graph:
        if node not in number:
            yield from visit(node)


def listed(paths: list[Path]) -> str:
    return ", ".join(map(str, sorted(paths)))


def upwards(house: House, arrows: Mapping[Path, set[Path]], verb: str) -> Iterator[str]:
    for path, targets in arrows.items():
        here = house.floor(path)
        for target in sorted(targets):
            if not target.is_relative_to(house.folder):
                continue
            there = house.floor(target)
            if here is None or there is None:
                yield f"{path} {verb} {target}: not on a floor of FLOORS"
            elif there > here:
                yield f"{path} {verb} {target}, which is above"


def strangers(house: House) -> Iterator[str]:
    """Headers with prototypes of what a file of another name defines."""
    for path, code in house.code.items():
        if path.suffix != ".h":
            continue
        for name in PROTOTYPE.findall(code):
            home = house.home.get(name)
            if home and home.with_suffix("") != path.with_suffix(""):
                yield f"{path} declares {name}(), which is in {home}"


def wrong(house: House) -> Iterator[str]:
    yield from upwards(house, house.includes, "includes")
    yield from upwards(house, uses(house), "uses")
    yield from strangers(house)
    headers = {p: t for p, t in house.includes.items() if p.suffix == ".h"}
    for circle in circles(headers):
        yield f"a circle of headers: {listed(circle)}"
    for circle in circles(uses(house)):
        if len(circle) > LARGEST:
            yield f"a circle of {len(circle)} files: {listed(circle)}"


def main(folders: list[str]) -> int:
    if not folders:
        print("usage: floors.py FOLDER...", file=sys.stderr)
        return 2
    found = [line for name in folders for line in wrong(read(Path(name)))]
    for line in found:
        print(line)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
