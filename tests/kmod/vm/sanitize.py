# SPDX-License-Identifier: MIT
"""Test the kernel module for a long time, on a kernel that checks itself.

    sanitize.py --build DIR --work DIR [--sanitizer kasan|kcsan] [--minutes N]
                [--ends N] [--attackers N] [PROGRAM...]

Builds the kernel of Debian's package linux-source-6.1 with one of the configurations
in config/, and the module for it. Then it runs these in guests, round after round
until the time is over: the conformance suite with the engine "kmod", its stress
test, and the attacks on the module's own interface. In every other round the
module's tracepoints are on. Meanwhile debugfs is read, and at the end of a round the
kernel searches for leaked memory.

The last line is "N passed, N failed, N skipped; N rounds, N minutes". The status is
0 if none failed and no kernel has complained, 3 if apt has no source of the kernel.
scripts/packages --install kernel installs the packages that this needs; it also
needs 3 GB and 10 minutes.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

from guest import COMPLAINT, GuestError, NoGuestError
from kernels import Kernel, KernelError, NoKernelError, command, download
from suite import (
    GROUPS,
    NO_KERNEL,
    ROOT,
    Tally,
    Target,
    chosen,
    prepare,
    processors,
    programs_of,
    test,
)

PACKAGE = "linux-source-6.1"
CONFIG = Path(__file__).resolve().parent / "config"
SLOWER = 10
SECONDS = 1500.0
EACH = 10.0
BUILDING = 7200.0

# Run in addition to the suite's, or longer. KASAN keeps freed memory for a while.
MORE = (
    ("kmod-attack", "kmod-fuzz rounds={attackers}"),
    ("kmod-rounds rounds={ends} memory=65536",),
    ("stress-mixture seconds=120 loops=1 seed={round}",),
    ("stress-mixture seconds=120 loops=2 seed={round}",),
)
# Here 20 ms may not suffice to begin a call, nor 5 s to end it. These programs run for
# the effects of their calls on the kernel. Their failed tests count as skipped.
LATE = {
    f"conformance-{name}"
    for name in (
        "blocking",
        "cancel",
        "capacity",
        "deadline",
        "fork",
        "loop",
        "process",
        "receiving",
        "restricted",
        "signal",
        "stats",
        "timer",
        "vain",
        "wake",
    )
}

READ_DEBUGFS = """
while sleep 0.2; do cat /sys/kernel/debug/flexsc/registrations; done >/dev/null &
reader=$!
"""
TRACE = "echo 1 >/sys/kernel/tracing/events/flexsc/enable; "
# kmemleak reports memory that is unreachable at two scans, five seconds after its
# allocation. lockdep turns itself off after a complaint, or when its tables are full.
CHECKS = """
echo 0 >/sys/kernel/tracing/events/flexsc/enable
kill $reader
kmemleak=/sys/kernel/debug/kmemleak
echo "== checks"
for second in 0 1; do sleep 6; echo scan >$kmemleak; done
cat $kmemleak
[ -s $kmemleak ] && grep -q unreferenced $kmemleak && echo -n "not "
echo "ok 1 - nothing is lost"
grep -q "debug_locks: *1" /proc/lockdep_stats || echo -n "not "
echo "ok 2 - locks are still checked"
echo 1..2
"""
# A picked access is delayed for so long that another of the guest's processors runs
# meanwhile, even on a busy host. pick.c picks the accesses; by itself the kernel picks
# none.
RACES_SEEN = "kcsan.udelay_task=200 kcsan.udelay_interrupt=100 kcsan.skip_watch=200000"
WRAPPED = [
    f"{kind}{n}" for kind in ("read", "write", "read_write") for n in (1, 2, 4, 8)
]
WATCH_RACES = "echo on >/sys/kernel/debug/kcsan; "
RACES_CHECKS = """
echo 0 >/sys/kernel/tracing/events/flexsc/enable
kill $reader
kcsan=/sys/kernel/debug/kcsan
echo "== checks"
sed "s/^/# /" $kcsan
grep -q "enabled: 1" $kcsan || echo -n "not "
echo "ok 1 - races are still looked for"
echo 1..1
"""
# Other races belong to other parts of the kernel.
RACES = re.compile(
    r"KCSAN: .*\[flexsc\]|" + COMPLAINT.pattern.replace("BUG:", "BUG: (?!KCSAN)")
)


@dataclass
class Watching(Kernel):
    """A kernel with KCSAN, whose module is linked with pick.c."""

    def make(self, folder: Path, *words: str) -> None:
        if not (folder / "pick.c").exists():
            self.link_pick(folder)
        super().make(folder, *words)

    def link_pick(self, folder: Path) -> None:
        symbols = (self.headers / "System.map").read_text()
        skips = re.search(r"^(\w+) d kcsan_skip$", symbols, re.MULTILINE)
        if not skips:
            raise KernelError(f"{self.headers} has no kcsan_skip")
        shutil.copy(Path(__file__).with_name("pick.c"), folder)
        with (folder / "Kbuild").open("a") as kbuild:
            wrap = " ".join(f"--wrap=__tsan_{name}" for name in WRAPPED)
            print("flexsc-y += pick.o", file=kbuild)
            print("KCSAN_SANITIZE_pick.o := n", file=kbuild)
            print(f"CFLAGS_pick.o := -DSKIPS=0x{skips[1]}UL", file=kbuild)
            print(f"LDFLAGS_flexsc.o := {wrap}", file=kbuild)


def source(work: Path) -> Path:
    """Unpack Debian's kernel, from the archive unless it was fetched already."""
    found = sorted(work.glob(f"{PACKAGE}_*.deb"))
    if not found:
        download([PACKAGE], work)
        found = sorted(work.glob(f"{PACKAGE}_*.deb"))
    target = work / found[-1].stem
    if not (target / PACKAGE).exists():
        shutil.rmtree(target, ignore_errors=True)
        command("dpkg-deb", "--extract", found[-1], target)
        archive = target / "usr" / "src" / f"{PACKAGE}.tar.xz"
        command("tar", "-x", "-C", target, "-f", archive)
        archive.unlink()
    return target / PACKAGE


