# SPDX-License-Identifier: MIT
"""If openat2() is forbidden or unknown, flexsc serve serves the same files."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from filters import forbidden
from fixtures import Client, Server, Start, eventually

OPENAT2 = 437  # the same port everywhere

LINKS = {
    "to-file": "a/b/file",
    "to-folder": "a",
    "to-slash": "a/b/",
    "to-link": "to-folder",
    "to-here": ".",
    "a/b/up": "../file",
    "a/b/up-down": "../../a/./b//file",
    "a/b/to-top": "../..",
    "a/b/out": "../../../secret",
    "a/b/out-and-in": "../../../served/a/file",
    "up": "..",
    "absolute": "/etc/passwd",
    "loop": "loop",
    "loop-1": "loop-2/x",
    "loop-2": "loop-1/y",
    "nowhere": "nothing/at/all",
    "file-slash": "a/file/",
    "a/proc": "/proc/self/root",
}


@pytest.fixture(scope="module")
def linked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with links of all kinds."""
    base = tmp_path_factory.mktemp("links")
    root = base / "served"
    (root / "a/b").mkdir(parents=True)
    (base / "secret").write_text("secret")
    (root / "a/file").write_text("the upper file")
    (root / "a/b/file").write_text("the lower file")
    (root / "a/index.html").write_text("index")
    os.mkfifo(root / "pipe")
    (root / "closed").write_text("secret")
    (root / "closed").chmod(0)
    for name, target in LINKS.items():
        (root / name).symlink_to(target)
    for i in range(42):
        (root / f"chain-{i}").symlink_to(f"chain-{i + 1}" if i < 41 else "a/file")
    return root


NAMES = [*LINKS, "", "a", "a/", "a/b", "a/b/", "none", "a/none", "a/file/none", "pipe"]
NAMES += ["chain-0", "chain-1", "chain-2", "chain-9", "a/file/", "../secret", "closed"]
NAMES += ["a/b/to-top/a/b/to-top/to-link/b/up", "to-here/to-here/a/file", "x" * 300]
NAMES += ["a/b/to-top/up/secret", "to-link/", "to-slash/file", "a/b/../file", "loop/x"]


def answered(server: Server) -> Iterator[tuple[str, int, bytes]]:
    for name in NAMES:
        with server.client() as client:
            got = client.ask(f"/{name}")
        yield name, got.status, got.body


@pytest.mark.parametrize("error", [errno.ENOSYS, errno.EPERM])
def test_files_are_opened_without_openat2(
    start: Start, linked: Path, engine: str, error: int
) -> None:
    expected = list(answered(start(root=linked)))
    server = start(root=linked, before=forbidden(OPENAT2, error))
    assert list(answered(server)) == expected
    statuses = {name: status for name, status, _ in expected}
    assert statuses["to-file"] == statuses["a/b/up-down"] == 200
    assert statuses["a/b/out"] == statuses["absolute"] == 403
    reported = [line for line in server.messages if "openat2() doesn't work" in line]
    # The filter doesn't affect io_uring.
    assert len(reported) == (engine != "uring")


# In an endless loop, the name is that of the folder, and then that of the link.
CHANGER = """
import os
while True:
    for name in ("folder", "link"):
        os.rename(name, "name")
        os.rename("name", name)
"""


def test_nothing_outside_is_opened_while_names_change(
    start: Start, tmp_path: Path
) -> None:
    """A folder, and a link that leads outside, have the same name alternately."""
    root = tmp_path / "root"
    (root / "folder").mkdir(parents=True)
    (root / "folder/file").write_text("inside")
    (tmp_path / "file").write_text("secret")
    (root / "link").symlink_to("..")
    server = start(root=root, before=forbidden(OPENAT2, errno.ENOSYS))
    changer = subprocess.Popen([sys.executable, "-c", CHANGER], cwd=root)
    seen: Counter[int] = Counter()
    try:
        with Client(server.port) as client:

            def sees_all() -> bool:
                answer = client.ask("/name/file")
                assert b"secret" not in answer.body
                seen[answer.status] += 1
                return {200, 403, 404} <= set(seen) and seen.total() > 300

            assert eventually(sees_all, limit=120), seen
    finally:
        changer.kill()
        changer.wait()
