# SPDX-License-Identifier: MIT
"""Two servers of one file on the same cores, loaded by turns: the common part of the
benches serve and nginx.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from . import clients
from .runner import Plan, measure_all
from .samples import Json, Run, Settings
from .servers import Server

FILE = "index.html"
CONNECTIONS = 128
WARM_UP_S = 1


@contextmanager
def file_of(size: int) -> Iterator[Path]:
    """A folder with a subfolder "root" that contains a file of that size."""
    with tempfile.TemporaryDirectory(prefix="flexbench-") as name:
        folder = Path(name)
        root = folder / "root"
        root.mkdir()
        (root / FILE).write_bytes(bytes(i % 251 for i in range(size)))
        yield folder


def in_rounds(
    plan: Plan, server: Server, connections: int, size: int, seconds: int
) -> dict[str, list[float]]:
    """Samples of the server's cost of a request, measured by bench --raw rounds."""
    settings: Settings = {
        "port": int(server.url.rpartition(":")[2].rstrip("/")),
        "pid": server.pid,
        "mode": "http",
        "seconds": seconds,
        "connections": connections,
        "bytes": size,
    }
    return dict(clients.rounds(plan, settings)["samples"])


def compare(
    run: Run,
    plan: Plan,
    bench: str,
    pair: list[Server],
    settings: Settings,
    once: Callable[[Server, int], Json],
) -> None:
    """Load both servers by turns. once: loads one server for so many seconds."""
    by_name = {server.name: server for server in pair}
    variants: list[Settings] = [
        {
            "variant": name,
            **settings,
            "cores": len(plan.cores.server),
            "seconds": plan.seconds,
            "network": plan.network.kind,
        }
        for name in by_name
    ]
    for server in pair:
        once(server, WARM_UP_S)
    measure_all(
        run,
        plan,
        bench,
        variants,
        lambda s: once(by_name[str(s["variant"])], plan.seconds),
    )
