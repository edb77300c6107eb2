# SPDX-License-Identifier: MIT
"""Do dependencies between folders and files point one way?

    floors.py FOLDER...

A folder's file FLOORS lists its sub-folders ("floors") in order, the lowest first.
"." stands for the files of the folder itself. A header may be listed, too
("bench/cases.h"): an interface, whose functions are defined by files of higher
floors. These are errors:

- a file includes a file of a higher floor, or of a floor that isn't listed,
- a file uses a function of a higher floor,
- a circle of headers,
- a header declares another file's functions. a.h may declare those of a.c and a_*.c,
  in the same folder or in a folder for one processor. folder/folder.h may declare
  those of all files in the folder,
- a circle of more than LARGEST files that use each other's functions. FLOORS may set
  a lower number, in a line "circles N".

With a line "inline" in FLOORS, inline functions in headers count as well, and a.h
and a.c are one file.

Prints the errors. The status is 1 if there are any. The script recognizes functions
by the style of the code: a definition begins in the first column of a line, and
isn't static. A word with the function's name is a use, unless it names a member or a
type, or the file has a static function with this name.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

LARGEST = 2
MACHINES = ("aarch64", "x86_64")
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
NOT_CODE = re.compile(r'/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)
HEAD = r"^(?!typedef\b|extern\b)([A-Za-z_][\w \t\*\n]*?)\b(\w+)\([^;{}]*\)"
DEFINITION = re.compile(HEAD + r"\s*\{", re.MULTILINE)
PROTOTYPE = re.compile(HEAD.replace("|extern\\b", "") + r"[^;{}]*;", re.MULTILINE)
LABEL = re.compile(r"^\s*\.globl\s+(\w+)", re.MULTILINE)
WORD = re.compile(r"(?<![\w.])(?<!->)(?<!struct )(?<!enum )(?<!union )[A-Za-z_]\w*")
CIRCLES = "circles"
INLINE = "inline"


def drawn(folder: Path) -> tuple[list[str], int, bool]:
    """Return the names of the floors, how many files may form a circle, and whether
    inline functions count.
    """
    floors, largest, inline = [], LARGEST, False
    for line in (folder / "FLOORS").read_text().splitlines():
        if not line or line[0] in "# \t":
            continue
        name, *rest = line.split()
        if name == CIRCLES:
            largest = min(largest, int(rest[0]))
        elif name == INLINE:
            inline = True
        else:
            floors.append(name)
    return floors, largest, inline


def functions(pattern: re.Pattern[str], code: str, static: bool = False) -> set[str]:
    """Return the names that the pattern finds, of static functions or of the others.

    EXPORT marks functions that interpose libc's. A use of these names means libc's.
    """
    return {
        name
        for before, name in pattern.findall(code)
        if ("static" in before.split()) == static and "EXPORT" not in before.split()
    }


@dataclass
class House:
    """A folder with floors: the code of its files, without comments and strings."""

    folder: Path
    floors: list[str]
    largest: int = LARGEST
    inline: bool = False
    code: dict[Path, str] = field(default_factory=dict)
    includes: dict[Path, set[Path]] = field(default_factory=dict)
    home: dict[str, Path] = field(default_factory=dict)  # of functions

    def floor(self, path: Path) -> int | None:
        """The number of the file's floor; None: the file isn't on a floor."""
        within = path.relative_to(self.folder)
        top = within.parts[0] if len(within.parts) > 1 else "."
        for name in (str(within), top):
            if name in self.floors:
                return self.floors.index(name)
        return None


def read(folder: Path) -> House:
    house = House(folder, *drawn(folder))
    for path in sorted(folder.rglob("*.[chS]")):
        text = path.read_text()
        house.code[path] = NOT_CODE.sub(" ", text)
        found = (
            base / name
            for name in INCLUDE.findall(text)
            for base in (path.parent, folder)
        )
        house.includes[path] = {
            Path(os.path.normpath(target)) for target in found if target.exists()
        }
    for path, code in house.code.items():
        if path.suffix == ".S":
            house.home |= dict.fromkeys(LABEL.findall(code), path)
        elif path.suffix == ".c":
            house.home |= dict.fromkeys(functions(DEFINITION, code), path)
        elif house.inline:
            house.home |= dict.fromkeys(functions(DEFINITION, code, static=True), path)
    return house


def words(code: str) -> set[str]:
    """Return words that may use, and not only declare, a function of another file."""
    used = set(WORD.findall(PROTOTYPE.sub(" ", code)))
    return used - functions(DEFINITION, code, static=True)


def uses(house: House) -> dict[Path, set[Path]]:
    """Return the files whose functions a file uses. Of headers, only inline ones count."""
    return {
        path: {
            house.home[word]
            for word in words(code)
            if word in house.home and house.home[word] != path
        }
        for path, code in house.code.items()
        if path.suffix != ".h" or house.inline
    }


def paired(graph: Mapping[Path, set[Path]]) -> dict[Path, set[Path]]:
    """Merge each header with its source file."""
    pairs: dict[Path, set[Path]] = {}
    for path, targets in graph.items():
        pair = path.with_suffix("")
        found = pairs.setdefault(pair, set())
        found |= {target.with_suffix("") for target in targets} - {pair}
    return pairs


def circles(graph: Mapping[Path, set[Path]]) -> Iterator[list[Path]]:
    """Tarjan's strongly connected components, without single files."""
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
                yield f"{path} {verb} {target}, which is on a higher floor"


def is_its(header: Path, home: Path) -> bool:
    """May the header declare what this file defines?"""
    folder = home.parent.parent if home.parent.name in MACHINES else home.parent
    if header.parent not in (folder, home.parent):
        return False
    name = header.stem
    return name in (home.stem, header.parent.name) or home.stem.startswith(f"{name}_")


def strangers(house: House) -> Iterator[str]:
    """Yield headers with prototypes of functions that a file of another name defines."""
    for path, code in house.code.items():
        interface = str(path.relative_to(house.folder)) in house.floors
        if path.suffix != ".h" or interface:
            continue
        for name in sorted(functions(PROTOTYPE, code)):
            home = house.home.get(name)
            if home and not is_its(path, home):
                yield f"{path} declares {name}(), which is in {home}"


def wrong(house: House) -> Iterator[str]:
    yield from upwards(house, house.includes, "includes")
    yield from upwards(house, uses(house), "uses")
    yield from strangers(house)
    headers = {p: t for p, t in house.includes.items() if p.suffix == ".h"}
    for circle in circles(headers):
        yield f"a circle of headers: {listed(circle)}"
    graph = uses(house)
    for circle in circles(paired(graph) if house.inline else graph):
        if len(circle) > house.largest:
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
