# SPDX-License-Identifier: MIT
"""Test FlexSC-Threads without user-mode access to the base registers.

    runs.py --build DIR --work DIR [--kernel VERSION]

If the kernel or the processor lacks FSGSBASE, the FSGSBASE instructions fault, and
the runtime changes each base register by a system call. A guest booted with
"nofsgsbase" is such a machine. It runs some programs with threads. The last line is
"N passed, N failed, N skipped". The status is 0 if none failed, 3 if apt has no
source of a kernel, or QEMU is missing.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from guest import CRASHED, NO_GUEST, TIMEOUT, Guest, GuestError, NoGuestError
from kernels import KernelError, NoKernelError, image_of, installed
from suite import NO_KERNEL, Tally, count, quoted

SECONDS = 400.0
LIBRARY = "libflexsc-runtime.so"
ENGINES = ("uring", "threads")

# The programs, with the tests to run: switches, and both base registers at the start
# and the end of threads and processes, and in signal handlers on a carrier.
PROGRAMS = {
    "threads-sites": "",
    "threads-locks": "two_threads broadcast lost barrier libc_locks",
    "threads-life": "create_threads change_of_user locals",
    "threads-process": "fork_from exec_from",
    "threads-signals": "ends_a_call computes its_own_signal_stack",
    "threads-faults": "where_it_happens",
}

# Check that FSGSBASE is really missing.
CHECK = (
    "echo '== cpuinfo'; if grep -q fsgsbase /proc/cpuinfo; "
    "then echo 'not ok 1 - bases'; else echo 'ok 1 - bases'; fi; echo 1..1"
)


def decoder() -> Path:
    """Find Zydis, which the runtime loads by its name, so that ldd doesn't list it."""
    known = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True)
    found = re.search(r"libZydis\.so\.[\d.]+ .*=> (\S+)", known.stdout)
    if not found:
        raise GuestError("libZydis is missing: scripts/packages --install build")
    return Path(found[1])


def script() -> str:
    words = [CHECK, "export FLEXSC_TEST_SLOWER=3 FLEXSC_CARRIERS=2"]
    for engine in ENGINES:
        words.append(f"export FLEXSC_TEST_ENGINE={engine}")
        for program, tests in PROGRAMS.items():
            run = (
                f"env LD_PRELOAD=/bin/{LIBRARY} LD_LIBRARY_PATH=/bin {program} {tests}"
            )
            words += [f"echo '== {engine} {program}'", run]
    return "; ".join(words)


def test(image: Path, build: Path, log: Path) -> Tally:
    files = [build / "runtime" / LIBRARY, decoder()]
    files += [build / "tests" / "runtime" / "programs" / name for name in PROGRAMS]
    guest = Guest(image, [], files, memory=1500, parameters="nofsgsbase")
    with tempfile.TemporaryFile("w+") as output:
        status = guest.run(f"sh -c {quoted(script())}", SECONDS, log, output)
        output.seek(0)
        said = output.read()
    print(said, flush=True)
    tally = Tally()
    begun = count(said, (), tally)
    if status in (CRASHED, TIMEOUT, NO_GUEST):
        print(f"the guest failed (status {status}); its kernel said:")
        print(*log.read_text(errors="replace").splitlines()[-60:], sep="\n")
        tally.failed += 1
    elif begun < 1 + len(ENGINES) * len(PROGRAMS):
        print(f"only {begun} programs began")
        tally.failed += 1
    return tally


def main() -> int:
    parser = argparse.ArgumentParser(description="Test without FSGSBASE.")
    add = parser.add_argument
    add("--build", type=Path, required=True, help="where the tests are built")
    add("--work", type=Path, required=True, help="for the kernel")
    add("--kernel", help="its version")
    given = parser.parse_args()
    given.work = given.work.resolve()
    given.work.mkdir(parents=True, exist_ok=True)
    try:
        kernels = [k for k in installed() if given.kernel in (None, k.version)]
        if not kernels:
            raise NoKernelError("no linux-headers-*-cloud-amd64 is installed")
        image = image_of(kernels[0], given.work)
        found = test(image, given.build, given.work / "kernel-bases.log")
    except (NoKernelError, NoGuestError) as error:
        print(f"skipped: bases: {error}")
        return NO_KERNEL
    except (KernelError, GuestError) as error:
        print(f"FAILED bases: {error}")
        found = Tally(failed=1)
    print(f"{found.passed} passed, {found.failed} failed, {found.skipped} skipped")
    return int(found.failed > 0)


if __name__ == "__main__":
    sys.exit(main())
