# SPDX-License-Identifier: MIT
"""memcached on libflexsc (ATC 2011, section 5.1), and the stock memcached of the same
source, compiler and options. ports/memcached/ has our part: an edit script and a file in
C. The source is Debian's, fetched by apt with its own lists and configuration.

Both are built once, in a folder of the user's cache, whose name depends on the port and
on the library.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from flexbench import tools
from flexbench.samples import BenchError

PORT = Path(__file__).resolve().parent.parent / "ports" / "memcached"
SOURCE, RELEASE = "memcached", "bookworm"
PROGRAMS = ["memcached", "memcached-debug", "sizes", "testapp", "timedrun"]
LIMIT_S = 900
NEEDED = {
    "apt-get": "apt",
    "cc": "gcc",
    "dpkg-source": "dpkg-dev",
    "make": "make",
    "pkg-config": "pkg-config",
}
# The timestamps of a source package make the build run these.
NOT_AGAIN = [f"{name}=:" for name in ("ACLOCAL", "AUTOCONF", "AUTOHEADER", "AUTOMAKE")]

Words: TypeAlias = Sequence["str | Path"]


@dataclass(frozen=True)
class Built:
    """The folders of both sources, each with its programs."""

    stock: Path
    ported: Path


def output(words: Words, folder: Path, env: dict[str, str] | None = None) -> str:
    """A command's output. A failed command's last line becomes the error."""
    try:
        done = subprocess.run(
            [str(word) for word in words],
            cwd=folder,
            env={**os.environ, **(env or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=LIMIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BenchError(f"{words[0]}: {error}") from error
    if done.returncode:
        lines = [line for line in done.stdout.splitlines() if line.strip()]
        said = [line for line in lines if re.search(r"(?i)error|^E:", line)] or lines
        raise BenchError(f"{words[0]}: {(said or ['failed'])[0].strip()}")
    return done.stdout


def mirror() -> str:
    """The address from which this machine gets Debian's packages."""
    words = ["apt-get", "indextargets", "--format", "$(COMPONENT) $(REPO_URI)"]
    text = output([*words, "Created-By: Packages", "Label: Debian"], Path("/"))
    for line in text.splitlines():
        component, _, address = line.partition(" ")
        if component == "main":
            return address
    raise BenchError("apt has no lists of Debian's packages: run apt-get update")


def fetch(work: Path) -> Path:
    folder = work / "apt"
    for name in ("lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    sources = folder / "sources.list"
    sources.write_text(f"deb-src {mirror()} {RELEASE} main\n", encoding="ascii")
    options = {
        "Dir::Etc::sourcelist": sources,
        "Dir::Etc::sourceparts": "/dev/null",
        "Dir::State::lists": folder / "lists",
        "Dir::Cache": folder / "cache",
        "APT::Sandbox::User": "root",
        # Otherwise a missing network is only a warning.
        "APT::Update::Error-Mode": "any",
    }
    apt = ["apt-get", "-q", *(f"-o{key}={value}" for key, value in options.items())]
    output([*apt, "update"], work)
    output([*apt, "source", SOURCE], work)
    found = [path for path in work.glob(f"{SOURCE}-*") if path.is_dir()]
    if len(found) != 1:
        raise BenchError(f"apt-get source {SOURCE}: no source in {work}")
    return found[0]


def library(flexsc: str) -> dict[str, str]:
    """The environment in which pkg-config finds the library: that of the command's build
    folder, or the installed one."""
    build = Path(tools.need(flexsc)).resolve().parents[1]
    folder = build / "meson-uninstalled"
    return {"PKG_CONFIG_PATH": str(folder)} if folder.is_dir() else {}


def make(source: Path, settings: Sequence[str] = ()) -> None:
    output(["./configure", "CFLAGS=-O2 -g", *settings], source)
    output(["make", f"-j{os.cpu_count() or 1}", *NOT_AGAIN, *PROGRAMS], source)


def build(work: Path, env: dict[str, str]) -> None:
    flags = output(["pkg-config", "--cflags", "flexsc"], work, env).strip()
    libs = output(["pkg-config", "--libs", "flexsc"], work, env).split()
    paths = [f"-Wl,-rpath,{word[2:]}" for word in libs if word.startswith("-L")]
    ported = fetch(work).rename(work / "ported")
    shutil.copytree(ported, work / "stock")
    make(work / "stock")
    output(["python3", PORT / "port.py", ported], work)
    make(ported, [f"CPPFLAGS={flags}", f"LIBS={' '.join([*libs, *paths])}"])


def key(env: dict[str, str]) -> str:
    found = hashlib.sha256(repr(env).encode())
    for path in sorted(PORT.glob("*.*")):
        found.update(path.read_bytes())
    return found.hexdigest()[:12]


def memcached(flexsc: str) -> Built:
    """Build both, unless they exist. A rename at the end makes the folder either
    complete or absent."""
    for program, package in NEEDED.items():
        if tools.find(program) is None:
            raise BenchError(f"{program} isn't installed; it comes with {package}")
    try:
        output(["pkg-config", "--exists", "libevent"], PORT)
    except BenchError:
        raise BenchError("libevent's headers are missing: libevent-dev") from None
    env = library(flexsc)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "flexsc" / f"memcached-{key(env)}"
    if not folder.is_dir():
        new = folder.with_suffix(f".{os.getpid()}")
        new.mkdir(parents=True)
        try:
            build(new, env)
            if not folder.is_dir():  # else another process was faster
                new.rename(folder)
        except (BenchError, OSError) as error:
            raise BenchError(f"can't build memcached: {error}") from error
        finally:
            shutil.rmtree(new, ignore_errors=True)
    return Built(folder / "stock", folder / "ported")


# ATC 2011, table 2.


def code(path: Path) -> list[str]:
    """The lines of a file in C, without comments and empty lines."""
    text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL)
    return [line for line in text.splitlines() if line.strip()]


def changes(built: Built) -> dict[str, int]:
    """The number of lines changed in each file, by diff; a new file's lines of code."""
    found = {}
    for path in sorted(built.ported.glob("*.[ch]")):
        stock = built.stock / path.name
        if not stock.exists():
            found[path.name] = len(code(path))
            continue
        done = subprocess.run(
            ["diff", str(stock), str(path)], capture_output=True, text=True, check=False
        )
        # A changed line is a removed and an added one.
        counts = [
            sum(line.startswith(mark) for line in done.stdout.splitlines())
            for mark in "<>"
        ]
        if max(counts):
            found[path.name] = max(counts)
    return found
