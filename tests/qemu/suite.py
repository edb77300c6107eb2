# SPDX-License-Identifier: MIT
"""Test the kernel module in virtual machines.

    suite.py --build DIR --work DIR [--kernel VERSION]... [PROGRAM...]

Builds the module for each kernel whose headers are installed (Debian's package
linux-headers-VERSION), fetches that kernel's image from the same archive, and
runs test programs of the build in guests: those of the module's own interface,
and the conformance suite with the engine "kmod". The last line is "N passed, N
failed, N skipped"; the status is 0 if none failed, 3 if there is no kernel to
be had.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from guest import COMPLAINT, CRASHED, NO_GUEST, TIMEOUT, Guest, GuestError

ROOT = Path(__file__).resolve().parents[2]
HEADERS = Path("/usr/src")
NO_KERNEL = 3
SECONDS = 400.0

# Programs that share a guest: each group takes about as long.
GROUPS = (
    ("qemu-kmod", "conformance-results_file", "conformance-results_other"),
    ("qemu-cancelling", "qemu-leaving", "qemu-watched"),
    ("qemu-cores",),
    ("qemu-attack", "qemu-fuzz", "qemu-rounds"),
    ("qemu-filtered", "conformance-blocking", "conformance-restricted"),
    ("conformance-cancel", "conformance-posting", "conformance-table"),
    ("conformance-loop", "conformance-deadline", "conformance-stats"),
    ("conformance-results_socket", "conformance-chain", "conformance-timer"),
    ("conformance-process", "conformance-signal", "conformance-fork"),
    ("conformance-capacity", "conformance-cancel_each", "conformance-wake"),
    ("qemu-serve",),
)

# What a program takes along, besides itself.
COMPANIONS = {"qemu-serve": ("tests/qemu-http", "cmd/flexsc/flexsc")}
# Those that need more processors than two.
CPUS = {"qemu-cores": 4}


@dataclass
class Kernel:
    """One to test with: its image, and the module for it."""

    version: str
    image: Path
    module: Path
    slower: int = 3  # than the tests expect a machine to be
    seconds: float = SECONDS  # for a group
    before: str = ""  # what a guest does before its programs,
    after: str = ""  # and behind them
    complaint: re.Pattern[str] = COMPLAINT
    late: Collection[str] = ()  # programs that may fail, for they need a clock


@dataclass
class Tally:
    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def add(self, other: Tally) -> None:
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped


class NoKernelError(Exception):
    """A kernel can't be had here."""


def command(*words: str | Path, cwd: Path | None = None) -> None:
    done = subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        print(done.stdout)
        raise NoKernelError(f"{' '.join(map(str, words))}: status {done.returncode}")


def versions() -> list[str]:
    """Those whose headers are here."""
    found = HEADERS.glob("linux-headers-*-cloud-amd64")
    return sorted(path.name.removeprefix("linux-headers-") for path in found)


def image_of(version: str, work: Path) -> Path:
    """The kernel itself; unpacked and not installed, for it is never booted here."""
    image = work / "boot" / f"vmlinuz-{version}"
    if not image.exists():
        with tempfile.TemporaryDirectory(dir=work) as folder:
            here = Path(folder)
            command("apt-get", "download", f"linux-image-{version}", cwd=here)
            (package,) = here.glob("*.deb")
            command("dpkg-deb", "--extract", package, here / "files")
            image.parent.mkdir(exist_ok=True)
            shutil.copy(here / "files" / "boot" / image.name, image)
    return image


def module_of(version: str, tree: Path, work: Path) -> Path:
    """Built in a copy of its sources, as they would be packaged."""
    sources = work / "sources" / version
    shutil.rmtree(sources, ignore_errors=True)
    for name in ("kmod", "include/uapi"):
        shutil.copytree(ROOT / name, sources / name)
    command("make", "-C", sources / "kmod", f"KDIR={tree}")
    module = work / "modules" / version / "flexsc.ko"
    module.parent.mkdir(parents=True, exist_ok=True)
    # Without what only a debugger wants it is a twentieth of the size.
    command("strip", "-g", "-o", module, sources / "kmod" / "flexsc.ko")
    return module


def prepare(version: str, work: Path) -> Kernel:
    headers = HEADERS / f"linux-headers-{version}"
    return Kernel(version, image_of(version, work), module_of(version, headers, work))


