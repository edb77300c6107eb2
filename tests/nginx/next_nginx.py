# SPDX-License-Identifier: MIT
"""The nginx of Debian's next release, and the module built for it.

Both are in a folder beside the build's own module, and nothing is installed: that
release's loader and libraries run its nginx here. As for the kernels of other
releases, what apt can't reach isn't a failure.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "kmod" / "vm")]

from kernels import NEXT, NoKernelError, apt_of, archive, unpack  # noqa: E402

PACKAGES = "nginx nginx-dev libc6 libcrypt1 libpcre2-8-0 libssl3t64 liburing2"
PACKAGES += " libzstd1 zlib1g"
LIBRARIES = "usr/lib/x86_64-linux-gnu"
HEADERS = "usr/share/nginx/src/src"
MODULE = "ngx_http_flexsc_module.so"

# A new binary is begun by the same words as the first one.
PROGRAM = """\
#!/bin/sh
exec {root}/{libraries}/ld-linux-x86-64.so.2 --argv0 "$0" \\
	--library-path {root}/{libraries} {root}/usr/sbin/nginx "$@"
"""


class NoNginxError(Exception):
    """It isn't to be had here."""


def fetched(folder: Path) -> Path:
    """A root with its packages, of which nothing is executed by itself."""
    root = folder / "root"
    if root.exists():
        return root
    try:
        release, _ = archive()
        if release not in NEXT:
            raise NoNginxError(f"which release is behind {release} isn't known")
        apt = apt_of(folder, NEXT[release])
        with tempfile.TemporaryDirectory(dir=folder) as name:
            here = Path(name)
            unpack(PACKAGES.split(), here, here / "files", apt)
            (here / "files").rename(root)
    except NoKernelError as error:
        raise NoNginxError(str(error)) from error
    return root


def program(folder: Path, root: Path) -> Path:
    path = folder / "nginx"
    path.write_text(PROGRAM.format(root=root, libraries=LIBRARIES))
    path.chmod(0o755)
    return path


def module(build: Path, folder: Path, root: Path) -> Path:
    """Built by the same commands, but with the other headers."""
    made = folder / MODULE
    (folder / f"{MODULE}.p").mkdir(exist_ok=True)
    ninja = ["ninja", "-t", "commands", f"nginx/{MODULE}"]
    said = subprocess.run(
        ninja, cwd=build, capture_output=True, text=True, check=True, timeout=30
    ).stdout
    for line in said.splitlines():
        if f"nginx/{MODULE}" not in line:
            continue
        other = re.sub(r"-isystem \S*/src/", f"-isystem {root}/{HEADERS}/", line)
        words = shlex.split(other.replace(f"nginx/{MODULE}", str(made)))
        subprocess.run(words, cwd=build, check=True, timeout=60)
    return made


def both(build: Path) -> tuple[Path, Path]:
    """The program and the module."""
    folder = build / "nginx" / "next"
    folder.mkdir(exist_ok=True)
    root = fetched(folder)
    return program(folder, root), module(build, folder, root)
