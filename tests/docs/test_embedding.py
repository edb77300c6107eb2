# SPDX-License-Identifier: MIT
"""The examples for docs/how-to/embedding.md wait for a read inside another loop."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from fixtures import ENGINES, PATIENCE, command

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(command()).resolve().parents[1]
GUIDE = (ROOT / "docs/how-to/embedding.md").read_text()


@pytest.mark.parametrize(
    ("name", "package"), [("embed-libuv", "libuv"), ("embed-glib", "glib-2.0")]
)
def test_a_loop_inside_another_reads(
    name: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if subprocess.run(["pkg-config", "--exists", package]).returncode:
        pytest.skip(f"no headers for {name}")
    compiler = re.search(r"^    (cc .*)$", GUIDE, re.M)
    assert compiler and f"examples/{name}.c" in GUIDE
    monkeypatch.setenv("PKG_CONFIG_PATH", str(BUILD / "meson-uninstalled"))
    monkeypatch.setenv("LD_LIBRARY_PATH", str(BUILD / "lib"))
    script = (
        compiler[1]
        .replace("examples/embed-libuv.c", f"{ROOT}/examples/{name}.c")
        .replace("libuv)", f"{package})")
        .replace("cc ", "cc -Wall -Wextra -Werror ")
    )
    subprocess.run(["sh", "-euc", script], cwd=tmp_path, timeout=PATIENCE, check=True)
    for engine in ENGINES:
        monkeypatch.setenv("FLEXSC_ENGINE", engine)
        with subprocess.Popen(
            [tmp_path / "embed"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as program:
            with pytest.raises(subprocess.TimeoutExpired):
                program.wait(0.2)
            out, _ = program.communicate(b"text", timeout=PATIENCE)
            assert (out, program.returncode) == (b"4 bytes\n", 0), engine
