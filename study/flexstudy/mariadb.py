# SPDX-License-Identifier: MIT
"""MariaDB with its thread pool, and with a thread per connection, its default. Each
server has a copy of one prepared folder, and sysbench makes transactions.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from flexbench import clients, servers, sweep, tools
from flexbench.network import Network, visit
from flexbench.runner import Plan, progress
from flexbench.running import NATIVE, Program
from flexbench.samples import BenchError
from flexbench.tools import Load

from .threaded import Kind, Variant, variants

SPARE_CLIENTS = 20

SELECT, READ_WRITE = "point_select", "read_write"
MODES = {
    SELECT: "oltp_point_select, a row by its key",
    READ_WRITE: "oltp_read_write, 20 statements",
}

INSTALL_S = 180
PREPARE_S = 120
START_S = 30
STOP_S = 60

# MariaDB's defaults, except for the needs of a measurement. All data is in memory, and
# a commit doesn't wait for the disk.
SETTINGS = [
    "--skip-name-resolve",
    "--back-log=1000",
    "--innodb-buffer-pool-size=256M",
    "--innodb-flush-log-at-trx-commit=2",
]
TABLES = ["--tables=4", "--table-size=50000"]

# A user without other rights; any user of this machine can log in as it.
FIRST = """\
CREATE DATABASE bench;
CREATE USER 'bench'@'{host}';
GRANT ALL ON bench.* TO 'bench'@'{host}';
"""


def field(text: str, name: str) -> str:
    """The first word after a name in sysbench's output."""
    found = re.search(rf"^\s*{name}:\s+(\S+)", text, re.MULTILINE)
    if not found:
        raise BenchError(f"sysbench printed no {name}")
    return found[1]


def quantile(buckets: list[tuple[float, int]], percent: int) -> float:
    """The value that so many percent of the samples don't exceed."""
    left = sum(count for _, count in buckets) * percent / 100
    for value, count in buckets:
        left -= count
        if left <= 0:
            return value
    raise BenchError("sysbench printed no latency histogram")


def parse_sysbench(text: str) -> Load:
    """Parse sysbench's output. It prints one percentile, but its histogram contains
    all: values in milliseconds, each 2 % above the previous one.
    """
    found = re.findall(r"^ *([\d.]+) \|\** +(\d+)$", text, re.MULTILINE)
    buckets = [(float(value), int(count)) for value, count in found]
    requests = int(field(text, "transactions"))
    if requests == 0:
        raise BenchError("sysbench made no transaction")
    again = field(text, "reconnects")
    return Load(
        requests=requests,
        seconds=float(field(text, "total time").removesuffix("s")),
        mean_us=1000 * float(field(text, "avg")),
        p50_us=1000 * quantile(buckets, 50),
        p99_us=1000 * quantile(buckets, 99),
        errors="" if again == "0" else f"{again} reconnects",
    )


def run_sysbench(command: list[str], seconds: int) -> str:
    """Run sysbench; returns its output."""
    done = clients.execute("sysbench", command, seconds)
    if done.returncode:
        lines = (done.stdout + done.stderr).splitlines()
        reasons = [line for line in lines if line.startswith("FATAL")]
        reason = reasons[0] if reasons else f"exit status {done.returncode}"
        raise BenchError(f"sysbench: {reason}")
    return done.stdout


def settings(network: Network) -> list[str]:
    return [f"--bind-address={network.address}", *SETTINGS]


def as_user() -> list[str]:
    return ["--user=root"] if os.geteuid() == 0 else []


def sysbench(
    plan: Plan, program: Program, script: str, action: str, *options: str
) -> list[str]:
    every = [
        "--db-driver=mysql",
        f"--mysql-host={plan.network.address}",
        f"--mysql-port={program.port}",
        "--mysql-user=bench",
        "--mysql-db=bench",
        *TABLES,
        *options,
    ]
    return clients.placed(plan, [tools.need("sysbench"), script, *every, action])


