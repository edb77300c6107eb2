# SPDX-License-Identifier: MIT
"""The library as programs use it: its symbols, and its headers in C and C++."""

from __future__ import annotations

import asyncio
import ctypes
import os
import platform
import re
import shutil
import socket
import subprocess
import threading
from pathlib import Path

import pytest

from abi import versions
from fixtures import PATIENCE, command

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(command()).resolve().parents[1]
INCLUDES = [
    f"-I{path}"
    for path in (
        ROOT / "include",
        ROOT / "include" / "uapi",
        BUILD / "include",
    )
]
PROGRAM = """
#include <flexsc/default.h>
static void done(struct flexsc_cb *cb) { *(int64_t *)cb->arg = cb->ret; }
int main(void)
{
    int64_t ret = -1;
    struct flexsc_cb cb = { done, &ret, 0, 0, 0, 0, 0 };
    if (flexsc_init() || flexsc_getppid(&cb) || flexsc_main_loop())
        return 2;
    return ret > 0 ? 0 : 3;
}
"""


# A loop whose call never ends; a signal handler stops it.
STOPPED = """
#include <flexsc/flexsc.h>
#include <signal.h>
#include <unistd.h>
static struct flexsc_loop *loop;
static void stop(int signal) { (void)signal; flexsc_loop_stop(loop); }
static void done(struct flexsc_cb *cb) { (void)cb; }
int main(int argc, char **argv)
{
    struct flexsc_options options = { .size = sizeof(options), .engine = argv[argc - 1] };
    struct flexsc_cb cb = { .callback = done };
    char byte;
    int ends[2];
    if (pipe(ends) || flexsc_loop_create(&loop, &options) ||
        flexsc_loop_read(loop, &cb, ends[0], &byte, 1))
        return 2;
    signal(SIGALRM, stop);
    ualarm(300000, 0);
    return flexsc_loop_run(loop) < 0 ? 3 : 0;
}
"""


