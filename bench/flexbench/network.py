# SPDX-License-Identifier: MIT
"""Networks between clients and a server on one machine.

    lo          the loopback interface. The kernel receives a packet on its
                sender's core
    veth        two network namespaces with a pair of interfaces. The kernel
                receives a packet on its sender's core
    rps         veth, and each side receives on its own cores (RPS)
    napi        veth, and each side receives in a kernel thread on each of its cores
    100mbit     veth, with 100 Mbit/s in each direction

All but lo need root. A network exists for the duration of a with-block. Its namespaces
get Genevès' settings for web servers, as far as these exist per namespace.
"""

from __future__ import annotations

import ctypes
import os
import random
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from . import machine, tools
from .machine import Cores
from .samples import BenchError

LO, VETH, RPS, NAPI, SLOW = "lo", "veth", "rps", "napi", "100mbit"
KINDS = [LO, VETH, RPS, NAPI, SLOW]
TIMEOUT = 10
PORTS = range(10000, 32768)

SERVER, CLIENT, CLIENTS = "10.213.0.1", "10.213.0.2", "10.213.1"
NET = "10.213.0.0/16"
# Drops a packet that would wait for more than 200 ms in the interface's queue.
RATE = ["tbf", "rate", "100mbit", "burst", "32kb", "latency", "200ms"]

# Without this queue, packets are dropped when the receiver's ring is full.
QUEUE = ["pfifo", "limit", "10000"]
PREFERRED = -20

# The host's congestion control may pace by timers, as bbr does without the queue fq. A
# namespace can't set every algorithm as its default, but a route in it can select any.
CONGESTION = ["congctl", "cubic"]
REUSE = {"net.ipv4.tcp_tw_reuse": "1"}

PROC = Path("/proc")
NAMESPACES = Path("/run/netns")
CLONE_NEWNET = 0x40000000