def wait(network: Network, program: Program, process: subprocess.Popen[str]) -> None:
    """Wait until it listens, which it does when it is ready."""
    until = time.monotonic() + START_S
    while True:
        try:
            with visit(network.client):
                socket.create_connection((network.address, program.port), 1).close()
            return
        except OSError:
            if process.poll() is not None or time.monotonic() > until:
                raise program.error("didn't start") from None
            time.sleep(0.05)


@contextmanager
def started(
    plan: Plan, variant: Variant, base: Path, folder: Path, connections: int
) -> Iterator[Program]:
    """base: contains the "data" that the server starts with."""
    if folder != base:
        shutil.copytree(base / "data", folder / "data")
    name = f"MariaDB ({variant.title})"
    net = plan.network
    port = net.free_port()
    command = [*variant.before(plan), tools.need("mariadbd"), "--no-defaults"]
    command += [*as_user(), *settings(net)]
    command += [f"--datadir={folder}/data", f"--tmpdir={folder}"]
    command += [f"--socket={folder}/socket", f"--port={port}"]
    command += [f"--max-connections={connections + SPARE_CLIENTS}", *variant.arguments]
    with (
        (folder / "log").open("a+", encoding="utf-8", errors="replace") as log,
        servers.process(
            name,
            servers.pinned(servers.listed(plan.cores.server), command),
            stderr=log,
            stop_s=STOP_S,
        ) as process,
    ):
        program = Program(name, process.pid, port, log)
        wait(net, program, process)
        yield program
    if process.returncode:
        raise BenchError(f"{name} ended with status {process.returncode}")


def install(folder: Path) -> None:
    command = [tools.need("mariadb-install-db"), "--no-defaults", *as_user()]
    # Servers that shared a folder for these files would remove each other's.
    command += [f"--datadir={folder}/data", f"--tmpdir={folder}", "--skip-test-db"]
    # The command is a script: on an error the processes that it starts are killed, too.
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            said, _ = process.communicate(timeout=INSTALL_S)
        except subprocess.TimeoutExpired:
            raise BenchError("mariadb-install-db: timed out") from None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    if process.returncode:
        lines = said.strip().splitlines()
        reason = lines[-1] if lines else f"exit status {process.returncode}"
        raise BenchError(f"mariadb-install-db: {reason}")


def prepare(plan: Plan, folder: Path) -> None:
    """Prepare the data that all variants start with."""
    progress("programs: preparing a database")
    install(folder)
    first = folder / "first.sql"
    first.write_text(FIRST.format(host=plan.network.host), encoding="ascii")
    variant = Variant(NATIVE, "connection", NATIVE, [f"--init-file={first}"])
    with started(plan, variant, folder, folder, 4) as program:
        options = ["--threads=4"]
        command = sysbench(plan, program, "oltp_read_write", "prepare", *options)
        run_sysbench(command, PREPARE_S)
    progress("")


@contextmanager
def warmed(
    plan: Plan, variant: Variant, base: Path, own: Path, connections: int
) -> Iterator[Program]:
    """All data is loaded into memory first, so that no round reads from the disk."""
    with started(plan, variant, base, own, connections) as program:
        command = sysbench(plan, program, "oltp_read_write", "prewarm")
        run_sysbench(command, PREPARE_S)
        yield program


def load(
    plan: Plan, program: Program, mode: str, connections: int, seconds: int
) -> Load:
    options = [f"--threads={connections}", f"--time={seconds}", "--histogram=on"]
    command = sysbench(plan, program, f"oltp_{mode}", "run", *options)
    found = parse_sysbench(run_sysbench(command, seconds))
    if found.errors:
        raise BenchError(f"requests failed under load: {found.errors}")
    return found


KIND = Kind(
    title="MariaDB",
    unit="transactions",
    clients="clients",
    count=64,
    modes=MODES,
    tools=["taskset", "mariadbd", "mariadb-install-db", "sysbench"],
    variants=variants(pool=["--thread-handling=pool-of-threads"], connection=[]),
    prepare=prepare,
    start=warmed,
    load=load,
    sweep=sweep.DATABASE,
)
