# SPDX-License-Identifier: MIT
"""Calls as futures and coroutines: cancelling them, and the objects that they keep
alive."""

from __future__ import annotations

import asyncio
import contextvars
import errno
import gc
import os
import sys
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import flexsc
import pytest
from conftest import Run


@asynccontextmanager
async def quiet_pipe(folder: Path) -> AsyncIterator[flexsc.AsyncFile]:
    """A pipe to which only its opener writes."""
    path = folder / "pipe"
    if not path.exists():
        os.mkfifo(path)
    async with flexsc.open(path, "rb+") as pipe:
        yield pipe


def test_a_call_is_a_future_and_a_coroutine(run: Run) -> None:
    async def main() -> None:
        call = flexsc.stat("/")
        assert asyncio.isfuture(call)
        assert asyncio.iscoroutine(call)
        with pytest.raises(asyncio.InvalidStateError):
            call.result()
        assert (await call) == (await call) == call.result()
        assert call.done() and not call.cancelled() and call.exception() is None
        assert call.get_loop() is asyncio.get_running_loop()
        assert not call.cancel()
        stats = await asyncio.gather(*(flexsc.stat("/") for _ in range(10)))
        assert [st.st_ino for st in stats] == [os.stat("/").st_ino] * 10
        task = asyncio.create_task(flexsc.stat("/"))
        assert (await task).st_ino == os.stat("/").st_ino
        tasks = [asyncio.create_task(flexsc.stat(path)) for path in ("/", "/x")]
        done, pending = await asyncio.wait(tasks)
        assert done == set(tasks) and not pending
        assert isinstance(tasks[1].exception(), FileNotFoundError)
        for each in asyncio.as_completed([flexsc.stat("/"), flexsc.lstat("/")]):
            assert (await each).st_ino == os.stat("/").st_ino
        assert (await asyncio.shield(flexsc.stat("/"))).st_ino == os.stat("/").st_ino
        failed = flexsc.stat("/nowhere")
        found = await asyncio.gather(failed, return_exceptions=True)
        assert isinstance(found[0], FileNotFoundError)
        assert failed.exception() is found[0]
        with pytest.raises(FileNotFoundError):
            await asyncio.gather(flexsc.stat("/"), flexsc.stat("/nowhere"))

    run(main)


def test_several_wait_for_one_call(run: Run, waits: None, tmp_path: Path) -> None:
    async def main() -> None:
        async with quiet_pipe(tmp_path) as pipe:
            read = pipe.read(10)

            async def wait() -> bytes:
                return await read

            tasks = [asyncio.create_task(wait()) for _ in range(5)]
            seen: list[object] = []
            read.add_done_callback(seen.append)
            gone: list[object] = []
            read.add_done_callback(gone.append)
            assert read.remove_done_callback(gone.append) == 1
            await asyncio.sleep(0)
            await pipe.write(b"x")
            assert await asyncio.gather(*tasks) == [b"x"] * 5
            assert (seen, gone) == ([read], [])

    run(main)


def test_tasks_keep_their_contexts(run: Run) -> None:
    number = contextvars.ContextVar("number", default=-1)

    async def one(i: int) -> None:
        number.set(i)
        await flexsc.stat("/")
        assert number.get() == i

    async def main() -> None:
        await asyncio.gather(*(one(i) for i in range(100)))
        assert number.get() == -1

    run(main)


def test_what_a_callback_raises_is_reported(run: Run) -> None:
    reported: list[object] = []

    def fail(call: object) -> None:
        raise ZeroDivisionError

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, said: reported.append(said["exception"]))
        call = flexsc.stat("/")
        call.add_done_callback(fail)
        await flexsc.stat("/")
        await call

    run(main)
    assert [type(error) for error in reported] == [ZeroDivisionError]


def test_others_run_between_the_calls_of_a_task(run: Run) -> None:
    turns = 0

    async def main() -> None:
        nonlocal turns
        loop = asyncio.get_running_loop()

        def turn() -> None:
            nonlocal turns
            turns += 1
            loop.call_soon(turn)

        loop.call_soon(turn)
        for _ in range(100):
            await flexsc.stat("/")

    run(main)
    assert turns >= 100


def test_a_cancelled_task_ends_its_call(run: Run, waits: None, tmp_path: Path) -> None:
    async def main() -> None:
        async with quiet_pipe(tmp_path) as pipe:

            async def read() -> bytes:
                return await pipe.read(10)

            task = asyncio.create_task(read())
            await asyncio.sleep(0.01)
            task.cancel("enough")
            with pytest.raises(asyncio.CancelledError) as found:
                await task
            if sys.version_info >= (3, 11):
                assert found.value.args == ("enough",)
            assert flexsc.running_loop().pending == 0
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(pipe.read(10), 0.01)
            call = pipe.read(10)
            assert call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            assert call.cancelled()
            # The cancelled reads have consumed nothing.
            await pipe.write(b"still here")
            assert await pipe.read(100) == b"still here"

    run(main)


