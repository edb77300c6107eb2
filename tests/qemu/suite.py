# SPDX-License-Identifier: MIT
"""Test the kernel module in virtual machines.

    suite.py --build DIR --work DIR [--kernel VERSION]... [PROGRAM...]
    suite.py --machine aarch64 --libraries DIR ...

Builds the module for each kernel whose headers are installed (Debian's package
linux-headers-VERSION) and for the newest of Debian's backports, fetches their
images, and runs test programs of the build in guests: those of the module's own
interface, and the conformance suite with the engine "kmod". For another machine
than this it cross-builds for both, with headers that are fetched, and boots the
newer (the other, arm64's 6.1, can't run the module: docs/kmod.md). The last line
is "N passed, N failed, N skipped"; the status is 0 if none failed, 3 if there is
no kernel to be had.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import sys
import tempfile
from collections.abc import Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from guest import CRASHED, NO_GUEST, TIMEOUT, Guest, GuestError
from kernels import (
    DEBIAN,
    Kernel,
    NoKernelError,
    backports,
    command,
    fetched,
    image_of,
    installed,
    unpack,
)

ROOT = Path(__file__).resolve().parents[2]
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
class Target:
    """What programs run on: a guest that has none yet."""

    name: str
    guest: Guest
    slower: int = 3  # than the tests expect a machine to be
    seconds: float = SECONDS  # for a group
    before: str = ""  # what a guest does before its programs,
    after: str = ""  # and behind them
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


def module_of(kernel: Kernel, work: Path) -> Path:
    """Built in a copy of its sources, as they would be packaged."""
    name = f"{kernel.version}-{kernel.machine}"
    sources = work / "sources" / name
    shutil.rmtree(sources, ignore_errors=True)
    for part in ("kmod", "include/uapi"):
        shutil.copytree(ROOT / part, sources / part)
    kernel.make(sources / "kmod")
    module = work / "modules" / name / "flexsc.ko"
    module.parent.mkdir(parents=True, exist_ok=True)
    # Without what only a debugger wants it is a twentieth of the size.
    cross = (
        "" if kernel.machine == platform.machine() else f"{kernel.machine}-linux-gnu-"
    )
    command(f"{cross}strip", "-g", "-o", module, sources / "kmod" / "flexsc.ko")
    return module


def busybox_of(machine: str, work: Path) -> Path | None:
    """For a guest of another machine than this."""
    if machine == platform.machine():
        return None
    root = work / f"busybox-{machine}"
    if not root.exists():
        with tempfile.TemporaryDirectory(dir=work) as folder:
            name = f"busybox-static:{DEBIAN[machine]}"
            unpack([name], Path(folder), Path(folder) / "files", [])
            (Path(folder) / "files").rename(root)
    return root / "bin" / "busybox"


def prepare(
    kernel: Kernel, work: Path, libraries: Sequence[Path] = ()
) -> Target | None:
    """Build the module; None: that is all, for there is no image."""
    module = module_of(kernel, work)
    if not kernel.image:
        return None
    guest = Guest(
        kernel.image,
        [module],
        memory=1500,
        machine=kernel.machine,
        busybox=busybox_of(kernel.machine, work),
        libraries=list(libraries),
    )
    return Target(f"{kernel.version}-{kernel.machine}", guest)


def programs(build: Path, *names: str) -> list[Path]:
    """These, and what they take along."""
    others = [build / path for name in names for path in COMPANIONS.get(name, ())]
    return [build / "tests" / name for name in names] + others


def run_group(
    target: Target, build: Path, commands: Sequence[str], log: Path
) -> tuple[int, str]:
    """Their output, each program's behind a line with its name."""
    names = list(map(program_of, commands))
    cpus = max(CPUS.get(name, 2) for name in names)
    guest = replace(target.guest, files=programs(build, *names), cpus=cpus)
    each = [
        f"echo '== {command}'; FLEXSC_TEST_ENGINE=$(engine {command}) {command}; "
        for command in commands
    ]
    script = (
        "engine() { case $1 in qemu-*) echo sync ;; *) echo kmod ;; esac; }; "
        f"export FLEXSC_TEST_SLOWER={target.slower}; "
        f"{target.before} {''.join(each)} {target.after}"
    )
    with tempfile.TemporaryFile("w+") as output:
        status = guest.run(f"sh -c {quoted(script)}", target.seconds, log, output)
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


def processors() -> int:
    """That we may use."""
    return len(os.sched_getaffinity(0))


def test(
    target: Target, build: Path, groups: Iterable[Sequence[str]], work: Path
) -> Tally:
    tally = Tally()
    jobs = [
        (group, work / f"kernel-{target.name}-{i}.log")
        for i, group in enumerate(groups)
    ]
    # A guest has two processors.
    with ThreadPoolExecutor(max(1, processors() // 2)) as pool:
        runs = pool.map(lambda job: run_group(target, build, *job), jobs)
        for (group, log), (status, said) in zip(jobs, runs, strict=True):
            print(f"\n{target.name}: {', '.join(group)}\n{said}", flush=True)
            count(said, target.late, tally)
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


def kernels(machine: str, work: Path, wanted: list[str], total: Tally) -> list[Kernel]:
    """The release's, and that of its backports if they can be reached."""
    found = installed() if machine == platform.machine() else [fetched(machine, work)]
    try:
        newest = backports(machine, work)
    except NoKernelError as error:
        print(f"no kernel from backports: {error}")
        total.skipped += 1
    else:
        found = [kernel for kernel in found if kernel.version != newest.version]
        found.append(newest)
    found = [k for k in found if not wanted or k.version in wanted]
    for kernel in found:
        if machine == platform.machine() and not kernel.image:
            kernel.image = image_of(kernel, work)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description="Test the kernel module.")
    add = parser.add_argument
    add("--build", type=Path, required=True, help="where the tests are built")
    add("--work", type=Path, required=True, help="for kernels and modules")
    add("--kernel", action="append", default=[], help="only this version")
    add("--machine", choices=DEBIAN, default=platform.machine())
    add("--libraries", type=Path, action="append", default=[], help="of that machine")
    add("--once", default="$", help="on the first kernel only: programs so named")
    add("program", nargs="*", help="only these")
    given = parser.parse_args()
    work = given.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    wanted = set(given.program or programs_of(GROUPS))
    total = Tally()
    try:
        found = kernels(given.machine, work, given.kernel, total)
        if not found:
            raise NoKernelError("no linux-headers-*-cloud-amd64 is installed")
        for kernel in found:
            target = prepare(kernel, work, given.libraries)
            if target:
                total.add(test(target, given.build, chosen(GROUPS, wanted), work))
                wanted = {name for name in wanted if not re.match(given.once, name)}
            else:
                print(f"{kernel.version}: built for {kernel.machine}")
                total.passed += 1
    except (NoKernelError, GuestError) as error:
        print(error)
        return NO_KERNEL
    print(f"{total.passed} passed, {total.failed} failed, {total.skipped} skipped")
    return int(total.failed > 0)


if __name__ == "__main__":
    sys.exit(main())
