# SPDX-License-Identifier: MIT
"""Does each file that states the version state that of VERSION?

    python3 tests/lint/versions.py [--release]

The first entry of CHANGELOG.md must be of this version, too. With --release it must
have a date instead of "unreleased", and the manual pages the same date. The build gets
the version from VERSION; headers, libraries, manual pages and the site get it from the
build.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RUST = "bindings/rust"
STATED = {
    "bindings/python/pyproject.toml": r'^version = "(.*)"$',
    f"{RUST}/Cargo.lock": r'^name = "flexsc.*"\nversion = "(.*)"$',
    f"{RUST}/flexsc-sys/Cargo.toml": r'^version = "(.*)"$',
    f"{RUST}/flexsc-sys/src/lib.rs": r"FLEXSC_VERSION: c_uint = (0x\w+);",
    f"{RUST}/flexsc/Cargo.toml": r'^(?:flexsc-sys = \{ )?version = "(.*?)"',
    "debian/changelog": r"\Aflexsc \(([^)~-]*)",
}
ENTRY = re.compile(
    r"^## (\S+) \((unreleased|\d{4}-\d\d-\d\d)\)\n(.*?)(?=^## |\Z)",
    re.MULTILINE | re.DOTALL,
)


def number(version: str) -> str:
    """Return the version in the form of FLEXSC_VERSION in the headers."""
    major, minor, patch = map(int, version.split("."))
    return hex(major << 16 | minor << 8 | patch)


def wrong(root: Path, release: bool) -> Iterator[str]:
    version = (root / "VERSION").read_text().strip()
    for name, pattern in STATED.items():
        stated = re.findall(pattern, (root / name).read_text(), re.MULTILINE)
        if not stated:
            yield f"{name}: no version found"
        for one in stated:
            if one not in (version, number(version)):
                yield f"{name}: states {one}, not {version}"
    entry = ENTRY.search((root / "CHANGELOG.md").read_text())
    if not entry or entry[1] != version or "\n- " not in entry[3]:
        yield f"CHANGELOG.md: the first entry is not about {version}"
    elif release and entry[2] == "unreleased":
        yield f"CHANGELOG.md: {version} has no date of release"
    elif release and f"'{entry[2]}'" not in (root / "man/meson.build").read_text():
        yield f"man/meson.build: the pages' date is not {entry[2]}"


def main(words: list[str], root: Path = ROOT) -> int:
    found = list(wrong(root, "--release" in words))
    print("\n".join(found), end="\n" if found else "")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
