# SPDX-License-Identifier: MIT
"""MariaDB under flexsc run: transactions from many clients, and after a crash."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import PATIENCE
from programs import (
    WAYS,
    Program,
    at_once,
    carried_by,
    free_port,
    installed,
    started,
)

ACCOUNTS = 50
BALANCE = 1000
SETTINGS = [
    "--bind-address=127.0.0.1",
    "--innodb-buffer-pool-size=32M",
    "--innodb-log-file-size=8M",
    "--skip-name-resolve",
    "--max-connections=100",
]


def as_user() -> list[str]:
    return ["--user=root"] if os.geteuid() == 0 else []


@pytest.fixture(scope="module")
def fresh() -> Iterator[Path]:
    """An empty data folder, to be copied; its name is short, for sockets."""
    install = installed("mariadb-install-db", "mariadb-server")
    base = Path(tempfile.mkdtemp(prefix="flexsc-db-"))
    argv = [install, "--no-defaults", f"--datadir={base}/data", *as_user()]
    argv += ["--auth-root-authentication-method=normal", "--skip-test-db"]
    argv += ["--innodb-log-file-size=8M"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    yield base
    shutil.rmtree(base, ignore_errors=True)


class Database(Program):
    def __init__(self, way: str, base: Path) -> None:
        self.port = free_port()
        self.base = base
        program = installed("mariadbd", "mariadb-server")
        argv = [program, "--no-defaults", f"--datadir={base}/data", *as_user()]
        argv += [f"--socket={base}/socket", f"--port={self.port}", *SETTINGS]
        super().__init__(way, argv, base / "log")
        self.listen(self.port, 20)

    def client(self) -> list[str]:
        return [
            installed("mariadb", "mariadb-client"),
            *("--no-defaults", "-u", "root", "-h", "127.0.0.1"),
            *("-P", str(self.port), "-N", "-B"),
        ]

    def ask(self, statements: str, limit: float = PATIENCE) -> str:
        done = subprocess.run(
            self.client(),
            input=statements,
            capture_output=True,
            text=True,
            timeout=limit,
        )
        assert (done.stderr, done.returncode) == ("", 0)
        return done.stdout

    def check(self, database: str) -> None:
        tables = self.ask(f"SHOW TABLES IN {database}").split()
        assert tables
        for table in tables:
            said = self.ask(f"CHECK TABLE {database}.{table} EXTENDED")
            assert said.endswith("status\tOK\n"), said


def sysbench(database: Database, script: str, *arguments: str) -> str:
    argv = [
        installed("sysbench", "sysbench"),
        script,
        "--db-driver=mysql",
        *("--mysql-host=127.0.0.1", f"--mysql-port={database.port}"),
        *("--mysql-user=root", "--mysql-db=bench"),
        *("--tables=4", "--table-size=500", *arguments),
    ]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def base(fresh: Path) -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="flexsc-db-"))
    shutil.copytree(fresh / "data", path / "data")
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.mark.parametrize("way", WAYS)
def test_sysbench_s_transactions(way: str, base: Path) -> None:
    installed("sysbench", "sysbench")
    with started(Database(way, base)) as database:
        database.ask("CREATE DATABASE bench")
        sysbench(database, "oltp_read_write", "--threads=4", "prepare")
        many = ["--threads=8", "--time=0", "--events=200"]
        said = sysbench(database, "oltp_read_write", *many, "run")
        assert re.search(r"transactions:\s+200 ", said), said
        assert re.search(r"reconnects:\s+0 ", said)
        # A transaction puts in again what it takes out.
        for i in range(1, 5):
            assert database.ask(f"SELECT COUNT(*) FROM bench.sbtest{i}") == "500\n"
        database.check("bench")
        assert carried_by(way, [database.process.pid])
        assert database.stop() == 0
        assert "flexsc run" not in database.said()


def transfers(seed: int, n: int) -> str:
    """Transactions that leave the sum as it is."""
    lines = ["USE bank;"]
    for i in range(n):
        one = (seed * 7 + i * 3) % ACCOUNTS
        other = (one + 1 + (seed + i) % (ACCOUNTS - 1)) % ACCOUNTS
        first, second = sorted((one, other))
        amount = 1 + (i * 5 + seed) % 20
        lines += [
            "START TRANSACTION;",
            f"UPDATE account SET balance = balance - {amount} WHERE id = {first};",
            f"UPDATE account SET balance = balance + {amount} WHERE id = {second};",
            f"INSERT INTO log VALUES ({seed}, {i});",
            "COMMIT;" if i % 10 else "ROLLBACK;",
        ]
        if i % 10:
            lines.append(f"SELECT {i};")
    return "\n".join(lines)


BANK = f"""
CREATE DATABASE bank; USE bank;
CREATE TABLE account (id INT PRIMARY KEY, balance INT) ENGINE=InnoDB;
CREATE TABLE log (client INT, i INT, PRIMARY KEY (client, i)) ENGINE=InnoDB;
INSERT INTO account SELECT seq, {BALANCE} FROM seq_0_to_{ACCOUNTS - 1};
"""


# Not understood yet: whose fault it is, or whether natively it happens too.
SOMETIMES = pytest.mark.xfail(
    strict=False, reason="an index was once found corrupt after the recovery"
)


@pytest.mark.parametrize(
    "way",
    [
        "native",
        pytest.param("uring-4", marks=SOMETIMES),
        pytest.param("threads-1", marks=SOMETIMES),
    ],
)
def test_committed_transactions_survive_a_crash(way: str, base: Path) -> None:
    def promised(seed: int) -> list[int]:
        """What the server has told this client to be committed."""
        lines = (base / f"client-{seed}").read_text().split("\n")[:-1]
        return [int(line) for line in lines]

    with started(Database(way, base)) as database:
        database.ask(BANK)

        def transfer(seed: int) -> None:
            database.ask(transfers(seed, 40))

        at_once(8, transfer)
        clients = []
        for seed in range(8, 16):
            with (base / f"client-{seed}").open("w") as out:
                clients.append(
                    subprocess.Popen(
                        [*database.client(), "--unbuffered"],
                        stdin=subprocess.PIPE,
                        stdout=out,
                        stderr=subprocess.DEVNULL,
                        text=True,
                    )
                )
        try:

            def feed(i: int) -> None:
                try:
                    clients[i].communicate(transfers(8 + i, 3000), 15)
                except BrokenPipeError:
                    pass

            def crash() -> None:
                time.sleep(0.7)
                database.stop(signal.SIGKILL)

            at_once(9, lambda i: feed(i) if i < 8 else crash())
        finally:
            for client in clients:
                client.kill()
                client.wait()

    with started(Database(way, base)) as database:
        database.check("bank")
        sums = database.ask("SELECT SUM(balance) FROM bank.account")
        assert int(sums) == ACCOUNTS * BALANCE
        rows = database.ask("SELECT client, i FROM bank.log").split("\n")[:-1]
        there = {(int(row.split()[0]), int(row.split()[1])) for row in rows}
        expected = {(c, i) for c in range(8) for i in range(40) if i % 10}
        for seed in range(8, 16):
            expected |= {(seed, i) for i in promised(seed)}
        assert len(expected) > 8 * 36 + 8
        assert expected <= there
        assert not any(i % 10 == 0 for _, i in there)
        assert carried_by(way, [database.process.pid])
        assert database.stop() == 0