def programs(build: Path, *names: str) -> list[Path]:
    """These, and what they take along."""
    others = [build / path for name in names for path in COMPANIONS.get(name, ())]
    return [build / "tests" / name for name in names] + others


def run_group(
    kernel: Kernel, build: Path, commands: Sequence[str], log: Path
) -> tuple[int, str]:
    """Their output, each program's behind a line with its name."""
    names = list(map(program_of, commands))
    cpus = max(CPUS.get(name, 2) for name in names)
    files = programs(build, *names)
    guest = Guest(kernel.image, [kernel.module], files, cpus, memory=1500)
    guest.complaint = kernel.complaint
    each = [
        f"echo '== {command}'; FLEXSC_TEST_ENGINE=$(engine {command}) {command}; "
        for command in commands
    ]
    script = (
        "engine() { case $1 in qemu-*) echo sync ;; *) echo kmod ;; esac; }; "
        f"export FLEXSC_TEST_SLOWER={kernel.slower}; "
        f"{kernel.before} {''.join(each)} {kernel.after}"
    )
    with tempfile.TemporaryFile("w+") as output:
        status = guest.run(f"sh -c {quoted(script)}", kernel.seconds, log, output)
        output.seek(0)
        return status, output.read()


def program_of(command: str) -> str:
    return command.split()[0]


def quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def count(said: str, late: Collection[str], tally: Tally) -> None:
    """Of TAP; a program that came to no end has failed."""
    for part in said.split("== ")[1:]:
        may_fail = program_of(part) in late
        for line in part.splitlines():
            if re.match(r"not ok ", line):
                tally.failed += not may_fail
                tally.skipped += may_fail
            elif re.match(r"ok .*# SKIP", line):
                tally.skipped += 1
            elif re.match(r"ok ", line):
                tally.passed += 1
        if not re.search(r"^1\.\.\d+", part, re.MULTILINE):
            tally.failed += 1


def test(
    kernel: Kernel, build: Path, groups: Iterable[Sequence[str]], work: Path
) -> Tally:
    tally = Tally()
    jobs = [
        (group, work / f"kernel-{kernel.version}-{i}.log")
        for i, group in enumerate(groups)
    ]
    # A guest has two processors.
    with ThreadPoolExecutor(max(1, (os.cpu_count() or 1) // 2)) as pool:
        runs = pool.map(lambda job: run_group(kernel, build, *job), jobs)
        for (group, log), (status, said) in zip(jobs, runs, strict=True):
            print(f"\n{kernel.version}: {', '.join(group)}\n{said}", flush=True)
            count(said, kernel.late, tally)
            if status in (CRASHED, TIMEOUT, NO_GUEST):
                print(f"the guest failed (status {status}); its kernel said:")
                print(*log.read_text(errors="replace").splitlines()[-60:], sep="\n")
                tally.failed += 1
    return tally


def programs_of(groups: Iterable[Sequence[str]]) -> set[str]:
    return {program_of(command) for group in groups for command in group}


def chosen(
    groups: Iterable[Sequence[str]], wanted: Collection[str]
) -> list[tuple[str, ...]]:
    """The groups with only these programs."""
    less = (tuple(c for c in group if program_of(c) in wanted) for group in groups)
    return [group for group in less if group]


def main() -> int:
    parser = argparse.ArgumentParser(description="Test the kernel module.")
    add = parser.add_argument
    add("--build", type=Path, required=True, help="where the tests are built")
    add("--work", type=Path, required=True, help="for kernels and modules")
    add("--kernel", action="append", help="only this version")
    add("program", nargs="*", help="only these")
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    total = Tally()
    try:
        kernels = [prepare(v, given.work) for v in given.kernel or versions()]
        if not kernels:
            raise NoKernelError("no linux-headers-*-cloud-amd64 is installed")
        for kernel in kernels:
            groups = chosen(GROUPS, given.program or programs_of(GROUPS))
            total.add(test(kernel, given.build, groups, given.work))
    except (NoKernelError, GuestError) as error:
        print(error)
        return NO_KERNEL
    print(f"{total.passed} passed, {total.failed} failed, {total.skipped} skipped")
    return int(total.failed > 0)


if __name__ == "__main__":
    sys.exit(main())
