# SPDX-License-Identifier: MIT
"""Run a command in a virtual machine, as root, with the kernel module loaded.

    guest.py [OPTION...] --kernel VMLINUZ [--module FLEXSC.KO] -- COMMAND...

The guest's file system is created for the run, in memory: busybox, the command's
program, and each --file, with the shared libraries that they need. There is no
network but loopback, no disk, and no user but root. The command's output goes to
standard output, and the kernel's to --log. The status is the command's, 124 if it
took longer than --seconds, 125 if the guest crashed or its kernel complained, 126 if
no guest is available, or none boots.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

TIMEOUT, CRASHED, NO_GUEST = 124, 125, 126
# The guest has mismeasured its clock, which happens on a busy host: then a second of
# the guest is a tenth of a real one.
AGAIN = -1
TRIES = 5

# A guest doesn't fail because its host is busy. The time limit detects hangs.
PATIENT = "watchdog_thresh=60 rcupdate.rcu_cpu_stall_timeout=240"
COMMON = ["-nodefaults", "-no-reboot", "-display", "none"]


@dataclass
class Machine:
    """How to start a machine, and where the output of its kernel and of its commands
    goes.
    """

    options: list[str]
    console: str
    port: str
    serial: list[str]
    parameters: str = ""


MACHINES = {
    # Newer guests crash in QEMU 7.2 if they find cmpxchg16b. On a busy host the timer
    # ticks too seldom for the kernel's check of it.
    "x86_64": Machine(
        ["-cpu", "max,-cx16"],
        "ttyS0",
        "ttyS1",
        ["-serial", "stdio"],
        "tsc=reliable no_timer_check",
    ),
    "aarch64": Machine(
        ["-machine", "virt", "-cpu", "max"],
        "ttyAMA0",
        "ttyS0",
        ["-chardev", "stdio,id=said", "-device", "pci-serial,chardev=said"],
    ),
}

# Messages by which a kernel reports a fault of its own.
COMPLAINT = re.compile(
    r"BUG:|WARNING:|Oops|Kernel panic|general protection|KASAN|UBSAN|lockdep"
    r"|rcu.*stall|soft lockup|hung task|suspicious|possible .* deadlock"
    r"|Unable to handle|ODEBUG|blocked for more than|corruption|Leaked"
)

INIT = """\
#!/bin/busybox sh
# Loading and unloading rewrites the scheduler's code, which QEMU's processors
# may not notice while they run it: then there is one.
cpus() {{
	for cpu in /sys/devices/system/cpu/cpu[1-9]*/online; do
		echo "$1" >"$cpu"
	done
}}
/bin/busybox mkdir -p /proc /sys /dev /tmp /run
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts pts /dev/pts
mount -t tmpfs shm /dev/shm
mount -t debugfs debug /sys/kernel/debug
mount -t tracefs trace /sys/kernel/tracing
mount -t cgroup2 cgroup /sys/fs/cgroup
ip link set lo up
echo 4000000 >/proc/sys/fs/file-max
echo 4000000 >/proc/sys/fs/nr_open
export PATH=/bin HOME=/tmp
# Held open: to open what is being closed may fail.
exec 3<>/dev/{port}
stty raw -echo <&3
if dmesg | grep -q "PIT calibration deviates"; then
	echo "flexsc-guest: again" >&3
	poweroff -f
fi
{modules}
chmod 0666 /dev/flexsc
cpus 1
ulimit -n 1048576
cd /tmp
({command}) </dev/null >&3 2>&1 3>&-
echo "flexsc-guest: status $?" >&3
cpus 0
{unload}
echo "flexsc-guest: end" >&3
poweroff -f
"""


class GuestError(Exception):
    """A guest can't be started."""


class NoGuestError(GuestError):
    """Something that a guest needs isn't installed here."""


@dataclass
class Guest:
    """A virtual machine that will run a command."""

    kernel: Path
    modules: list[Path] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)
    cpus: int = 2
    memory: int = 768
    icount: str = ""  # QEMU's option to make time count instructions, or ""
    parameters: str = ""
    complaint: re.Pattern[str] = COMPLAINT
    machine: str = "x86_64"
    busybox: Path | None = None  # that machine's
    libraries: list[Path] = field(default_factory=list)  # folders with its libraries

    def run(
        self, command: str, seconds: float, log: Path, output: TextIO = sys.stdout
    ) -> int:
        qemu = self.qemu()
        with tempfile.TemporaryDirectory() as folder:
            system = Path(folder) / "system.gz"
            pack(self, command, Path(folder) / "root", system)
            words = [qemu, *self.options(), "-initrd", str(system)]
            words += ["-serial", f"file:{log}", *MACHINES[self.machine].serial]
            for _ in range(TRIES):
                status = follow(words, seconds, log, output)
                if status != AGAIN:
                    break
        if status == AGAIN:
            raise GuestError("the guest's clock is wrong each time")
        return CRASHED if complaints(self.complaint, log, output) else status

    def qemu(self) -> str:
        """Return the emulator. On this machine, also check for what the guest's system
        needs.
        """
        found = shutil.which(f"qemu-system-{self.machine}")
        if not found:
            raise NoGuestError(f"qemu-system-{self.machine} isn't installed")
        for tool in ("cpio", "busybox"):
            if not shutil.which(tool) and not (tool == "busybox" and self.busybox):
                raise NoGuestError(f"{tool} isn't installed")
        return found

    def options(self) -> list[str]:
        accel = "tcg,thread=single" if self.icount else "tcg,thread=multi"
        machine = MACHINES[self.machine]
        # WARN() and lockdep print at the level of warnings, which is below 5.
        append = f"console={machine.console} loglevel=5 panic=-1 oops=panic maxcpus=1"
        append += f" {machine.parameters} {PATIENT} {self.parameters}"
        words = ["-accel", accel, *machine.options, *COMMON, "-m", str(self.memory)]
        words += ["-smp", str(self.cpus)]
        words += ["-kernel", str(self.kernel), "-append", append.strip()]
        return words + (["-icount", self.icount] if self.icount else [])


