# SPDX-License-Identifier: MIT
"""The check of documents, on made-up documents."""

from __future__ import annotations

from pathlib import Path

import documents
import pytest


def house(root: Path, text: str) -> Path:
    for file in ("docs/design.md", "lib/loop/call.c", "lib/loop/call.h"):
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).touch()
    (root / "docs" / "design.md").write_text(text)
    return root


@pytest.mark.parametrize(
    "text",
    [
        "`lib/loop/call.c`, in `lib/loop`; a post/lib/gone.c",
        "lib/loop/*.h, `call.h`, kmod/flexsc.ko, [a link](../lib/loop/call.c#L1)",
        "lib/loop/call, which is built",
    ],
)
def test_files_that_exist_may_be_named(tmp_path: Path, text: str) -> None:
    assert documents.main(house(tmp_path, text)) == 0


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("`lib/loop/held.c`", "lib/loop/held.c"),
        ("python3 tests/gone.py --all", "tests/gone.py"),
        ("lib/*/*.py", "lib/*/*.py"),
        ("`held.c` alone", "held.c"),
        ("[a link](gone.md#part)", "gone.md"),
    ],
)
def test_a_file_that_does_not_exist_is_found(
    tmp_path: Path, text: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert documents.main(house(tmp_path, text)) == 1
    assert capsys.readouterr().out == f"docs/design.md: no such file: {name}\n"


@pytest.mark.parametrize("name", ["/usr/local/share/flexsc/a", "/usr/bin/flexsc"])
def test_a_guide_names_no_prefix(tmp_path: Path, name: str) -> None:
    guide = tmp_path / "docs/how-to/guide.md"
    guide.parent.mkdir(parents=True)
    guide.write_text(f"cp {name} /etc; ls /usr/share/doc/flexsc")
    assert documents.main(tmp_path) == 1
    guide.write_text("cp ../share/flexsc/a /etc; ls /usr/share/doc/flexsc")
    assert documents.main(tmp_path) == 0


def test_the_changelog_may_name_old_files(tmp_path: Path) -> None:
    (tmp_path / "CHANGELOG.md").write_text("lib/loop/held.c")
    assert documents.main(tmp_path) == 0