def configure(tree: Path, sources: Path, sanitizer: str) -> None:
    """Configure exactly the options that are listed."""
    wanted = [
        line
        for part in ("guest", sanitizer)
        for line in (CONFIG / part).read_text().splitlines()
        if line.startswith("CONFIG_")
    ]
    wanted.append(f'CONFIG_LOCALVERSION="-{sanitizer}"')
    config = tree / "wanted.config"
    text = "\n".join(wanted) + "\n"
    done = config.exists() and (tree / ".config").exists()
    if done and config.read_text() == text:
        return
    tree.mkdir(exist_ok=True)
    command(
        "make",
        "-C",
        sources,
        f"O={tree}",
        f"KCONFIG_ALLCONFIG={write(config, text)}",
        "allnoconfig",
    )
    given = set((tree / ".config").read_text().splitlines())
    missing = [line for line in wanted if line not in given]
    if missing:
        config.unlink()
        raise KernelError(
            f"{PACKAGE} configures these options differently: {', '.join(missing)}"
        )


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def build_kernel(sanitizer: str, work: Path) -> Target:
    sources = source(work)
    tree = work / sanitizer
    configure(tree, sources, sanitizer)
    print(f"building {tree}", flush=True)
    jobs = f"-j{processors()}"
    what = [f"O={tree}", jobs, "bzImage", "modules"]
    command("make", "-C", sources, *what, seconds=BUILDING)
    version = (tree / "include/config/kernel.release").read_text().strip()
    image = tree / "arch/x86/boot/bzImage"
    kind = Watching if sanitizer == "kcsan" else Kernel
    target = prepare(kind(version, tree, image=image), work)
    assert target
    if sanitizer == "kcsan":
        target.guest.complaint = RACES
        target.guest.parameters = RACES_SEEN
    return replace(
        target,
        slower=SLOWER,
        before=WATCH_RACES if sanitizer == "kcsan" else "",
        after=RACES_CHECKS if sanitizer == "kcsan" else CHECKS,
        late=LATE,
    )


def rounds(target: Target, given: argparse.Namespace) -> tuple[Tally, int]:
    """Run rounds until the time is over. Each round has a folder for its guests' logs."""
    more = programs_of(MORE)
    wanted = set(given.program or more | programs_of(GROUPS))
    groups = [*chosen(MORE, wanted), *chosen(GROUPS, wanted - more)]
    end = time.monotonic() + 60 * given.minutes
    total = Tally()
    count = 0
    begin = target.before + READ_DEBUGFS
    while not count or time.monotonic() < end:
        count += 1
        target.seconds = SECONDS + EACH * max(given.ends, given.attackers)
        target.before = (TRACE if count % 2 == 0 else "") + begin
        logs = given.work / "logs" / f"{given.sanitizer}-{count}"
        shutil.rmtree(logs, ignore_errors=True)
        logs.mkdir(parents=True)
        numbers = {"round": count, "ends": given.ends, "attackers": given.attackers}
        now = [tuple(c.format_map(numbers) for c in group) for group in groups]
        found = test(target, given.build, now, logs)
        total.add(found)
        print(f"round {count}: {found.passed} passed, {found.failed} failed")
    return total, count


def commit() -> str:
    said = subprocess.run(
        ["git", "-C", ROOT, "describe", "--always", "--dirty"],
        capture_output=True,
        text=True,
        check=False,
    )
    return said.stdout.strip() or "unknown"


def main() -> int:
    parser = argparse.ArgumentParser(description="Test the module for long.")
    add = parser.add_argument
    add("--build", type=Path, required=True, help="where the tests are built")
    add("--work", type=Path, required=True, help="for the kernel and the logs")
    add("--sanitizer", choices=("kasan", "kcsan"), default="kasan")
    add("--minutes", type=float, default=60.0, help="begin no round after that")
    add("--ends", type=int, default=300, help="of processes, in kmod-rounds")
    add("--attackers", type=int, default=100, help="processes, of kmod-fuzz")
    add("program", nargs="*", help="only these")
    given = parser.parse_args()
    given.work = given.work.resolve()
    given.work.mkdir(parents=True, exist_ok=True)
    try:
        target = build_kernel(given.sanitizer, given.work)
        print(f"Linux {target.name}, commit {commit()}", flush=True)
        begin = time.monotonic()
        total, count = rounds(target, given)
    except (NoKernelError, NoGuestError) as error:
        print(error)
        return NO_KERNEL
    except (KernelError, GuestError) as error:
        print(f"FAILED {given.sanitizer}: {error}")
        return 1
    minutes = (time.monotonic() - begin) / 60
    print(
        f"{total.passed} passed, {total.failed} failed, {total.skipped} skipped; "
        f"{count} rounds, {minutes:.0f} minutes"
    )
    return int(total.failed > 0)


if __name__ == "__main__":
    sys.exit(main())
