# SPDX-License-Identifier: MIT
"""The attributes of a system call: the words behind "|" in a row of syscalls.tbl.

Each attribute sets fields of struct call_info (call_info.h). A field that no attribute
sets is 0, which always means "no".
"""

from __future__ import annotations

import re
from collections.abc import Callable

Fields = dict[str, str]  # a field of struct call_info, and its value in C
Reader = Callable[
    [str, int], Fields
]  # converts an attribute's value, given the number of arguments

CONSTANT = re.compile(r"[A-Z_][A-Z0-9_]*")


def argument(text: str, count: int) -> str:
    if not (text.isascii() and text.isdigit()) or int(text) >= count:
        raise ValueError(f"'{text}' isn't the number of an argument of the call")
    return text


def in_argument(field: str) -> Reader:
    return lambda value, count: {field: argument(value, count)}


def bits(field: str) -> Reader:
    def read(value: str, _count: int) -> Fields:
        names = value.split(",")
        for name in names:
            if not CONSTANT.fullmatch(name):
                raise ValueError(f"'{name}' isn't the name of a constant")
        return {field: " | ".join(names)}

    return read


def one_of(field: str, **words: str) -> Reader:
    def read(value: str, _count: int) -> Fields:
        if value not in words:
            raise ValueError(f"'{value}' is not one of {', '.join(words)}")
        return {field: words[value]}

    return read


def word(**fields: str) -> Reader:
    """An attribute without a value."""

    def read(value: str, _count: int) -> Fields:
        if value:
            raise ValueError("takes no value")
        return dict(fields)

    return read


def trait(name: str) -> Reader:
    return word(traits=f"CALL_{name}")


def length(value: str, count: int) -> Fields:
    kind, _, number = value.rpartition(":")
    kinds = {"": "LENGTH_BYTES", "iov": "LENGTH_VECTOR", "msg": "LENGTH_MESSAGE"}
    if kind not in kinds:
        raise ValueError(f"'{value}' is not one of N, iov:N, msg:N")
    return {"length": kinds[kind], "length_arg": argument(number, count)}


def position(value: str, count: int) -> Fields:
    kind, asks, number = value.partition("?")
    if value in ("cur", "arg"):
        return {"position": {"cur": "POSITION_USED", "arg": "POSITION_GIVEN"}[value]}
    if kind != "cur" or not asks:
        raise ValueError(f"'{value}' is not one of cur, cur?N, arg")
    return {"position": "POSITION_IF_NEGATIVE", "position_arg": argument(number, count)}


def limit(value: str, count: int) -> Fields:
    kinds = {"ms": "LIMIT_MS", "ts": "LIMIT_TIMESPEC"}
    if value[-2:] not in kinds:
        raise ValueError(f"'{value}' is not one of Nms, Nts")
    return {"limit": kinds[value[-2:]], "limit_arg": argument(value[:-2], count)}


def makes(value: str, count: int) -> Fields:
    match = re.fullmatch(
        r"(?P<kind>[a-z]+)(\[(?P<at>\d)\])?(\^(?P<via>\*?)(?P<flags>\d))?", value
    )
    kinds = ("file", "socket", "accepted", "stream", "signals", "dup")
    if not match or match["kind"] not in kinds:
        raise ValueError(f"'{value}' is not one of KIND, KIND^N, KIND^*N, KIND[N]^N")
    fields = {"makes": f"MAKES_{match['kind'].upper()}"}
    if match["at"]:
        fields |= {"made_at": "MADE_AT_ARG", "made_arg": argument(match["at"], count)}
    if match["flags"]:
        kind = "MADE_FLAGS_AT_ARG" if match["via"] else "MADE_FLAGS_ARG"
        fields |= {
            "made_flags": kind,
            "made_flags_arg": argument(match["flags"], count),
        }
    return fields


def raises(value: str, _count: int) -> Fields:
    traits = {"pipe": "CALL_PIPE", "send": "CALL_SEND", "fsize": "CALL_FSIZE"}
    for name in value.split(","):
        if name not in traits:
            raise ValueError(f"'{name}' is not one of {', '.join(traits)}")
    return {"traits": " | ".join(traits[name] for name in value.split(","))}


def error(value: str, _count: int) -> Fields:
    if value != "0" and not re.fullmatch(r"E[A-Z]+", value):
        raise ValueError(f"'{value}' is neither 0 nor an error's name")
    return {"would": value if value == "0" else f"-{value}"}


