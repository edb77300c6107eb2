# SPDX-License-Identifier: MIT
"""Reads the system-call table, syscalls.tbl, whose top explains the columns."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import NamedTuple

from callattributes import Fields, inherit, read_attributes

MAX_ARGS = 6  # FLEXSC_ARGS_MAX
MAX_NUMBER = 0xFFFF  # struct flexsc_entry keeps 16 bits

# The two machines, as the compiler names them, in the table's order.
MACHINES = {
    "x86-64": "defined(__x86_64__) && defined(__LP64__)",
    "aarch64": "defined(__aarch64__) && defined(__LP64__)",
}


class CallClass(NamedTuple):
    """A class: its name in call_info.h, and its description."""

    constant: str
    poll: str
    words: str


CLASSES = {
    "fast": CallClass("CLASS_FAST", "POLL_NONE", "inline"),
    "self": CallClass("CLASS_SELF", "POLL_NONE", "always inline"),
    "disk": CallClass("CLASS_DISK", "POLL_NONE", "device"),
    "admin": CallClass("CLASS_ADMIN", "POLL_NONE", "administers"),
    "wait": CallClass("CLASS_WAIT", "POLL_NONE", "waits"),
    "wait:in": CallClass("CLASS_WAIT", "POLL_READ", "waits, input"),
    "wait:out": CallClass("CLASS_WAIT", "POLL_WRITE", "waits, output"),
    "never": CallClass("CLASS_NEVER", "POLL_NONE", "refused"),
}

# IORING_OP_*, from 1 on in the order of the kernel's enum: the numbers are ABI,
# and newer than many installed headers. 0, NOP, stands for "none".
OPS_IN_ORDER = """
    READV WRITEV FSYNC READ_FIXED WRITE_FIXED POLL_ADD POLL_REMOVE
    SYNC_FILE_RANGE SENDMSG RECVMSG TIMEOUT TIMEOUT_REMOVE ACCEPT ASYNC_CANCEL
    LINK_TIMEOUT CONNECT FALLOCATE OPENAT CLOSE FILES_UPDATE STATX READ WRITE
    FADVISE MADVISE SEND RECV OPENAT2 EPOLL_CTL SPLICE PROVIDE_BUFFERS
    REMOVE_BUFFERS TEE SHUTDOWN RENAMEAT UNLINKAT MKDIRAT SYMLINKAT LINKAT
    MSG_RING FSETXATTR SETXATTR FGETXATTR GETXATTR SOCKET URING_CMD SEND_ZC
    SENDMSG_ZC READ_MULTISHOT WAITID FUTEX_WAIT FUTEX_WAKE FUTEX_WAITV
    FIXED_FD_INSTALL FTRUNCATE BIND LISTEN RECV_ZC EPOLL_WAIT READV_FIXED
    WRITEV_FIXED PIPE
"""
OPS = {name: number for number, name in enumerate(OPS_IN_ORDER.split(), 1)}

# Types that <stddef.h>, <stdint.h> and <sys/types.h> have in strict C11 too.
TYPES = {"int", "unsigned int", "long", "unsigned long", "uint32_t", "uint64_t"}
TYPES |= {"size_t", "off_t", "pid_t", "uid_t", "gid_t", "mode_t"}
TYPES |= {"time_t", "clockid_t"}
POINTED_TYPES = TYPES | {"void", "char", "unsigned char"}
SPECIAL_TYPES = {"fd": "int ", "addr": "void *"}

# Keywords of C++, macros of compilers and libc, and our own parameters.
RESERVED_NAMES = """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char
    char16_t char32_t char8_t class co_await co_return co_yield compl concept
    const const_cast consteval constexpr constinit continue decltype default
    delete do double dynamic_cast else enum explicit export extern false float
    for friend goto if inline int long mutable namespace new noexcept not not_eq
    nullptr operator or or_eq private protected public register
    reinterpret_cast requires restrict return short signed sizeof static
    static_assert static_cast struct switch template this thread_local throw
    true try typedef typeid typename typeof union unsigned using virtual void
    volatile wchar_t while xor xor_eq
    linux unix errno major minor makedev stdin stdout stderr cb loop
