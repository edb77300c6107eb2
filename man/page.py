#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes manual pages of pages in Markdown.

    page.py VERSION DATE OUTPUT-FOLDER HEADERS HEADERS PAGE.md...

A page begins with a heading, "# NAME(SECTION) - description". A page of section 3
lists its functions in the first paragraph; their declarations in the two folders of
headers become its synopsis. Of Markdown it may have headings, paragraphs,
indented and fenced code, `code`, *emphasis*, rows of a table, and lists: "*" or "1."
before an item, which is numbered anew, and "- TERM: TEXT" for a definition.

No other converter replaces this one. pandoc 2.17, lowdown 1.0 and go-md2man 2.0 write
`code` in a font that mandoc lacks and that terminals show as plain text. Each page then
has about 50 warnings of "mandoc -Tlint", and options and references aren't bold. The
"-" of options stays unescaped, so groff prints a hyphen unless the system redefines it.
The synopsis would still need code here, and pandoc would be a build dependency of
170 MB. A build needs Python anyway.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

WIDTH = 78
LICENSE = """.\\" SPDX-License-Identifier: MIT
"""
TABLES = """'\\" t\n"""  # for man(1): tbl is needed
LIBRARY = "libflexsc; compile and link with `$(pkg-config --cflags --libs flexsc)`."
# What <flexsc/flexsc.h> doesn't include.
APART = {"default.h", "ecb.h", "netdb.h"}
ITEM = re.compile(r"( *)([-*]|\d\.) (.*)")


def escape(text: str) -> str:
    return text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")


def inline(text: str) -> str:
    """Roff of `code`, *emphasis* and references like name(3)."""

    def replace(part: re.Match[str]) -> str:
        code, emphasis, page, section = part.groups()
        if part[0] == "\\":
            return "\\e"
        if page:
            return f"\\fB{escape(page)}\\fP({section})"
        return f"\\fB{escape(code)}\\fP" if code else f"\\fI{escape(emphasis)}\\fP"

    found = r"`([^`]+)`|\*([^*\s][^*]*)\*|\b([a-z][\w-]*)\(([1-8])\)|\\"
    return re.sub(found, replace, text)