def enter(namespace: IO[bytes]) -> None:
    """Sockets that this thread makes from now on are in the namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(namespace.fileno(), CLONE_NEWNET):
        reason = os.strerror(ctypes.get_errno())
        raise BenchError(f"setns: {namespace.name}: {reason}")


@contextmanager
def visit(side: Sequence[str]) -> Iterator[None]:
    """Sockets that this thread makes in the with-block are on that side of a Network:
    its server list or its client list.
    """
    if not side:
        yield
        return
    with (
        Path("/proc/thread-self/ns/net").open("rb") as here,
        (NAMESPACES / side[-1]).open("rb") as there,
    ):
        enter(there)
        try:
            yield
        finally:
            enter(here)


@dataclass(frozen=True)
class Network:
    """server, client: words to put in front of a command, so that it runs on that side.
    settings: the settings of the server's side.
    """

    kind: str = LO
    server: list[str] = field(default_factory=list)
    client: list[str] = field(default_factory=list)
    address: str = "127.0.0.1"  # the server's address
    host: str = "127.0.0.1"  # address of clients that don't choose one
    source: str = "127.0.0.2"  # first source address, for clients that set theirs
    settings: dict[str, str] = field(default_factory=dict)

    def free_port(self) -> int:
        """A TCP port that is free on the server's side.

        The kernel gives no client a port of PORTS. Otherwise a client could get the port
        before the server binds it.
        """
        for port in random.sample(PORTS, 100):
            with suppress(OSError), visit(self.server), socket.socket() as probe:
                probe.bind((self.address, port))
                return port
        raise BenchError(f"no free port on {self.address}")


def execute(*command: str) -> None:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=TIMEOUT, check=False
        )
    except subprocess.TimeoutExpired:
        raise BenchError(f"{' '.join(command)}: timed out after {TIMEOUT} s") from None
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise BenchError(f"{' '.join(command)}: {lines[-1]}")


def inside(namespace: str) -> list[str]:
    return [tools.need("ip"), "netns", "exec", namespace]


@contextmanager
def namespace(name: str) -> Iterator[str]:
    ip = tools.need("ip")
    execute(ip, "netns", "add", name)
    try:
        execute(ip, "-n", name, "link", "set", "lo", "up")
        yield name
    finally:
        execute(ip, "netns", "del", name)


def tune(side: str, more: dict[str, str]) -> dict[str, str]:
    """Apply the tuning for servers, and return the settings that are in effect.
    Settings that exist only for the host, not per namespace, are left alone.
    """
    wished = {**machine.wished(), **more}
    names = [name for name in wished if name.startswith("net.")]
    with visit(inside(side)):
        for name in names:
            try:
                machine.path_of(name).write_text(wished[name], encoding="ascii")
            except (FileNotFoundError, PermissionError):
                continue  # missing in this kernel, or only for the host
            except OSError as error:
                raise BenchError(f"sysctl {name}: {error.strerror}") from error
        found = {name: machine.setting(name) for name in names}
    return {name: value for name, value in found.items() if value is not None}


def queues(receiving: int, sending: int) -> list[str]:
    """Arguments of ip(8) for an interface's queues. A packet sent by one side's queue is
    received by the other side's queue of the same number.
    """
    return ["numrxqueues", str(receiving), "numtxqueues", str(sending)]


def connect(server: str, client: str, at: tuple[int, int]) -> None:
    """Make a pair of interfaces, each named v0 on its side. The clients have many
    addresses, so that they don't run out of ports. at: the numbers of queues by which
    the server and the clients receive.
    """
    ip = tools.need("ip")
    pair = ["link", "add", "v0", *queues(*at), "netns", server, "type", "veth"]
    peer = ["peer", "name", "v0", *queues(*reversed(at)), "netns", client]
    execute(ip, *pair, *peer)
    for side, address in ((server, SERVER), (client, CLIENT)):
        execute(
            ip, "-n", side, "addr", "add", f"{address}/16", "dev", "v0", "noprefixroute"
        )
        execute(ip, "-n", side, "link", "set", "v0", "up")
        route = [NET, "dev", "v0", "src", address, *CONGESTION]
        execute(ip, "-n", side, "route", "add", *route)
    execute(
        *(ip, "-n", client, "route", "add", "local", f"{CLIENTS}.0/24", "dev", "lo")
    )


def steer(side: str, cores: Sequence[int]) -> None:
    mask = sum(1 << core for core in cores)
    groups: list[str] = []
    while mask or not groups:
        groups.append(f"{mask & 0xFFFFFFFF:x}")
        mask >>= 32
    path = "/sys/class/net/v0/queues/rx-0/rps_cpus"
    execute(*inside(side), "sh", "-c", f"echo {','.join(groups[::-1])} > {path}")


def receivers() -> set[int]:
    """The kernel threads that receive packets for an interface v0."""
    found = set()
    for path in PROC.glob("[0-9]*/comm"):
        with suppress(OSError):  # the process has just ended
            if path.read_text(encoding="utf-8", errors="replace").startswith("napi/v0"):
                found.add(int(path.parent.name))
    return found


def hold(side: str, sending: int) -> None:
    """Give each sending queue of the side room for many packets."""
    tc = [*inside(side), tools.need("tc"), "qdisc", "replace", "dev", "v0"]
    if sending == 1:
        execute(*tc, "root", *QUEUE)
        return
    execute(*tc, "root", "handle", "1:", "mq")
    for number in range(1, sending + 1):
        execute(*tc, "parent", f"1:{number:x}", *QUEUE)


def receive_in_threads(side: str, cores: Sequence[int]) -> None:
    """Let kernel threads receive the side's packets, one thread per core. The sender
    has to cut segments, because uncut ones would bypass the threads. Kernel threads
    belong to no session, so they get the nice value that quiet.preferred() gives the
    bench's session.
    """
    before = receivers()
    execute(*inside(side), tools.need("ethtool"), "-K", "v0", "gro", "on", "tso", "off")
    execute(*inside(side), "sh", "-c", "echo 1 > /sys/class/net/v0/threaded")
    made = sorted(receivers() - before)
    if len(made) != len(cores):
        raise BenchError(
            f"--network napi: the kernel made {len(made)} threads "
            f"instead of {len(cores)}: "
            "give another network"
        )
    for thread, core in zip(made, cores, strict=True):
        os.sched_setaffinity(thread, [core])
        os.setpriority(os.PRIO_PROCESS, thread, PREFERRED)


def check(kind: str) -> None:
    if kind not in KINDS:
        raise BenchError(f"--network {kind}: give {', '.join(KINDS)}")
    if kind != LO and os.geteuid() != 0:
        raise BenchError(f"--network {kind} needs root; lo doesn't")


@contextmanager
def network(kind: str, cores: Cores) -> Iterator[Network]:
    check(kind)
    if kind == LO:
        yield Network()
        return
    with ExitStack() as stack:
        name = f"flexsc-{os.getpid()}"
        server = stack.enter_context(namespace(f"{name}-server"))
        client = stack.enter_context(namespace(f"{name}-client"))
        # With napi, each side has a receive queue per core.
        here, there = cores.server, cores.load
        connect(server, client, (len(here), len(there)) if kind == NAPI else (1, 1))
        settings = tune(server, {})
        tune(client, REUSE)
        if kind == RPS:
            steer(server, here)
            steer(client, there)
        if kind == NAPI:
            receive_in_threads(server, here)
            receive_in_threads(client, there)
            hold(server, len(there))
            hold(client, len(here))
        if kind == SLOW:
            tc = [tools.need("tc"), "qdisc", "add", "dev", "v0", "root", *RATE]
            execute(*inside(server), *tc)
            execute(*inside(client), *tc)
        source = f"{CLIENTS}.1"
        sides = inside(server), inside(client)
        yield Network(kind, *sides, SERVER, CLIENT, source, settings)