"""

ARG = re.compile(
    r"(?P<const>const )?"
    r"(?P<base>(?:struct|union) \w+|unsigned (?:char|int|long)|\w+) "
    r"(?P<stars>(?:\*(?:const )?)*)"
    r"(?P<name>[a-z]\w*)"
)
NAME = re.compile(r"[a-z_][a-z0-9_]*")


class TableError(Exception):
    """A line of the table is malformed."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


@dataclass(frozen=True)
class Arg:
    """One argument; its type ends in a space or a star."""

    type: str
    name: str
    base: str
    fd: bool = False
    pointer: bool = False
    owned: bool = False  # the library owns the memory until the callback

    @property
    def declaration(self) -> str:
        return self.type + self.name

    @property
    def as_uint64(self) -> str:
        via = "(uintptr_t)" if self.pointer else ""
        return f"(uint64_t){via}{self.name}"


@dataclass(frozen=True)
class Variant:
    """A line below a call: the properties if an argument has one of some values."""

    line: int
    arg: int
    mask: str  # "": all of the argument's bits count
    values: tuple[str, ...]  # empty: the line is for all other values
    kind: str  # a key of CLASSES
    fields: Fields


@dataclass(frozen=True)
class Call:
    """One line of the table."""

    line: int
    name: str
    numbers: dict[str, int]  # by machine; machines without the call are missing
    kind: str  # a key of CLASSES
    op: str  # a key of OPS, or ""
    shape: str  # its requests' enum call_shape in call_info.h; "" without op
    args: tuple[Arg, ...]
    note: str
    fields: Fields  # what its attributes set
    variants: tuple[Variant, ...] = ()

    @property
    def refused(self) -> bool:
        return self.kind == "never"

    @property
    def everywhere(self) -> bool:
        return len(self.numbers) == len(MACHINES)


# Reading the table.


def parse_arg(text: str) -> Arg:
    match = ARG.fullmatch(text)
    if not match:
        raise ValueError(f"can't read argument '{text}'; write 'type name'")
    base, stars, name = match["base"], match["stars"], match["name"]
    if name in RESERVED_NAMES.split():
        raise ValueError(f"argument name '{name}' is reserved in C++ or here")
    if base in SPECIAL_TYPES:
        if match["const"] or stars:
            raise ValueError(f"'{base}' in '{text}' takes no const or *")
        is_fd = base == "fd"
        return Arg(SPECIAL_TYPES[base], name, base, fd=is_fd, pointer=not is_fd)
    tagged = base.startswith(("struct ", "union "))
    if not tagged and base not in (POINTED_TYPES if stars else TYPES):
        raise ValueError(f"unknown type '{base}' in '{text}'")
    if tagged and not stars:
        raise ValueError(f"'{text}': structures are passed by pointer")
    pointer = bool(stars)
    return Arg(
        f"{match['const'] or ''}{base} {stars}",
        name,
        base,
        pointer=pointer,
        owned=pointer,
    )


def parse_args(text: str) -> tuple[Arg, ...]:
    if text == "void":
        return ()
    args = tuple(parse_arg(part.strip()) for part in text.split(","))
    if len(args) > MAX_ARGS:
        raise ValueError(f"{len(args)} arguments; no system call has more than 6")
    names = [arg.name for arg in args]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"two arguments are called '{name}'")
    return args


def parse_number(text: str, machine: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"{machine} number '{text}' is neither a number nor '-'")
    if int(text) > MAX_NUMBER:
        raise ValueError(f"{machine} number {text} is above {MAX_NUMBER}")
    return int(text)


def parse_line(line: int, text: str) -> Call | None:
    """The call that a line describes; None for an empty line or a comment."""
    content, _, note = (part.strip() for part in text.partition("#"))
    content, bar, attributes = (part.strip() for part in content.partition("|"))
    if not content and not bar:
        return None
    fields = content.split(None, 6)
    if len(fields) < 7:
        raise ValueError(
            f"{len(fields)} columns instead of 7: "
            "name, x86-64 number, aarch64 number, class, uring-op, shape, args"
        )
    name, *texts, kind, op, shape, args = fields
    if not NAME.fullmatch(name):
        raise ValueError(f"'{name}' isn't the name of a system call")
    numbers = {
        machine: parse_number(number, machine)
        for machine, number in zip(MACHINES, texts, strict=True)
        if number != "-"
    }
    op, shape = (word.replace("-", "") for word in (op, shape))
    if bar and not attributes:
        raise ValueError("no attribute behind '|'")
    parsed = parse_args(args)
    set_fields = read_attributes(attributes, len(parsed))
    call = Call(line, name, numbers, kind, op, shape, parsed, note, set_fields)
    check(call)
    return call


