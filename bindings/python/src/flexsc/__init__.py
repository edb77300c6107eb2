# SPDX-License-Identifier: MIT
"""asyncio's file calls by libflexsc, without a thread for each.

A call is posted to a loop of FlexSC that is embedded in the running event loop, and
awaited:

    async with flexsc.open("file") as file:
        data = await file.read()
    size = (await flexsc.stat("file")).st_size

Functions return a Call. Await it, once or several times, make a task of it, or pass it
to asyncio.gather() and similar functions. A Call is posted when it is made, and runs
whether or not it is awaited.
"""

from __future__ import annotations

import asyncio

from flexsc._flexsc import (
    AsyncFile,
    Call,
    Loop,
    Opening,
    __version__,
    _close_running,
    identity_changed,
    link,
    listdir,
    lstat,
    mkdir,
    open,
    readlink,
    rename,
    rmdir,
    running_loop,
    stat,
    symlink,
    sync,
    unlink,
)

__all__ = [
    "AsyncFile",
    "Call",
    "Loop",
    "Opening",
    "__version__",
    "identity_changed",
    "link",
    "listdir",
    "lstat",
    "mkdir",
    "open",
    "readlink",
    "rename",
    "rmdir",
    "running_loop",
    "shutdown",
    "stat",
    "symlink",
    "sync",
    "unlink",
]


async def shutdown() -> None:
    """Cancel the running event loop's calls, and close its Loop.

    Closing the event loop does the same.
    """
    _close_running()
    await asyncio.sleep(0)
