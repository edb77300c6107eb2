#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Generate source files and a manual page from the system-call table.

    gencalls.py {header|default|table|man|kernel} TABLE OUTPUT

header  <flexsc/syscalls.h>: typed functions per call
default <flexsc/default_syscalls.h>: the same on the default loop
table   C source of flexsc__calls, see call_info.h
man     flexsc-syscalls(7)
kernel  which calls the kernel module executes: base/calls.def of kmod/

Runs at build time only, and needs only the standard library. The top of TABLE explains
its columns. A malformed line ends the run with one message that names the file and
the line, and OUTPUT is left unchanged.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from callattributes import Fields, changes_descriptors, inherit
from calltable import (
    CLASSES,
    MACHINES,
    MAX_ARGS,
    OPS,
    POINTED_TYPES,
    Call,
    TableError,
    Variant,
    parse_table,
)

WIDTH = 80
SHORT_ARGS = 3  # flexsc__call3()

# Writing C.


def wrap(parts: Iterable[str], first: str, indent: str) -> str:
    """Join parts with blanks, breaking lines between them; tabs are 8 wide."""
    lines = [first]
    for part in parts:
        glue = "" if lines[-1] in (first, indent) else " "
        if len((lines[-1] + glue + part).expandtabs()) > WIDTH:
            lines.append(indent)
            glue = ""
        lines[-1] += glue + part
    return "\n".join(lines)


def comma(items: Iterable[str], end: str) -> list[str]:
    """The items, each followed by a comma, and "end" after the last."""
    *before, last = items
    return [*(f"{item}," for item in before), last + end]


def comment(text: str) -> str:
    line = f"/* {text} */"
    if len(line) <= WIDTH:
        return line
    return "/*\n" + wrap(text.split(" "), " * ", " * ") + "\n */"


def and_list(names: list[str]) -> str:
    *before, last = names
    return f"{', '.join(before)} and {last}" if before else last


def per_machine(lines: Callable[[str], Iterable[str]]) -> Iterator[str]:
    """The lines of each machine, inside an #if for that machine."""
    for word, (machine, condition) in zip(
        ("#if", "#elif"), MACHINES.items(), strict=True
    ):
        yield f"{word} {condition}"
        yield from lines(machine)
    yield "#else"
    yield f'#error "FlexSC supports {and_list(list(MACHINES))}"'
    yield "#endif"


def with_number(calls: list[Call], machine: str) -> list[tuple[int, Call]]:
    rows = [(c.numbers[machine], c) for c in calls if machine in c.numbers]
    return sorted(rows, key=lambda row: row[0])


def describe(call: Call) -> str:
    owned = [arg.name for arg in call.args if arg.owned]
    if call.refused:
        return f"{call.name}(2). Refused: {call.note}."
    if owned:
        return f"{call.name}(2). The library owns {and_list(owned)} until the callback."
    return f"{call.name}(2)."


def inline(call: Call, name: str, first: list[str], body: list[str]) -> str:
    """A function that takes "first" and then the call's own arguments."""
    parameters = comma([*first, *(arg.declaration for arg in call.args)], ")")
    return "\n".join(
        [wrap(parameters, f"static inline int {name}(", "\t\t"), "{", *body, "}"]
    )


def where_there_is(call: Call, text: str) -> str:
    if call.everywhere:
        return text
    return f"#ifdef FLEXSC_NR_{call.name}\n{text}\n#endif"


def functions(call: Call) -> str:
    """The two functions that post a call to a loop."""
    values = [arg.as_uint64 for arg in call.args]
    short = len(values) <= SHORT_ARGS
    padded = values + ["0"] * ((SHORT_ARGS if short else MAX_ARGS) - len(values))
    post = wrap(
        comma(["cb", f"FLEXSC_NR_{call.name}", *padded], ");"),
        f"\treturn flexsc_{'_call3' if short else 'loop_call'}(loop, ",
        "\t\t\t",
    )
    own = ["struct flexsc_loop *loop", "struct flexsc_cb *cb"]
    order = ["struct flexsc_cb *before", "unsigned int chain"]
    args = wrap(
        comma(values or ["0"], " };"), "\tconst uint64_t values[6] = { ", "\t\t"
    )
    after = wrap(
        comma(["cb", "before", "chain", f"FLEXSC_NR_{call.name}", "values"], ");"),
        "\treturn flexsc_loop_call_after(loop, ",
        "\t\t\t",
    )
    name = f"flexsc_loop_{call.name}"
    text = [comment(describe(call)), inline(call, name, own, [post])]
    if not call.refused:
        body = [args, "", after]
        text += ["", inline(call, f"{name}_after", [*own, *order], body)]
    return where_there_is(call, "\n".join(text))


