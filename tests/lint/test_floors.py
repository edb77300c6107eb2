# SPDX-License-Identifier: MIT
"""The check of floors, on made-up folders."""

from __future__ import annotations

from pathlib import Path

import pytest

import floors

FLOORS = "# The lowest first.\n\nlow\twhat all use\nhigh\twhat uses it\n"


def found(folder: Path, floors_file: str = FLOORS, **files: str) -> list[str]:
    """Return the errors for a folder with these files; low__a_c is low/a.c."""
    (folder / "FLOORS").write_text(floors_file)
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    house = floors.read(folder)
    return [line.replace(f"{folder}/", "") for line in floors.wrong(house)]


def test_a_folder_that_obeys_its_floors(tmp_path: Path) -> None:
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
    assert said == [
        f"{tmp_path}/low/a.c includes {tmp_path}/top.h, which is on a higher floor"
    ]


def test_an_include_goes_up(tmp_path: Path) -> None:
    said = found(tmp_path, low__a_c='#include "../high/b.h"\n', high__b_h="")
    assert said == ["low/a.c includes high/b.h, which is on a higher floor"]


def test_a_call_goes_up_without_an_include(tmp_path: Path) -> None:
    said = found(
        tmp_path,
        low__a_c="int flexsc__b(void);\nint flexsc__a(void)\n{\n"
        "\treturn flexsc__b();\n}\n",
        high__b_c="int flexsc__b(void)\n{\n\treturn 2;\n}\n",
    )
    assert said == ["low/a.c uses high/b.c, which is on a higher floor"]


def test_a_comment_and_a_string_are_no_code(tmp_path: Path) -> None:
    assert not found(
        tmp_path,
        low__a_c='/* flexsc__b() */\nchar a[] = "flexsc__b";\n',
        high__b_c="int flexsc__b(void)\n{\n\treturn 2;\n}\n",
    )


def test_a_function_of_any_name(tmp_path: Path) -> None:
    said = found(
        tmp_path,
        low__a_c="int a(void)\n{\n\treturn b_find(1);\n}\n",
        high__b_c="struct b *\nb_find(int n)\n{\n\treturn 0;\n}\n",
    )
    assert said == ["low/a.c uses high/b.c, which is on a higher floor"]


def test_a_function_by_its_address(tmp_path: Path) -> None:
    said = found(
        tmp_path,
        low__a_c="static int (*a)(void) = b_find;\n",
        high__b_c="int b_find(void)\n{\n\treturn 2;\n}\n",
    )
    assert said == ["low/a.c uses high/b.c, which is on a higher floor"]


@pytest.mark.parametrize(
    "code",
    [
        "static int find(void)\n{\n\treturn 1;\n}\nint a = find();\n",
        "inline static int find(void)\n{\n\treturn 1;\n}\nint a = find();\n",
        "int a = b->find();\n",
        "int a = b.find();\n",
        "struct a a = { .find = 1 };\n",
        "struct find a;\n",
        "enum find a;\n",
        "int a = refind();\n",
    ],
)
def test_no_use_of_another_file(tmp_path: Path, code: str) -> None:
    assert not found(
        tmp_path,
        low__a_c=code,
        high__b_c="int find(void)\n{\n\treturn 2;\n}\n",
    )


def test_a_static_function_belongs_to_its_file(tmp_path: Path) -> None:
    assert not found(
        tmp_path,
        low__a_c="int a(void)\n{\n\treturn b();\n}\n",
        high__b_c="static int b(void)\n{\n\treturn 2;\n}\n",
    )


def test_assembly_defines_what_is_global(tmp_path: Path) -> None:
    said = found(
        tmp_path,
        low__a_c="int a(void)\n{\n\treturn b() + c();\n}\n",
        high__b_S="\t.globl\tb\nb:\n\tret\n",
        high__c_S="c:\n\tret\n",
    )
    assert said == ["low/a.c uses high/b.S, which is on a higher floor"]


