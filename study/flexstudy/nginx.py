# SPDX-License-Identifier: MIT
"""nginx with and without the module: the same program, the same configuration except
for the module's lines, a worker per core on the same cores, alternately.

    plain    the file is opened for each request
    kept     the module keeps the file open; stock nginx opens it
    cached   nginx keeps the file open
    one, kept-one    plain and kept, with one client
    new, kept-new    plain and kept, with a connection for each request
    tls      plain over TLS, with a certificate made for the server
    proxy    a stock nginx on the clients' cores has the file
    100k, 1m plain with larger files

Most modes are loaded by bench --raw rounds, like serve for its processor time. New
connections, TLS and several cores need wrk, on the clients' cores; then the workers'
processor clocks are read before and after wrk.

With several cores there is a further variant (ATC, figures 7 and 8): one worker with the
module, whose calls execute on the second half of the cores. It is compared with one stock
worker, and with a stock worker per core.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from flexbench import clients, pair, servers, table, tools
from flexbench.compare import ratio
from flexbench.runner import Plan, chosen
from flexbench.running import executing
from flexbench.samples import (
    BenchError,
    Json,
    Measurement,
    Run,
    Settings,
    by_cores,
)
from flexbench.servers import Module, Server, Site

BENCH = "nginx"
MODULE, STOCK = servers.WITH_MODULE, "stock"
REMOTE, ALONE = "remote", "stock-one"  # one worker
CERTIFICATE_S = 30

FEW, MANY = 16, 64
KEEP = 1000
CLOSE = ["-H", "Connection: close"]


@dataclass(frozen=True)
class Mode:
    """One kind of load for nginx. 0 connections or bytes: the plan's value."""

    title: str
    keep: int = 0  # number of files that the module keeps open
    cached: bool = False
    connections: int = 0
    bytes: int = 0
    wrk: Sequence[str] | None = (
        None  # options of wrk; None: bench --raw rounds loads it
    )
    tls: bool = False
    proxy: bool = False

    @property
    def series(self) -> str:
        """The kernel sends a part of a long answer in the client's time, which must
        count too."""
        return "both_us" if self.bytes else "cpu_us"


OPENED, KEPT = "opening the file each time", "keeping the file open"
LARGE = "opening the file each time; with the client's time"
MODES = {
    "plain": Mode(OPENED),
    "kept": Mode(KEPT, keep=KEEP),
    "cached": Mode("with open_file_cache", cached=True),
    "one": Mode(OPENED, connections=1),
    "kept-one": Mode(KEPT, keep=KEEP, connections=1),
    "new": Mode(f"each for one request, {OPENED}", connections=MANY, wrk=CLOSE),
    "kept-new": Mode(
        f"each for one request, {KEPT}", keep=KEEP, connections=MANY, wrk=CLOSE
    ),
    "tls": Mode(f"TLS, {OPENED}", connections=MANY, wrk=[], tls=True),
    "proxy": Mode("asking another nginx", connections=MANY, proxy=True),
    "100k": Mode(LARGE, connections=FEW, bytes=100 << 10),
    "1m": Mode(LARGE, connections=FEW, bytes=1 << 20),
}


def connections(plan: Plan, mode: Mode) -> int:
    return mode.connections or plan.connections or pair.CONNECTIONS


def size(plan: Plan, mode: Mode) -> int:
    return mode.bytes or plan.bytes


def by_wrk(
    plan: Plan, mode: Mode, server: Server, seconds: int
) -> dict[str, list[float]]:
    url, count = server.url + pair.FILE, connections(plan, mode)
    command = clients.wrk(plan, count, seconds, url, mode.wrk or [])
    before = servers.clock_s(server)
    found = clients.run_wrk(command, seconds)
    spent = servers.clock_s(server) - before
    return {
        "cpu_us": [1e6 * spent / found.requests],
        table.RATE: [found.requests_per_s],
        "mean_us": [found.mean_us],
        "p50_us": [found.p50_us],
        "p99_us": [found.p99_us],
    }


def round_of(plan: Plan, mode: Mode, server: Server, seconds: int) -> Json:
    # A client on one core can't load several workers evenly.
    if mode.wrk is not None or len(plan.cores.server) > 1:
        return {"samples": by_wrk(plan, mode, server, seconds), "counts": {}}
    count = connections(plan, mode)
    found = pair.in_rounds(plan, server, count, size(plan, mode), seconds)
    return {"samples": found, "counts": {}}


def certificate(folder: Path, address: str) -> Path:
    """Make a self-signed certificate for the server's address, and a key in the same
    folder."""
    path = folder / "certificate"
    command = [tools.need("openssl"), "req", "-x509", "-nodes", "-days", "2"]
    command += ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    command += ["-subj", f"/CN={address}", "-addext", f"subjectAltName=IP:{address}"]
    command += ["-out", str(path), "-keyout", f"{path}.key"]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=CERTIFICATE_S, check=False
    )
    if done.returncode:
        raise BenchError(f"openssl: {' '.join(done.stderr.split())[-200:]}")
    return path


def one_worker(plan: Plan, site: Site, module: Module) -> dict[str, Site]:
    """The variants with one worker on the server's cores; none if it has one core."""
    if not plan.cores.more:
        return {}
    remote = replace(module, kernel_cores=executing(plan))
    return {REMOTE: replace(site, module=remote), ALONE: site}


