# SPDX-License-Identifier: MIT
"""The C++ headers, as included by a program."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from fixtures import PATIENCE, command

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(command()).resolve().parents[1]
HEADERS = ["flexsc.hpp", "pending.hpp", "task.hpp"]
# -isystem hides warnings of the C headers, which have their own tests.
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
        pytest.skip(f"{compiler} is missing")
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
            timeout=6 * PATIENCE,
            check=True,
        )


# Misuse that has to be refused, and a part of the compiler's message.
REFUSED = {
    "auto few = loop.call<FLEXSC_NR_read>(0);": "number of arguments",
    "auto many = loop.call<FLEXSC_NR_close>(0, 1);": "number of arguments",
    "auto none = loop.call<60000>();": "no system call of this number",
    "auto real = loop.call<FLEXSC_NR_close>(3.7);": "integer or a pointer",
}
ACCEPTED = """
    const char *path = "f";
    enum { none } flags = none;
    co_await loop.call<FLEXSC_NR_openat>(-100, path, 0);
    co_await loop.call<FLEXSC_NR_openat>(-100, path, 0, 0644);
    co_await loop.call<FLEXSC_NR_fcntl>(0, 1);
    co_await loop.call<FLEXSC_NR_unlinkat>(-100, path, flags);
    co_await loop.call<FLEXSC_NR_accept4>(0, nullptr, nullptr, true);
    std::string text = path;
    auto named = [text] { return text.size(); };
    co_await loop.work(named);
    co_await loop.work(std::ref(named));
    co_await loop.work([path] { return path[0]; });
"""


def compiles(compiler: str, body: str, folder: Path) -> tuple[bool, str]:
    source = folder / "program.cc"
    source.write_text(
        "#include <flexsc/flexsc.hpp>\n#include <string>\n"
        f"flexsc::task<> use(flexsc::loop &loop)\n{{\n{body}\n}}\n"
    )
    done = subprocess.run(
        [compiler, "-std=c++20", "-fsyntax-only", *INCLUDES, source],
        timeout=6 * PATIENCE,
        capture_output=True,
        text=True,
    )
    return done.returncode == 0, done.stderr


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_misused_calls_do_not_compile(compiler: str, tmp_path: Path) -> None:
    if not shutil.which(compiler):
        pytest.skip(f"{compiler} is missing")
    assert compiles(compiler, ACCEPTED, tmp_path) == (True, "")
    fine, errors = compiles(compiler, "\n".join([*REFUSED, "co_return;"]), tmp_path)
    assert not fine
    for reason in REFUSED.values():
        said = sum(reason in line for line in errors.splitlines())
        assert said >= list(REFUSED.values()).count(reason), errors


def test_a_lambda_that_the_compiler_would_destroy_twice_is_refused(
    tmp_path: Path,
) -> None:
    if not shutil.which("g++"):
        pytest.skip("g++ is missing: install g++")
    version = subprocess.run(
        ["g++", "-dumpversion"], capture_output=True, text=True, check=True
    ).stdout
    body = "std::string s; co_await loop.work([s] { return s.size(); });"
    fine, errors = compiles("g++", body, tmp_path)
    assert fine == (int(version.split(".")[0]) >= 13)
    assert fine or "give it a name" in errors