def libraries(program: Path) -> Iterable[Path]:
    """Yield the libraries that the dynamic linker would load, and the linker."""
    said = subprocess.run(["ldd", program], capture_output=True, text=True)
    for word in said.stdout.split():
        if word.startswith("/"):
            yield Path(word)


def libraries_among(program: Path, folders: Sequence[Path]) -> Iterable[Path]:
    """The same for a program of another machine, from folders with its libraries."""
    said = subprocess.run(
        ["readelf", "--wide", "--dynamic", "--program-headers", program],
        capture_output=True,
        text=True,
    )
    names = re.findall(r"(?:Shared library: \[|interpreter: /lib/)([^]]+)", said.stdout)
    for name in names:
        for folder in folders:
            if (folder / name).exists():
                yield folder / name
                yield from libraries_among(folder / name, folders)
                break


def place(root: Path, path: Path, where: Path) -> None:
    target = root / where.relative_to("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    if not target.exists():
        shutil.copy(path, target)


def pack(guest: Guest, command: str, root: Path, system: Path) -> None:
    """Create the guest's file system."""
    own = shutil.which("busybox") or ""
    place(root, guest.busybox or Path(own), Path("/bin/busybox"))
    for path in guest.files:
        place(root, path, Path("/bin") / path.name)
        for library in libraries_among(path, guest.libraries):
            place(root, library, Path("/lib") / library.name)
        for library in () if guest.libraries else libraries(path):
            # The build's own library, which its programs find in $ORIGIN/../lib.
            ours = ".." in library.parts
            place(root, library, Path("/lib") / library.name if ours else library)
    for path in guest.modules:
        place(root, path, Path("/modules") / path.name)
    names = [path.stem for path in guest.modules]
    init = root / "init"
    init.write_text(
        INIT.format(
            modules="\n".join(f"insmod /modules/{name}.ko" for name in names),
            command=command,
            port=MACHINES[guest.machine].port,
            unload="\n".join(
                f'rmmod {name} || echo "BUG: {name} stays" >/dev/kmsg'
                for name in reversed(names)
            ),
        )
    )
    init.chmod(init.stat().st_mode | stat.S_IXUSR)
    files = "\n".join(str(path.relative_to(root)) for path in sorted(root.rglob("*")))
    with system.open("wb") as output:
        cpio = subprocess.Popen(
            ["cpio", "--create", "--format=newc", "--quiet"],
            cwd=root,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        gzip = subprocess.Popen(["gzip", "-1"], stdin=cpio.stdout, stdout=output)
        assert cpio.stdin is not None
        cpio.stdin.write(files.encode())
        cpio.stdin.close()
        if gzip.wait() or cpio.wait():
            raise GuestError("the guest's system can't be packed")


def follow(words: Sequence[str], seconds: float, log: Path, output: TextIO) -> int:
    """Run the machine, and show the command's output."""
    machine = subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        errors="replace",
    )
    late = threading.Timer(seconds, machine.kill)
    late.start()
    status: int | None = None
    ended = False
    assert machine.stdout is not None
    for line in machine.stdout:
        found = re.fullmatch(r"flexsc-guest: (status|end|again) ?(\d*)\s*", line)
        if not found:
            print(line.rstrip("\r\n"), file=output, flush=True)
        elif found[1] == "again":
            status, ended = AGAIN, True
        elif found[1] == "end":
            ended = True
        else:
            status = int(found[2])
    machine.wait()
    was_late = not late.is_alive()
    late.cancel()
    if was_late:
        return TIMEOUT
    return status if ended and status is not None else CRASHED


def complaints(complaint: re.Pattern[str], log: Path, output: TextIO) -> bool:
    said = log.read_text(errors="replace") if log.exists() else ""
    lines = [line for line in said.splitlines() if complaint.search(line)]
    for line in lines[:10]:
        print(f"kernel: {line}", file=output, flush=True)
    return bool(lines)


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="Run a command in a guest.")
    add = parser.add_argument
    add("--kernel", type=Path, required=True, help="its kernel")
    add("--module", type=Path, action="append", default=[], help="to be loaded")
    add("--file", type=Path, action="append", default=[], help="to be in /bin")
    add("--cpus", type=int, default=2)
    add("--memory", type=int, default=768, help="in MiB")
    add(
        "--icount",
        nargs="?",
        const="shift=0",
        default="",
        help="time counts instructions",
    )
    add("--parameters", default="", help="of the kernel, besides")
    add("--seconds", type=float, default=120.0, help="when it is late")
    add("--log", type=Path, help="for the kernel's messages (a temporary file)")
    add("command", nargs="+")
    given = parser.parse_args(words)
    guest = Guest(
        given.kernel,
        given.module,
        given.file,
        given.cpus,
        given.memory,
        given.icount,
        given.parameters,
    )
    with tempfile.NamedTemporaryFile(suffix=".log") as own:
        log = given.log or Path(own.name)
        try:
            return guest.run(shlex.join(given.command), given.seconds, log)
        except GuestError as error:
            print(f"guest.py: {error}", file=sys.stderr)
            return NO_GUEST


if __name__ == "__main__":
    os.umask(0o022)
    sys.exit(main(sys.argv[1:]))
