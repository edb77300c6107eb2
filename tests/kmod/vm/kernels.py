# SPDX-License-Identifier: MIT
"""Kernels to test with: their headers and images, from Debian's archive.

The release's own kernel is the one whose headers are installed. The kernel of the
release's backports is fetched by a separate apt that knows only the backports. Their
address is that of the release's archive in this machine's configuration. The newest
kernel is that of the next release's backports. Its tools and its compiler need the
libraries of that release, so the module is built in a separate root.

Nothing is installed, and the machine's apt sources stay as they are. Packages are
unpacked into a folder, where they find each other's files.
"""

from __future__ import annotations

import lzma
import os
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

# Debian's name for a machine, and the compiler package for its modules.
DEBIAN = {"x86_64": "amd64", "aarch64": "arm64"}
CROSS = {
    "aarch64": [
        "DEB_BUILD_ARCH=amd64",
        "DEB_HOST_ARCH=arm64",
        "DEB_HOST_GNU_TYPE=aarch64-linux-gnu",
    ]
}
# In the order of loading.
VSOCK = ("vsock", "vmw_vsock_virtio_transport_common", "vsock_loopback")
# The release after this one, and the packages to build modules in a separate root.
NEXT = {"bookworm": "trixie"}
TOOLS = "binutils coreutils dash findutils grep make mawk sed"
MOUNTED = """
mount --rbind /dev "$1/dev" && mount -t proc proc "$1/proc" &&
mount --rbind "$2" "$1/module" && shift && shift && exec "$@"
"""


class NoKernelError(Exception):
    """This machine's apt has no source for a kernel, so nothing can be tried."""


class KernelError(Exception):
    """A kernel is available, but something went wrong with it: a failed test."""


@dataclass
class Kernel:
    """A kernel to build for: the place of its headers, and its image if it was fetched."""

    version: str
    headers: Path
    machine: str = platform.machine()
    image: Path | None = None

    def make(self, folder: Path, *words: str) -> None:
        """Build the module that is in the folder."""
        cross = CROSS[self.machine] if self.machine != platform.machine() else []
        command("make", "-C", folder, f"KDIR={self.headers}", *cross, *words)


@dataclass
class Rooted(Kernel):
    """A kernel of another release. Headers and compiler are in a root."""

    root: Path = Path("/")

    def make(self, folder: Path, *words: str) -> None:
        arch = DEBIAN[self.machine]
        inside = f"/{self.headers.relative_to(self.root)}"
        machine = [f"DEB_BUILD_ARCH={arch}", f"DEB_HOST_ARCH={arch}"]
        machine.append(f"DEB_HOST_GNU_TYPE={self.machine}-linux-gnu")
        mounted = ["sh", "-c", MOUNTED, "sh", str(self.root), str(folder.parent)]
        entered = ["chroot", str(self.root), "make", "-C", f"/module/{folder.name}"]
        command(*SEPARATE, *mounted, *entered, f"KDIR={inside}", *machine, *words)


# In separate namespaces. A user other than root is mapped to root there.
SEPARATE = ["unshare", "--mount", "--pid", "--fork", "--propagation", "private"]
if os.getuid():
    SEPARATE.append("--map-root-user")


def command(
    *words: str | Path, cwd: Path | None = None, seconds: float = SECONDS
) -> str:
    """Return the output of a command, which has to succeed in time."""
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
        raise KernelError(str(error)) from error
    if done.returncode:
        print(done.stdout)
        raise KernelError(f"{' '.join(map(str, words))}: status {done.returncode}")
    return done.stdout


def installed() -> list[Kernel]:
    """Return the kernels whose headers are installed."""
    prefix = "linux-headers-"
    found = sorted(HEADERS.glob(f"{prefix}*-cloud-{DEBIAN[platform.machine()]}"))
    return [Kernel(path.name.removeprefix(prefix), path) for path in found]


def vsock_of(image: Path) -> list[Path]:
    """Return the image's modules for AF_VSOCK, in the order of loading, or an empty
    list.
    """
    found = [image.parent / f"{image.name}-modules" / f"{name}.ko" for name in VSOCK]
    return found if all(path.exists() for path in found) else []


