# SPDX-License-Identifier: MIT
"""Kernels to test with: their headers and images, from Debian's archive.

The release's own kernel is the one whose headers are installed. That of its
backports is fetched, through an apt of our own that knows nothing but them: its
address is that of the release's archive, as it is configured here. Nothing is
installed, and the machine's own sources stay as they are; packages are unpacked
into a folder, where what they need of each other is found.
"""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

HEADERS = Path("/usr/src")
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
SECONDS = 300.0
A_DAY = 86400.0

# Debian's name for a machine, and what a module is built with there.
DEBIAN = {"x86_64": "amd64", "aarch64": "arm64"}
CROSS = {
    "aarch64": [
        "DEB_BUILD_ARCH=amd64",
        "DEB_HOST_ARCH=arm64",
        "DEB_HOST_GNU_TYPE=aarch64-linux-gnu",
    ]
}


class NoKernelError(Exception):
    """A kernel can't be had here."""


@dataclass
class Kernel:
    """One to build for: where its headers are, and its image if it was fetched."""

    version: str
    headers: Path
    machine: str = platform.machine()
    image: Path | None = None

    def make(self, folder: Path, *words: str) -> None:
        """Build the module that is in the folder."""
        cross = CROSS[self.machine] if self.machine != platform.machine() else []
        command("make", "-C", folder, f"KDIR={self.headers}", *cross, *words)


def command(
    *words: str | Path, cwd: Path | None = None, seconds: float = SECONDS
) -> str:
    """What it says; it has to succeed, and in time."""
    try:
        done = subprocess.run(
            [str(word) for word in words],
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=seconds,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoKernelError(str(error)) from error
    if done.returncode:
        print(done.stdout)
        raise NoKernelError(f"{' '.join(map(str, words))}: status {done.returncode}")
    return done.stdout


def installed() -> list[Kernel]:
    """Those whose headers are here."""
    prefix = "linux-headers-"
    found = sorted(HEADERS.glob(f"{prefix}*-cloud-{DEBIAN[platform.machine()]}"))
    return [Kernel(path.name.removeprefix(prefix), path) for path in found]


def image_of(kernel: Kernel, work: Path, apt: Sequence[str] = ()) -> Path:
    """The kernel itself; unpacked and not installed, for it is never booted here."""
    image = work / "boot" / f"vmlinuz-{kernel.version}"
    if not image.exists():
        with tempfile.TemporaryDirectory(dir=work) as folder:
            name = f"linux-image-{kernel.version}:{DEBIAN[kernel.machine]}"
            unpack([name], Path(folder), Path(folder) / "files", apt)
            image.parent.mkdir(exist_ok=True)
            shutil.copy(Path(folder) / "files" / "boot" / image.name, image)
    return image


def unpack(names: Sequence[str], folder: Path, root: Path, apt: Sequence[str]) -> None:
    """Packages into a root."""
    command("apt-get", *apt, "download", *names, cwd=folder)
    for package in folder.glob("*.deb"):
        command("dpkg-deb", "--extract", package, root)
        package.unlink()


def archive() -> tuple[str, str]:
    """The release's name, and where this machine has it from."""
    release = platform.freedesktop_os_release().get("VERSION_CODENAME", "")
    form = "$(RELEASE) $(COMPONENT) $(REPO_URI)"
    said = command("apt-get", "indextargets", "--format", form)
    found = re.search(rf"^{release} main (\S+)$", said, re.MULTILINE)
    if not release or not found:
        raise NoKernelError("apt has no source of this release")
    return release, found[1]


def backports_apt(work: Path) -> list[str]:
    """Options for an apt that knows the release's backports alone."""
    folder = work / "apt"
    (folder / "lists" / "partial").mkdir(parents=True, exist_ok=True)
    sources = folder / "sources.list"
    options = {
        "Dir::Etc::SourceList": sources,
        "Dir::Etc::SourceParts": "-",
        "Dir::State::Lists": folder / "lists",
        "Dir::Cache::pkgcache": "",
        "Dir::Cache::srcpkgcache": "",
        "APT::Sandbox::User": "root",
        "Acquire::Languages": "none",
        "Acquire::Retries": "1",
        "Acquire::http::Timeout": "20",
        "Acquire::https::Timeout": "20",
        "Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled": "false",
    }
    words = [word for key in options for word in ("-o", f"{key}={options[key]}")]
    if not sources.exists() or time.time() - sources.stat().st_mtime > A_DAY:
        release, uri = archive()
        signed = f"[signed-by={KEYRING}] " if KEYRING.exists() else ""
        text = f"deb {signed}{uri} {release}-backports main\n"
        fresh = folder / "fresh.list"
        fresh.write_text(text)
        fetching = [w.replace(str(sources), str(fresh)) for w in words]
        command("apt-get", *fetching, "--error-on=any", "update")
        fresh.rename(sources)
    return words


def depends(name: str, apt: Sequence[str]) -> list[str]:
    """The packages of a kernel that its newest version depends on."""
    said = command("apt-cache", *apt, "show", "--no-all-versions", name)
    line = re.search(r"^Depends: (.*)$", said, re.MULTILINE)
    return re.findall(r"linux-(?:headers|kbuild)-[^ ,]+", line[1]) if line else []


def fetched(machine: str, work: Path, apt: Sequence[str] = ()) -> Kernel:
    """The newest of apt's; with the headers alone."""
    arch = DEBIAN[machine]
    newest = depends(f"linux-headers-cloud-{arch}:{arch}", apt)
    if not newest:
        raise NoKernelError(f"apt has no linux-headers-cloud-{arch}")
    version = newest[0].removeprefix("linux-headers-")
    root = work / f"headers-{version}"
    kernel = Kernel(version, root / "usr" / "src" / newest[0], machine)
    if kernel.headers.exists():
        return kernel
    needs = depends(f"{newest[0]}:{arch}", apt)
    with tempfile.TemporaryDirectory(dir=work) as folder:
        here = Path(folder)
        unpack([f"{newest[0]}:{arch}", *needs], here, here / "files", apt)
        # It says where the others are installed.
        makefile = here / "files" / "usr" / "src" / newest[0] / "Makefile"
        text = makefile.read_text()
        makefile.write_text(text.replace(" /usr/", f" {root}/usr/"))
        shutil.rmtree(root, ignore_errors=True)
        (here / "files").rename(root)
    return kernel


def backports(machine: str, work: Path) -> Kernel:
    """The newest kernel of the release's backports, with its image."""
    apt = backports_apt(work)
    kernel = fetched(machine, work, apt)
    kernel.image = image_of(kernel, work, apt)
    return kernel