def default_function(call: Call) -> str:
    """The function that posts a call to the default loop."""
    forwarded = comma(
        ["flexsc_loop_default()", "cb", *(a.name for a in call.args)], ");"
    )
    body = wrap(forwarded, f"\treturn flexsc_loop_{call.name}(", "\t\t\t")
    name = f"flexsc_{call.name}"
    return where_there_is(call, inline(call, name, ["struct flexsc_cb *cb"], [body]))


HEADER_TOP = """\
/* SPDX-License-Identifier: MIT */
/*
 * Every Linux system call as a function that posts it. Generated from
 * syscalls.tbl; not to be edited.
 *
 *	flexsc_loop_NAME(loop, cb, ...)
 *	flexsc_loop_NAME_after(loop, cb, before, chain, ...)	after another call
 *
 * The arguments are those of the system call, which sometimes differ from those of
 * libc's function of the same name. See flexsc_loop_call() and flexsc_loop_call_after()
 * in flexsc-call(3) for return values and callbacks. The function of a refused call
 * returns -EOPNOTSUPP; flexsc-syscalls(7) lists all calls.
 */
#ifndef FLEXSC_SYSCALLS_H
#define FLEXSC_SYSCALLS_H

#include <flexsc/call.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* This machine's system call numbers, which flexsc_loop_call() takes. */"""

HEADER_END = """\
#ifdef __cplusplus
}
#endif

#endif /* FLEXSC_SYSCALLS_H */"""


def emit_header(calls: list[Call]) -> str:
    def numbers(machine: str) -> Iterator[str]:
        for number, call in with_number(calls, machine):
            yield f"#define FLEXSC_NR_{call.name} {number}"

    tags = {arg.base for call in calls for arg in call.args if " " in arg.base}
    tags -= POINTED_TYPES
    return "\n\n".join(
        [
            "\n".join([HEADER_TOP, *per_machine(numbers)]),
            "\n".join(f"{tag};" for tag in sorted(tags)),
            *(functions(call) for call in calls),
            HEADER_END,
        ]
    )


DEFAULT_TOP = """\
/* SPDX-License-Identifier: MIT */
/* The part of <flexsc/default.h> that is generated from syscalls.tbl. */
#ifndef FLEXSC_DEFAULT_SYSCALLS_H
#define FLEXSC_DEFAULT_SYSCALLS_H

#include <flexsc/default.h>

#ifdef __cplusplus
extern "C" {
#endif"""

DEFAULT_END = HEADER_END.replace("FLEXSC_SYSCALLS_H", "FLEXSC_DEFAULT_SYSCALLS_H")


def emit_default(calls: list[Call]) -> str:
    return "\n\n".join([DEFAULT_TOP, *map(default_function, calls), DEFAULT_END])


TABLE_TOP = """\
/* SPDX-License-Identifier: MIT */
/*
 * The system-call table by number. Generated from syscalls.tbl; not to be
 * edited. Read-only, so any thread may use it.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "lib/calls/call_info.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/futex.h>
#include <linux/io_uring.h>
#include <linux/keyctl.h>
#include <linux/mempolicy.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#ifdef __x86_64__
#include <asm/prctl.h>
#endif

/* Older headers lack these constants. */
#ifndef IORING_REGISTER_USE_REGISTERED_RING
#define IORING_REGISTER_USE_REGISTERED_RING	(1U << 31)
#endif
#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH	59
#endif

const struct call_info flexsc__calls[] = {"""

TABLE_MIDDLE = """\
};

const struct call_variant flexsc__call_variants[] = {"""

TABLE_TURNS = """\
};

const uint8_t flexsc__call_turns[CALLS_ROOM] = {"""

TABLE_END = """\
};

/* The last row serves all numbers beyond the table. */
const unsigned int flexsc__call_count =
	sizeof(flexsc__calls) / sizeof(flexsc__calls[0]) - 1;"""


