# SPDX-License-Identifier: MIT
"""Does the runtime of flexsc run avoid its own interposed functions?

    imports.py SYMBOLS NM FOLDER...

The runtime interposes libc's functions, which SYMBOLS (runtime/base/symbols.def)
lists. If an object of the runtime, in a folder of the build, uses one of these
names, it gets the runtime's function, as if the program had called it. This function
may wait for a carrier, or enter the runtime twice. So no object may do that, with
the exceptions below. The objects of runtime/libc/ define these functions, and use
them on behalf of the program.

The last line is "ok" or "not ok", with the exit status to match.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

# Names that may be used anyway, with the reasons.
MAY = {
    "__sigsetjmp": "pthread_cleanup_push(), which saves no mask",
    "abort": "the end",
    "clock_gettime": "passes other clocks than a thread's on to libc at once",
    "epoll_ctl": "passes sets without a signalfd on",
    "eventfd": "makes a descriptor, which the runtime notes as it has to",
    "fclose": "of a file that no thread waits for",
    "ftruncate64": "waits for nothing",
    "prctl": "asks only",
    "pthread_mutex_lock": "of locks that are held for some instructions",
    "pthread_mutex_unlock": "as above",
    "pthread_once": "of functions that wait for nothing",
    "sched_getaffinity": "asks only, about the runtime's own threads",
    "sched_setaffinity": "of the runtime's own threads",
    "sched_yield": "on the runtime's own threads",
    "sigaction": "the program's action is looked up, and set for it",
}
# Without RING(): only carriers use liburing, and for them the interposed functions only
# pass the call on.
LISTED = re.compile(
    r"^(?:CALL|POINT|MADE|ON_HOST|FORK|FORK_JUMP|OWN|WAIT|TRY)\((\w+)", re.M
)


def used(nm: str, objects: Sequence[Path]) -> Iterator[tuple[str, str]]:
    """Yield each object with each name that it expects other objects to define."""
    said = subprocess.run(
        [nm, "--undefined-only", "--print-file-name", "--format=posix", *objects],
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    ).stdout
    for line in said.splitlines():
        path, _, symbol = line.partition(": ")
        yield Path(path).name, symbol.split()[0]


def wrong(symbols: Path, nm: str, objects: Sequence[Path]) -> Iterator[str]:
    listed = set(LISTED.findall(symbols.read_text()))
    if not listed or not objects:
        yield "nothing to look at"
    for name in sorted(set(MAY) - listed):
        yield f"{name} may be used, but isn't in {symbols}"
    others = [path for path in objects if not path.name.startswith("libc_")]
    for file, name in sorted(set(used(nm, others))):
        if name in listed - set(MAY):
            yield f"{file} uses {name}(), in front of which the runtime stands"


def main(words: list[str]) -> int:
    if len(words) < 3:
        print("usage: imports.py SYMBOLS NM FOLDER...", file=sys.stderr)
        return 2
    objects = [path for word in words[2:] for path in sorted(Path(word).glob("*.o"))]
    found = list(wrong(Path(words[0]), words[1], objects))
    for line in found:
        print(f"# {line}")
    print("not ok 1 - imports" if found else "ok 1 - imports")
    print("1..1")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
