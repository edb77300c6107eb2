# SPDX-License-Identifier: MIT
"""The systemd drop-ins: they are well-formed, and their commands work.

The tests don't need systemd. They execute the same command lines, with the
environment that the unit would set, and with their own configurations.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from fixtures import PATIENCE, Client, command, eventually, flexsc
from programs import carried_by, children, free_port, installed
from test_run_apache import MODULES
from test_run_mariadb import SETTINGS, as_user, new_folder

PACKAGING = Path(__file__).resolve().parents[2] / "packaging/systemd"
UNITS = Path("/lib/systemd/system")
NAMES = ("apache2", "mariadb", "tomcat10")
# The number of carriers by default, as part of a way of programs.py.
CARRIERS = len(os.sched_getaffinity(0))


def drop_in(name: str) -> str:
    """Return the drop-in as installed, with the command of the flexsc under test."""
    template = PACKAGING / f"{name}.service.d/flexsc.conf.in"
    return template.read_text().replace("@FLEXSC@", command())


def settings(text: str, key: str) -> list[str]:
    """Return the values of a key. An empty value removes the earlier ones."""
    values: list[str] = []
    for line in text.replace("\\\n", " ").splitlines():
        name, equals, value = line.partition("=")
        if equals and name.strip() == key:
            values = [*values, value.strip()] if value.strip() else []
    return values


def unit(name: str) -> str:
    path = UNITS / f"{name}.service"
    if not path.is_file():
        pytest.skip(f"no {path}: install {name}")
    return path.read_text()


def argv(name: str, env: dict[str, str]) -> list[str]:
    """Return the command that systemd would execute: the drop-in has removed the unit's
    own.
    """
    (line,) = settings(unit(name) + drop_in(name), "ExecStart")
    words = []
    for word in shlex.split(line):
        if re.fullmatch(r"\$\w+", word):
            words += shlex.split(env.get(word[1:], ""))
        else:
            assert "$" not in word and "%" not in word
            words.append(word)
    return words


def way() -> str:
    """Return the way of programs.py in which flexsc run works on this machine."""
    return (
        f"threads-{CARRIERS}" if flexsc("run", "true").stderr else f"uring-{CARRIERS}"
    )


@pytest.fixture
def folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="flexsc-unit-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.mark.parametrize("name", NAMES)
def test_only_the_start_command_is_changed(name: str) -> None:
    text = drop_in(name)
    lines = [line for line in text.splitlines() if line and line[0] != "#"]
    assert lines[:2] == ["[Service]", "ExecStart="]
    assert lines[2].startswith(f"ExecStart={command()} run -- /")
    assert len(lines) == 3
    assert max(map(len, (PACKAGING / f"{name}.service.d/flexsc.conf.in").open())) <= 81


@pytest.mark.parametrize("name", NAMES)
def test_systemd_accepts_the_drop_in(name: str, folder: Path) -> None:
    tool = installed("systemd-analyze", "systemd")
    (folder / f"{name}.service").write_text(unit(name))
    (folder / f"{name}.service.d").mkdir()
    place = folder / f"{name}.service.d/flexsc.conf"

    def complaints(text: str) -> list[str]:
        """Return systemd's complaints about this drop-in, or about the command in it."""
        place.write_text(text)
        done = subprocess.run(
            [tool, "verify", "--man=no", str(folder / f"{name}.service")],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            env={**os.environ, "SYSTEMD_UNIT_PATH": f"{folder}:"},
        )
        return [
            line
            for line in done.stderr.splitlines()
            if "flexsc" in line or f"{name}.service:" in line
        ]

    # The oracle: systemd-analyze finds an error.
    wrong = drop_in(name).replace(command(), "/none/flexsc")
    if not complaints(wrong):
        pytest.skip("systemd-analyze doesn't work here")
    assert complaints(drop_in(name)) == []


APACHE = """
Listen 127.0.0.1:{port}
PidFile {root}/pid
Mutex pthread
ServerName test
ErrorLog {root}/errors
LoadModule mpm_event_module {modules}/mod_mpm_event.so
LoadModule authz_core_module {modules}/mod_authz_core.so
User {user}
Group {group}
DocumentRoot {root}
StartServers 2
"""