def keep_vsock(files: Path, image: Path) -> None:
    for name in VSOCK:
        for path in files.rglob(f"{name}.ko*"):
            data = path.read_bytes()
            kept = image.parent / f"{image.name}-modules" / f"{name}.ko"
            kept.parent.mkdir(exist_ok=True)
            kept.write_bytes(lzma.decompress(data) if path.suffix == ".xz" else data)


def image_of(kernel: Kernel, work: Path, apt: Sequence[str] = ()) -> Path:
    """Unpack a kernel's image, without installing it: only guests boot it."""
    image = work / "boot" / f"vmlinuz-{kernel.version}"
    if not image.exists():
        arch = DEBIAN[kernel.machine]
        name = f"linux-image-{kernel.version}:{arch}"
        # Recently the image is in one of several packages that this one depends on.
        parts = depends(name, apt, "binary")
        with tempfile.TemporaryDirectory(dir=work) as folder:
            files = Path(folder) / "files"
            unpack([f"{parts[0]}:{arch}" if parts else name], Path(folder), files, apt)
            found = [*files.glob("boot/vmlinuz-*"), *files.rglob("modules/*/vmlinuz")]
            if not found:
                raise KernelError(f"{name} has no kernel")
            image.parent.mkdir(exist_ok=True)
            keep_vsock(files, image)
            shutil.copy(found[0], image)
    return image


def said_by_apt(*words: str | Path) -> str:
    """Return apt's answer. An unavailable source raises NoKernelError."""
    try:
        return command(*words)
    except KernelError as error:
        raise NoKernelError(str(error)) from error


def download(names: Sequence[str], folder: Path, apt: Sequence[str] = ()) -> None:
    """Download packages into a folder. A package without a source isn't a failure."""
    said_by_apt("apt-get", *apt, "--print-uris", "download", *names)
    command("apt-get", *apt, "download", *names, cwd=folder)


def unpack(names: Sequence[str], folder: Path, root: Path, apt: Sequence[str]) -> None:
    """Unpack packages into a root."""
    download(names, folder, apt)
    for package in folder.glob("*.deb"):
        command("dpkg-deb", "--extract", package, root)
        package.unlink()


def archive() -> tuple[str, str]:
    """Return the release's name, and the address from which this machine gets it."""
    release = platform.freedesktop_os_release().get("VERSION_CODENAME", "")
    form = "$(RELEASE) $(COMPONENT) $(REPO_URI)"
    said = said_by_apt("apt-get", "indextargets", "--format", form)
    found = re.search(rf"^{release} main (\S+)$", said, re.MULTILINE)
    if not release or not found:
        raise NoKernelError("apt has no source of this release")
    return release, found[1]


def apt_of(work: Path, *names: str) -> list[str]:
    """Return options for an apt that knows only these parts of the archive, last one
    first.
    """
    folder = work / f"apt-{names[-1]}"
    (folder / "lists" / "partial").mkdir(parents=True, exist_ok=True)
    (folder / "status").touch()
    sources = folder / "sources.list"
    options = {
        "Dir::Etc::SourceList": sources,
        "Dir::Etc::SourceParts": "-",
        "Dir::State::Lists": folder / "lists",
        "Dir::State::Status": folder / "status",
        "Dir::Cache::pkgcache": "",
        "Dir::Cache::srcpkgcache": "",
        "APT::Default-Release": names[-1],
        "APT::Install-Recommends": "false",
        "APT::Sandbox::User": "root",
        "Acquire::Languages": "none",
        "Acquire::Retries": "1",
        "Acquire::http::Timeout": "20",
        "Acquire::https::Timeout": "20",
        "Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled": "false",
        "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled": "false",
    }
    words = [word for key in options for word in ("-o", f"{key}={options[key]}")]
    if not sources.exists() or time.time() - sources.stat().st_mtime > A_DAY:
        _, uri = archive()
        signed = f"[signed-by={KEYRING}] " if KEYRING.exists() else ""
        fresh = folder / "fresh.list"
        fresh.write_text("".join(f"deb {signed}{uri} {name} main\n" for name in names))
        fetching = [w.replace(str(sources), str(fresh)) for w in words]
        said_by_apt("apt-get", *fetching, "--error-on=any", "update")
        fresh.rename(sources)
    return words


