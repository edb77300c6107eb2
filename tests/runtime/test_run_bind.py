# SPDX-License-Identifier: MIT
"""BIND's named under flexsc run: libuv loops in threads, UDP and TCP."""

from __future__ import annotations

import random
import re
import socket
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from fixtures import PATIENCE, eventually
from programs import WAYS, Program, at_once, carried_by, free_port, installed, started

HOSTS = 500

CONFIGURATION = """
options {{
    directory "{root}";
    listen-on port {port} {{ 127.0.0.1; }};
    listen-on-v6 {{ none; }};
    pid-file none;
    session-keyfile "{root}/session.key";
    recursion no;
    dnssec-validation no;
    notify no;
    allow-transfer {{ 127.0.0.1; }};
}};
controls {{ }};
zone "test" {{ type primary; file "{root}/zone"; }};
"""

ZONE = """$TTL 60
@ IN SOA ns.test. root.test. 1 3600 600 86400 60
@ IN NS ns.test.
ns IN A 127.0.0.1
"""


def address(i: int) -> str:
    return f"10.1.{i // 256}.{i % 256}"


def query(number: int, name: str, kind: int = 1) -> bytes:
    labels = b"".join(
        bytes([len(label)]) + label.encode() for label in name.split(".") if label
    )
    head = struct.pack(">HHHHHH", number, 0, 1, 0, 0, 0)
    return head + labels + struct.pack(">BHH", 0, kind, 1)


def check(reply: bytes, number: int, name: str, expected: str | None) -> None:
    """An authoritative answer with this address, or that there is none."""
    got, flags, _, answers, _, _ = struct.unpack(">HHHHHH", reply[:12])
    assert got == number
    assert flags & 0x8400 == 0x8400
    if expected is None:
        assert (flags & 15, answers) == (3, 0)
        return
    assert (flags & 15, answers) == (0, 1)
    at = len(query(number, name))
    assert reply[at + 10 : at + 16] == b"\0\4" + socket.inet_aton(expected)


def ask_udp(client: socket.socket, port: int, number: int, name: str) -> bytes:
    """Datagrams may be lost, though here they are seldom."""
    for _ in range(4):
        client.sendto(query(number, name), ("127.0.0.1", port))
        try:
            while True:
                reply = client.recv(4096)
                if reply[:2] == struct.pack(">H", number):
                    return reply
        except TimeoutError:
            continue
    raise TimeoutError(name)


class Named(Program):
    def __init__(self, way: str, root: Path) -> None:
        self.port = free_port()
        (root / "conf").write_text(CONFIGURATION.format(root=root, port=self.port))
        hosts = "".join(f"h{i} IN A {address(i)}\n" for i in range(HOSTS))
        (root / "zone").write_text(ZONE + hosts)
        program = installed("named", "bind9")
        argv = [program, "-g", "-4", "-n", "4", "-c", str(root / "conf")]
        super().__init__(way, argv, root / "log")
        self.wait_until(lambda: "running\n" in self.said())


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def named(way: str, tmp_path: Path) -> Iterator[Named]:
    """One that has to end as it does natively."""
    with started(Named(way, tmp_path)) as program:
        yield program
        assert carried_by(way, [program.process.pid])
        assert program.stop() == 0
        assert "exiting\n" in program.said()
        assert "flexsc run" not in program.said()


def test_answers_are_right(named: Named) -> None:
    def udp(i: int) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.settimeout(2)
            for j in range(100):
                host = (i * 131 + j * 7) % HOSTS
                name = f"h{host}.test" if j % 10 else f"none{host}.test"
                expected = address(host) if j % 10 else None
                number = random.randrange(65536)
                check(ask_udp(client, named.port, number, name), number, name, expected)

    def tcp(i: int) -> None:
        where = ("127.0.0.1", named.port)
        with socket.create_connection(where, PATIENCE) as client:
            file = client.makefile("rb")
            for j in range(0, 100, 5):
                names = [f"h{(i * 7 + j + k) % HOSTS}.test" for k in range(5)]
                asked = [query(j + k, names[k]) for k in range(5)]
                client.sendall(b"".join(struct.pack(">H", len(q)) + q for q in asked))
                for _ in range(5):
                    (length,) = struct.unpack(">H", file.read(2))
                    reply = file.read(length)
                    number = int.from_bytes(reply[:2])
                    name = names[number - j]
                    host = int(name[1:-5])
                    check(reply, number, name, address(host))

    at_once(24, lambda i: udp(i) if i % 2 else tcp(i))


def test_transfers_and_reloads(named: Named, tmp_path: Path) -> None:
    dig = installed("dig", "bind9-dnsutils")
    argv = [dig, "-p", str(named.port), "@127.0.0.1", "+tries=2", "+time=5"]

    def lines(*question: str) -> list[str]:
        done = subprocess.run(
            [*argv, *question], capture_output=True, text=True, timeout=PATIENCE
        )
        return [line for line in done.stdout.splitlines() if re.search(r"\sIN\s", line)]

    hosts = lines("axfr", "test")
    assert len(hosts) == HOSTS + 4
    zone = (tmp_path / "zone").read_text().replace(" 1 3600", " 2 3600")
    (tmp_path / "zone").write_text(zone + "new IN A 10.9.9.9\n")
    named.process.send_signal(1)
    assert eventually(lambda: "10.9.9.9" in " ".join(lines("new.test")))


@pytest.mark.parametrize("way", ["uring-4", "threads-1"], indirect=True)
def test_dnsperf_loses_nothing(named: Named, tmp_path: Path) -> None:
    tool = installed("dnsperf", "dnsperf")
    names = tmp_path / "names"
    names.write_text("".join(f"h{i}.test A\n" for i in range(HOSTS)))
    argv = [tool, "-s", "127.0.0.1", "-p", str(named.port), "-d", str(names)]
    argv += ["-c", "8", "-T", "2", "-l", "1", "-q", "50"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE)
    found = re.search(r"Queries completed:\s+(\d+) \(([\d.]+)%\)", done.stdout)
    assert found, done.stdout + done.stderr
    assert int(found[1]) > 500
    assert float(found[2]) > 99.0
    assert re.search(r"NOERROR \d+ \(100.00%\)", done.stdout)
