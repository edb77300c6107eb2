# SPDX-License-Identifier: MIT
"""The container file.

The test builds its images from the build's installation and the host's libc. It
executes the file's own commands as far as they need no network, and runs the images
in separate roots. With buildah and a base image in $FLEXSC_BASE, it builds them as
users do.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fixtures import PATIENCE, Client, command

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "packaging/container/Containerfile"
BUILD = Path(command()).resolve().parents[1]
NOBODY = 65534
SHELL = ("/bin/sh", "/usr/bin/id")


def stages() -> dict[str, list[tuple[str, str]]]:
    """Return the instructions of each stage."""
    found: dict[str, list[tuple[str, str]]] = {}
    current: list[tuple[str, str]] = []
    for line in FILE.read_text().replace("\\\n", " ").splitlines():
        word, _, rest = line.partition(" ")
        if word == "FROM":
            current = found.setdefault(rest.rpartition(" AS ")[2], [])
        elif word and not word.startswith("#"):
            current.append((word, " ".join(rest.split())))
    return found


def value(stage: str, word: str) -> str:
    (found,) = [rest for one, rest in stages()[stage] if one == word]
    return found


def words(stage: str, *options: str) -> list[str]:
    """Return the command of a container. Options come before the image's own words."""
    entry = json.loads(value(stage, "ENTRYPOINT"))
    return [*entry, *options, *json.loads(value(stage, "CMD"))]


def needed(*files: Path | str) -> set[str]:
    done = subprocess.run(
        ["ldd", *files], capture_output=True, text=True, timeout=PATIENCE, check=True
    )
    return set(re.findall(r"(/\S+) \(0x", done.stdout))


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root with the host's libc, and with the files that COPY adds."""
    if os.geteuid() != 0:
        pytest.skip("chroot() needs root")
    made = tmp_path_factory.mktemp("image")
    subprocess.run(
        ["meson", "install", "-C", BUILD, "--no-rebuild", "--destdir", made],
        timeout=PATIENCE,
        stdout=subprocess.DEVNULL,
        check=True,
    )
    prefix = next(made.rglob("bin/flexsc")).parents[1]
    libraries = next(made.rglob("libflexsc.so")).parent
    for word, line in stages()["build"]:
        if word != "RUN" or "/image/usr" not in line:
            continue
        line = line.replace("/image/usr/lib", str(libraries))
        line = line.replace("/image/usr", str(prefix))
        subprocess.run(["sh", "-ec", line], timeout=PATIENCE, check=True)
    own = {path.name for path in libraries.iterdir()}
    assert not list(made.rglob("*.h"))
    for path in needed(prefix / "bin/flexsc", *SHELL):
        if Path(path).name in own:
            continue
        target = made / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    for path in SHELL:
        (made / path.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, made / path.lstrip("/"))
    (made / "etc").mkdir()
    (made / "etc/ld.so.conf").write_text(f"/{libraries.relative_to(made)}\n")
    subprocess.run(["ldconfig", "-r", made], timeout=PATIENCE, check=True)
    (made / "srv/www").mkdir(parents=True)
    (made / "srv/www/file").write_text("right")
    for folder in (made, *made.parents[:1]):
        folder.chmod(0o755)
    return made


def inside(root: Path, user: int) -> Callable[[], None]:
    def enter() -> None:
        os.chroot(root)
        os.chdir("/")
        os.setgid(user)
        os.setuid(user)

    return enter


ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin"}


@contextlib.contextmanager
def contained(
    argv: list[str], root: Path, user: int
) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENV,
        preexec_fn=inside(root, user),
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=PATIENCE)


def test_the_image_of_serve_serves_as_nobody(image: Path) -> None:
    user = int(value("serve", "USER"))
    assert user == NOBODY
    with contained(words("serve", "-p", "0"), image, user) as process:
        assert process.stderr
        line = process.stderr.readline()
        while line and not line.startswith("serving "):
            line = process.stderr.readline()
        found = re.match(r"serving /srv/www on http://0\.0\.0\.0:(\d+)/", line)
        assert found, line
        with Client(int(found[1])) as client:
            assert client.ask("/file").body == b"right"
        process.terminate()
        assert process.wait(PATIENCE) == 0


def test_the_image_of_run_runs_programs(image: Path) -> None:
    entry = json.loads(value("run", "ENTRYPOINT"))
    # The runtime needs /proc, which every container has.
    (image / "proc").mkdir(exist_ok=True)
    root = ["unshare", "--pid", "--fork", "--mount-proc", f"--root={image}"]
    for argv, expected in (
        (words("run"), "run      works"),
        ([*entry, "sh", "-c", "id -u"], "0\n"),
    ):
        done = subprocess.run(
            [*root, *argv],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            env=ENV,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert expected in done.stdout and "patched" not in done.stdout


def test_buildah_builds_the_images(tmp_path: Path) -> None:
    base = os.environ.get("FLEXSC_BASE")
    if not base or not shutil.which("buildah"):
        pytest.skip("needs buildah and $FLEXSC_BASE, an image of Debian")
    for target in ("serve", "run"):
        subprocess.run(
            ["buildah", "bud", "--isolation=chroot", f"--build-arg=BASE={base}"]
            + ["-f", FILE, "--target", target, "-t", f"flexsc-test-{target}", ROOT],
            timeout=1500,
            check=True,
        )
    made = subprocess.run(
        ["buildah", "from", "flexsc-test-run"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    ).stdout.strip()
    try:
        entry = json.loads(value("run", "ENTRYPOINT"))
        run = ["buildah", "run", "--isolation=chroot", made, *entry]
        done = subprocess.run(
            [*run, "sh", "-c", "id -u"],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=True,
        )
        assert done.stdout == "0\n"
    finally:
        subprocess.run(["buildah", "rm", made], timeout=PATIENCE, check=True)