def filled(text: str, width: int = WIDTH) -> str:
    lines = textwrap.wrap(
        inline(" ".join(text.split())), width, break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip
    return "\n".join("\\&" + line if line[0] in ".'" else line for line in lines)


def literal(lines: list[str]) -> Iterator[str]:
    yield ".PP\n.RS 4\n.EX"
    for line in lines:
        line = escape(line.expandtabs(8))
        # mandoc's HTML loses an empty line, and adds some beside an indented one.
        yield ("\\&" + line if line[0] in " ." else line) if line else ".sp"
    yield ".EE\n.RE"


def item(mark: str, text: str) -> str:
    if mark == "-":
        term, _, text = text.partition(": ")
        # .TP takes one line.
        return f".TP\n{filled(term, sys.maxsize)}\n{filled(text)}"
    mark = "\\(bu" if mark == "*" else mark
    return f".IP {mark} 4\n{filled(text)}"


def number(counts: list[int], level: int, mark: str) -> str:
    """An item's mark. Of each level, counts has the number of the last item, or 0."""
    del counts[level + 1 :]
    counts += [0] * (level + 1 - len(counts))
    counts[level] = counts[level] + 1 if mark[0].isdigit() else 0
    return f"{counts[level]}." if counts[level] else mark


def table(block: list[str]) -> str:
    cells = [row.split("|")[1:-1] for row in block if set(row) - set("|-: ")]
    dash = re.compile(r"(?<!\\)-")  # not the hyphen of text
    rows = [[dash.sub(r"\\-", inline(cell.strip())) for cell in row] for row in cells]
    columns = len(rows[0]) - 1
    form = f"{'lB1 ' * columns}lB\n{'l1 ' * columns}l.\n"
    return ".TS\n" + form + "\n".join("\t".join(row) for row in rows) + "\n.TE"


def blocks(text: str) -> Iterator[list[str]]:
    """Paragraphs, items, headings and code, each as its lines."""
    block: list[str] = []
    for line in [*text.split("\n"), ""]:
        fenced = bool(block) and block[0].startswith("```")
        if fenced and line != "```":
            block.append(line)
            continue
        begins = ITEM.match(line) or not line or line.startswith("```")
        if block and begins:
            yield block
            block = []
        if line and not fenced:
            block.append(line)


def body(text: str) -> Iterator[str]:
    depth, listed = 0, False
    counts: list[int] = []
    for block in blocks(text):
        first = block[0]
        found = ITEM.match(first)
        level = len(found[1]) // 2 if found else 0
        yield from [".RS"] * (level - depth) + [".RE"] * (depth - level)
        depth = level
        if found:
            mark = number(counts, level, found[2])
            yield item(mark, " ".join([found[3], *block[1:]]))
        elif first.startswith("#"):
            mark, title = first.split(" ", 1)
            yield f".S{'H' if mark == '##' else 'S'} {escape(title)}"
        elif first.startswith("|"):
            yield table(block)
        elif first.startswith("```"):
            yield from literal(block[1:])
        elif first.startswith("    "):
            yield from literal([line[4:] for line in block])
        elif first.startswith("  ") and listed:
            yield ".IP\n" + filled(" ".join(block))
        else:
            yield ".PP\n" + filled(" ".join(block))
        listed = bool(found) or first.startswith("  ")
        if not listed:
            counts.clear()
    yield from [".RE"] * depth


def declaration(name: str, headers: dict[str, str]) -> tuple[str, str]:
    """A function's header and its declaration."""
    pattern = rf"^(?:static inline )?(\w[\w\s*]*?\b{name}\([^;{{]*\))\s*[;{{]"
    for header, text in headers.items():
        found = re.search(pattern, text, re.M)
        if found:
            return header, " ".join(found[1].split()) + ";"
    raise SystemExit(f"page.py: no header declares {name}()")


def synopsis(names: list[str], headers: dict[str, str]) -> Iterator[str]:
    yield ".nf"
    last = ""
    for name in names:
        header, text = declaration(name, headers)
        header = header if header in APART else "flexsc.h"
        if header != last:
            yield f".PP\n.B #include <flexsc/{header}>\n.PP"
            last = header
        lines = textwrap.wrap(text, WIDTH - 7, subsequent_indent=" " * 8)
        yield "\n".join(f"\\fB{escape(line)}\\fP" for line in lines)
    yield ".fi"


def page(text: str, version: str, date: str, headers: dict[str, str]) -> str:
    found = re.match(r"<!--.*-->\n# ([\w-]+)\((\d)\) - (.*)\n\n", text)
    if not found:
        raise SystemExit("page.py: no heading")
    name, section, description = found.groups()
    text, names = text[found.end() :], [name]
    title = f'.TH {escape(name.upper())} {section} {date} "FlexSC {version}"'
    parts = [title, ".SH NAME"]
    if section == "3":
        listed, text = text.split("\n\n", 1)
        names = listed.split()
    parts.append(f"{', '.join(map(escape, names))} \\- {escape(description)}")
    if section == "3":
        functions = [name for name in names if name != "flexsc"]
        parts += [".SH LIBRARY", filled(LIBRARY), ".SH SYNOPSIS"]
        parts += synopsis(functions, headers)
    lines = "\n".join([*parts, *body(text)]).split("\n")
    # Roff wants no paragraph right after a heading.
    kept = [
        line
        for before, line in zip(["", *lines], lines, strict=False)
        if line != ".PP" or not before.startswith((".SH", ".SS"))
    ]
    tables = TABLES if ".TS" in kept else ""
    return tables + LICENSE + "\n".join(kept) + "\n"


def main(
    version: str, date: str, output: str, ours: str, made: str, *sources: str
) -> None:
    headers = {
        path.name: re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)
        for folder in (ours, made)
        for path in sorted(Path(folder).glob("*.h"))
    }
    for source in map(Path, sources):
        text = page(source.read_text(), version, date, headers)
        (Path(output) / source.stem).write_text(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