def run(*words: str | Path) -> str:
    done = subprocess.run(
        [str(word) for word in words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def exported() -> set[str]:
    lines = run("nm", "-D", "--defined-only", BUILD / "lib" / "libflexsc.so")
    return {line.split()[-1] for line in lines.splitlines()}


def declared() -> set[str]:
    """Return the functions that the headers declare without a definition."""
    names: set[str] = set()
    for header in (ROOT / "include" / "flexsc").glob("*.h"):
        text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.DOTALL)
        text = re.sub(r"\n\{\n.*?\n\}\n", "", text, flags=re.DOTALL)
        names.update(re.findall(r"(\w+)\((?:[^;{}()]|\([^;{}()]*\))*\);", text))
    return {name for name in names if name.startswith("flexsc_")}


def test_the_library_exports_each_function_with_its_version() -> None:
    functions = versions()
    wanted = {f"{name}@@{version}" for name, version in functions.items()}
    assert exported() == wanted | set(functions.values())


def test_the_headers_declare_what_the_library_exports() -> None:
    assert declared() == set(versions())


def test_the_runtime_answers_no_call_of_the_library() -> None:
    """Except functions for event control blocks, which don't work under flexsc run."""
    runtime = BUILD / "runtime" / "libflexsc-runtime.so"
    names = run("nm", "-D", "--defined-only", runtime).split()
    found = {name for name in names if name.startswith("flexsc_")}
    assert found == {"flexsc_ecb_create", "flexsc_ecb_probe"}


# Creates a loop, and then the first thread.
LOOP = """
#include <flexsc/flexsc.h>
#include <pthread.h>
static void *run(void *arg)
{
    return arg;
}
int main(void)
{
    struct flexsc_options options = FLEXSC_OPTIONS_INIT;
    struct flexsc_loop *loop;
    pthread_t thread;
    options.engine = "threads";
    if (flexsc_loop_create(&loop, &options))
        return 1;
    if (pthread_create(&thread, 0, run, 0) || pthread_join(thread, 0))
        return 2;
    return -flexsc_loop_destroy(loop);
}
"""


def test_a_program_under_flexsc_run_uses_its_own_library(tmp_path: Path) -> None:
    source, program = tmp_path / "loop.c", tmp_path / "loop"
    source.write_text(LOOP)
    folder = BUILD / "lib"
    build("cc", source, program, f"-L{folder}", "-lflexsc", f"-Wl,-rpath,{folder}")
    for engine in ("threads", "uring"):
        run(command(), "run", "--engine", engine, "--", program)


def test_the_static_library_claims_no_other_names() -> None:
    lines = run("nm", "--defined-only", "--extern-only", BUILD / "lib" / "libflexsc.a")
    names = re.findall(r" [A-Z] (\w+)$", lines, re.MULTILINE)
    assert names
    assert [name for name in names if not name.startswith("flexsc_")] == []


def build(compiler: str, source: Path, program: Path, *options: str | Path) -> None:
    run(
        compiler,
        "-Wall",
        "-Wextra",
        "-Werror",
        *INCLUDES,
        source,
        "-o",
        program,
        *options,
    )


def test_a_program_links_statically_with_it(tmp_path: Path) -> None:
    source = tmp_path / "program.c"
    source.write_text(PROGRAM)
    library = BUILD / "lib" / "libflexsc.a"
    build("cc", source, tmp_path / "program", library, "-luring", "-pthread")
    subprocess.run([tmp_path / "program"], timeout=PATIENCE, check=True)


def test_a_signal_handler_stops_a_loop_under_thread_sanitizer(tmp_path: Path) -> None:
    source, program = tmp_path / "program.c", tmp_path / "program"
    source.write_text(STOPPED)
    library = BUILD / "lib" / "libflexsc.a"
    build("cc", source, program, library, "-luring", "-pthread", "-fsanitize=thread")
    for engine in ("threads", "uring"):
        run(program, engine)


def test_the_example_of_the_manual_prints_sizes(tmp_path: Path) -> None:
    page = (ROOT / "man" / "flexsc.3.md").read_text()
    example = re.search(r"^```c\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert example
    source = tmp_path / "sizes.c"
    source.write_text(example[1])
    library = BUILD / "lib" / "libflexsc.a"
    build("cc", source, tmp_path / "sizes", library, "-luring", "-pthread")
    size = source.stat().st_size
    assert set(run(tmp_path / "sizes", source, "/nowhere").splitlines()) == {
        f"{source}: {size}",
        "/nowhere: -2",
    }


class Cb(ctypes.Structure):
    _fields_ = (
        ("callback", ctypes.c_void_p),
        ("arg", ctypes.c_void_p),
        ("ret", ctypes.c_int64),
        ("handle", ctypes.c_uint64),
        ("flags", ctypes.c_uint32),
        ("buffer", ctypes.c_uint32),
        ("reserved", ctypes.c_uint64),
    )


async def embedded(library: ctypes.CDLL, loop: ctypes.c_void_p) -> list[int]:
    """Return the results of calls, a timer and another thread's wake-up, with asyncio
    as the only event loop.
    """
    outer = asyncio.get_running_loop()
    cbs = [Cb() for _ in range(4)]
    done = [outer.create_future() for _ in cbs]
    array = (ctypes.POINTER(Cb) * 8)()
    ns = ctypes.c_uint64()
    timer: asyncio.TimerHandle | None = None

    def turn() -> None:
        nonlocal timer
        for i in range(library.flexsc_loop_harvest(loop, array, len(array))):
            at = ctypes.addressof(array[i].contents)
            which = [ctypes.addressof(cb) for cb in cbs].index(at)
            done[which].set_result(cbs[which].ret)
        assert library.flexsc_loop_prepare(loop, ctypes.byref(ns)) == 0
        if timer:
            timer.cancel()
        forever = ns.value == 2**64 - 1
        timer = None if forever else outer.call_later(ns.value / 1e9, turn)

    outer.add_reader(library.flexsc_loop_fd(loop), turn)
    near, far = socket.socketpair()
    text = ctypes.create_string_buffer(8)
    read = (near.fileno(), ctypes.cast(text, ctypes.c_void_p).value, 8, 0, 0, 0)
    six = ctypes.c_uint64 * 6
    library.flexsc_loop_call(
        loop, ctypes.byref(cbs[0]), platform_number("read"), *six(*read)
    )
    library.flexsc_loop_timer(loop, ctypes.byref(cbs[1]), ctypes.c_uint64(1000000))
    library.flexsc_loop_call(
        loop, ctypes.byref(cbs[2]), platform_number("getppid"), *six(*([0] * 6))
    )
    outer.call_soon(turn)
    await asyncio.gather(done[1], done[2])
    wake = threading.Thread(
        target=library.flexsc_loop_wake, args=(loop, ctypes.byref(cbs[3]))
    )
    wake.start()
    far.send(b"hello")
    results = await asyncio.wait_for(asyncio.gather(*done), PATIENCE)
    wake.join()
    assert text.value == b"hello"
    outer.remove_reader(library.flexsc_loop_fd(loop))
    return list(results)


def platform_number(name: str) -> int:
    header = (BUILD / "include" / "flexsc" / "syscalls.h").read_text()
    words = {"x86_64": "#if", "aarch64": "#elif"}[platform.machine()]
    mine = header.split(f"\n{words} defined(", 1)[1]
    found = re.search(rf"^#define FLEXSC_NR_{name} (\d+)$", mine, re.MULTILINE)
    assert found
    return int(found[1])


def test_a_loop_runs_inside_asyncio() -> None:
    library = ctypes.CDLL(str(BUILD / "lib" / "libflexsc.so"))
    loop = ctypes.c_void_p()
    library.flexsc_loop_call.argtypes = [ctypes.c_void_p, ctypes.c_void_p] + [
        ctypes.c_uint64
    ] * 7
    assert library.flexsc_loop_create(ctypes.byref(loop), None) == 0
    assert asyncio.run(embedded(library, loop)) == [5, 0, os.getppid(), 0]
    assert library.flexsc_loop_destroy(loop) == 0


def test_the_headers_compile_as_cpp(tmp_path: Path) -> None:
    compiler = shutil.which("g++") or shutil.which("clang++")
    if not compiler:
        pytest.skip("the C++ compiler is missing: install g++")
    source = tmp_path / "program.cc"
    source.write_text(PROGRAM)
    build(
        compiler,
        source,
        tmp_path / "program",
        f"-L{BUILD / 'lib'}",
        "-lflexsc",
        f"-Wl,-rpath,{BUILD / 'lib'}",
    )
    subprocess.run([tmp_path / "program"], timeout=PATIENCE, check=True)


HEADERS = sorted(
    [f"flexsc/{path.name}" for path in (ROOT / "include" / "flexsc").glob("*.h")]
    + [f"linux/{path.name}" for path in (ROOT / "include" / "uapi" / "linux").iterdir()]
    + ["flexsc/syscalls.h", "flexsc/default_syscalls.h", "flexsc/version.h"]
)
# These headers need declarations of POSIX, which -std=c11 alone hides.
POSIX = ["flexsc/ecb.h", "flexsc/netdb.h"]
LANGUAGES = ["c11", "gnu11", "c++17"]
USE = """
#include <flexsc/flexsc.h>
struct flexsc_options options = FLEXSC_OPTIONS_INIT;
int with_options(struct flexsc_loop **loop);
int with_options(struct flexsc_loop **loop)
{
    struct flexsc_options own = FLEXSC_OPTIONS_INIT;
    own.engine = "threads";
    return flexsc_loop_create(loop, &own);
}
"""


def compilers(language: str) -> list[str]:
    names = ["g++", "clang++"] if "++" in language else ["gcc", "clang"]
    return [name for name in names if shutil.which(name)]


def verdict(compiler: str, language: str, source: Path, *more: str) -> str:
    """Return the compiler's output."""
    options = [f"-std={language}", "-Wall", "-Wextra", "-pedantic", "-Werror"]
    done = subprocess.run(
        [compiler, *options, *more, "-fsyntax-only", *INCLUDES, source],
        stderr=subprocess.PIPE,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert bool(done.stderr) == (done.returncode != 0)
    return done.stderr


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_header_compiles_alone_and_without_warnings(
    language: str, tmp_path: Path
) -> None:
    if not compilers(language):
        pytest.skip("no compiler for this language")
    # ISO C forbids an empty translation unit.
    sources = {name: f"#include <{name}>\ntypedef int used;\n" for name in HEADERS}
    sources["use"] = USE
    for compiler in compilers(language):
        for name, text in sources.items():
            suffix = "cc" if "++" in language else "c"
            source = tmp_path / f"{name.replace('/', '-')}.{suffix}"
            source.write_text(text)
            more = ["-D_GNU_SOURCE"] if language == "c11" and name in POSIX else []
            assert verdict(compiler, language, source, *more) == ""


@pytest.mark.parametrize("name", POSIX)
def test_a_header_reports_what_it_needs(name: str, tmp_path: Path) -> None:
    source = tmp_path / "alone.c"
    source.write_text(f"#include <{name}>\n")
    assert f"<{name}> needs POSIX: compile with -D_GNU" in verdict("gcc", "c11", source)
