# SPDX-License-Identifier: MIT
"""The count of switches over call numbers, on text that is made up."""

from __future__ import annotations

import switches


def test_a_switch_over_numbers_is_found_once() -> None:
    text = "f()\n{\n\tswitch (nr) {\n\tcase SYS_read:\n\tcase SYS_write:\n\t}\n}\n"
    assert switches.switches(text) == [3]


def test_another_switch_is_none() -> None:
    text = "f()\n{\n\tswitch (kind) {\n\tcase KIND_A:\n\t}\n\tif (nr == SYS_read)\n}\n"
    assert switches.switches(text) == []


def test_the_outer_switch_and_the_inner_one_are_told_apart() -> None:
    text = (
        "switch (a) {\ncase ONE:\nswitch (nr) {\ncase __NR_read:\n{\n}\n}\nbreak;\n}\n"
        "switch (nr) {\ncase FUTEX2_WAIT:\nswitch (b) {\ncase TWO:\n}\n"
        "case SYS_read:\n}\n"
    )
    assert switches.switches(text) == [3, 10]


def test_the_houses_are_within_the_limit() -> None:
    assert switches.main() == 0
