# SPDX-License-Identifier: MIT
"""The machine, and the choice of cores."""

from __future__ import annotations

import csv
import os
import platform
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from . import tools
from .samples import BenchError, Json

CPU = Path("/sys/devices/system/cpu")
SYS = Path("/proc/sys")
# The settings of Genevès' table 1, which tune a web server for many clients.
TUNING = Path(__file__).resolve().parent / "geneves-t1.csv"
TIMEOUT = 10


@dataclass(frozen=True)
class Cores:
    """The cores of the measured program, of its helpers, and of the clients. more:
    further cores of a server on several cores.
    """

    measured: int
    other: int
    load: list[int]
    more: list[int] = field(default_factory=list)

    @property
    def server(self) -> list[int]:
        return [self.measured, *self.more]


def siblings(core: int) -> set[int]:
    """The cores that share one physical core with this one, including this one."""
    path = CPU / f"cpu{core}/topology/thread_siblings_list"
    try:
        text = path.read_text(encoding="ascii")
    except OSError:
        return {core}
    return cores_of(text.strip())


def cores_of(text: str) -> set[int]:
    """The cores of a list such as "0,4-6"."""
    cores: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        cores.update(range(int(first), int(last or first) + 1))
    return cores


def whole(allowed: set[int]) -> list[int]:
    """One logical core of each physical core, in descending order, because cores with
    low numbers handle more interrupts.
    """
    found: list[int] = []
    for core in sorted(allowed, reverse=True):
        if not siblings(core) & set(found):
            found.append(core)
    return found


def choose(allowed: set[int], count: int = 1) -> Cores:
    """Give the last physical cores to a server with count cores. Helpers and clients
    get cores that share no physical core with the server, or else the remaining logical
    cores, or else the server's cores.
    """
    if len(allowed) < 2:
        raise BenchError(
            "this needs two cores, one for the measured program and one for its load, "
            "but only one is available (see nproc; taskset -p $$)"
        )
    physical = whole(allowed)
    server = physical[:count]
    if count > len(physical):
        raise BenchError(
            f"--cores {count}: too many, because this machine has {len(physical)} "
            "physical cores (see lscpu): give fewer, or all"
        )
    rest = sorted(allowed - set(server)) or sorted(server)
    apart = [c for c in rest if not siblings(c) & set(server)] or rest
    return Cores(server[0], apart[-1], apart, server[1:])


def crowded(cores: Cores) -> str:
    """A remark if the clients have fewer cores than the server; else empty."""
    if set(cores.load) & set(cores.server):
        return "the clients share the server's cores"
    if len(cores.load) < len(cores.server):
        return (
            f"{len(cores.server)} cores of the server, {len(cores.load)} of the clients"
        )
    return ""


def counts(allowed: set[int]) -> list[int]:
    """The numbers of server cores for --cores all: 1, 2, 4 and so on, up to half of the
    physical cores.
    """
    most = max(1, len(whole(allowed)) // 2)
    return [1 << n for n in range(most.bit_length())]


def text_of(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def cpu_model() -> str:
    text = text_of(Path("/proc/cpuinfo")) or ""
    found = re.search(r"^(?:model name|CPU part)\s*:\s*(.+)$", text, re.MULTILINE)
    return found[1] if found else platform.machine()


def virtual() -> bool:
    text = text_of(Path("/proc/cpuinfo")) or ""
    return re.search(r"^flags.*\bhypervisor\b", text, re.MULTILINE) is not None


def mitigations() -> dict[str, str]:
    """Only mitigations that cost something; those for bugs that this machine lacks are
    omitted.
    """
    found = {}
    for path in sorted((CPU / "vulnerabilities").glob("*")):
        text = text_of(path) or "unreadable"
        if text != "Not affected":
            found[path.name] = text
    return found


def output(*command: str) -> str | None:
    """The first line of a program's output, if the program can be run."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=TIMEOUT, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = (done.stdout + done.stderr).strip().splitlines()
    return lines[0] if lines else None


def version(program: str, *options: str) -> str | None:
    path = tools.find(program)
    return output(path, *options) if path else None


def revision() -> str | None:
    """The revision of the source tree that this runs from, if any."""
    here = Path(__file__).resolve().parents[2]
    if not (here / ".git").exists():
        return None
    return output("git", "-C", str(here), "describe", "--always", "--dirty")


def path_of(name: str) -> Path:
    """The file of a setting of sysctl(8)."""
    return SYS / name.replace(".", "/")


def setting(name: str) -> str | None:
    """The value of a setting of sysctl(8). None: this kernel lacks it."""
    text = text_of(path_of(name))
    return None if text is None else " ".join(text.split())


@cache
def wished() -> dict[str, str]:
    """Genevès' settings, except those of his network cards."""
    with TUNING.open(encoding="utf-8", newline="") as file:
        rows = [(row["setting"], row["value"]) for row in csv.DictReader(file)]
    return {name: value for name, value in rows if ".ethX." not in name}


def settings() -> dict[str, str | None]:
    return {name: setting(name) for name in wished()}


def collect(flexsc: str, several: Sequence[Cores]) -> Json:
    """The description of the machine. several: the cores of each part of the run; the
    fields for a single core describe the first part.
    """
    cores, allowed = several[0], os.sched_getaffinity(0)
    governor = CPU / f"cpu{cores.measured}/cpufreq/scaling_governor"
    return {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "cpu": cpu_model(),
        "virtual": virtual(),
        "mitigations": mitigations(),
        "online": len(allowed),
        "physical": len(whole(allowed)),
        "load": os.getloadavg()[0],
        "cores": {
            "measured": cores.measured,
            "other": cores.other,
            "load": cores.load,
            "servers": [one.server for one in several],
        },
        "governor": text_of(governor),
        "settings": settings(),
        "revision": revision(),
        "versions": {
            "flexsc": output(flexsc, "--version"),
            "python": platform.python_version(),
            "nginx": version("nginx", "-v"),
            "wrk": version("wrk", "-v"),
            "apache2": version("apache2", "-v"),
            "mariadbd": version("mariadbd", "--version"),
            "sysbench": version("sysbench", "--version"),
            "java": version("java", "--version"),
        },
    }


def named(cores: Json) -> str:
    """Describe the servers' cores. An older version's file has only the measured core."""
    found = []
    for server in cores.get("servers", [[cores.get("measured")]]):
        listed = ", ".join(str(core) for core in server)
        found.append(f"core {listed}" if len(server) == 1 else f"cores {listed}")
    return "; ".join(found)


def describe(machine: Json) -> str:
    """Three lines that describe the machine, for every figure."""
    cores = machine["cores"]
    where = f"{machine['cpu']}, {machine['online']} cores"
    if machine["virtual"]:
        where += ", a virtual machine"
    if machine["governor"]:
        where += f", governor {machine['governor']}"
    what = str(machine["versions"]["flexsc"])
    if machine["revision"]:
        what += f" ({machine['revision']})"
    costly = [
        name
        for name, text in machine["mitigations"].items()
        if text.startswith("Mitigation")
    ]
    return "\n".join(
        [
            f"{what} on Linux {machine['kernel']}, {where}; load "
            f"{machine['load']:.1f}",
            f"measured on {named(cores)}, another core is {cores['other']}",
            "mitigations: " + (", ".join(costly) or "none"),
        ]
    )
