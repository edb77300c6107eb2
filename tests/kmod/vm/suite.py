# SPDX-License-Identifier: MIT
"""Test the kernel module in virtual machines.

    suite.py --build DIR --work DIR [--source SOURCE] [--kernel VERSION]...
        [PROGRAM...]
    suite.py --machine aarch64 --libraries DIR ...

Builds the module for each kernel whose headers are installed (Debian's package
linux-headers-VERSION), for the newest kernel of the release's backports, and for
that of the next release's backports; or for the kernels of one SOURCE only
("release", "backports", "newest"). Fetches their images, and runs test programs of
the build in guests: those of the module's own interface, and the conformance suite
with the engine "kmod". debian/flexsc-dkms.dkms names the same kernels. For another
machine it cross-builds for the first two, with fetched headers, and boots the newer
one. (The other one, arm64's 6.1, can't run the module:
docs/how-to/install-the-module.md.)

The last line is "N passed, N failed, N skipped". The status is 0 if none failed, 3
if nothing could be tried: apt has no source of a kernel, or QEMU is missing. A
module that can't be built, and a guest that doesn't boot, count as failed.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from guest import CRASHED, NO_GUEST, TIMEOUT, Guest, GuestError, NoGuestError
from kernels import (
    DEBIAN,
    Kernel,
    KernelError,
    NoKernelError,
    backports,
    command,
    image_of,
    newest,
    release,
    unpack,
    vsock_of,
)

ROOT = Path(__file__).resolve().parents[3]
NO_KERNEL = 3
DKMS = "debian/flexsc-dkms.dkms"
# Longer than the limit of the pairs' test, 600 s in a guest: pairs that hang are shown
# then, and the programs after them run.
SECONDS = 700.0

# Programs that share a guest. Each group takes about the same time.
GROUPS = (
    (
        "kmod-interface",
        "kmod-owner",
        "conformance-results_file",
        "conformance-results_other",
    ),
    ("kmod-cancelling", "kmod-leaving", "kmod-watched", "kmod-handled"),
    ("kmod-cores",),
    ("kmod-policy",),
    ("kmod-sharing",),
    ("kmod-dying",),
    ("kmod-rights",),
    ("kmod-watchdog", "kmod-instructions"),
    ("kmod-events",),
    ("events-delivery", "events-accept", "events-many", "events-memory"),
    ("events-notify", "events-cost", "events-stack"),
    ("kmod-upcall",),
    ("kmod-attack", "kmod-fuzz", "kmod-rounds"),
    ("kmod-hostile", "kmod-closing"),
    (
        "kmod-filtered",
        "kmod-choice",
        "conformance-blocking",
        "conformance-restricted",
        "conformance-refused",
    ),
    ("conformance-cancel", "conformance-posting", "conformance-table"),
    ("conformance-loop", "conformance-deadline", "conformance-stats"),
    ("conformance-results_socket", "conformance-receiving", "conformance-timer"),
    (
        "conformance-closing",
        "conformance-shutdown",
        "conformance-chain",
        "conformance-looped",
        "conformance-descriptors",
        "pairs loop=1 few=1",
    ),
    ("conformance-process", "conformance-signal", "conformance-fork"),
    ("conformance-capacity", "conformance-wake"),
    ("conformance-embed", "conformance-harvest", "conformance-work"),
    (
        "conformance-multishot",
        "conformance-fixed",
        "conformance-direct",
        "conformance-direct_batches",
        "conformance-handover",
        "conformance-failing",
        "conformance-idle",
        "conformance-looped_cancel",
        "conformance-opened",
        "conformance-vain",
        "conformance-guard",
    ),
    ("kmod-calls", "kmod-serve"),
    ("kmod-run", "threads-handover", "threads-masks"),
    ("threads-stuck",),
    ("threads-signals", "threads-handlers", "threads-kept"),
    ("threads-sandbox", "threads-preloads", "threads-strict"),
    ("threads-held", "threads-forks"),
    ("threads-jumps", "threads-sigpipe", "threads-process", "threads-identity"),
    ("threads-cancel", "threads-limits"),
    ("threads-kinds", "threads-large"),
    ("threads-calls", "threads-faults", "threads-loops"),
    (
        "threads-torture",
        "threads-clocks",
        "threads-last",
        "threads-locks",
        "threads-births",
        "threads-rest",
        "threads-times",
    ),
    (
        "threads-affinity",
        "threads-allocator",
        "threads-apart",
        "threads-attributes",
        "threads-cxx",
        "threads-ended",
        "threads-futex",
        "threads-idle",
        "threads-life",
        "threads-mtx",
        "threads-own_malloc",
        "threads-priorities",
        "threads-rseq",
        "threads-shadow",
        "threads-shared",
        "threads-signalfd",
        "threads-sites",
        "threads-tracing",
    ),
    ("pairs few=1",),
)

# Commands that run under flexsc run with the engine kmod: programs with threads, and
# the pairs that aren't posted.
RUN = ("threads-", "pairs few")
RUNTIME = Path("runtime/libflexsc-runtime.so")

# Files that a program needs in the guest, besides itself.
COMPANIONS = {
    "kmod-serve": (
        "tests/kmod-tap",
        "tests/kmod-http",
        "cmd/flexsc",
        "study/servers/overload/http-events",
    ),
    "kmod-calls": ("cmd/flexsc",),
    "kmod-run": ("tests/kmod-tap", "cmd/flexsc", "tests/kmod-threaded"),
    "kmod-hostile": ("tests/kmod-victim",),
    "kmod-fuzz": ("tests/kmod-victim",),
    "kmod-instructions": ("tests/kmod-tap", "cmd/flexsc"),
    "pairs": ("tests/pair",),
    "threads-held": ("tests/runtime/programs/libslow.so",),
    "threads-preloads": ("tests/runtime/programs/libpassing.so",),
    "threads-allocator": ("tests/runtime/programs/liblazy-malloc.so",),
    "threads-last": ("tests/runtime/programs/liblate.so",),
}
# Libraries that these programs have preloaded behind the runtime.
BEHIND = {"threads-preloads": ":/bin/libpassing.so"}
# Programs that need more processors than two, or only one.
CPUS = {
    "kmod-cores": 4,
    "kmod-policy": 4,
    "kmod-sharing": 4,
    "kmod-watchdog": 1,
    "kmod-instructions": 1,
}
# Parameters for the kernels of these programs' guests.
PARAMETERS = {
    "kmod-dying": "slub_debug=FZPU,task_struct",
    "kmod-rights": "lsm=landlock",
    "kmod-upcall": "vsyscall=xonly",
}
# Programs in whose guests the clock counts instructions, and stops while all processors
# idle.
COUNTED = dict.fromkeys(("kmod-watchdog", "kmod-instructions"), "shift=0,sleep=off")
# Programs whose guests have AF_VSOCK, if the kernel's package contains it.
VSOCK = {"kmod-events"}
# Programs that use modules with a call and a file that end a thread, as a bug of the
# kernel may.
MORTAL = {"kmod-dying"}


@dataclass
class Target:
    """What programs run on: a guest that isn't assigned to any yet."""

    name: str
    guest: Guest
    mortal: list[Path]  # the modules for MORTAL
    slower: int = 3  # factor by which the guest is slower than the tests expect
    seconds: float = SECONDS  # for a group
    before: str = ""  # commands that a guest executes before its programs
    after: str = ""  # and after them
    late: Collection[str] = ()  # programs that may fail: they need accurate clocks