def test_a_buffer_is_quiet_after_the_cancellation(
    run: Run, waits: None, tmp_path: Path
) -> None:
    async def main() -> None:
        async with quiet_pipe(tmp_path) as pipe:
            data = bytearray(100)
            call = pipe.readinto(data)
            await asyncio.sleep(0.01)
            with pytest.raises(BufferError):
                data.extend(b"it is in use")
            references = sys.getrefcount(data)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            assert sys.getrefcount(data) < references
            data.extend(b"it is free")

    run(main)


def test_a_forgotten_call_keeps_its_buffer(
    run: Run, waits: None, tmp_path: Path
) -> None:
    async def main() -> None:
        async with quiet_pipe(tmp_path) as pipe:
            for _ in range(100):
                pipe.readinto(bytearray(4096))
                pipe.read(4096)
            gc.collect()
            assert flexsc.running_loop().pending == 200
            await pipe.write(b"x" * 100)
            while flexsc.running_loop().pending == 200:
                await asyncio.sleep(0.001)
                gc.collect()

    run(main)


def test_a_cancelled_open_leaves_no_descriptor(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    async def main() -> None:
        await flexsc.stat("/")
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(200):
            call = flexsc.open(tmp_path / "file")
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
        await flexsc.stat("/")
        assert len(os.listdir("/proc/self/fd")) <= before

    run(main)


def test_nothing_is_left_behind(run: Run, tmp_path: Path) -> None:
    path = str(tmp_path / "file")
    data = bytearray(b"data" * 100)

    async def each() -> None:
        async with flexsc.open(path, "wb+") as file:
            await file.write(data)
            await file.readinto(data)
            await file.pread(100, 0)
            await file.stat()
        await flexsc.listdir(tmp_path)
        with pytest.raises(FileNotFoundError):
            await flexsc.stat(path + "x")
        with pytest.raises(FileNotFoundError):
            await flexsc.rename(path + "x", path + "y")
        call = flexsc.stat(path)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    async def main() -> None:
        for _ in range(100):
            await each()
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        objects = len(gc.get_objects())
        references = sys.getrefcount(data), sys.getrefcount(path)
        for _ in range(600):
            await each()
        gc.collect()
        assert (sys.getrefcount(data), sys.getrefcount(path)) == references
        assert len(gc.get_objects()) < objects + 100
        # Python's own caches of free objects take some memory.
        assert tracemalloc.get_traced_memory()[0] - before < 60_000

    tracemalloc.start()
    try:
        run(main)
    finally:
        tracemalloc.stop()


Context = dict[str, Any]


def test_an_error_that_nothing_retrieves_is_reported(run: Run, tmp_path: Path) -> None:
    async def main() -> list[Context]:
        reports: list[Context] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: reports.append(context))
        full = await flexsc.open("/dev/full", "wb")
        full.write(b"important")
        flexsc.rename(tmp_path / "nothing", tmp_path / "other")
        await full.stat()
        while len(reports) < 2:
            await asyncio.sleep(0.001)
            gc.collect()
        await full.close()
        return reports

    reports = run(main)
    assert {context["message"] for context in reports} == {
        "flexsc.Call exception was never retrieved"
    }
    assert {context["exception"].errno for context in reports} == {
        errno.ENOSPC,
        errno.ENOENT,
    }
    assert all(isinstance(context["future"], flexsc.Call) for context in reports)


def test_an_error_that_was_retrieved_is_not_reported(run: Run, tmp_path: Path) -> None:
    async def main() -> list[Context]:
        reports: list[Context] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: reports.append(context))
        nothing = tmp_path / "nothing"
        with pytest.raises(FileNotFoundError):
            await flexsc.stat(nothing)
        await asyncio.gather(
            flexsc.stat(nothing), flexsc.unlink(nothing), return_exceptions=True
        )
        asked = flexsc.rmdir(nothing)
        while not asked.done():
            await asyncio.sleep(0.001)
        assert isinstance(asked.exception(), FileNotFoundError)
        cancelled = flexsc.rmdir(nothing)
        cancelled.cancel()
        while not cancelled.done():
            await asyncio.sleep(0.001)
        del asked, cancelled
        gc.collect()
        await asyncio.sleep(0)
        return reports

    assert run(main) == []