VARIANT = re.compile(
    r"((?P<arg>\w+)( & (?P<mask>\w+))? = (?P<values>\w+(, ?\w+)*)|else)"
    r"\s+(?P<kind>[\w:]+|-)(\s*\|\s*(?P<attributes>\S.*))?"
)


def parse_variant(line: int, text: str, call: Call) -> Variant:
    """A variant of the call above."""
    match = VARIANT.fullmatch(text.partition("#")[0].strip())
    if not match:
        raise ValueError(
            "can't read the variant; write 'ARGUMENT [& MASK] = VALUE, ... class "
            "[| attributes]' or 'else class [| attributes]'"
        )
    names = [arg.name for arg in call.args]
    if match["arg"] and match["arg"] not in names:
        raise ValueError(f"{call.name} has no argument '{match['arg']}'")
    if call.variants and not call.variants[-1].values:
        raise ValueError("no variant can follow 'else'")
    kind = call.kind if match["kind"] == "-" else match["kind"]
    if kind not in CLASSES:
        raise ValueError(f"unknown class '{kind}'; one of {', '.join(CLASSES)}")
    if kind != call.kind and not call.kind.startswith("wait"):
        raise ValueError("only a call of class wait has variants of other classes")
    values = tuple(re.split(", ?", match["values"])) if match["values"] else ()
    for value in values:
        if values.count(value) > 1:
            raise ValueError(f"{value} is given twice")
        for other in call.variants:
            if value in other.values and other.arg == names.index(match["arg"]):
                raise ValueError(f"{value} is already on line {other.line}")
    own = read_attributes(match["attributes"] or "", len(call.args))
    return Variant(
        line,
        names.index(match["arg"]) if match["arg"] else 0,
        match["mask"] or "",
        values,
        kind,
        inherit(call.fields, own),
    )


def check(call: Call) -> None:
    """Check that the columns of a line are consistent."""
    if not call.numbers:
        raise ValueError(f"{call.name} has no number on any machine")
    if call.kind not in CLASSES:
        raise ValueError(f"unknown class '{call.kind}'; one of {', '.join(CLASSES)}")
    if call.op and call.op not in OPS:
        raise ValueError(f"unknown io_uring operation '{call.op}'")
    if bool(call.op) != bool(call.shape):
        raise ValueError(
            f"{call.name} needs an io_uring operation and a shape, or none"
        )
    if call.shape and not NAME.fullmatch(call.shape):
        raise ValueError(f"'{call.shape}' isn't the name of a shape")
    if call.refused and not call.note:
        raise ValueError(f"{call.name} is refused without a '# reason'")
    if "*/" in call.note:
        raise ValueError(f"the note of {call.name} would end a comment in C")
    if call.refused and call.op:
        raise ValueError(f"{call.name} is refused, but has an io_uring operation")
    polled = CLASSES[call.kind].poll != "POLL_NONE"
    if polled and not (call.args and call.args[0].fd):
        raise ValueError(f"class {call.kind} needs an fd as the first argument")


def parse_table(text: str) -> list[Call]:
    calls: list[Call] = []
    seen: dict[str, int] = {}
    for line, content in enumerate(text.splitlines(), 1):
        try:
            if content[:1].isspace() and content.partition("#")[0].strip():
                if not calls:
                    raise ValueError("a variant needs a call above it")
                variant = parse_variant(line, content, calls[-1])
                calls[-1] = replace(calls[-1], variants=(*calls[-1].variants, variant))
                continue
            call = parse_line(line, content)
        except ValueError as error:
            raise TableError(line, str(error)) from None
        if not call:
            continue
        keys = [f"name {call.name}"]
        keys += [f"{machine} number {nr}" for machine, nr in call.numbers.items()]
        for key in keys:
            if key in seen:
                raise TableError(line, f"{key} is already on line {seen[key]}")
            seen[key] = line
        calls.append(call)
    if not calls:
        raise TableError(1, "the table has no system call")
    return calls