def check_calls(server: Server, folder: Path) -> None:
    """Raise BenchError if a worker couldn't use the module as configured."""
    log = (folder / server.name / "error.log").read_text(errors="replace")
    for line in log.splitlines():
        if ": flexsc" in line:
            raise BenchError(f"{server.name}: {line}")


@contextmanager
def started(plan: Plan, folder: Path, site: Site, mode: Mode) -> Iterator[list[Server]]:
    with ExitStack() as stack:
        if mode.proxy:
            behind = stack.enter_context(
                servers.nginx(
                    *(plan, "the nginx behind", folder / "behind", site),
                    servers.listed(plan.cores.load),
                )
            )
            site = replace(site, backend=urlsplit(behind.url).netloc)
        module = Module(servers.module(plan.flexsc), mode.keep)
        variants: dict[str, tuple[Site, str | None]] = {
            MODULE: (replace(site, module=module), None),
            STOCK: (site, None),
        }
        cores = servers.listed(plan.cores.server)
        for name, one in one_worker(plan, site, module).items():
            variants[name] = one, cores
        yield [
            stack.enter_context(servers.nginx(plan, name, folder / name, one, core))
            for name, (one, core) in variants.items()
        ]


def measure_one(run: Run, plan: Plan, name: str) -> None:
    mode = MODES[name]
    with pair.file_of(size(plan, mode)) as folder:
        root = folder / "root"
        trusted = certificate(folder, plan.network.address) if mode.tls else None
        site = Site(root, cached=mode.cached, certificate=trusted)
        content = (root / pair.FILE).read_bytes()
        with started(plan, folder, site, mode) as found:
            for server in found:
                servers.check(plan.network, server, pair.FILE, content, trusted)
                check_calls(server, folder)
            settings: Settings = {
                "mode": name,
                "connections": connections(plan, mode),
                "bytes": len(content),
            }
            pair.compare(
                *(run, plan, BENCH, found, settings),
                lambda server, seconds: round_of(plan, mode, server, seconds),
            )


def parse(words: Sequence[str]) -> list[str]:
    return chosen(BENCH, words, MODES)


def parse_several(words: Sequence[str]) -> list[str]:
    """The modes for --cores, without large files, which need the client's time, too."""
    small = [name for name, mode in MODES.items() if not mode.bytes]
    for word in words:
        if word not in small:
            known = ", ".join(small)
            raise BenchError(f"--cores doesn't apply to {word}, only to {known}")
    return list(words) or small


def measure(run: Run, plan: Plan) -> None:
    names = parse_several(plan.words) if plan.numbers else parse(plan.words)
    servers.module(plan.flexsc)
    for program in ("nginx", "taskset"):
        tools.need(program)
    for name in names:
        try:
            measure_one(run, plan, name)
        except BenchError as error:
            run.note(f"{BENCH}: {name}: {error}")


def row(found: list[Measurement], name: str) -> list[str]:
    both = [m for m in found if m.settings["mode"] == name]
    ours, theirs = (
        next((m for m in both if m.settings["variant"] == variant), None)
        for variant in (MODULE, STOCK)
    )
    if not ours or not theirs:
        return []
    mode, settings = MODES[name], ours.settings
    pairs = ours.series(mode.series), theirs.series(mode.series)
    return [
        f"{name}: {settings['bytes']} bytes, {settings['connections']} connections, "
        f"{mode.title}",
        table.number(ours.median(mode.series)),
        table.number(theirs.median(mode.series)),
        table.ratio(ratio(pairs[1], pairs[0])),
    ]


ROWS = [
    ("requests/s", table.RATE),
    ("latency p50, us", "p50_us"),
    ("latency p99, us", "p99_us"),
    ("processor time/request, us", "cpu_us"),
]


def show_remote(found: list[Measurement], name: str) -> list[str]:
    """The table of one worker with its calls on other cores; none if not measured."""
    at = {str(m.settings["variant"]): m for m in found if m.settings["mode"] == name}
    every = [at[variant] for variant in (REMOTE, ALONE, STOCK) if variant in at]
    if len(every) < 3:
        return []
    ours, *others = every
    lines = [
        [title, *(table.number(m.median(series)) for m in every)]
        + [table.ratio(ratio(ours.series(series), m.series(series))) for m in others]
        for title, series in ROWS
    ]
    title = (
        f"nginx, one worker with the module, calls on other cores; {name}, "
        f"{ours.settings['connections']} connections, {table.how(ours)}\n"
    )
    workers = f"stock, {ours.settings['cores']} workers"
    head = [name, "one worker", "stock, one worker", workers, "one/one", "one/all"]
    return [title + table.table(head, lines)]


def show_one(found: list[Measurement]) -> list[str]:
    rows = [cells for name in MODES if (cells := row(found, name))]
    if not rows:
        return []
    title = f"nginx with the module and without; {table.how(found[0])}\n"
    head = ["processor time/request, us", MODULE, STOCK, "stock/module"]
    tables = [title + table.table(head, rows)]
    for name in MODES:
        tables += show_remote(found, name)
    return tables


def show(run: Run) -> list[str]:
    every = by_cores(run.of(BENCH)).values()
    return [part for found in every for part in show_one(found)]
