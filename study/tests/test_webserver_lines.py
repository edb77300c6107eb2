# SPDX-License-Identifier: MIT
"""study/servers/webserver/README.md tells how long each driver is; the files say so, too."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

WEBSERVER = Path(__file__).resolve().parents[2] / "study" / "servers" / "webserver"
ROW = re.compile(r"\| `(\w+)\.c` \| (\d+) \| (\d+) \| (.*?) ?\|")
INCLUDE = re.compile(r'^#include "(\w+)\.h"$', re.MULTILINE)
# Parts of all programs.
COMMON = {"command", "web"}


def lines(name: str) -> int:
    return (WEBSERVER / name).read_text().count("\n")


def parts(driver: str) -> set[str]:
    return set(INCLUDE.findall((WEBSERVER / f"{driver}.c").read_text())) - COMMON


ROWS = ROW.findall((WEBSERVER / "README.md").read_text())


def test_each_driver_has_a_row() -> None:
    assert [row[0] for row in ROWS] == ["threads", "events", "loops", "stages"]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_the_lines_are_those_of_the_files(row: tuple[str, str, str, str]) -> None:
    driver, own, all_of_it, named = row
    assert set(re.findall(r"`(\w+)`", named)) == parts(driver)
    assert int(own) == lines(f"{driver}.c")
    with_parts = sum(lines(f"{p}.c") + lines(f"{p}.h") for p in parts(driver))
    assert int(all_of_it) == int(own) + with_parts
