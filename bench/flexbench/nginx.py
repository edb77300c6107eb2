# SPDX-License-Identifier: MIT
"""nginx with the module and without it: the same program, the same configuration but
for two lines, one worker on the same core, alternately.

    plain    the file is opened for each request
    kept     the module keeps it open; stock nginx opens it
    cached   nginx keeps it open
    one      the same as plain and kept, by one client
    new      the same with a connection for each request

All but those are in rounds, as serve's processor time is; new connections need
a client on another core, and the worker's clock.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from . import clients, serve, servers, table, tools
from .compare import ratio
from .runner import Plan, measure_all
from .samples import BenchError, Json, Run, Settings
from .servers import Module, Server

BENCH = "nginx"

NEW = 64
KEEP = 1000
WARM_UP_S = 1
MODES = {
    "plain": "opening the file each time",
    "kept": "keeping the file open",
    "cached": "with open_file_cache",
    "one": "opening the file each time",
    "kept-one": "keeping the file open",
    "new": "each for one request, opening the file",
    "kept-new": "each for one request, keeping the file open",
}
VARIANTS = ("module", "stock")


def module(flexsc: str) -> Path:
    """Beside the command that was built, or where it is installed."""
    above = Path(tools.need(flexsc)).resolve().parents
    name = "ngx_http_flexsc_module.so"
    places = [above[2] / "nginx", *above[1].glob("lib*/nginx/modules")]
    places += above[1].glob("lib/*/nginx/modules")
    for place in places:
        if (place / name).is_file():
            return place / name
    raise BenchError(f"there is no {name}: build it where nginx-dev is installed")


def cpu_us(pid: int) -> float:
    """What the worker, which is one thread, has had of its core."""
    text = Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii")
    return int(text.split()[0]) / 1000


def by_new_connections(plan: Plan, server: Server, seconds: int) -> list[float]:
    url = server.url + serve.FILE
    command = clients.wrk(plan.cores.load, NEW, seconds, url)
    before = cpu_us(server.pid)
    found = clients.run_wrk([*command, "-H", "Connection: close"], seconds)
    return [(cpu_us(server.pid) - before) / found.requests]


def connections(plan: Plan, mode: str) -> int:
    if mode.endswith("new"):
        return NEW
    return 1 if mode.endswith("one") else plan.connections or serve.CONNECTIONS


def by_rounds(plan: Plan, mode: str, server: Server) -> list[float]:
    found = serve.in_rounds(plan, server, connections(plan, mode))
    return list(found["cpu_us"])


def round_of(plan: Plan, mode: str, server: Server) -> Json:
    if mode.endswith("new"):
        found = by_new_connections(plan, server, plan.seconds)
    else:
        found = by_rounds(plan, mode, server)
    return {"samples": {"cpu_us": found}, "counts": {}}


@contextmanager
def both(plan: Plan, folder: Path, root: Path, mode: str) -> Iterator[list[Server]]:
    core = plan.cores.measured
    cached = mode == "cached"
    for name in VARIANTS:
        (folder / name).mkdir(exist_ok=True)
    ours = Module(module(plan.flexsc), KEEP if mode.startswith("kept") else 0)
    with (
        servers.nginx(folder / "module", root, core, cached, ours) as with_module,
        servers.nginx(folder / "stock", root, core, cached) as stock,
    ):
        yield [with_module, stock]


def compare(run: Run, plan: Plan, mode: str, found: list[Server]) -> None:
    by_name = dict(zip(VARIANTS, found, strict=True))
    variants: list[Settings] = [
        {
            "variant": name,
            "mode": mode,
            "connections": connections(plan, mode),
            "bytes": plan.bytes,
        }
        for name in VARIANTS
    ]
    for server in found:
        by_new_connections(plan, server, WARM_UP_S)
    measure_all(
        run,
        plan,
        BENCH,
        variants,
        lambda settings: round_of(plan, mode, by_name[str(settings["variant"])]),
    )


def measure(run: Run, plan: Plan) -> None:
    for program in ("nginx", "wrk", "taskset"):
        tools.need(program)
    content = bytes(i % 251 for i in range(plan.bytes))
    with tempfile.TemporaryDirectory(prefix="flexbench-") as name:
        folder = Path(name)
        root = folder / "root"
        root.mkdir()
        (root / serve.FILE).write_bytes(content)
        for mode in MODES:
            with both(plan, folder, root, mode) as found:
                for server in found:
                    servers.check(server, serve.FILE, content)
                compare(run, plan, mode, found)


def show(run: Run) -> list[str]:
    rows = []
    for mode, title in MODES.items():
        ours = run.find(BENCH, mode=mode, variant="module")
        theirs = run.find(BENCH, mode=mode, variant="stock")
        if not ours or not theirs:
            continue
        settings = ours.settings
        rows.append(
            [
                f"{settings['bytes']} bytes, {settings['connections']} connections, "
                f"{title}",
                table.number(ours.median("cpu_us")),
                table.number(theirs.median("cpu_us")),
                table.ratio(ratio(theirs.series("cpu_us"), ours.series("cpu_us"))),
            ]
        )
    if not rows:
        return []
    head = ["processor time/request, us", "module", "stock", "stock/module"]
    return ["nginx with the module and without\n" + table.table(head, rows)]
