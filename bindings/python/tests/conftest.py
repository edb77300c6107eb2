# SPDX-License-Identifier: MIT
"""Fixtures of all tests: the engines that work here, and a way to run with one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import flexsc
import pytest

T = TypeVar("T")
Main = Callable[[], Coroutine[Any, Any, T]]
Run = Callable[[Main[Any]], Any]
ENGINES = ("uring", "threads", "sync")
PATIENCE = 60.0


async def bounded(main: Main[T], engine: str) -> T:
    """Run main() with the engine, with a time limit."""
    loop = flexsc.Loop(engine=engine)
    assert loop.engine == engine
    return await asyncio.wait_for(main(), PATIENCE)


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    """Every engine that works here."""
    name = str(request.param)

    async def tried() -> None:
        flexsc.Loop(engine=name)

    try:
        asyncio.run(tried())
    except OSError as error:
        pytest.skip(f"no engine {name} here: {error}")
    return name


@pytest.fixture
def run(engine: str) -> Run:
    """Run main() in a new event loop."""
    return lambda main: asyncio.run(bounded(main, engine))


@pytest.fixture
def waits(engine: str) -> None:
    """For tests of calls that wait: the engine sync would block the loop's thread."""
    if engine == "sync":
        pytest.skip("sync waits itself")
