# SPDX-License-Identifier: MIT
"""Test flexsc run in virtual machines, with the programs of tests/runtime/programs.

    runs.py --build DIR --work DIR [--kernel VERSION]
    runs.py --build DIR --work DIR --machine aarch64 --libraries DIR... [PROGRAM...]

On this machine's architecture, a guest booted with "nofsgsbase" runs some programs.
There the FSGSBASE instructions fault, and the runtime changes each base register by a
system call.

On another architecture, guests run all programs, or those that are named, with the libc
of the next release. Their clock counts instructions, so a busy host makes no test late.

The last line is "N passed, N failed, N skipped". The status is 0 if none failed, 3 if
apt has no source of a package, or QEMU is missing.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from guest import CRASHED, NO_GUEST, TIMEOUT, Guest, GuestError, NoGuestError
from kernels import (
    DEBIAN,
    NEXT,
    KernelError,
    NoKernelError,
    apt_of,
    archive,
    backports,
    image_of,
    installed,
    unpack,
)
from suite import NO_KERNEL, Tally, busybox_of, count, processors, quoted

LIBRARY = "libflexsc-runtime.so"
PREFIX = "threads-"


@dataclass
class Run:
    """What a guest runs: a program, some of its tests or all, and its environment."""

    program: str
    tests: str = ""
    engine: str = "uring"
    preload: str = ""  # besides the runtime

    def command(self) -> str:
        preload = f"/bin/{LIBRARY}" + (f":/bin/{self.preload}" if self.preload else "")
        return (
            f"echo '== {self.engine} {self.program}'; "
            f"FLEXSC_TEST_ENGINE={self.engine} LD_PRELOAD={preload} "
            f"{PREFIX}{self.program} {self.tests}"
        )


@dataclass
class Plan:
    """A guest, and what it runs."""

    guest: Guest
    runs: list[Run]
    log: Path
    seconds: float
    before: str = ""  # commands; if they report TAP, a part begins with "== "
    slower: int = 3  # than the tests expect a machine to be


# Without FSGSBASE.

# The programs, with the tests to run: switches, and both base registers at the start
# and the end of threads and processes, and in signal handlers on a carrier.
BASES = {
    "sites": "",
    "locks": "not_lost libc_locks",
    "life": "end_by_system_call locals floating",
    "process": "a_port_is_free exec_from",
    "signals": "ends_a_call computes its_own_signal_stack",
    "faults": "ends_the_process interrupts_no_call",
}

# Check that FSGSBASE is really missing.
CHECK = (
    "echo '== cpuinfo'; if grep -q fsgsbase /proc/cpuinfo; "
    "then echo 'not ok 1 - bases'; else echo 'ok 1 - bases'; fi; echo 1..1; "
)


def decoder() -> Path:
    """Find Zydis, which the runtime loads by its name, so that ldd doesn't list it."""
    known = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True)
    found = re.search(r"libZydis\.so\.[\d.]+ .*=> (\S+)", known.stdout)
    if not found:
        raise GuestError("libZydis is missing: scripts/packages --install build")
    return Path(found[1])


def without_bases(given: argparse.Namespace) -> list[Plan]:
    kernels = [k for k in installed() if given.kernel in (None, k.version)]
    if not kernels:
        raise NoKernelError("no linux-headers-*-cloud-amd64 is installed")
    guest = Guest(
        image_of(kernels[0], given.work),
        files=[decoder()],
        memory=1500,
        parameters="nofsgsbase",
    )
    runs = [
        Run(program, tests, engine)
        for engine in ("uring", "threads")
        for program, tests in BASES.items()
    ]
    return [Plan(guest, runs, given.work / "kernel-bases.log", given.seconds, CHECK)]


# Another architecture.

# Libraries that no linker lists: pthread_cancel() loads the first, a test the second,
# and the third is preloaded.
LOADED = ("libgcc_s.so.1", "libslow.so", "libpassing.so")
USERS = "mkdir -p /etc; echo root:x:0:0::/tmp:/bin/sh >/etc/passwd; "


def libc_of(machine: str, work: Path) -> Path:
    """Fetch the libc of the next release, or of this one if no later one is known."""
    release, _ = archive()
    suite = NEXT.get(release, release)
    root = work / f"libc-{suite}-{machine}"
    if not root.exists():
        packages = [f"{name}:{DEBIAN[machine]}" for name in ("libc6", "libgcc-s1")]
        with tempfile.TemporaryDirectory(dir=work) as folder:
            here = Path(folder)
            unpack(packages, here, here / "files", apt_of(work, suite))
            (here / "files").rename(root)
    return root / "usr" / "lib" / f"{machine}-linux-gnu"


