# SPDX-License-Identifier: MIT
"""The C++ headers, as a program sees them that includes one, and the example."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from conftest import PATIENCE, command

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(command()).resolve().parents[2]
HEADERS = ["flexsc.hpp", "pending.hpp", "task.hpp"]
# The C headers have their own tests: -isystem, without warnings.
INCLUDES = [
    f"-I{ROOT / 'bindings' / 'cpp' / 'include'}",
    f"-isystem{ROOT / 'include'}",
    f"-isystem{BUILD / 'include'}",
]
USE = """
flexsc::task<int> twice(flexsc::loop &loop, int n)
{
    co_await loop.sleep_for(std::chrono::seconds(0));
    auto [a, b] = co_await flexsc::when_all(
        loop.call<FLEXSC_NR_getppid>(), loop.work([n] { return 2 * n; }));
    co_return a ? b : 0;
}
"""


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_each_header_compiles_alone_and_without_warnings(
    compiler: str, tmp_path: Path
) -> None:
    if not shutil.which(compiler):
        pytest.skip(f"no {compiler}")
    source = tmp_path / "program.cc"
    for header in HEADERS:
        use = USE if header == "flexsc.hpp" else ""
        source.write_text(f"#include <flexsc/{header}>\n{use}")
        subprocess.run(
            [
                compiler,
                "-std=c++20",
                "-Wall",
                "-Wextra",
                "-Wshadow",
                "-pedantic",
                "-Werror",
                "-fsyntax-only",
                *INCLUDES,
                source,
            ],
            timeout=PATIENCE,
            check=True,
        )


def connect(port: int) -> socket.socket:
    end = time.monotonic() + PATIENCE
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), PATIENCE)
        except ConnectionRefusedError:
            assert time.monotonic() < end
            time.sleep(0.01)


def test_the_echo_server_ends_with_connections_open() -> None:
    server = BUILD / "bindings" / "cpp" / "examples" / "echo-coroutines"
    if not server.exists():
        pytest.skip("no C++20 compiler")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen([server, str(port)])
    try:
        clients = [connect(port) for _ in range(20)]
        for client in clients:
            client.sendall(b"hello")
        for client in clients:
            assert client.recv(16) == b"hello"
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 0
        for client in clients:
            assert client.recv(16) == b""
            client.close()
    finally:
        process.kill()
        process.wait()