def nowait(value: str, count: int) -> Fields:
    return bits("nowait")(value, count) | {"attempt": value.partition(",")[0]}


def attempt(value: str, count: int) -> Fields:
    if not value:
        return {"traits": "CALL_TRY"}
    return {"traits": "CALL_TRY"} | bits("attempt")(value, count)


def constants(prefix: str, names: str) -> dict[str, str]:
    return {name: f"{prefix}{name.upper()}" for name in names.split()}


TURNS = "transfer socket message accept submit await poll"
HANDLERS = """
    futex futex2 sigaction rseq sigmask gettid kill cpuclock usage timer yield
    nanosleep clock_sleep poll host exit exit_group ring wait affinity sigwait
"""
APARTS = "not anchored host_only raw keyring counter priority ring"

ATTRIBUTES: dict[str, Reader] = {
    "dir": one_of("dir", **{"in": "POLL_READ", "out": "POLL_WRITE"}),
    "len": length,
    "pos": position,
    "parts": trait("PARTS"),
    "flags": in_argument("flags_arg"),
    "nowait": nowait,
    "all": bits("all"),
    "unpolled": bits("unpolled"),
    "would": error,
    "limit": limit,
    "mask": in_argument("mask_arg"),
    "try": attempt,
    "closes": one_of(
        "closes", **{"0": "CLOSES_ONE", "1/0": "CLOSES_OTHER", "0-1": "CLOSES_RANGE"}
    ),
    "shuts": word(closes="CLOSES_SHUT"),
    "changes": one_of("changes", **constants("CHANGES_", "flags option")),
    "makes": makes,
    "joins": one_of("joins", **{"0<2": "1"}),
    "passes": one_of("passes", **constants("PASSES_", "one many")),
    "raises": raises,
    "source": in_argument("source_arg"),
    "norestart": trait("NORESTART"),
    "once": trait("ONCE"),
    "turn": one_of("turn", **constants("TURN_", TURNS)),
    "user": one_of("user", **constants("USER_", HANDLERS)),
    "apart": one_of("apart", **constants("APART_", APARTS)),
    "same": trait("SAME"),
    "sync": trait("SYNC"),
    "hangs": trait("HANGS"),
    "inherits": trait("INHERITS"),
    "rearm": trait("REARM"),
    "site": trait("SITE"),
    "keep": trait("KEEP"),
    "vital": trait("VITAL"),
}

# Attributes that need another one.
NEEDS = {
    "nowait": "flags",
    "all": "flags",
    "unpolled": "flags",
    "parts": "len",
    "would": "try",
}


def read_attributes(text: str, count: int) -> Fields:
    """The fields that the attributes set; count: how many arguments the call has."""
    fields: Fields = {}
    names = []
    for part in text.split():
        name, _, value = part.partition("=")
        if name not in ATTRIBUTES:
            raise ValueError(f"unknown attribute '{name}'")
        if name in names:
            raise ValueError(f"attribute '{name}' is given twice")
        names.append(name)
        try:
            read = ATTRIBUTES[name](value, count)
        except ValueError as problem:
            raise ValueError(f"attribute '{part}': {problem}") from None
        for field, number in read.items():
            known = fields.get(field)
            if known and field != "traits":
                raise ValueError(f"attribute '{part}' contradicts another one")
            fields[field] = f"{known} | {number}" if known else number
    for name in names:
        if name in NEEDS and NEEDS[name] not in names:
            raise ValueError(f"attribute '{name}' needs '{NEEDS[name]}'")
    if "try" in names and "attempt" not in fields:
        raise ValueError("attribute 'try' needs a value, or 'nowait'")
    if "try" in names:
        fields.setdefault("would", "-EAGAIN")
    return fields


def inherit(row: Fields, variant: Fields) -> Fields:
    """A variant's fields: its own, and the row's where it has none."""
    if "attempt" in row and "attempt" in variant:
        raise ValueError("the row has 'nowait' or 'try=' already")
    fields = row | variant
    traits = [f["traits"] for f in (row, variant) if "traits" in f]
    return fields | ({"traits": " | ".join(traits)} if traits else {})


def changes_descriptors(fields: Fields) -> bool:
    """Whether the call changes facts of descriptors other than by closing them."""
    closes = fields.get("closes") in ("CLOSES_OTHER", "CLOSES_RANGE")
    return closes or "changes" in fields or fields.get("makes") == "MAKES_DUP"
