# SPDX-License-Identifier: MIT
"""Is each revision that a document names a part of the project's history?

    revisions.py

A figure has the revision beside it that it was measured with. A revision that isn't an
ancestor of HEAD is printed, with its place, and the exit status is 1. Where the
history isn't there (an archive, a shallow clone), there is nothing to look at.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# A number of seven digits isn't meant.
REVISION = re.compile(r"\b(?=[0-9]*[a-f])[0-9a-f]{7}\b")
DOCUMENTS = ("README.md", "CHANGELOG.md", "docs/*.md", "man/*")


def git(*words: str) -> str:
    command = ["git", "-C", str(ROOT), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return "" if done.returncode else done.stdout


def wrong(history: set[str]) -> Iterator[str]:
    for pattern in DOCUMENTS:
        for path in sorted(ROOT.glob(pattern)):
            if not path.is_file():
                continue
            for number, line in enumerate(path.read_text().splitlines(), 1):
                for revision in REVISION.findall(line):
                    if revision not in history:
                        place = f"{path.relative_to(ROOT)}:{number}"
                        yield f"{place}: {revision} is no revision of the project"


def main() -> int:
    if git("rev-parse", "--is-shallow-repository").strip() != "false":
        return 0
    history = {line[:7] for line in git("rev-list", "HEAD").split()}
    found = list(wrong(history))
    for line in found:
        print(line)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
