# SPDX-License-Identifier: MIT
"""The Rust crates: formatting, their own tests, packaging, and their examples.

The tests need cargo. They run rustfmt and clippy only if these are installed.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from fixtures import PATIENCE, command

ROOT = Path(__file__).resolve().parents[2]
CRATES = ROOT / "bindings" / "rust"
VERSION = (ROOT / "VERSION").read_text().strip()
BUILD = Path(command()).resolve().parents[1]
LIMIT = 600  # seconds, for compiling on a machine with other load

Cargo = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Variables for cargo: the built library, and a folder for cargo's output."""
    return {
        **os.environ,
        "CARGO_TARGET_DIR": str(tmp_path_factory.mktemp("cargo")),
        "PKG_CONFIG_PATH": str(BUILD / "meson-uninstalled"),
        "LD_LIBRARY_PATH": str(BUILD / "lib"),
    }


@pytest.fixture(scope="session")
def cargo(environment: dict[str, str]) -> Cargo:
    def run(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["cargo", *words],
            cwd=CRATES,
            env={**environment, **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LIMIT,
            check=False,
        )

    return run


def has(cargo: Cargo, tool: str) -> bool:
    return cargo(tool, "--version").returncode == 0


def must(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_the_crates_pass_their_own_tests(cargo: Cargo) -> None:
    said = must(cargo("test", "--offline", "--locked"))
    # Units, the headers, calls, identity, lifetimes, tasks, and the documentation's
    # examples.
    results = [line for line in said.splitlines() if line.startswith("test result: ok")]
    assert len([line for line in results if " 0 passed" not in line]) == 7, said


def test_the_crates_are_formatted(cargo: Cargo) -> None:
    if not has(cargo, "fmt"):
        pytest.skip("rustfmt is missing")
    must(cargo("fmt", "--check"))


def test_clippy_finds_nothing(cargo: Cargo) -> None:
    if not has(cargo, "clippy"):
        pytest.skip("cargo-clippy is missing")
    options = ("--offline", "--locked", "--all-targets")
    must(cargo("clippy", *options, "--", "--deny=warnings"))


def test_the_published_crate_is_complete(cargo: Cargo) -> None:
    for crate, wanted in {
        "flexsc-sys": {"build.rs", "src/lib.rs", "tests/headers.rs"},
        "flexsc": {"src/lib.rs", "src/driver.rs", "examples/echo.rs"},
    }.items():
        options = ("--offline", "--allow-dirty", "--package", crate)
        listed = set(must(cargo("package", "--list", *options)).splitlines())
        assert wanted | {"Cargo.toml", "README.md", "LICENSE"} <= listed
        assert not [name for name in listed if name.startswith("target")]
    # The other crate can be packaged only after this one is published.
    options = ("--offline", "--allow-dirty", "--package", "flexsc-sys")
    must(cargo("package", "--no-verify", *options))


def test_a_missing_library_is_reported_in_one_line(
    cargo: Cargo, tmp_path: Path
) -> None:
    done = cargo(
        "check",
        "--offline",
        "--package=flexsc-sys",
        PKG_CONFIG_PATH="",
        PKG_CONFIG_LIBDIR=str(tmp_path),
        CARGO_TARGET_DIR=str(tmp_path / "target"),
    )
    assert done.returncode != 0
    said = [line for line in done.stdout.splitlines() if "flexsc-sys: " in line]
    assert len(said) == 1, done.stdout
    series = VERSION.rpartition(".")[0]
    assert f"pkg-config finds no libflexsc {series} or later" in said[0]


@pytest.fixture(scope="session")
def examples(cargo: Cargo, environment: dict[str, str]) -> Path:
    must(cargo("build", "--offline", "--locked", "--examples"))
    return Path(environment["CARGO_TARGET_DIR"]) / "debug" / "examples"


def test_echo_serves_several_at_a_time(
    examples: Path, environment: dict[str, str]
) -> None:
    process = subprocess.Popen(
        [examples / "echo"], env=environment, stdout=subprocess.PIPE, text=True
    )
    with contextlib.ExitStack() as stack:
        stack.callback(process.wait, PATIENCE)
        stack.callback(process.kill)
        assert process.stdout is not None
        stack.enter_context(process.stdout)
        host, _, port = process.stdout.readline().strip().rpartition(":")
        clients = [
            stack.enter_context(
                socket.create_connection((host, int(port)), timeout=PATIENCE)
            )
            for _ in range(10)
        ]
        for number, client in enumerate(clients):
            client.sendall(b"%d" % number * 1000)
        for number, client in reversed(list(enumerate(clients))):
            got = b""
            while len(got) < 1000:
                got += client.recv(4096)
            assert got == b"%d" % number * 1000
            client.shutdown(socket.SHUT_WR)
            assert client.recv(1) == b""