def depends(name: str, apt: Sequence[str], kinds: str = "headers|kbuild") -> list[str]:
    """Return the packages that the newest version of a kernel depends on."""
    said = said_by_apt("apt-cache", *apt, "show", "--no-all-versions", name)
    line = re.search(r"^Depends: (.*)$", said, re.MULTILINE)
    return re.findall(rf"linux-(?:{kinds})-[^ ,]+", line[1]) if line else []


def newest_headers(arch: str, apt: Sequence[str]) -> str:
    found = depends(f"linux-headers-cloud-{arch}:{arch}", apt)
    if not found:
        raise NoKernelError(f"apt has no linux-headers-cloud-{arch}")
    return found[0]


def fetched(machine: str, work: Path, apt: Sequence[str] = ()) -> Kernel:
    """Fetch the newest kernel that apt has, with headers alone."""
    arch = DEBIAN[machine]
    name = newest_headers(arch, apt)
    version = name.removeprefix("linux-headers-")
    root = work / f"headers-{version}"
    kernel = Kernel(version, root / "usr" / "src" / name, machine)
    if kernel.headers.exists():
        return kernel
    needs = depends(f"{name}:{arch}", apt)
    with tempfile.TemporaryDirectory(dir=work) as folder:
        here = Path(folder)
        unpack([f"{name}:{arch}", *needs], here, here / "files", apt)
        # The Makefile contains the path where the other packages would be installed.
        makefile = here / "files" / "usr" / "src" / name / "Makefile"
        text = makefile.read_text()
        makefile.write_text(text.replace(" /usr/", f" {root}/usr/"))
        shutil.rmtree(root, ignore_errors=True)
        (here / "files").rename(root)
    return kernel


def release(machine: str, work: Path) -> list[Kernel]:
    """The release's own kernel. For another machine it is fetched, without an image."""
    if machine != platform.machine():
        return [fetched(machine, work)]
    found = installed()
    if not found:
        raise NoKernelError(f"no linux-headers-*-cloud-{DEBIAN[machine]} is installed")
    return found


def backports(machine: str, work: Path) -> list[Kernel]:
    """The newest kernel of the release's backports, with its image."""
    name, _ = archive()
    apt = apt_of(work, f"{name}-backports")
    kernel = fetched(machine, work, apt)
    kernel.image = image_of(kernel, work, apt)
    return [kernel]


def newest(machine: str, work: Path) -> list[Kernel]:
    """The newest kernel of the next release's backports, with its image."""
    name, _ = archive()
    if name not in NEXT:
        raise NoKernelError(f"can't find out which release {name} is")
    try:
        command(*SEPARATE, "true")
    except KernelError as error:
        raise NoKernelError(f"can't make a root file system: {error}") from error
    apt = apt_of(work, NEXT[name], f"{NEXT[name]}-backports")
    headers = newest_headers(DEBIAN[machine], apt)
    version = headers.removeprefix("linux-headers-")
    root = work / f"root-{version}"
    if not root.exists():
        with tempfile.TemporaryDirectory(dir=work) as folder:
            make_root(Path(folder), [headers, *TOOLS.split()], apt)
            (Path(folder) / "root").rename(root)
    source = root / "usr" / "src" / headers
    kernel = Rooted(version, source, machine, root=root)
    kernel.image = image_of(kernel, work, apt)
    return [kernel]


def make_root(folder: Path, names: Sequence[str], apt: Sequence[str]) -> None:
    """Unpack these packages, and all that they depend on, into folder/root."""
    cache = folder / "cache"
    (cache / "archives" / "partial").mkdir(parents=True)
    own = [*apt, "-o", f"Dir::Cache={cache}"]
    command("apt-get", *own, "--yes", "--download-only", "install", *names)
    root = folder / "root"
    for name in ("dev", "proc", "tmp", "module"):
        (root / name).mkdir(parents=True)
    for package in (cache / "archives").glob("*.deb"):
        command("dpkg-deb", "--extract", package, root)
    # The installation scripts of base-files and mawk would do this.
    for name in ("bin", "lib", "lib64"):
        if not (root / name).exists():
            (root / name).symlink_to(f"usr/{name}")
    (root / "usr" / "bin" / "awk").symlink_to("mawk")