@dataclass
class Tally:
    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def add(self, other: Tally) -> None:
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped


def modules_of(kernel: Kernel, work: Path) -> tuple[Path, list[Path]]:
    """Build the module in a copy of its sources, as packaged; and the modules for
    MORTAL.
    """
    name = f"{kernel.version}-{kernel.machine}"
    sources = work / "sources" / name
    shutil.rmtree(sources, ignore_errors=True)
    command(ROOT / "kmod" / "sources.sh", sources)
    kernel.make(sources / "kmod")
    module = stripped(kernel, sources, work / "modules" / name)
    with (sources / "kmod" / "base" / "calls.def").open("a") as calls:
        print("ALLOWED(reboot)", file=calls)
    shutil.copy(ROOT / "tests" / "kmod" / "vm" / "deadly.c", sources / "kmod")
    with (sources / "kmod" / "Kbuild").open("a") as kbuild:
        print("obj-m += deadly.o", file=kbuild)
    kernel.make(sources / "kmod")
    folder = work / "modules" / name / "mortal"
    names = ("flexsc", "deadly")
    return module, [stripped(kernel, sources, folder, each) for each in names]


def stripped(kernel: Kernel, sources: Path, folder: Path, name: str = "flexsc") -> Path:
    module = folder / f"{name}.ko"
    folder.mkdir(parents=True, exist_ok=True)
    # Without debug information the module has a twentieth of the size.
    cross = (
        "" if kernel.machine == platform.machine() else f"{kernel.machine}-linux-gnu-"
    )
    command(f"{cross}strip", "-g", "-o", module, sources / "kmod" / module.name)
    return module


def busybox_of(machine: str, work: Path) -> Path | None:
    """Find busybox for a guest of another machine."""
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
    """Build the module. None: this kernel can't be booted, so nothing else remains."""
    module, mortal = modules_of(kernel, work)
    if not kernel.image and kernel.machine == platform.machine():
        kernel.image = image_of(kernel, work)
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
    return Target(f"{kernel.version}-{kernel.machine}", guest, mortal)


