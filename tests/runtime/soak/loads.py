# SPDX-License-Identifier: MIT
"""The programs of the soak: how each is started, asked, and made to change.

A load's clients run in threads, again and again; each call of ask() is one
visit, and raises when an answer is wrong or doesn't come. shake() makes the
program end threads and begin new ones, by its own means.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from fixtures import Client, eventually
from programs import Program, children, free_port, installed, launcher
from test_run_apache import BIG, SMALL, Apache, Backend, BackendServer
from test_run_bind import HOSTS, Named, address, ask_udp, check, query
from test_run_mariadb import ACCOUNTS, BALANCE, BANK, Database, new_folder, sysbench
from test_run_memcached import Cache
from test_run_python import SERVER


class Load:
    """One program, run one way, in a folder of its own."""

    clients = 12
    program: Program

    def __init__(self, way: str, folder: Path) -> None:
        self.way = way
        self.folder = folder
        self.begin()

    def begin(self) -> None:
        raise NotImplementedError

    def ask(self, i: int) -> None:
        raise NotImplementedError

    def shake(self) -> None:
        """Every few seconds, while clients ask."""

    def settled(self) -> None:
        """Between rounds, when nobody asks: what should be right then?"""

    def stop(self) -> None:
        """As its users stop it."""
        status = self.program.stop(limit=30)
        assert status == 0, f"it ended with status {status}"

    def stopped(self) -> None:
        """Afterwards: is what it left as it should be?"""

    def carried(self) -> list[int]:
        """The processes that flexsc run is to be seen in."""
        return [self.program.process.pid]

    def end(self) -> None:
        if hasattr(self, "program"):
            self.program.end()


class ApacheLoad(Load):
    mpm: str

    def begin(self) -> None:
        self.backend = BackendServer(("127.0.0.1", 0), Backend)
        serve = self.backend.serve_forever
        threading.Thread(target=serve, args=(0.05,), daemon=True).start()
        # Children end after so many connections, and others take their place.
        more = "ServerLimit 6\nThreadsPerChild 16\nMaxRequestWorkers 96\n"
        more += "MaxConnectionsPerChild 300\nMinSpareThreads 16\n"
        port = int(self.backend.server_address[1])
        self.program: Apache = Apache(self.way, self.mpm, self.folder, port, more=more)
        self.program.listen(self.program.port)

    def ask(self, i: int) -> None:
        """A new connection is served; one that was idle may be closed."""
        with Client(self.program.port) as client:
            for j in range(random.randrange(1, 8)):
                try:
                    self.ask_one(client, i, j)
                except (EOFError, ConnectionError):
                    if not j or client.rest:
                        raise
                    return

    def ask_one(self, client: Client, i: int, j: int) -> None:
        match random.randrange(4):
            case 0:
                assert client.ask("/small").body == SMALL
            case 1:
                assert client.ask("/big").body == BIG
            case 2:
                data = f"/{i}/{j}"
                assert client.ask(f"/back{data}").body == f"{data}\n".encode() * 100
            case 3:
                assert client.ask("/none").status == 404

    def shake(self) -> None:
        """A graceful restart: all children are replaced."""
        pid = self.program.process.pid
        before = set(children(pid))
        self.program.process.send_signal(signal.SIGUSR1)
        assert eventually(
            lambda: not before & set(children(pid)), 30
        ), f"children {before & set(children(pid))} go on after a graceful restart"

    def settled(self) -> None:
        assert "exit signal" not in self.program.errors(), self.program.errors()

    def stop(self) -> None:
        graceful = random.random() < 0.5
        signo = signal.SIGWINCH if graceful else signal.SIGTERM
        status = self.program.stop(signo, limit=30)
        assert status == 0, f"it ended with status {status}"
        self.settled()

    def carried(self) -> list[int]:
        return children(self.program.process.pid)

    def end(self) -> None:
        super().end()
        self.backend.shutdown()
        self.backend.server_close()


class WorkerLoad(ApacheLoad):
    mpm = "worker"


class EventLoad(ApacheLoad):
    mpm = "event"


class MariaLoad(Load):
    """Transfers that keep the sum, beside sysbench; a new thread for each."""

    clients = 6

    def begin(self) -> None:
        self.base = new_folder()
        self.program: Database = Database(self.way, self.base)
        self.program.ask("SET GLOBAL thread_cache_size = 0; CREATE DATABASE bench;")
        self.program.ask(BANK)
        sysbench(self.program, "oltp_read_write", "--threads=4", "prepare")

    def ask(self, i: int) -> None:
        if i == 0:
            arguments = ("--threads=8", "--time=1", "run")
            said = sysbench(self.program, "oltp_read_write", *arguments)
            assert "transactions:" in said, said
            return
        lines = ["USE bank;"]
        for _ in range(20):
            one, other = sorted(random.sample(range(ACCOUNTS), 2))
            amount = random.randrange(1, 20)
            lines += [
                "START TRANSACTION;",
                f"UPDATE account SET balance = balance - {amount} WHERE id = {one};",
                f"UPDATE account SET balance = balance + {amount} WHERE id = {other};",
                random.choice(["COMMIT;", "COMMIT;", "ROLLBACK;"]),
            ]
        lines.append("SELECT SUM(balance) FROM account;")
        assert self.program.ask("\n".join(lines)) == f"{ACCOUNTS * BALANCE}\n"

    def settled(self) -> None:
        for database in ("bank", "bench"):
            self.program.check(database)

    def stop(self) -> None:
        super().stop()
        said = self.program.said()
        for bad in ("flexsc run", "[ERROR]", "Got signal", "got signal"):
            assert bad not in said, said[-3000:]

    def stopped(self) -> None:
        """Natively all is there."""
        self.program = Database("native", self.base)
        self.settled()
        assert self.program.stop(limit=30) == 0

    def end(self) -> None:
        super().end()
        if (self.base / "log").exists():
            shutil.copy(self.base / "log", self.folder / "log")
        shutil.rmtree(self.base, ignore_errors=True)


class MemcachedLoad(Load):
    clients = 16

    def begin(self) -> None:
        self.port = free_port()
        self.right: list[dict[str, bytes]] = [{} for _ in range(self.clients)]
        argv = [
            installed("memcached", "memcached"),
            *("-l", "127.0.0.1", "-p", str(self.port), "-U", "0"),
            *("-t", "4", "-m", "256", "-c", "512"),
            *(("-u", "nobody") if os.geteuid() == 0 else ()),
        ]
        self.program = Program(self.way, argv, self.folder / "log")
        self.program.listen(self.port)

    def ask(self, i: int) -> None:
        right = self.right[i]
        with Cache(self.port) as cache:
            for _ in range(random.randrange(1, 40)):
                key = f"{i}-{random.randrange(40)}"
                if random.random() < 0.4:
                    value = os.urandom(random.choice([1, 50, 2000, 30_000]))
                    assert cache.set(key, value) == "STORED"
                    right[key] = value
                elif random.random() < 0.1:
                    there = right.pop(key, None) is not None
                    assert cache.ask(f"delete {key}") == (
                        "DELETED" if there else "NOT_FOUND"
                    )
                else:
                    assert cache.get(key) == right.get(key)

    def stop(self) -> None:
        super().stop()
        assert self.program.said() == "", self.program.said()


class PythonLoad(Load):
    clients = 16

    def begin(self) -> None:
        root = self.folder / "root"
        root.mkdir()
        (root / "small").write_bytes(SMALL)
        (root / "big").write_bytes(BIG)
        self.port = free_port()
        argv = [sys.executable, "-c", SERVER, str(self.port)]
        self.program = Program(self.way, argv, self.folder / "log", cwd=root)
        self.program.listen(self.port)

    def ask(self, i: int) -> None:
        with Client(self.port) as client:
            for _ in range(random.randrange(1, 6)):
                assert client.ask("/small").body == SMALL
                data = os.urandom(random.randrange(1, 20_000))
                head = f"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {len(data)}"
                client.send(head.encode() + b"\r\n\r\n" + data)
                assert client.read().body == data
            if random.random() < 0.2:
                assert client.ask("/big").body == BIG

    def stop(self) -> None:
        status = self.program.stop(limit=30)
        assert status == -signal.SIGTERM, f"it ended with status {status}"
        # Clients that are told to stop don't leave in the middle.
        assert self.program.said() == "", self.program.said()


class BindLoad(Load):
    clients = 12

    def begin(self) -> None:
        self.serial = 1
        self.program: Named = Named(self.way, self.folder)

    def ask(self, i: int) -> None:
        host = random.randrange(HOSTS)
        if i % 2:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
                client.settimeout(2)
                for j in range(40):
                    host = random.randrange(HOSTS)
                    name = f"h{host}.test" if j % 8 else f"none{host}.test"
                    reply = ask_udp(client, self.program.port, j, name)
                    check(reply, j, name, address(host) if j % 8 else None)
            return
        where = ("127.0.0.1", self.program.port)
        with socket.create_connection(where, 10) as client:
            file = client.makefile("rb")
            for j in range(random.randrange(1, 20)):
                asked = query(j, f"h{host}.test")
                client.sendall(struct.pack(">H", len(asked)) + asked)
                (length,) = struct.unpack(">H", file.read(2))
                check(file.read(length), j, f"h{host}.test", address(host))

    def shake(self) -> None:
        """A new version of the zone, which all threads are to know of."""
        self.serial += 1
        zone = self.folder / "zone"
        first, _, rest = zone.read_text().partition("root.test. ")
        _, _, rest = rest.partition(" ")
        text = f"{first}root.test. {self.serial} {rest}"
        new = f"new{self.serial}.test"
        (self.folder / "zone.new").write_text(
            text + f"new{self.serial} IN A {address(self.serial)}\n"
        )
        (self.folder / "zone.new").rename(zone)
        self.program.process.send_signal(signal.SIGHUP)

        def known() -> bool:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
                client.settimeout(2)
                reply = ask_udp(client, self.program.port, 7, new)
                with contextlib.suppress(AssertionError):
                    check(reply, 7, new, address(self.serial))
                    return True
            return False

        assert eventually(known, 20), f"{new} isn't known after a reload"

    def stop(self) -> None:
        super().stop()
        assert "exiting\n" in self.program.said()


LOADS: dict[str, type[Load]] = {
    "apache-worker": WorkerLoad,
    "apache-event": EventLoad,
    "mariadb": MariaLoad,
    "memcached": MemcachedLoad,
    "python": PythonLoad,
    "bind": BindLoad,
}


def new_place() -> Path:
    """Short, for sockets; for everybody, as servers change their user."""
    path = Path(tempfile.mkdtemp(prefix="flexsc-soak-"))
    path.chmod(0o755)
    return path


def version(way: str) -> str:
    """Does this way work here at all?"""
    done = subprocess.run(
        [*launcher(way), "true"], capture_output=True, text=True, timeout=10
    )
    return done.stderr
