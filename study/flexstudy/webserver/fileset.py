# SPDX-License-Identifier: MIT
"""The file set: the files that the study's servers serve. A file's name determines its
size and all of its bytes:

    dir00012/class2_5   5 x 10,240 bytes: folder 12, class 2, the 5th of its 9 files
    pages/1024          1,024 bytes

The classes are SPECweb99's static ones. Every file is a piece of one sheet of random
bytes; a hash of the file's name determines where the piece begins. describe() writes
the descriptions by which clients check answers; study/load/fileset.h has their form.
"""

from __future__ import annotations

import functools
import re
import shutil
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from flexbench.samples import BenchError

FOLDERS, FOLDERS_SMALL, FOLDERS_MAX = 680, 64, 100_000
CLASSES = (102, 1_024, 10_240, 102_400)  # size of a class' first file, in bytes
FILES = 9  # files per class in one folder
PAGES = range(64, 8_192 + 1, 64)  # sizes of the pages, in bytes

BYTES_MAX = 1 << 20  # largest file, in bytes
STARTS = 1_048_573  # number of positions where a file may begin, a prime number
SHEET = 2 << 20  # in bytes
SHEET_SEED = 2_463_534_242
NAME = re.compile(r"dir[0-9]{5}/class([0-3])_([1-9])|pages/([1-9][0-9]{0,6})")
SAMPLE = 64  # bytes compared at both ends of an existing file
WORD = (1 << 64) - 1


@dataclass(frozen=True)
class File:
    name: str
    bytes: int


def filed(folder: int, klass: int, index: int) -> File:
    """A file of a class in a folder. folder counts from 0, index from 1 to 9."""
    return File(f"dir{folder:05}/class{klass}_{index}", index * CLASSES[klass])


def page(size: int) -> File:
    return File(f"pages/{size}", size)


def classes(folders: int) -> Iterator[File]:
    """All files of all classes in so many folders."""
    for folder in range(folders):
        for klass in range(len(CLASSES)):
            for index in range(1, FILES + 1):
                yield filed(folder, klass, index)


def pages() -> Iterator[File]:
    return map(page, PAGES)


def size_of(name: str) -> int:
    """A file's size in bytes. ValueError: the set has no file of that name."""
    found = NAME.fullmatch(name)
    size = 0
    if found and found[3]:
        size = int(found[3])
    elif found:
        size = int(found[2]) * CLASSES[int(found[1])]
    if not 0 < size <= BYTES_MAX:
        raise ValueError(name)
    return size


@functools.cache
def sheet() -> memoryview:
    """Random bytes: 64-bit words of xorshift64, the lowest byte first."""
    state, words = SHEET_SEED, array("Q")
    for _ in range(SHEET // 8):
        state ^= state << 13 & WORD
        state ^= state >> 7
        state ^= state << 17 & WORD
        words.append(state)
    return memoryview(b"".join(word.to_bytes(8, "little") for word in words))


def start_of(name: str) -> int:
    """Where a file begins in the sheet: FNV-1a of its name, modulo a prime number."""
    state = 0xCBF29CE484222325
    for byte in name.encode():
        state = (state ^ byte) * 0x100000001B3 & WORD
    return state % STARTS


def content(file: File) -> memoryview:
    start = start_of(file.name)
    return sheet()[start : start + file.bytes]


# Files on the disk.


def describe(folder: Path, files: Iterable[File]) -> None:
    """Write the description of the set, for clients of a trace in this folder."""
    (folder / "sheet").write_bytes(sheet())
    lines = sorted(
        f"{file.name} {file.bytes} {start_of(file.name)}\n" for file in files
    )
    (folder / "fileset").write_text("".join(lines), encoding="ascii")


def is_there(path: Path, wanted: memoryview) -> bool:
    """Does the file exist with the right size and ends? The bytes between aren't
    compared, because only this module writes such files.
    """
    try:
        with path.open("rb") as opened:
            if opened.seek(0, 2) != len(wanted):
                return False
            ends = {0, max(0, len(wanted) - SAMPLE)}
            return all(
                opened.seek(end) == end
                and opened.read(SAMPLE) == wanted[end : end + SAMPLE]
                for end in ends
            )
    except (FileNotFoundError, NotADirectoryError):
        return False


def missing(root: Path, files: Iterable[File]) -> list[File]:
    return [file for file in files if not is_there(root / file.name, content(file))]


def write(root: Path, files: Iterable[File]) -> int:
    """Write the missing files. Returns their number. BenchError: no room, or no right
    to write.
    """
    wanted = missing(root, files)
    size = sum(file.bytes for file in wanted)
    try:
        root.mkdir(parents=True, exist_ok=True)
        room = shutil.disk_usage(root).free
        if size > room:
            raise BenchError(
                f"{root}: the files need {size:,} bytes more, "
                f"but only {room:,} are free: "
                "use fewer folders, or another place"
            )
        for file in wanted:
            path = root / file.name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content(file))
    except OSError as error:
        raise BenchError(f"{error.filename or root}: {error.strerror}") from error
    return len(wanted)