def programs(build: Path, *names: str) -> list[Path]:
    """Find these programs, and the files that they need."""
    others = [build / path for name in names for path in COMPANIONS.get(name, ())]
    if any(name.startswith(("threads-", "pairs", "kmod-run")) for name in names):
        others += [build / RUNTIME, *loaded_by_name()]
    return [build / folder_of(name) / name for name in names] + others


def folder_of(program: str) -> str:
    if program.startswith("threads-"):
        return "tests/runtime/programs"
    return "study/tests" if program.startswith("study-") else "tests"


def environment_of(command: str) -> str:
    """Return what a shell sets for a program under flexsc run, with the module."""
    if not command.startswith(RUN):
        return ""
    return (
        f"LD_LIBRARY_PATH=/bin LD_PRELOAD=/bin/{RUNTIME.name}"
        f"{BEHIND.get(program_of(command), '')} "
        "FLEXSC_ENGINE=kmod FLEXSC_CARRIERS=2 "
    )


def loaded_by_name() -> list[Path]:
    """Find what programs under flexsc run load by name, so that no linker lists it."""
    known = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True)
    # For patching libc, and for pthread_cancel().
    wanted = r"lib(?:Zydis\.so\.[\d.]+|gcc_s\.so\.1) .*x86-64.* => (\S+)"
    return [Path(path) for path in re.findall(wanted, known.stdout)]


def run_group(
    target: Target, build: Path, commands: Sequence[str], log: Path
) -> tuple[int, str, float]:
    """Return the output, with a line before each program's, and the seconds."""
    begin = time.monotonic()
    names = list(map(program_of, commands))
    cpus = CPUS.get(names[0], 2)
    parameters = [PARAMETERS[name] for name in names if name in PARAMETERS]
    guest = replace(
        target.guest,
        files=programs(build, *names),
        cpus=cpus,
        icount=COUNTED.get(names[0], ""),
        parameters=" ".join([target.guest.parameters, *parameters]),
    )
    if MORTAL & set(names):
        guest.modules = target.mortal
    if VSOCK & set(names):
        guest.modules = [*vsock_of(guest.kernel), *guest.modules]
    each = [
        f"echo '== {command}'; FLEXSC_TEST_ENGINE=$(engine {command}) "
        f"FLEXSC_ECB=kmod {environment_of(command)}{command}; "
        for command in commands
    ]
    script = (
        "engine() { case $1 in kmod-*) echo sync ;; *) echo kmod ;; esac; }; "
        f"export FLEXSC_TEST_SLOWER={target.slower}; "
        f"{target.before} {''.join(each)} {target.after}"
    )
    with tempfile.TemporaryFile("w+") as output:
        try:
            status = guest.run(f"sh -c {quoted(script)}", target.seconds, log, output)
        except (GuestError, OSError) as error:
            print(error, file=output)
            status = NO_GUEST
        output.seek(0)
        return status, output.read(), time.monotonic() - begin


def program_of(command: str) -> str:
    return command.split()[0]


def quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def count(said: str, late: Collection[str], tally: Tally) -> int:
    """Count the TAP results. A program that didn't end, or has no test, has failed.
    Returns how many programs began.
    """
    parts = re.split(r"^== ", said, flags=re.MULTILINE)[1:]
    for part in parts:
        may_fail = program_of(part) in late
        for line in part.splitlines():
            if re.match(r"not ok ", line):
                tally.failed += not may_fail
                tally.skipped += may_fail
            elif re.match(r"ok .*# SKIP", line):
                tally.skipped += 1
            elif re.match(r"ok ", line):
                tally.passed += 1
        results = len(re.findall(r"^(?:not )?ok ", part, re.MULTILINE))
        plan = re.search(r"^1\.\.(\d+)", part, re.MULTILINE)
        if not plan or int(plan[1]) != results or not results:
            tally.failed += 1
    return len(parts)


def processors() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0))


def test(
    target: Target, build: Path, groups: Iterable[Sequence[str]], work: Path
) -> Tally:
    tally = Tally()
    jobs = [
        (group, work / f"kernel-{target.name}-{i}.log")
        for i, group in enumerate(groups)
    ]
    # A guest has two processors, one of which is mostly idle.
    with ThreadPoolExecutor(processors()) as pool:
        runs = pool.map(lambda job: run_group(target, build, *job), jobs)
        for (group, log), (status, said, took) in zip(jobs, runs, strict=True):
            names = ", ".join(group)
            print(f"\n{target.name}: {names}: {took:.0f} s\n{said}", flush=True)
            begun = count(said, target.late, tally)
            if status in (CRASHED, TIMEOUT, NO_GUEST):
                print(f"the guest failed (status {status}); its kernel said:")
                if log.exists():
                    said = log.read_text(errors="replace")
                    print(*said.splitlines()[-60:], sep="\n")
                tally.failed += 1
            elif begun < len(group):
                print(f"only {begun} of these programs began")
                tally.failed += 1
    return tally