def row(call: Call, kind: str, fields: Fields) -> str:
    """A struct call_info."""
    cls = CLASSES[kind]
    fds = sum(arg.fd << n for n, arg in enumerate(call.args))
    op = f"{OPS[call.op]} /* {call.op} */" if call.op else "0"
    shape = f"SHAPE_{(call.shape or 'none').upper()}"
    members = {
        **{"name": f'"{call.name}"', "nargs": str(len(call.args))},
        **{"class": cls.constant, "fds": f"{fds:#04x}"},
        **{"op": op, "shape": shape},
        **fields,
    }
    return initializer(members)


def initializer(members: Fields) -> str:
    return f"{{ {', '.join(f'.{name} = {value}' for name, value in members.items())} }}"


def conditions(call: Call) -> Iterator[tuple[str, Variant]]:
    """A condition in C for each value of each variant."""
    for variant in call.variants:
        mask = variant.mask or "~0U"
        for value in variant.values:
            yield f"{variant.arg}, (uint32_t)({mask}), (uint32_t)({value})", variant
        if not variant.values:
            yield "0, 0, 0", variant


def base_fields(call: Call, first: int) -> Fields:
    """The fields of a call's row, including those derived from its variants."""
    fields = {"dir": CLASSES[call.kind].poll} | call.fields
    if fields["dir"] == "POLL_NONE":
        del fields["dir"]
    alternatives = [call.fields, *(variant.fields for variant in call.variants)]
    if call.op in WORKERS:
        fields = inherit(fields, {"traits": "CALL_WORKER"})
    if any(map(changes_descriptors, alternatives)):
        fields = inherit(fields, {"traits": "CALL_CHANGES"})
    if call.variants:
        count = len(list(conditions(call)))
        fields |= {"variants": str(count), "first_variant": str(first)}
    return fields


def emit_table(calls: list[Call]) -> str:
    def rows(machine: str) -> Iterator[str]:
        first = 0
        for number, call in with_number(calls, machine):
            yield f"\t[{number}] = {row(call, call.kind, base_fields(call, first))},"
            first += len(list(conditions(call)))
        # After all calls: NR_WORK, NR_AWAIT, NR_ACCEPT, NR_RECV. loop/work.h,
        # loop/await.h and loop/multishot.h define their arguments.
        for behind, (name, nargs, kind, op, shape) in enumerate(
            (
                ("work", 2, "WORK", "", "NONE"),
                ("await", 2, "WORK", "POLL_ADD", "AWAIT"),
                ("accept (multishot)", 4, "RING", "ACCEPT", "MULTISHOT_ACCEPT"),
                ("recv (multishot)", 4, "RING", "RECV", "MULTISHOT_RECV"),
            ),
            number + 1,
        ):
            members = {
                **{"name": f'"{name}"', "nargs": str(nargs)},
                **{"class": f"CLASS_{kind}", "shape": f"SHAPE_{shape}"},
                **({"fds": "0x01", "op": str(OPS[op])} if op else {}),
            }
            yield f"\t[{behind}] = {initializer(members)},"
        yield f"\t[{behind + 1}] = {{ .class = CLASS_NONE }},"

    def variants(machine: str) -> Iterator[str]:
        for _number, call in with_number(calls, machine):
            for condition, variant in conditions(call):
                fields = variant.fields
                yield f"\t{{ {condition}, {row(call, variant.kind, fields)} }},"
        yield "\t{ 0, 0, 0, { .class = CLASS_NONE } },"

    def turns(machine: str) -> Iterator[str]:
        for number, call in with_number(calls, machine):
            if "turn" in call.fields:
                yield f"\t[{number}] = {call.fields['turn']},"

    return "\n".join(
        [
            *(TABLE_TOP, *per_machine(rows)),
            *(TABLE_MIDDLE, *per_machine(variants)),
            *(TABLE_TURNS, *per_machine(turns), TABLE_END),
        ]
    )


# Writing the manual page.


# The page's text; generated rows replace its paragraphs "TABLE" and "REFUSED".
MAN_PAGE = Path(__file__).resolve().parents[2] / "man" / "flexsc-syscalls.7.md"


