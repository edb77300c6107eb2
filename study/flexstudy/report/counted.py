# SPDX-License-Identifier: MIT
"""The papers' tables that flexsc study counts measures: OSDI 2010, table 2, and ATC
2011, table 1. A count isn't a gain, so the numbers stand side by side without verdicts.
"""

from __future__ import annotations

from flexbench import table
from flexbench.samples import Measurement

from .. import counts
from ..papers import Data, Frequency, Profile
from .figure import Bench, Row
from .runs import Runs

COUNTS = Bench(("counts",), counts.BENCH)

NOT_COUNTED = "the file lacks this program"
HARDWARE = "needs hardware counters"
KERNEL = "valgrind can't count the kernel"
DIFFERS = (
    "The programs are Debian's current versions, with one worker or process. Their "
    "clients send requests in rounds, or are ab and sysbench. User instructions are those "
    "that valgrind executes, as on a processor without AVX-512. "
)


def of_server(runs: Runs, server: str) -> list[Measurement]:
    """The measurements of a program, by its name in the papers."""
    names = [name for name, kind in counts.KINDS.items() if kind.paper == server]
    return [m for name in names for m in runs.of(counts.BENCH, program=name)]


def rows_of(
    found: list[Measurement], server: str, what: str, series: str, paper: str
) -> list[Row]:
    if not found:
        return [Row(f"{server}: {what}", paper=paper, reason=NOT_COUNTED)]
    rows = []
    for m in found:
        how = f"{m.settings['program']} {m.settings['mode']}"
        count = int(m.settings["connections"])
        clients = "1 client" if count == 1 else f"{count} clients"
        here = table.number(m.median(series))
        rows.append(Row(f"{how}, {clients}: {what}", paper=paper, here=here))
    return rows


BETWEEN = "user instructions a call"


def frequency_rows(runs: Runs, data: Data) -> list[Row]:
    return [
        row
        for one in data.of(Frequency)
        for row in rows_of(
            of_server(runs, one.server),
            *(one.server, BETWEEN, counts.BETWEEN),
            f"{one.instructions_per_syscall:,}",
        )
    ]


def profile_rows(runs: Runs, data: Data) -> list[Row]:
    rows = []
    for one in data.of(Profile):
        found, calls = of_server(runs, one.server), str(one.syscalls_per_request)
        between = f"{one.user_instructions_per_syscall:,}"
        kernel = f"{one.kernel_instructions_per_syscall:,}"
        rows += rows_of(found, one.server, "calls a request", counts.CALLS, calls)
        rows += rows_of(found, one.server, BETWEEN, counts.BETWEEN, between)
        what = f"{one.server}: kernel instructions a call"
        rows.append(Row(what, paper=kernel, reason=KERNEL))
        ipc = f"{one.user_ipc:.2f}, {one.kernel_ipc:.2f}"
        what = f"{one.server}: IPC of user and kernel"
        rows.append(Row(what, paper=ipc, reason=HARDWARE))
    return rows
