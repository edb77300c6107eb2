# SPDX-License-Identifier: MIT
"""The check of which files write an entry's status, on made-up code."""

from __future__ import annotations

from pathlib import Path

import pytest

import arrows

STORE = "entry->status = FLEXSC_DONE;\n"


@pytest.mark.parametrize(
    "line",
    [
        "entry->status = FLEXSC_DONE;",
        "entries[i].status = 0;",
        "raw.entries[next(i)].status |= 1;",
        "entry->status++;",
        "++entry->status;",
        "struct flexsc_entry e = { .status = FLEXSC_FREE };",
        "WRITE_ONCE(entry->status, 1);",
        "smp_store_release(&reg->entries[index].status,\n\t\t  FLEXSC_DONE);",
        "if (cmpxchg(&entry->status, 1, 2) == 1)",
        "return try_cmpxchg(&entry->status, &was, 2);",
        "xchg(&entry_of(loop, i)->status, 2);",
        "__atomic_store_n(&entry->status, 1, __ATOMIC_RELEASE);",
        "__atomic_compare_exchange_n(&entry->status, &a, 1, false, 0, 0);",
        "atomic_store(&entry->status, 1);",
    ],
)
def test_a_write(line: str) -> None:
    assert list(arrows.writes(f"int a;\n{line}\n")) == [2]


@pytest.mark.parametrize(
    "line",
    [
        "if (entry->status == FLEXSC_DONE)",
        "if (READ_ONCE(entry->status) != 1)",
        "return __atomic_load_n(&entry->status, __ATOMIC_ACQUIRE);",
        "ret = flexsc__cancelpoint(&entry->status, entry->nr, entry->args);",
        "uint8_t status = entry_status(entry);",
        "c->status_fd = 1;",
        "/* entry->status = 1; */",
        'puts("entry->status = 1;");',
        "atomic_store(&a, entry->status);",
        "cmpxchg(&a, entry->status, 1);",
        "f(a >= b->status, c <= b->status);",
    ],
)
def test_no_write(line: str) -> None:
    assert not list(arrows.writes(line + "\n"))


def test_the_writing_files_are_found(tmp_path: Path) -> None:
    for home in arrows.ARROWS.values():
        (tmp_path / home).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / home).write_text(STORE)
    assert not list(arrows.wrong(tmp_path))
    (tmp_path / "lib/other.c").write_text("/*\n */\n" + STORE)
    (tmp_path / "kmod/base/entry.h").write_text("")
    assert list(arrows.wrong(tmp_path)) == [
        "lib/other.c:3 writes a status, which only lib/loop/entry.h may do",
        "kmod/base/entry.h makes no transitions",
    ]
