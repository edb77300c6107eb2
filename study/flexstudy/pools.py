# SPDX-License-Identifier: MIT
"""Small HTTP servers whose listener hands requests to a pool of threads: one in C++
(epoll, a mutex and a condition variable), one in Java (a selector, an executor).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from flexbench import clients, examples, servers, sweep, tools
from flexbench.runner import Plan
from flexbench.running import Program
from flexbench.servers import Server
from flexbench.tools import Load

from .threaded import Kind, Variant, variants

PAGE = (26 * b"A page that was in memory all the time.\n")[:1024]


def cpp(plan: Plan) -> list[str]:
    return [str(examples.find(plan.flexsc, "http-pool"))]


def java(plan: Plan) -> list[str]:
    return [
        tools.need("java"),
        str(examples.find(plan.flexsc, "Pool.java", "../study")),
    ]


@contextmanager
def started(
    command: Callable[[Plan], list[str]],
    plan: Plan,
    variant: Variant,
    base: Path,
    own: Path,
    connections: int,
) -> Iterator[Program]:
    address = plan.network.address
    args = [*variant.before(plan), *command(plan), "0", address]
    name = f"{Path(args[-3]).name} ({variant.title})"
    cores = servers.listed(plan.cores.server)
    with examples.started(name, cores, args) as program:
        server = Server(name, f"http://{address}:{program.port}/", program.pid)
        servers.check(plan.network, server, "", PAGE)
        yield program


def load(
    plan: Plan, program: Program, mode: str, connections: int, seconds: int
) -> Load:
    url = f"http://{plan.network.address}:{program.port}/"
    return clients.run_wrk(clients.wrk(plan, connections, seconds, url), seconds)


def kind(title: str, tool: str, command: Callable[[Plan], list[str]]) -> Kind:
    return Kind(
        title=title,
        unit="requests",
        clients="connections",
        count=64,
        modes={"kept": "connections that are kept"},
        tools=["taskset", "wrk", tool],
        variants=variants(pool=[]),
        start=partial(started, command),
        load=load,
        sweep=sweep.WEB,
    )