ENVVARS = """
export APACHE_RUN_DIR={root}
export APACHE_LOCK_DIR={root}
APACHE_ULIMIT_MAX_FILES='ulimit -n 1024'
"""


def test_apache_starts_reloads_and_stops(folder: Path) -> None:
    installed("apachectl", "apache2")
    root = os.geteuid() == 0
    port = free_port()
    text = APACHE.format(
        root=folder,
        port=port,
        modules=MODULES,
        user="nobody" if root else f"#{os.getuid()}",
        group="nogroup" if root else f"#{os.getgid()}",
    )
    (folder / "apache2.conf").write_text(text)
    (folder / "envvars").write_text(ENVVARS.format(root=folder))
    (folder / "socks").mkdir()
    (folder / "file").write_text("right")
    env = dict(os.environ)
    for line in settings(unit("apache2"), "Environment"):
        env.update(word.split("=", 1) for word in shlex.split(line))
    env["APACHE_CONFDIR"] = str(folder)

    def run(words: list[str]) -> None:
        """Execute a command as systemd executes one that forks."""
        done = subprocess.run(
            words, env=env, capture_output=True, text=True, timeout=PATIENCE
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

    def serves() -> bool:
        with contextlib.suppress(OSError), Client(port) as client:
            return client.ask("/file").body == b"right"
        return False

    def pid_file() -> int:
        """The daemon may write the file after its parent has ended."""
        with contextlib.suppress(OSError, ValueError):
            return int((folder / "pid").read_text())
        return 0

    run(argv("apache2", env))
    assert eventually(lambda: pid_file() > 0, 2 * PATIENCE)
    pid = pid_file()
    try:
        assert eventually(serves)
        # A child creates its carriers when it creates its threads.
        assert eventually(lambda: carried_by(way(), children(pid)))
        before = children(pid)
        (reload,) = settings(unit("apache2"), "ExecReload")
        run(shlex.split(reload))
        assert eventually(
            lambda: bool(children(pid)) and not set(before) & set(children(pid))
        )
        assert eventually(serves)
        assert eventually(lambda: carried_by(way(), children(pid)))
        (stop,) = settings(unit("apache2"), "ExecStop")
        run(shlex.split(stop))
        assert eventually(lambda: not (folder / "pid").exists())
        assert eventually(lambda: not Path(f"/proc/{pid}").exists())
        assert "exit signal" not in (folder / "errors").read_text()
    finally:
        # The daemon is no child of this process, so its ID may be another's by now.
        with contextlib.suppress(OSError):
            if str(folder).encode() in Path(f"/proc/{pid}/environ").read_bytes():
                os.killpg(pid, signal.SIGKILL)


def test_mariadb_notifies_systemd_when_ready() -> None:
    installed("mariadbd", "mariadb-server")
    base = new_folder()
    port = free_port()
    options = ["--no-defaults", f"--datadir={base}/data", *as_user(), *SETTINGS]
    options += [f"--socket={base}/socket", f"--port={port}", f"--tmpdir={base}"]
    process = None
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notices:
            notices.bind(f"{base}/notify")
            notices.settimeout(PATIENCE)
            env = {**os.environ, "MYSQLD_OPTS": " ".join(options)}
            with (base / "log").open("w") as log:
                process = subprocess.Popen(
                    argv("mariadb", env),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env={**env, "NOTIFY_SOCKET": f"{base}/notify"},
                    start_new_session=True,
                )

            def wait_for(word: str) -> None:
                while word not in (notice := notices.recv(4096).decode()):
                    assert "ERRNO=" not in notice
                    assert process.poll() is None, (base / "log").read_text()

            wait_for("READY=1")
            # The process is the server itself, as the unit's main process has to be.
            exe = os.readlink(f"/proc/{process.pid}/exe")
            assert Path(exe).name == "mariadbd"
            assert carried_by(way(), [process.pid])
            process.send_signal(signal.SIGTERM)
            wait_for("STOPPING=1")
            assert process.wait(PATIENCE) == 0
    finally:
        if process and process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        shutil.rmtree(base, ignore_errors=True)
