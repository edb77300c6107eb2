# SPDX-License-Identifier: MIT
"""The tutorial "Your first program with libflexsc". Each step compiles with the
tutorial's own commands, and does what the text promises. The last step is the
example.
"""

from __future__ import annotations

import contextlib
import re
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

from fixtures import PATIENCE, command

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(command()).resolve().parents[1]
TEXT = (ROOT / "docs/tutorial/first-program.md").read_text()
EXAMPLE = (ROOT / "examples/server.c").read_text()
ITEM = re.compile(
    r"^(?:static|struct|int) [^;=]*?(\w+)(?:\(.*?\))?\s*\{\n.*?^\};?\n", re.M | re.S
)


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", TEXT, re.M | re.S)


def program(step: int) -> str:
    """Return the program after a step. A block replaces functions of the same name; a
    statement is added at the end of accepted().
    """
    text, *later = blocks("c")[:step]
    for block in later:
        names = {match[1] for match in ITEM.finditer(block)} or {"accepted"}
        old = [match for match in ITEM.finditer(text) if match[1] in names]
        if block.startswith("\t"):
            block = old[0][0].removesuffix("}\n") + block + "}\n"
        text = text[: old[0].start()] + block + text[old[-1].end() :]
    return text


@contextlib.contextmanager
def server(step: int, folder: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Compile the program of a step, and start it on a free port."""
    text = program(step).replace("10000000000", "5000000000")
    (folder / "server.c").write_text(text)
    script = "".join(blocks("sh")).replace("$PWD/build", str(BUILD))
    for old, new in {
        "scripts/build --install": "set -eu",
        "sudo apt-get install --yes netcat-openbsd procps": "",
        "-Wall": "-Wall -Wextra -Werror",
        "./server 8080": "exec ./server 0",
    }.items():
        assert old in script
        script = script.replace(old, new)
    with subprocess.Popen(
        ["sh", "-c", script], cwd=folder, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout
            port = re.fullmatch(r"listening on port (\d+)\n", process.stdout.readline())
            assert port
            yield process, int(port[1])
        finally:
            process.kill()


def answer(port: int, name: str) -> bytes:
    """Return what the server sends to a client that sends this line."""
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as client:
        client.sendall(name.encode() + b"\n")
        client.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: client.recv(65536), b""))


def test_the_first_step_accepts_a_client_and_ends(tmp_path: Path) -> None:
    with server(1, tmp_path) as (process, port):
        with socket.create_connection(("127.0.0.1", port), PATIENCE) as client:
            assert client.recv(1) == b""
        assert process.communicate(timeout=PATIENCE)[0] == "a client\n"
        assert process.returncode == 0


def test_the_second_step_prints_names(tmp_path: Path) -> None:
    with server(2, tmp_path) as (process, port):
        assert process.stdout
        for name in ("README.md", "a name"):
            assert answer(port, name) == b""
            assert process.stdout.readline() == f"{name}\n"


def test_the_third_step_sends_files(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    big = bytes(range(256)) * 10000
    (tmp_path / "inside" / "big").write_bytes(big)
    (tmp_path / "outside").write_text("secret")
    with server(3, tmp_path / "inside") as (_, port):
        assert answer(port, "big") == big
        for name in ("missing", "../outside", str(tmp_path / "outside"), ""):
            assert answer(port, name) == b"", name
        assert answer(port, "big") == big


def test_the_last_step_drops_silent_clients(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")
    with server(4, tmp_path) as (_, port):
        with socket.create_connection(("127.0.0.1", port), PATIENCE) as silent:
            assert answer(port, "file") == b"text"
            assert silent.recv(1) == b""


def test_the_last_step_is_the_example() -> None:
    assert program(4) == EXAMPLE[EXAMPLE.index("#include") :]
