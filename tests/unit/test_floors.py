# SPDX-License-Identifier: MIT
"""The check of the house's floors, on houses that are made up."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests")]

import floors  # noqa: E402

FLOORS = "# The lowest first.\n\nlow\twhat all use\nhigh\twhat uses it\n"


def found(folder: Path, **files: str) -> list[str]:
    """What is wrong with a house of these files; low__a_c is low/a.c."""
    (folder / "FLOORS").write_text(FLOORS)
    for name, text in files.items():
        floor, rest = name.split("__")
        path = folder / floor / rest.replace("_", ".")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    house = floors.read(folder)
    return [line.replace(f"{folder}/", "") for line in floors.wrong(house)]


def test_a_house_as_it_is_drawn(tmp_path: Path) -> None:
    assert not found(
        tmp_path,
        low__a_h="int flexsc__a(void);\n",
        low__a_c='#include "a.h"\nint flexsc__a(void)\n{\n\treturn 1;\n}\n',
        high__b_c='#include "../low/a.h"\nint flexsc_b(void)\n{\n'
        "\treturn flexsc__a();\n}\n",
    )


def test_files_of_the_folder_itself_may_have_a_floor(tmp_path: Path) -> None:
    (tmp_path / "low").mkdir()
    (tmp_path / "low" / "a.c").write_text('#include "../top.h"\n')
    (tmp_path / "top.h").write_text("")
    (tmp_path / "top.c").write_text('#include "top.h"\n')
    (tmp_path / "FLOORS").write_text("low\tbelow\n.\tthe roof\n")
    said = list(floors.wrong(floors.read(tmp_path)))
    assert said == [f"{tmp_path}/low/a.c includes {tmp_path}/top.h, which is above"]


def test_an_include_goes_up(tmp_path: Path) -> None:
    said = found(tmp_path, low__a_c='#include "../high/b.h"\n', high__b_h="")
    assert said == ["low/a.c includes high/b.h, which is above"]


def test_a_call_goes_up_without_an_include(tmp_path: Path) -> None:
    said = found(
        tmp_path,
        low__a_c="int flexsc__b(void);\nint flexsc__a(void)\n{\n"
        "\treturn flexsc__b();\n}\n",
        high__b_c="int flexsc__b(void)\n{\n\treturn 2;\n}\n",
    )
    assert said == ["low/a.c uses high/b.c, which is above"]


def test_a_comment_and_a_string_are_no_code(tmp_path: Path) -> None:
    assert not found(
        tmp_path,
        low__a_c='/* flexsc__b() */\nchar a[] = "flexsc__b";\n',
        high__b_c="int flexsc__b(void)\n{\n\treturn 2;\n}\n",
    )


def test_a_folder_is_no_floor(tmp_path: Path) -> None:
    said = found(tmp_path, low__a_c='#include "../cellar/b.h"\n', cellar__b_h="")
    assert said == ["low/a.c includes cellar/b.h: not on a floor of FLOORS"]


def test_a_header_declares_what_another_file_defines(tmp_path: Path) -> None:
    said = found(
        tmp_path,
        low__a_h="int flexsc__b(int n,\n\t      int m);\n",
        low__b_c="int flexsc__b(int n,\n\t      int m)\n{\n\treturn 2;\n}\n",
    )
    assert said == ["low/a.h declares flexsc__b(), which is in low/b.c"]


def test_a_circle_of_headers(tmp_path: Path) -> None:
    said = found(tmp_path, low__a_h='#include "b.h"\n', low__b_h='#include "a.h"\n')
    assert said == ["a circle of headers: low/a.h, low/b.h"]


@pytest.mark.parametrize("files", [7, 8])
def test_a_circle_of_files_is_small(tmp_path: Path, files: int) -> None:
    said = found(
        tmp_path,
        **{
            f"low__f{n}_c": f"int flexsc__f{n}(void)\n{{\n"
            f"\treturn flexsc__f{(n + 1) % files}();\n}}\n"
            for n in range(files)
        },
    )
    assert len(said) == (files > 7)


def test_the_library_is_as_it_is_drawn() -> None:
    house = floors.read(ROOT / "lib")
    assert len(house.home) > 100
    assert not list(floors.wrong(house))