def programs_of(groups: Iterable[Sequence[str]]) -> set[str]:
    return {program_of(command) for group in groups for command in group}


def chosen(
    groups: Iterable[Sequence[str]], wanted: Collection[str]
) -> list[tuple[str, ...]]:
    """Return the groups, reduced to these programs."""
    less = (tuple(c for c in group if program_of(c) in wanted) for group in groups)
    return [group for group in less if group]


SOURCES = ("release", "backports", "newest")


def kernels(machine: str, work: Path, total: Tally, only: str = "") -> list[Kernel]:
    """Return the release's kernels and the available backports, or those of one source."""
    found: list[Kernel] = []
    all_of_them = dict(zip(SOURCES, (release, backports, newest), strict=True))
    if machine != platform.machine():
        del all_of_them["newest"]
    sources = [all_of_them[only]] if only else list(all_of_them.values())
    with ThreadPoolExecutor(len(sources)) as pool:
        looks = [(find, pool.submit(find, machine, work)) for find in sources]
    for find, look in looks:
        try:
            more = look.result()
        except NoKernelError as error:
            print(f"skipped: no kernel of {find.__name__}: {error}")
            total.skipped += 1
        except KernelError as error:
            print(f"FAILED {find.__name__}: {error}")
            total.failed += 1
        else:
            versions = [kernel.version for kernel in more]
            found = [kernel for kernel in found if kernel.version not in versions]
            found += more
    return found


def note_untried(kernel: Kernel) -> None:
    """Report a kernel that DKMS's list lacks: the list isn't updated automatically."""
    conf = (ROOT / DKMS).read_text()
    found = re.search(r'^BUILD_EXCLUSIVE_KERNEL="(.*)\$debian"$', conf, re.MULTILINE)
    if not found or not re.match(rf"{found[1]}\.", kernel.version):
        print(f"note: DKMS doesn't build for {kernel.version}: see {DKMS}")


def try_on(
    kernel: Kernel,
    prepared: Future[Target | None],
    given: argparse.Namespace,
    work: Path,
    wanted: Collection[str],
) -> Tally:
    """Build the module for a kernel, and run the wanted programs on it."""
    try:
        target = prepared.result()
        if target:
            target.guest.qemu()
            note_untried(kernel)
            return test(target, given.build, chosen(GROUPS, wanted), work)
    except (NoKernelError, NoGuestError) as error:
        print(f"skipped: {kernel.version}: {error}")
        return Tally(skipped=1)
    except KernelError as error:
        print(f"FAILED {kernel.version}: {error}")
        return Tally(failed=1)
    print(f"{kernel.version}: built for {kernel.machine}")
    return Tally(passed=1)


def main() -> int:
    parser = argparse.ArgumentParser(description="Test the kernel module.")
    add = parser.add_argument
    add("--build", type=Path, required=True, help="where the tests are built")
    add("--work", type=Path, required=True, help="for kernels and modules")
    add("--kernel", action="append", default=[], help="only this version")
    add("--source", choices=SOURCES, default="", help="only its kernels")
    add("--machine", choices=DEBIAN, default=platform.machine())
    add("--libraries", type=Path, action="append", default=[], help="of that machine")
    add("program", nargs="*", help="only these")
    given = parser.parse_args()
    unknown = set(given.program) - programs_of(GROUPS)
    if unknown:
        parser.error(f"no such program: {', '.join(sorted(unknown))}")
    work = given.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    wanted = set(given.program or programs_of(GROUPS))
    total = Tally()
    # Fetching mostly waits, and guests of one kernel don't need the next kernel.
    with ThreadPoolExecutor(1) as pool:
        prepared = [
            (kernel, pool.submit(prepare, kernel, work, given.libraries))
            for kernel in kernels(given.machine, work, total, given.source)
            if not given.kernel or kernel.version in given.kernel
        ]
        if given.kernel and not prepared:
            print(f"FAILED: no such kernel: {', '.join(given.kernel)}")
            total.failed += 1
        for kernel, target in prepared:
            total.add(try_on(kernel, target, given, work, wanted))
    print(f"{total.passed} passed, {total.failed} failed, {total.skipped} skipped")
    if not total.passed and not total.failed:
        return NO_KERNEL
    return int(total.failed > 0)


if __name__ == "__main__":
    sys.exit(main())
