# SPDX-License-Identifier: MIT
"""The library keeps the binary interface and the cost of its last release."""

from __future__ import annotations

from pathlib import Path

import pytest

import abi
from fixtures import command

BUILD = Path(command()).resolve().parents[1]
OLD = """# A release.
library soname libflexsc.so.0
function flexsc_f FLEXSC_0.9 int (int)
struct flexsc_cb 16
struct flexsc_cb.ret 0 int64_t
struct flexsc_cb.reserved 8 uint64_t
struct flexsc_options 8
struct flexsc_options.size 0 size_t
enum flexsc_e.FLEXSC_A 0
constant FLEXSC_X 0x1U
"""


def test_the_last_release_s_programs_work_with_this_library() -> None:
    released = (abi.ROOT / "lib" / "libflexsc.abi").read_text()
    assert abi.broken(abi.parsed(released), abi.parsed(abi.current(BUILD))) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("struct flexsc_options 8", "struct flexsc_options 16"),
        ("FLEXSC_A 0\n", "FLEXSC_A 0\nenum flexsc_e.FLEXSC_B 1\n"),
        (".reserved 8 uint64_t", ".later 8 uint64_t"),
        ("function", "function flexsc_g FLEXSC_0.10 int (int)\nfunction"),
    ],
)
def test_an_interface_may_grow(old: str, new: str) -> None:
    assert abi.broken(abi.parsed(OLD), abi.parsed(OLD.replace(old, new, 1))) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("so.0", "so.1"),
        ("function flexsc_f FLEXSC_0.9 int (int)\n", ""),
        ("int (int)", "int (long)"),
        ("f FLEXSC_0.9", "f FLEXSC_0.10"),
        ("function", "function flexsc_g FLEXSC_0.9 int (int)\nfunction"),
        ("struct flexsc_cb 16", "struct flexsc_cb 24"),
        ("struct flexsc_options 8", "struct flexsc_options 4"),
        ("ret 0 int64_t", "ret 0 int32_t"),
        ("ret 0", "ret 8"),
        ("size 0", "size 4"),
        ("enum flexsc_e.FLEXSC_A 0\n", ""),
        ("FLEXSC_A 0", "FLEXSC_A 1"),
        ("0x1U", "0x2U"),
    ],
)
def test_a_change_that_breaks_programs_is_found(old: str, new: str) -> None:
    changed = OLD.replace(old, new, 1)
    assert changed != OLD
    assert len(abi.broken(abi.parsed(OLD), abi.parsed(changed))) == 1
