# SPDX-License-Identifier: MIT
"""The check of versions, on copies of the files with one changed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import versions

FILES = [name for name in versions.STATED if (versions.ROOT / name).exists()]
VERSION = (versions.ROOT / "VERSION").read_text().strip()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in (*FILES, "VERSION", "CHANGELOG.md", "man/meson.build"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(versions.ROOT / name, tmp_path / name)
    return tmp_path


@pytest.mark.parametrize("name", FILES)
def test_each_version_that_differs_is_found(root: Path, name: str) -> None:
    assert versions.main([], root) == 0
    text = (root / name).read_text()
    stated = VERSION if VERSION in text else versions.number(VERSION)
    for part in range(1, text.count(stated) + 1):
        pieces = text.split(stated)
        changed = [stated.join(pieces[:part]), stated.join(pieces[part:])]
        (root / name).write_text((stated + "9").join(changed))
        found = list(versions.wrong(root, release=False))
        assert found == [f"{name}: states {stated}9, not {VERSION}"]


def test_a_version_without_an_entry_is_found(root: Path) -> None:
    for text in (
        "# Changes\n",
        f"## {VERSION} (unreleased)\n\n## 0.0.1 (2026-01-01)\n\n- It runs.\n",
        f"## 0.0.1 (2026-01-01)\n\n- It runs.\n\n## {VERSION} (2026-01-01)\n\n- It.\n",
    ):
        (root / "CHANGELOG.md").write_text(text)
        assert versions.main([], root) == 1


@pytest.mark.parametrize(
    ("date", "built", "status"),
    [
        ("unreleased", "2026-01-02", 1),
        ("2026-01-02", "2026-01-01", 1),
        ("2026-01-02", "2026-01-02", 0),
    ],
)
def test_only_a_release_needs_a_date(
    root: Path, date: str, built: str, status: int
) -> None:
    (root / "CHANGELOG.md").write_text(f"## {VERSION} ({date})\n\n- It runs.\n")
    (root / "man/meson.build").write_text(f"'page.py', '{built}'")
    assert versions.main([], root) == 0
    assert versions.main(["--release"], root) == status