def test_files_of_the_folder_itself(tmp_path: Path) -> None:
    top = "low\tlow\n.\tmain\nhigh\thigh\n"
    main = "int main(void)\n{\n\treturn a() + b();\n}\n"
    said = found(
        tmp_path,
        top,
        main_c=main,
        low__a_c="int a(void)\n{\n\treturn 1;\n}\n",
        high__b_c="int b(void)\n{\n\treturn 2;\n}\n",
    )
    assert said == ["main.c uses high/b.c, which is on a higher floor"]


@pytest.mark.parametrize("named", [True, False])
def test_an_interface(tmp_path: Path, named: bool) -> None:
    floors_file = "low/cases.h\tcases\n" * named + "low\tlow\nhigh\thigh\n"
    said = found(
        tmp_path,
        floors_file,
        low__cases_h="int b(void);\n",
        high__b_c='#include "../low/cases.h"\nint b(void)\n{\n\treturn 2;\n}\n',
    )
    wrong = "low/cases.h declares b(), which is in high/b.c"
    assert said == ([] if named else [wrong])


def test_an_interface_includes_nothing_above(tmp_path: Path) -> None:
    said = found(
        tmp_path,
        "low/cases.h\tcases\nlow\tlow\n",
        low__cases_h='#include "a.h"\n',
        low__a_h="",
    )
    assert said == ["low/cases.h includes low/a.h, which is on a higher floor"]


@pytest.mark.parametrize(("line", "wrong"), [("", 0), ("circles 1\n", 1)])
def test_no_circles(tmp_path: Path, line: str, wrong: int) -> None:
    said = found(
        tmp_path,
        line + FLOORS,
        low__a_c="int a(void)\n{\n\treturn b();\n}\n",
        low__b_c="int b(void)\n{\n\treturn a();\n}\n",
    )
    assert said == ["a circle of 2 files: low/a.c, low/b.c"] * wrong


def test_a_line_of_floors_allows_no_larger_circle(tmp_path: Path) -> None:
    (tmp_path / "FLOORS").write_text("circles 9\n" + FLOORS)
    assert floors.drawn(tmp_path) == (["low", "high"], floors.LARGEST, False)


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


def test_a_header_of_several_files(tmp_path: Path) -> None:
    b = "int b(void)\n{\n\treturn 2;\n}\n"
    header = "int b(void);\n"
    assert not found(tmp_path, low__low_h=header, low__b_c=b)
    (tmp_path / "low" / "low.h").unlink()
    (tmp_path / "low" / "b.c").rename(tmp_path / "low" / "a_b.c")
    assert not found(tmp_path, low__a_h=header)


@pytest.mark.parametrize("line", ["", "inline\n"])
def test_inline_functions(tmp_path: Path, line: str) -> None:
    said = found(
        tmp_path,
        f"{line}circles 1\n{FLOORS}",
        low__a_h="int a(void);\nstatic inline int find(void)\n{\n\treturn b();\n}\n",
        low__a_c="int a(void)\n{\n\treturn find();\n}\n",
        low__b_c="int b(void)\n{\n\treturn a();\n}\n",
    )
    assert said == ["a circle of 2 files: low/a, low/b"] * bool(line)


def test_a_circle_of_headers(tmp_path: Path) -> None:
    said = found(tmp_path, low__a_h='#include "b.h"\n', low__b_h='#include "a.h"\n')
    assert said == ["a circle of headers: low/a.h, low/b.h"]


@pytest.mark.parametrize("files", [floors.LARGEST, floors.LARGEST + 1])
def test_a_circle_of_files_is_small(tmp_path: Path, files: int) -> None:
    said = found(
        tmp_path,
        **{
            f"low__f{n}_c": f"int flexsc__f{n}(void)\n{{\n"
            f"\treturn flexsc__f{(n + 1) % files}();\n}}\n"
            for n in range(files)
        },
    )
    assert len(said) == (files > floors.LARGEST)
