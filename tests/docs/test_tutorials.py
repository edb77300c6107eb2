# SPDX-License-Identifier: MIT
"""The tutorials: every command in them works. So do the guides' commands that put FlexSC
in front of a system's service, and those that undo it.

The shell blocks run in order, as one script, in a temporary folder. The test shortens
the measurements, chooses a free port, and moves the system's configuration into that
folder. STUBS replaces the commands that would build FlexSC again or change the machine.
Each stub checks what it can.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from fixtures import PATIENCE, command
from programs import SYSTEM_PATH, end_group, free_port, installed, unreaped_end

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"(?:^ {4}.*\n)+", re.MULTILINE)

STUBS = {
    "sudo": 'exec "$@"',
    # The build is tested elsewhere. Its folder here contains links.
    "meson": ":",
    "ninja": ":",
    # If the machine has lists of packages, do they contain these packages?
    "apt-get": """
for list in /var/lib/apt/lists/*_Packages*; do
	[ ! -e "$list" ] || exec /usr/bin/apt-get --simulate "$@" >/dev/null
done""",
    "nginx": 'exec /usr/sbin/nginx -e "$ETC/errors" -c "$ETC/nginx/nginx.conf" "$@"',
    # Saves the configuration that the server would read at its first restart.
    "systemctl": '[ -e "$SEEN" ] || cp -r "$ETC" "$SEEN"',
}

NGINX = """
include {etc}/nginx/modules-enabled/*.conf;
pid {etc}/pid;
events {{ }}
http {{
	access_log off;
	client_body_temp_path {etc}/t1;
	proxy_temp_path {etc}/t2;
	fastcgi_temp_path {etc}/t3;
	uwsgi_temp_path {etc}/t4;
	scgi_temp_path {etc}/t5;
	include {etc}/nginx/conf.d/*.conf;
}}
"""


def blocks(name: str) -> list[str]:
    """Return the tutorial's shell blocks. Blocks of output are "text": a fence without
    a language would hide a command.
    """
    found = FENCE.findall((ROOT / "docs/tutorial" / name).read_text())
    assert found
    assert {language for language, _ in found} <= {"sh", "text"}
    return [text for language, text in found if language == "sh"]


def service(name: str) -> str:
    """Return the guide's blocks that change and restart a system's service."""
    found = INDENTED.findall((ROOT / "docs/how-to" / name).read_text())
    steps, undo = (block for block in found if "systemctl restart" in block)
    return f"({steps})\n{undo}"


@pytest.fixture
def folder() -> Iterator[Path]:
    """A server that drops its privileges has to reach this folder."""
    path = Path(tempfile.mkdtemp(prefix="flexsc-tutorial-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


class Reader:
    """Follows a tutorial in the sources' folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.etc = folder / "etc"
        self.seen = folder / "seen"
        build = Path(command()).resolve().parents[1]
        (folder / "scripts").symlink_to(ROOT / "scripts")
        for name in ("build", "stubs", "tmp", "modules", "etc/systemd/system"):
            (folder / name).mkdir(parents=True)
        for name in ("modules-enabled", "conf.d"):
            (self.etc / "nginx" / name).mkdir(parents=True)
        (self.etc / "nginx/nginx.conf").write_text(NGINX.format(etc=self.etc))
        for path in build.iterdir():
            if path.name != "flexsc":
                (folder / "build" / path.name).symlink_to(path)
        # What meson install and the packages install.
        (folder / "bin").mkdir()
        (folder / "bin/flexsc").symlink_to(command())
        for path in (build / "packaging").glob("*.conf"):
            place = folder / f"share/flexsc/systemd/{path.stem}.service.d"
            place.mkdir(parents=True)
            (place / "flexsc.conf").symlink_to(path)
        for name, text in STUBS.items():
            stub = folder / "stubs" / name
            stub.write_text(f"#!/bin/sh -eu\n{text}\n")
            stub.chmod(0o755)

    def follow(self, script: str) -> str:
        """Run the commands, and return their output."""
        script = "set -eu\n" + script
        for old, new in {
            "port=8080": f"port={free_port()}",
            "--duration 5s": "--duration 1s",
            "--quick": "--rounds 1 --seconds 1",
            "timeout 10": f"timeout {PATIENCE:.0f}",
            "/etc/": f"{self.etc}/",
            "/usr/lib/nginx/modules": f"{self.folder}/modules",
        }.items():
            script = script.replace(old, new)
        assert "8080" not in script
        env = {
            **os.environ,
            "PATH": f"{self.folder}/stubs:{self.folder}/bin:{SYSTEM_PATH}",
            "TMPDIR": f"{self.folder}/tmp",
            "ETC": str(self.etc),
            "SEEN": str(self.seen),
        }
        log = self.folder / "log"
        with log.open("w") as out:
            process = subprocess.Popen(
                ["sh", "-c", script],
                cwd=self.folder,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        try:
            status = unreaped_end(process, 6 * PATIENCE)
        finally:
            end_group(process)
        said = log.read_text(errors="replace")
        assert status == 0, said
        # Temporary files and the system's configuration are as before.
        assert list((self.folder / "tmp").iterdir()) == []
        left = [*self.etc.glob("nginx/*/*"), *(self.etc / "systemd/system").iterdir()]
        assert left + list((self.folder / "modules").iterdir()) == []
        return said


