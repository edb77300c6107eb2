# SPDX-License-Identifier: MIT
"""The programs of docs/how-to/embedding.md wait for a read inside another loop."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from fixtures import ENGINES, PATIENCE, command

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(command()).resolve().parents[1]
TEXT = (ROOT / "docs/how-to/embedding.md").read_text()


@pytest.mark.parametrize(
    ("title", "package"), [("libuv", "libuv"), ("GLib", "glib-2.0")]
)
def test_a_loop_inside_another_reads(
    title: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if subprocess.run(["pkg-config", "--exists", package]).returncode:
        pytest.skip(f"no headers of {title}")
    text = re.search(rf"^## {title}\n.*?^```c\n(.*?)^```", TEXT, re.M | re.S)
    assert text
    (tmp_path / "program.c").write_text(text[1])
    monkeypatch.setenv("PKG_CONFIG_PATH", str(BUILD / "meson-uninstalled"))
    monkeypatch.setenv("LD_LIBRARY_PATH", str(BUILD / "lib"))
    options = f"$(pkg-config --cflags --libs flexsc {package})"
    compiler = f"cc -Wall -Wextra -Werror -o program program.c {options}"
    subprocess.run(["sh", "-euc", compiler], cwd=tmp_path, timeout=PATIENCE, check=True)
    for engine in ENGINES:
        monkeypatch.setenv("FLEXSC_ENGINE", engine)
        with subprocess.Popen(
            [tmp_path / "program"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as program:
            with pytest.raises(subprocess.TimeoutExpired):
                program.wait(0.2)
            out, _ = program.communicate(b"text", timeout=PATIENCE)
            assert (out, program.returncode) == (b"4 bytes\n", 0), engine
