# SPDX-License-Identifier: MIT
"""A Loop's life: event loops, threads, forks, signals, and the interpreter's exit."""

from __future__ import annotations

import asyncio
import gc
import os
import re
import shutil
import subprocess
import sys
import threading
import weakref
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

import flexsc
import pytest
from conftest import PATIENCE, Run

VERSION = Path(__file__).resolve().parents[3] / "VERSION"


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def python(
    program: str, *words: object, before: Sequence[str] = ()
) -> subprocess.CompletedProcess[str]:
    """Run a Python program, with a time limit.

    Drop asyncio's reports of callbacks that take more than 0.1 s: on a busy machine,
    any callback may.
    """
    done = subprocess.run(
        [*before, sys.executable, "-X", "dev", "-c", program, *map(str, words)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    slow = r"^Executing <.*> took \d+\.\d+ seconds\n"
    done.stderr = re.sub(slow, "", done.stderr, flags=re.MULTILINE)
    return done


def test_the_version_is_the_library_s() -> None:
    assert flexsc.__version__ == metadata.version("flexsc")
    if not VERSION.exists():
        pytest.skip("not in the repository")
    assert metadata.version("flexsc") == VERSION.read_text().strip()


def test_the_license_is_in_the_package() -> None:
    files = metadata.files("flexsc") or []
    texts = [file.read_text() for file in files if file.name == "LICENSE"]
    assert len(texts) == 1 and "Permission is hereby granted" in texts[0]
    assert any(file.name == "py.typed" for file in files)


def test_options_are_looked_at() -> None:
    async def main() -> None:
        with pytest.raises(ValueError, match="no such engine: steam"):
            flexsc.Loop(engine="steam")
        with pytest.raises(OSError):
            flexsc.Loop(max_threads=1 << 20)
        with pytest.raises(OSError):
            flexsc.Loop(kernel_cores="none")
        loop = flexsc.Loop(
            engine="threads",
            max_threads=2,
            kernel_cores="0-1023",
            poll_us=10,
            poll_adaptive=True,
            backlog=3,
        )
        assert loop.engine == "threads"
        assert flexsc.running_loop() is loop
        with pytest.raises(RuntimeError, match="already"):
            flexsc.Loop()

    asyncio.run(main())


# With kernel_cores and uring, a kernel thread opens the file with the user that it was
# informed of.
CHANGES_USER = """
import asyncio, os, sys, flexsc
own, other = sorted(os.sched_getaffinity(0))[:2]
os.sched_setaffinity(0, {own})
async def opens():
    try:
        async with flexsc.open(sys.argv[2]):
            return True
    except PermissionError:
        return False
async def main():
    flexsc.Loop(engine=sys.argv[1], kernel_cores=str(other))
    assert await opens()
    for user in (65534, 0, 65534):
        os.seteuid(user)
        for _ in range(10):
            flexsc.identity_changed()
        for _ in range(3):
            assert await opens() == (user == 0)
asyncio.run(main())
"""
needs_two_cores = pytest.mark.skipif(
    len(os.sched_getaffinity(0)) < 2, reason="needs two cores"
)


@pytest.fixture
def private(tmp_path: Path) -> Path:
    if os.geteuid() != 0:
        pytest.skip("needs root privileges")
    path = tmp_path / "private"
    path.touch(0o600)
    return path


@needs_two_cores
def test_calls_have_the_changed_user(engine: str, private: Path) -> None:
    done = python(CHANGES_USER, engine, private)
    assert (done.returncode, done.stderr) == (0, "")


@needs_two_cores
@pytest.mark.parametrize("engine", ["uring"], indirect=True)
def test_a_changed_user_is_registered_once(engine: str, private: Path) -> None:
    """Three changes take three calls, and the last two release their predecessor."""
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("strace is missing: install strace")
    listed = private.with_name("strace")
    words = [strace, "-f", "-e", "trace=io_uring_register", "-o", str(listed)]
    done = python(CHANGES_USER, engine, private, before=words)
    if not listed.exists() or "PTRACE" in done.stderr:
        pytest.skip("strace isn't allowed to trace here")
    assert done.returncode == 0, done.stderr
    text = listed.read_text()
    assert text.count("IORING_REGISTER_PERSONALITY") == 3, text
    assert text.count("IORING_UNREGISTER_PERSONALITY") == 2, text


def test_without_an_event_loop_there_is_an_error() -> None:
    for use in (flexsc.running_loop, flexsc.Loop, flexsc.sync):
        with pytest.raises(RuntimeError, match="no running event loop"):
            use()


def test_a_loop_ends_with_its_event_loop(run: Run) -> None:
    found: list[flexsc.Loop] = []

    async def main() -> None:
        await flexsc.stat("/")
        found.append(flexsc.running_loop())

    run(main)
    before = descriptors()
    for _ in range(5):
        run(main)
    assert descriptors() == before
    assert all(loop.closed for loop in found)
    with pytest.raises(RuntimeError, match="closed"):
        found[0].engine  # noqa: B018


def test_an_event_loop_is_collected(run: Run) -> None:
    async def main() -> weakref.ref[asyncio.AbstractEventLoop]:
        await flexsc.stat("/")
        return weakref.ref(asyncio.get_running_loop())

    outer = run(main)
    gc.collect()
    assert outer() is None


# A thread leaves its event loop unclosed, and another thread collects that event loop.
COLLECTED = """
import asyncio, flexsc, gc, threading
left, collected = threading.Event(), threading.Event()

async def stat():
    await flexsc.stat("/")

def owner():
    outer = asyncio.new_event_loop()
    outer.run_until_complete(stat())
    del outer
    left.set()
    collected.wait()
    for _ in range(3):
        asyncio.run(stat())

gc.disable()
thread = threading.Thread(target=owner)
thread.start()
left.wait()
gc.collect()
collected.set()
thread.join()
"""


def test_another_thread_collects_an_event_loop() -> None:
    done = python(COLLECTED)
    assert done.returncode == 0, done.stderr
    assert "RuntimeError: the flexsc.Loop belongs to another thread" in done.stderr


def test_shutting_down_cancels(run: Run, waits: None, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    async def main() -> None:
        await flexsc.shutdown()
        pipe = await flexsc.open(tmp_path / "pipe", "rb+")
        data = bytearray(10)
        call = pipe.readinto(data)

        async def wait() -> None:
            with pytest.raises(asyncio.CancelledError):
                await call

        task = asyncio.create_task(wait())
        await asyncio.sleep(0.01)
        loop = flexsc.running_loop()
        await flexsc.shutdown()
        await task
        assert loop.closed and loop.pending == 0 and call.cancelled()
        data.clear()
        with pytest.raises(RuntimeError, match="closed"):
            pipe.read(1)
        with pytest.warns(ResourceWarning):
            del pipe
            gc.collect()
            await flexsc.stat("/")
        assert flexsc.running_loop() is not loop

    run(main)


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_an_event_loop_is_closed_with_pending_calls(
    engine: str, waits: None, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "pipe")
    data = bytearray(10)
    calls: list[flexsc.Call[int]] = []

    async def main() -> flexsc.AsyncFile:
        flexsc.Loop(engine=engine)
        pipe = await flexsc.open(tmp_path / "pipe", "rb+")
        calls.extend(pipe.readinto(data) for _ in range(100))
        await asyncio.sleep(0.01)
        calls.append(pipe.readinto(data))
        return pipe

    outer = asyncio.new_event_loop()
    pipe = outer.run_until_complete(main())
    with pytest.raises(BufferError):
        data.clear()
    outer.close()
    assert all(call.cancelled() for call in calls)
    data.clear()
    with pytest.raises(RuntimeError, match="closed"):
        pipe.read(1)


def test_two_event_loops_in_two_threads(engine: str, tmp_path: Path) -> None:
    failed: list[BaseException] = []

    async def main(name: str) -> None:
        flexsc.Loop(engine=engine)
        for i in range(200):
            async with flexsc.open(tmp_path / name, "wb+") as file:
                await file.write(f"{name}-{i}".encode())
                assert await file.pread(100, 0) == f"{name}-{i}".encode()

    def thread(name: str) -> None:
        try:
            asyncio.run(main(name))
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=thread, args=(name,)) for name in "abcd"]
    for each in threads:
        each.start()
    for each in threads:
        each.join(PATIENCE)
    assert failed == []


def test_another_thread_is_refused(run: Run, tmp_path: Path) -> None:
    async def main() -> None:
        async with flexsc.open(tmp_path / "file", "wb") as file:

            def use() -> None:
                with pytest.raises(RuntimeError, match="another thread"):
                    file.write(b"x")
                with pytest.raises(RuntimeError, match="another thread"):
                    flexsc_loop.close()

            flexsc_loop = flexsc.running_loop()
            await asyncio.to_thread(use)

    run(main)


FORK = """
import asyncio, flexsc, os, sys

async def child(file):
    for use in (lambda: file.pread(1, 0), lambda: flexsc.stat("/")):
        try:
            use()
        except RuntimeError as error:
            print(error, flush=True)

async def again():
    print((await flexsc.stat("/")).st_ino == os.stat("/").st_ino, flush=True)

async def main():
    flexsc.Loop(engine=sys.argv[1])
    async with flexsc.open("/etc/passwd") as file:
        pending = file.read(1)
        await asyncio.sleep(0)
        if not os.fork():
            try:
                child(file).send(None)
            except StopIteration:
                pass
            asyncio.events._set_running_loop(None)
            asyncio.run(again())
            sys.stdout.flush()
            os._exit(0)
        print(os.wait()[1], flush=True)
        await pending
        await file.read(1)

asyncio.run(main())
"""


def test_a_child_is_told(engine: str) -> None:
    done = python(FORK, engine)
    assert done.stdout.splitlines() == [
        "the event loop belongs to the parent process",
        "no running event loop",
        "True",
        "0",
    ], done.stderr
    assert done.returncode == 0


SIGNAL = """
import asyncio, flexsc, os, signal, sys, threading, time

async def main():
    flexsc.Loop(engine=sys.argv[1])
    pipe = await flexsc.open(sys.argv[2], "rb+")
    me = os.getpid()
    busy = time.monotonic() + 0.4
    try:
        threading.Timer(0.2, lambda: os.kill(me, signal.SIGINT)).start()
        if sys.argv[3] == "waits":
            await pipe.read(1)
        while time.monotonic() < busy:
            await asyncio.gather(*(flexsc.stat("/") for _ in range(100)))
        await asyncio.sleep(100)
    finally:
        await pipe.close()
        await asyncio.gather(*(flexsc.stat("/") for _ in range(100)))
        # gather() ended when the first call was cancelled; the others still end.
        while flexsc.running_loop().pending:
            await asyncio.sleep(0.001)
        print("closed")

try:
    asyncio.run(main())
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.parametrize("what", ["waits", "computes"])
def test_the_keyboard_interrupts(
    engine: str, waits: None, tmp_path: Path, what: str
) -> None:
    if what == "computes" and sys.version_info < (3, 11):
        pytest.skip("gather() may be interrupted while it counts, and never end")
    os.mkfifo(tmp_path / "pipe")
    done = python(SIGNAL, engine, tmp_path / "pipe", what)
    assert done.stdout.splitlines() == ["closed", "interrupted"], done.stderr
    assert done.stderr == ""


RAISES = """
import asyncio, flexsc, sys

def fail(call):
    raise KeyboardInterrupt

async def main():
    flexsc.Loop(engine=sys.argv[1])
    calls = [flexsc.stat("/") for _ in range(100)]
    calls[0].add_done_callback(fail)
    try:
        await asyncio.gather(*calls)
    finally:
        await asyncio.gather(*(flexsc.stat("/") for _ in range(100)))
        print(sum(call.done() for call in calls), flexsc.running_loop().pending)

loop = asyncio.new_event_loop()
task = loop.create_task(main())
try:
    loop.run_until_complete(task)
except KeyboardInterrupt:
    print("interrupted")
loop.run_until_complete(task)
loop.close()
"""


def test_calls_are_done_after_an_interruption(engine: str) -> None:
    done = python(RAISES, engine)
    assert done.stdout.splitlines() == ["interrupted", "100 0"], done.stderr


EXIT = """
import asyncio, flexsc, sys, threading

async def main():
    flexsc.Loop(engine=sys.argv[1])
    pipe = await flexsc.open(sys.argv[2], "rb+")
    for _ in range(100):
        kept.append(pipe.readinto(bytearray(100)))
    kept.append(pipe)
    await asyncio.sleep(0.01)

def thread():
    outer = asyncio.new_event_loop()
    outer.run_until_complete(main())
    kept.append(outer)
    started.set()
    outer.run_forever()

kept = []
started = threading.Event()
if sys.argv[3] == "main":
    outer = asyncio.new_event_loop()
    outer.run_until_complete(main())
else:
    threading.Thread(target=thread, daemon=True).start()
    started.wait()
print("end", flush=True)
"""


@pytest.mark.parametrize("where", ["main", "thread"])
def test_the_exit_doesn_t_wait_for_calls(
    engine: str, waits: None, tmp_path: Path, where: str
) -> None:
    os.mkfifo(tmp_path / "pipe")
    # The calls would last forever.
    done = python(EXIT, engine, tmp_path / "pipe", where)
    assert (done.returncode, done.stdout) == (0, "end\n"), done.stderr


def test_uvloop_runs_it_as_well(engine: str, tmp_path: Path) -> None:
    uvloop = pytest.importorskip("uvloop")

    async def main() -> flexsc.Loop:
        loop = flexsc.Loop(engine=engine)
        async with flexsc.open(tmp_path / "file", "wb+") as file:
            await file.write(b"data")
            assert await file.pread(10, 0) == b"data"
        await asyncio.gather(*(flexsc.stat("/") for _ in range(1000)))
        return loop

    loop = uvloop.run(asyncio.wait_for(main(), PATIENCE))
    assert loop.closed
