# SPDX-License-Identifier: MIT
"""MariaDB under flexsc run: transactions from many clients."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from fixtures import PATIENCE
from programs import WAYS, Program, carried_by, free_port, installed, started

SETTINGS = [
    "--bind-address=127.0.0.1",
    "--innodb-buffer-pool-size=32M",
    "--innodb-log-file-size=8M",
    "--skip-name-resolve",
    "--max-connections=100",
]


def as_user() -> list[str]:
    return ["--user=root"] if os.geteuid() == 0 else []


def new_folder() -> Path:
    """Return an empty data folder. Its path is short, because sockets need that."""
    install = installed("mariadb-install-db", "mariadb-server")
    base = Path(tempfile.mkdtemp(prefix="flexsc-db-"))
    argv = [install, "--no-defaults", f"--datadir={base}/data", *as_user()]
    argv += ["--auth-root-authentication-method=normal", "--skip-test-db"]
    # Servers that shared a temporary folder would delete each other's files.
    argv += ["--innodb-log-file-size=8M", f"--tmpdir={base}"]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=180)
        assert done.returncode == 0, done.stdout + done.stderr
    except BaseException:
        shutil.rmtree(base, ignore_errors=True)
        raise
    return base


@pytest.fixture(scope="module")
def fresh() -> Iterator[Path]:
    """An initialized data folder, to be copied."""
    base = new_folder()
    yield base
    shutil.rmtree(base, ignore_errors=True)


class Database(Program):
    def __init__(self, way: str, base: Path) -> None:
        self.port = free_port()
        self.base = base
        program = installed("mariadbd", "mariadb-server")
        argv = [program, "--no-defaults", f"--datadir={base}/data", *as_user()]
        argv += [f"--socket={base}/socket", f"--port={self.port}", *SETTINGS]
        argv += [f"--tmpdir={base}"]
        super().__init__(way, argv, base / "log")
        self.listen(self.port)

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
    done = subprocess.run(argv, capture_output=True, text=True, timeout=3 * PATIENCE)
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
        # A transaction inserts the row again that it has deleted.
        for i in range(1, 5):
            assert database.ask(f"SELECT COUNT(*) FROM bench.sbtest{i}") == "500\n"
        database.check("bench")
        assert carried_by(way, [database.process.pid])
        assert database.stop() == 0
        assert "flexsc run" not in database.output()