def answered(said: str) -> None:
    """Check that the server answered wrk with the page."""
    assert re.search(r"^Requests/sec: +[1-9]", said, re.M), said
    assert "Non-2xx" not in said, said


@pytest.fixture
def reader(folder: Path) -> Reader:
    installed("curl", "curl")
    installed("wrk", "wrk")
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs two cores, which the tutorials measure with")
    if subprocess.run([ROOT / "scripts/packages", "build"]).returncode:
        pytest.skip("packages for the build are missing")
    return Reader(folder)


def test_apache(reader: Reader) -> None:
    installed("apache2", "apache2-bin")
    said = reader.follow("".join(blocks("apache.md")))
    answered(said)
    ratios = re.findall(r"^256, worker, flexsc run .*? (\d+\.\d+) \(", said, re.M)
    assert len(ratios) == 2 and min(map(float, ratios)) > 0
    (polled,) = re.findall(r"^ *polled +(\d+)", said, re.M)
    assert int(polled) > 0


@pytest.mark.parametrize("guide", ["apache", "mariadb"])
def test_a_drop_in_is_copied_and_removed(guide: str, folder: Path) -> None:
    reader = Reader(folder)
    reader.follow(service(f"{guide}.md"))
    (place,) = (reader.seen / "systemd/system").iterdir()
    assert place.name.startswith(guide)
    # test_run_systemd.py verifies this template.
    template = ROOT / "packaging/systemd" / place.name / "flexsc.conf.in"
    before, after = template.read_text().split("@FLEXSC@")
    drop_in = (place / "flexsc.conf").read_text()
    assert drop_in.startswith(before) and drop_in.endswith(after)


def with_nginx(reader: Reader) -> None:
    installed("nginx", "nginx-light")
    if not (reader.folder / "build/nginx/ngx_http_flexsc_module.so").exists():
        pytest.skip("the module for nginx isn't built: install nginx-dev")


def test_nginx(reader: Reader) -> None:
    with_nginx(reader)
    said = reader.follow("".join(blocks("nginx.md")))
    answered(said)
    ratios = re.findall(r"^(?:plain|kept): .* (\d+\.\d+) \(", said, re.M)
    assert len(ratios) == 2 and min(map(float, ratios)) > 0
    (batch,) = re.findall(r"^ *mean batch +(\S+)", said, re.M)
    assert float(batch) > 1


def test_the_system_s_nginx(folder: Path) -> None:
    reader = Reader(folder)
    with_nginx(reader)
    assert "test is successful" in reader.follow(service("nginx.md"))
    assert (reader.seen / "nginx/conf.d/flexsc.conf").read_text() == "flexsc on;\n"