def elsewhere(given: argparse.Namespace) -> list[Plan]:
    programs = given.build / "tests" / "runtime" / "programs"
    # A folder that was built in before has programs of earlier builds, too.
    targets = json.loads((given.build / "meson-info/intro-targets.json").read_text())
    names = sorted(t["name"] for t in targets if t["name"].startswith(PREFIX))
    names = [name.removeprefix(PREFIX) for name in names]
    names = [name for name in names if name in (given.program or names)]
    folders = [libc_of(given.machine, given.work), programs, *given.libraries]
    loaded = [f / name for name in LOADED for f in folders if (f / name).exists()]
    kernel = backports(given.machine, given.work)[0]
    assert kernel.image
    guest = Guest(
        kernel.image,
        files=loaded,
        memory=2000,
        # With two, a thread that spins would keep the emulator from the other for 100 ms.
        cpus=1,
        icount="shift=3,sleep=off",
        machine=given.machine,
        busybox=busybox_of(given.machine, given.work),
        libraries=folders,
    )
    # The programs open them where the build has them.
    links = f"mkdir -p {programs}; ln -s /bin/*.so {programs}; "
    jobs = processors()
    return [
        Plan(
            guest,
            [Run(n, preload="libpassing.so" * (n == "preloads")) for n in part],
            given.work / f"kernel-run-{i}.log",
            given.seconds,
            USERS + links,
            6,
        )
        for i in range(jobs)
        if (part := names[i::jobs])
    ]


# Both.


def carry_out(plan: Plan, build: Path) -> tuple[int, str]:
    programs = build / "tests" / "runtime" / "programs"
    names = sorted({run.program for run in plan.runs})
    files = [build / "runtime" / LIBRARY, *plan.guest.files]
    files += [programs / f"{PREFIX}{name}" for name in names]
    guest = replace(plan.guest, files=files)
    before = (
        f"{plan.before}export LD_LIBRARY_PATH=/bin FLEXSC_CARRIERS=2 "
        f"FLEXSC_TEST_SLOWER={plan.slower}"
    )
    script = "; ".join([before, *(run.command() for run in plan.runs)])
    with tempfile.TemporaryFile("w+") as output:
        command = f"sh -c {quoted(script)}"
        status = guest.run(command, plan.seconds, plan.log, output)
        output.seek(0)
        return status, output.read()


def judge(plan: Plan, status: int, said: str) -> Tally:
    print(said, flush=True)
    tally = Tally()
    begun = count(said, (), tally)
    if status in (CRASHED, TIMEOUT, NO_GUEST):
        print(f"the guest failed (status {status}); its kernel said:")
        print(*plan.log.read_text(errors="replace").splitlines()[-60:], sep="\n")
        tally.failed += 1
    elif begun < len(plan.runs) + plan.before.count("== "):
        print(f"only {begun} programs began")
        tally.failed += 1
    return tally


def test(plans: Sequence[Plan], build: Path) -> Tally:
    tally = Tally()
    with ThreadPoolExecutor(processors()) as pool:
        done = [pool.submit(carry_out, plan, build) for plan in plans]
        for plan, future in zip(plans, done, strict=True):
            tally.add(judge(plan, *future.result()))
    return tally


def main() -> int:
    parser = argparse.ArgumentParser(description="Test flexsc run in guests.")
    add = parser.add_argument
    add("--build", type=Path, required=True, help="where the tests are built")
    add("--work", type=Path, required=True, help="for the kernel")
    add("--kernel", help="its version")
    add("--machine", choices=DEBIAN, default=platform.machine())
    add("--libraries", type=Path, action="append", default=[], help="of that machine")
    add("--seconds", type=float, default=1400, help="when a guest is late")
    add("program", nargs="*", help="only these")
    given = parser.parse_args()
    given.build, given.work = given.build.resolve(), given.work.resolve()
    given.work.mkdir(parents=True, exist_ok=True)
    own = given.machine == platform.machine()
    try:
        plans = without_bases(given) if own else elsewhere(given)
        found = test(plans, given.build)
    except (NoKernelError, NoGuestError) as error:
        print(f"skipped: flexsc run: {error}")
        return NO_KERNEL
    except (KernelError, GuestError) as error:
        print(f"FAILED flexsc run: {error}")
        found = Tally(failed=1)
    print(f"{found.passed} passed, {found.failed} failed, {found.skipped} skipped")
    return int(found.failed > 0)


if __name__ == "__main__":
    sys.exit(main())
