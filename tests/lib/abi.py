# SPDX-License-Identifier: MIT
"""Print the library's binary interface: one line for each fact that a program compiles
in.

    python3 tests/lib/abi.py BUILD >lib/libflexsc.abi

BUILD is a build tree. A release writes the file, and test_abi.py compares every
later build with it. Layouts and types come from debug information, which this file
reads when gdb executes it.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = (ROOT / "include", ROOT / "include" / "uapi")
HEADERS = (
    *("flexsc/flexsc.h", "flexsc/default.h", "flexsc/ecb.h", "flexsc/netdb.h"),
    *("linux/flexsc.h", "linux/flexsc_ecb.h"),
)
# Programs pass the size of these structures, so fields may be appended.
GROWING = (
    *("flexsc_options", "flexsc_ecb_options"),
    *("flexsc_stats", "flexsc_stats_page"),
)
# Macros that no program compiles in, or that change with a structure's size.
# FLEXSC_NR_* are the kernel's numbers of calls.
OTHER_MACROS = re.compile(r"FLEXSC_(VERSION|NR_)|.*_INIT$")
Facts = dict[str, str]


def versions() -> dict[str, str]:
    """Return the version of each function in the linker's map."""
    found: dict[str, str] = {}
    version = ""
    for line in (ROOT / "lib" / "libflexsc.map").read_text().splitlines():
        if node := re.fullmatch(r"(\S+) \{", line):
            version = node[1]
        elif name := re.fullmatch(r"\t\t(\w+);", line):
            found[name[1]] = version
    return found


def types(keyword: str) -> list[str]:
    """Return the names of the public structures or enumerations."""
    text = "".join(p.read_text() for folder in FOLDERS for p in folder.glob("*/*.h"))
    return sorted(re.findall(rf"^{keyword} (flexsc_\w+) \{{", text, re.MULTILINE))


def fields(kind: Any, prefix: str, offset: int = 0) -> Iterator[str]:
    for field in kind.fields():
        at = offset + field.bitpos // 8
        if field.name:
            yield f"{prefix}.{field.name} {at} {field.type}"
        else:
            yield from fields(field.type, prefix, at)


def described(gdb: Any) -> Iterator[str]:
    """Yield the facts that the debug information contains."""
    for name, version in sorted(versions().items()):
        function = gdb.lookup_global_symbol(f"abi_{name}").type.target()
        yield f"function {name} {version} {function}"
    for name in types("struct"):
        kind = gdb.lookup_type(f"struct {name}")
        yield f"struct {name} {kind.sizeof}"
        yield from fields(kind, f"struct {name}")
    for name in types("enum"):
        for field in gdb.lookup_type(f"enum {name}").fields():
            yield f"enum {name}.{field.name} {field.enumval}"


def run(*words: str | Path) -> str:
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout


def constants(compiler: list[str | Path]) -> Iterator[str]:
    macros = run(*compiler, "-E", "-dM")
    for name, value in sorted(re.findall(r"^#define (FLEXSC_\w+) (.+)$", macros, re.M)):
        if not OTHER_MACROS.match(name):
            yield f"constant {name} {' '.join(value.split())}"


def soname(build: Path) -> str:
    dynamic = run("readelf", "-dW", build / "lib" / "libflexsc.so")
    found = re.search(r"soname: \[(.*)\]", dynamic)
    return f"library soname {found[1] if found else '-'}"


def current(build: Path) -> str:
    """Return the interface of these sources."""
    with tempfile.TemporaryDirectory() as name:
        source, probe = Path(name) / "probe.c", Path(name) / "probe.o"
        includes = [f"-I{folder}" for folder in (*FOLDERS, build / "include")]
        lines = [f"#include <{header}>" for header in HEADERS]
        lines += [f"__typeof__({f}) *abi_{f} = {f};" for f in versions()]
        source.write_text("\n".join(lines) + "\n")
        compiler: list[str | Path] = ["cc", "-std=gnu11", *includes, source]
        debug = ("-g", "-fno-eliminate-unused-debug-types")
        run(*compiler, *debug, "-c", "-o", probe)
        layouts = run("gdb", "-nx", "-batch", "-x", __file__, probe)
        return "\n".join([soname(build), layouts.rstrip(), *constants(compiler), ""])


def parsed(text: str) -> Facts:
    facts = [line.split(" ", 2) for line in text.splitlines() if line[0] != "#"]
    return {f"{kind} {name}": value for kind, name, value in facts}


def may_change(name: str, old: str, new: str | None) -> bool:
    """Has a structure that states its size grown, or is a reserved field used?"""
    if name.split(" ")[1] in GROWING:
        return new is not None and int(new) > int(old)
    return bool(re.search(r"\.reserved\w*$", name))


def broken(old: Facts, new: Facts) -> list[str]:
    """Return the facts that a program built with the old interface can't rely on any
    more.
    """
    functions = [name for name in new if name.startswith("function ")]
    released = {
        value.split()[0] for value in old.values() if value.startswith("FLEXSC_")
    }
    found = [
        f"{name}: was {value}, is {new.get(name, 'missing')}"
        for name, value in old.items()
        if new.get(name) != value and not may_change(name, value, new.get(name))
    ]
    for name in functions:
        version = new[name].split()[0]
        if name not in old and version in released:
            found.append(f"{name}: new, but has the released version {version}")
    return found


if __name__ == "__main__":
    try:
        import gdb
    except ImportError:
        sys.stdout.write(current(Path(sys.argv[1])))
    else:
        print("\n".join(described(gdb)))
