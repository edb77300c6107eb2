# SPDX-License-Identifier: MIT
"""What a file call costs: by this package, by threads, and by blocking.

    python bench.py [--calls N] [--tasks N] [--rounds N] [--core N] [--uvloop]

Small files that are cached; a number of tasks at a time. The ways take turns on
one core; what is printed is the median of the processor time for one operation
in microseconds, of all threads, the kernel's part included, and of the time
that passes. "read" opens a file, reads it and closes it.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import os
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from io import FileIO
from pathlib import Path
from typing import Any

import flexsc

Operation = Callable[[str], Awaitable[object]]
FILES = 100
SIZE = 4096


async def read_flexsc(path: str) -> bytes:
    file = await flexsc.open(path)
    data = await file.read(SIZE)
    await file.close()
    return data


async def in_executor(function: Callable[..., Any], *words: object) -> Any:
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(None, partial(function, *words))


def open_plainly(path: str) -> FileIO:
    return open(path, "rb", buffering=0)


async def read_executor(path: str) -> bytes:
    file = await in_executor(open_plainly, path)
    data: bytes = await in_executor(file.read, SIZE)
    await in_executor(file.close)
    return data


async def read_thread(path: str) -> bytes:
    file = await asyncio.to_thread(open_plainly, path)
    data = await asyncio.to_thread(file.read, SIZE)
    await asyncio.to_thread(file.close)
    return data


async def read_thread_once(path: str) -> bytes:
    return await asyncio.to_thread(read_plainly, path)


async def stat_thread(path: str) -> os.stat_result:
    return await asyncio.to_thread(os.stat, path)


def read_plainly(path: str) -> bytes:
    with open_plainly(path) as file:
        return file.read(SIZE)


async def read_blocking(path: str) -> bytes:
    return read_plainly(path)


async def stat_blocking(path: str) -> os.stat_result:
    return os.stat(path)


# By name: the operation, and the engine if it is ours.
STAT: dict[str, tuple[Operation, str]] = {
    "flexsc, uring": (flexsc.stat, "uring"),
    "flexsc, threads": (flexsc.stat, "threads"),
    "run_in_executor": (partial(in_executor, os.stat), ""),
    "to_thread": (stat_thread, ""),
    "blocking": (stat_blocking, ""),
}
READ: dict[str, tuple[Operation, str]] = {
    "flexsc, uring": (read_flexsc, "uring"),
    "flexsc, threads": (read_flexsc, "threads"),
    "run_in_executor": (read_executor, ""),
    "to_thread": (read_thread, ""),
    "to_thread, once": (read_thread_once, ""),
    "blocking": (read_blocking, ""),
}


async def take(paths: Iterator[str], operation: Operation) -> None:
    for path in paths:
        await operation(path)


async def measure(
    operation: Operation, engine: str, paths: list[str], tasks: int
) -> tuple[float, float]:
    if engine:
        flexsc.Loop(engine=engine)
    await take(iter(paths[:FILES]), operation)
    work = iter(paths)
    begin = time.process_time(), time.monotonic()
    await asyncio.gather(*(take(work, operation) for _ in range(tasks)))
    end = time.process_time(), time.monotonic()
    each = [(b - a) * 1e6 / len(paths) for a, b in zip(begin, end, strict=True)]
    return each[0], each[1]


def rounds(
    ways: dict[str, tuple[Operation, str]],
    paths: list[str],
    words: argparse.Namespace,
    run: Callable[[Any], Any],
) -> None:
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for _ in range(words.rounds):
        for name, (operation, engine) in ways.items():
            found[name].append(run(measure(operation, engine, paths, words.tasks)))
    for name, times in found.items():
        processor, passed = (
            statistics.median(kind) for kind in zip(*times, strict=True)
        )
        print(f"{name:18}{processor:8.2f}{passed:8.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description="What a file call costs.")
    parser.add_argument("--calls", type=int, default=10000)
    parser.add_argument("--tasks", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)))
    parser.add_argument("--uvloop", action="store_true")
    words = parser.parse_args()
    run: Callable[[Any], Any] = asyncio.run
    if words.uvloop:
        run = importlib.import_module("uvloop").run
    os.sched_setaffinity(0, {words.core})
    with tempfile.TemporaryDirectory() as folder:
        names = [str(Path(folder) / str(i)) for i in range(FILES)]
        for name in names:
            Path(name).write_bytes(bytes(SIZE))
        paths = [names[i % FILES] for i in range(words.calls)]
        for what, ways in (("stat", STAT), ("read", READ)):
            print(f"{what:18}{'cpu us':>8}{'us':>8}")
            rounds(ways, paths, words, run)


if __name__ == "__main__":
    main()
