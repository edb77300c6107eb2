# SPDX-License-Identifier: MIT
"""Show flexsc serve on the kernel module, in a virtual machine.

    demo.py --build DIR --work DIR [--clients N] [--requests N]

Builds the module for the newest kernel whose headers are installed, fetches that
kernel, and boots it in QEMU. There, flexsc serve runs on the module, on io_uring and
on threads, one after the other. Clients check each byte of the responses. Then come
the counters of all three, and those of the module. The status is 0 if all was
correct, and 3 if no virtual machine is available, with the reason in one line.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import re
import sys
from dataclasses import replace
from pathlib import Path

from guest import TIMEOUT, GuestError
from kernels import KernelError, NoKernelError, installed
from suite import NO_KERNEL, Target, prepare, programs

SECONDS = 300.0
ENGINES = ("kmod", "uring", "threads")
WIDTH = 44

COUNTS = {
    "by_kmod": "  executed by the module",
    "by_uring": "  by io_uring",
    "by_thread": "  by threads of the library's pool",
    "by_inline": "  by the loop's thread, one by one",
    "batches": "batches that they were posted in",
}

MODULE = {
    "inline": "calls taken by the loop's own thread, as it waits",
    "deferred": "of these, left to syscall threads, as they would wait",
    "executed": "calls taken by syscall threads",
    "blocked": "threads that handed over, as their call waits",
    "wakeups": "syscall threads that were woken",
    "interrupted": "calls posted again, as their thread was needed",
    "waits": "times that the loop entered to wait",
}

Counters = dict[str, dict[str, int]]


def print_heading(text: str) -> None:
    print(f"\n== {text}", flush=True)


def target_of(work: Path) -> Target:
    """The newest available kernel."""
    why = "no linux-headers-*-cloud-amd64 is installed"
    said = io.StringIO()
    for kernel in reversed(installed()):
        try:
            with contextlib.redirect_stdout(said):
                target = prepare(kernel, work)
        except (KernelError, NoKernelError) as error:
            why = str(error)
        else:
            assert target
            return target
    log = work / "demo.log"
    log.write_text(said.getvalue())
    raise NoKernelError(f"{why} (see {log})")


def counters(said: str) -> Counters:
    """The differences of counters between "before" and "after", by engine."""
    found: Counters = {}
    for line in re.finditer(r"^# (\w+) (before|after) (\S+) (\d+)$", said, re.M):
        own = found.setdefault(line[1], {})
        sign = 1 if line[2] == "after" else -1
        own[line[3]] = own.get(line[3], 0) + sign * int(line[4])
    return found


def row(name: str, values: list[str]) -> None:
    print(f"{name:{WIDTH}}" + "".join(f"{value:>10}" for value in values))


def table(found: Counters, requests: int) -> None:
    engines = [found.get(engine, {}) for engine in ENGINES]
    calls = [own.get("posted", 0) for own in engines]
    batches = [max(own.get("batches", 0), 1) for own in engines]
    entries = [own.get("mode_switches", 0) for own in engines] + calls[:1]
    row("", [*ENGINES, "plain"])
    row("calls posted", [str(n) for n in calls + calls[:1]])
    for key, name in COUNTS.items():
        row(name, [str(own.get(key, 0)) for own in engines])
    row("calls a batch", [f"{a / b:.1f}" for a, b in zip(calls, batches, strict=True)])
    row("kernel entries", [str(n) for n in entries])
    row("kernel entries a request", [f"{n / requests:.2f}" for n in entries])


def show(said: str, requests: int) -> None:
    for line in said.splitlines():
        if not re.match(r"# \w+ (before|after) |1\.\.\d", line):
            print(re.sub(r"^(# |ok \d+ - )", "", line))
    found = counters(said)
    print_heading(f"What these {requests} requests took, as flexsc stat counts it")
    table(found, requests)
    print("(plain: one system call for each of these calls)")
    print_heading("What the module counted: /sys/kernel/debug/flexsc/registrations")
    for key, name in MODULE.items():
        value = found.get("kmod", {}).get(f"module.{key}", 0)
        print(f"{key:14}{value:8}  {name}")
    print("\nAll of these are counts. Times mean nothing here: QEMU emulates the")
    print("guest's processors.")


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Show flexsc serve with the kernel module."
    )
    add = parser.add_argument
    add("--build", type=Path, required=True, help="where flexsc is built")
    add("--work", type=Path, required=True, help="for the kernel and the module")
    add("--clients", type=int, default=32)
    add("--requests", type=int, default=25, help="of each client")
    given = parser.parse_args()
    given.work = given.work.resolve()
    given.work.mkdir(parents=True, exist_ok=True)
    output = io.StringIO()
    try:
        print_heading("flexsc.ko is built, and a kernel is fetched for it")
        target = target_of(given.work)
        print_heading(
            f"A virtual machine with Linux {target.name}; this takes a minute"
        )
        files = programs(given.build, "kmod-serve")
        guest = replace(target.guest, files=files)
        command = f"CLIENTS={given.clients} REQUESTS={given.requests} kmod-serve"
        log = given.work / "demo-kernel.log"
        status = guest.run(f"{command} {' '.join(ENGINES)}", SECONDS, log, output)
    except (NoKernelError, GuestError, OSError) as error:
        print(f"demo: no virtual machine: {error}", file=sys.stderr)
        return NO_KERNEL
    show(output.getvalue(), given.clients * given.requests)
    if status:
        why = "timed out" if status == TIMEOUT else f"status {status}"
        print(f"demo: the guest failed: {why}; see {log}", file=sys.stderr)
    return int(status != 0)


if __name__ == "__main__":
    sys.exit(main())