# Operations that io_uring always hands to a worker thread, according to the tracepoint
# io_uring_queue_async_work while the conformance suite ran on Linux 6.18.
WORKERS = frozenset(
    """
    FADVISE FALLOCATE FGETXATTR FSETXATTR FSYNC FTRUNCATE GETXATTR LINKAT MADVISE
    MKDIRAT RENAMEAT SETXATTR SHUTDOWN SPLICE STATX SYMLINKAT SYNC_FILE_RANGE TEE
    UNLINKAT
    """.split()
)


def executed_by(call: Call) -> str:
    """Which thread executes the call in the engine uring."""
    if call.refused:
        return "-"
    if call.kind in ("fast", "self"):
        return "owner"
    if not call.op:
        return "thread"
    return "worker" if call.op in WORKERS else "kernel"


def emit_man(calls: list[Call]) -> str:
    """The manual page in Markdown, for man/page.py."""
    rows = ["| Name | Class | io_uring | By | On |"]
    for call in sorted(calls, key=lambda call: call.name):
        machine = "both" if call.everywhere else next(iter(call.numbers))
        words = CLASSES[call.kind].words
        cells = [call.name, words, call.op or "-", executed_by(call), machine]
        rows.append(f"| {' | '.join(cells)} |")
    reasons: dict[str, list[str]] = {}
    for call in calls:
        if call.refused:
            reasons.setdefault(call.note, []).append(f"`{call.name}`")
    refused = [
        f"- {', '.join(names)}: {reason[0].upper()}{reason[1:]}."
        for reason, names in reasons.items()
    ]
    text = MAN_PAGE.read_text(encoding="utf-8")
    text = text.replace("\nTABLE\n", "\n" + "\n".join(rows) + "\n")
    return text.replace("\nREFUSED\n", "\n" + "\n".join(refused) + "\n").rstrip("\n")


# Writing what the kernel module executes.

KERNEL_TOP = """\
/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * ALLOWED calls do the same on any thread of the process, so a syscall thread
 * may make them. REFUSED calls act on the calling thread, can't be made for
 * another thread, or administer the machine. All other calls are unknown.
 *
 * Made from lib/calls/syscalls.tbl by "lib/calls/gencalls.py kernel"; not to
 * be edited.
 */"""


def emit_kernel(calls: list[Call]) -> str:
    lines = [KERNEL_TOP]
    for call in sorted(calls, key=lambda call: call.name):
        refused = call.kind in ("never", "self", "admin")
        known = "REFUSED" if refused else "ALLOWED"
        lines.append(f"#ifdef __NR_{call.name}\n{known}({call.name})\n#endif")
    return "\n".join(lines)


# Writing the number of arguments of each call, for the C++ binding.

ARGUMENTS_TOP = """\
/* SPDX-License-Identifier: MIT */
/*
 * How many arguments each system call has, by number; -1: there is no such call.
 * Generated from syscalls.tbl; not to be edited.
 */
#ifndef FLEXSC_ARGUMENTS_HPP
#define FLEXSC_ARGUMENTS_HPP

namespace flexsc::detail
{

constexpr int arguments_of(unsigned int nr)
{
	switch (nr) {"""

ARGUMENTS_END = """\
	default:
		return -1;
	}
}

} // namespace flexsc::detail

#endif /* FLEXSC_ARGUMENTS_HPP */"""


def emit_arguments(calls: list[Call]) -> str:
    def cases(machine: str) -> Iterator[str]:
        for number, call in with_number(calls, machine):
            yield f"\tcase {number}: return {len(call.args)};"

    return "\n".join([ARGUMENTS_TOP, *per_machine(cases), ARGUMENTS_END])


EMITTERS = {
    "arguments": emit_arguments,
    "default": emit_default,
    "header": emit_header,
    "table": emit_table,
    "man": emit_man,
    "kernel": emit_kernel,
}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description="Generate C or documentation from the system-call table."
    )
    parser.add_argument("what", choices=EMITTERS, help="what to generate")
    parser.add_argument("table", type=Path, help="syscalls.tbl")
    parser.add_argument("output", type=Path, help="the file to write")
    options = parser.parse_args(arguments)
    try:
        calls = parse_table(options.table.read_text(encoding="utf-8"))
        text = EMITTERS[options.what](calls) + "\n"
        options.output.write_text(text, encoding="utf-8")
    except TableError as error:
        print(f"{options.table}:{error.line}: {error}", file=sys.stderr)
        return 1
    except (OSError, UnicodeDecodeError) as error:
        print(f"gencalls.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
