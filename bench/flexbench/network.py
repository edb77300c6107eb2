# SPDX-License-Identifier: MIT
"""Networks between clients and a server on one machine.

    lo          the loopback interface. The kernel receives a packet on its
                sender's core
    veth        two network namespaces with a pair of interfaces. The kernel
                receives a packet on its sender's core
    rps         veth, and each side receives on its own cores (RPS)
    napi        veth, and each side receives in a kernel thread on each of its cores
    100mbit     veth, with 100 Mbit/s in each direction

All but lo take root. A network lives as long as a with-block. Its namespaces have
Genevès' settings for web servers, as far as a namespace has settings of its own.
"""

from __future__ import annotations

import ctypes
import os
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

SERVER, CLIENT, CLIENTS = "10.213.0.1", "10.213.0.2", "10.213.1"
NET = "10.213.0.0/16"
# A packet that would wait for more than 200 ms in the interface's queue is lost.
RATE = ["tbf", "rate", "100mbit", "burst", "32kb", "latency", "200ms"]

# Without this queue, packets that the receiver's ring has no room for are lost.
QUEUE = ["pfifo", "limit", "10000"]
PREFERRED = -20

# The host's congestion control may pace by timers, as bbr does without the queue fq. A
# namespace may not choose every algorithm as its default; a route in it may.
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
    """Sockets that this thread makes in the with-block are on that side: the server's
    or the client's list of a Network.
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
    """server, client: words to put before a command, so that it runs on that side.
    settings: those that the server's side was given.
    """

    kind: str = LO
    server: list[str] = field(default_factory=list)
    client: list[str] = field(default_factory=list)
    address: str = "127.0.0.1"  # of the server
    host: str = "127.0.0.1"  # of clients that choose no address
    source: str = "127.0.0.2"  # the first address of clients that choose theirs
    settings: dict[str, str] = field(default_factory=dict)

    def free_port(self) -> int:
        """A TCP port that is free on the server's side."""
        with visit(self.server), socket.socket() as probe:
            probe.bind((self.address, 0))
            return int(probe.getsockname()[1])


def execute(*command: str) -> None:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=TIMEOUT, check=False
        )
    except subprocess.TimeoutExpired:
        raise BenchError(f"{' '.join(command)}: not done in {TIMEOUT} s") from None
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"ended with {done.returncode}"]
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
    """Set what a server has to be tuned by, and say what the side has then. Settings of
    the host, which no namespace has, are left alone.
    """
    wished = {**machine.wished(), **more}
    names = [name for name in wished if name.startswith("net.")]
    with visit(inside(side)):
        for name in names:
            try:
                machine.path_of(name).write_text(wished[name], encoding="ascii")
            except (FileNotFoundError, PermissionError):
                continue  # the kernel has no such setting, or only the host has it
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
    """Make a pair of interfaces, v0 on both sides. The clients have many addresses,
    so that they don't run out of ports. at: the number of queues by which the server
    receives, and the number by which the clients receive.
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
    """Kernel threads that receive what comes to an interface v0."""
    found = set()
    for path in PROC.glob("[0-9]*/comm"):
        with suppress(OSError):  # the process has just ended
            if path.read_text(encoding="utf-8", errors="replace").startswith("napi/v0"):
                found.add(int(path.parent.name))
    return found


def hold(side: str, sending: int) -> None:
    """Give each queue by which the side sends room for many packets."""
    tc = [*inside(side), tools.need("tc"), "qdisc", "replace", "dev", "v0"]
    if sending == 1:
        execute(*tc, "root", *QUEUE)
        return
    execute(*tc, "root", "handle", "1:", "mq")
    for number in range(1, sending + 1):
        execute(*tc, "parent", f"1:{number:x}", *QUEUE)


def receive_in_threads(side: str, cores: Sequence[int]) -> None:
    """Kernel threads receive the side's packets, one thread on each core. Segments that
    the sender doesn't cut would go past the threads. Kernel threads are in no session, so
    they get the nice value that quiet.preferred() gives the bench's session.
    """
    before = receivers()
    execute(*inside(side), tools.need("ethtool"), "-K", "v0", "gro", "on", "tso", "off")
    execute(*inside(side), "sh", "-c", "echo 1 > /sys/class/net/v0/threaded")
    made = sorted(receivers() - before)
    if len(made) != len(cores):
        raise BenchError(
            f"--network napi: the kernel made {len(made)} threads, and {len(cores)} are "
            "needed: give another network"
        )
    for thread, core in zip(made, cores, strict=True):
        os.sched_setaffinity(thread, [core])
        os.setpriority(os.PRIO_PROCESS, thread, PREFERRED)


def check(kind: str) -> None:
    if kind not in KINDS:
        raise BenchError(f"--network {kind}: give {', '.join(KINDS)}")
    if kind != LO and os.geteuid() != 0:
        raise BenchError(f"--network {kind} takes root; lo doesn't")


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
        # With napi, each core of either side has a receive queue.
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
