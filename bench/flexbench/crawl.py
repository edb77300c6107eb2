# SPDX-License-Identifier: MIT
"""A program that reads and hashes small files, with its calls on its own core or on
another one (OSDI 2010, figure 8), for several shares of user time. As a file server it
also sends them through a UNIX socket to a client on the other core.
"""

from __future__ import annotations

from . import table
from .compare import ratio
from .runner import Plan, measure_all_raw
from .samples import Run, Settings, distinct

BENCH = "crawl"
SERIES = "ns_per_file"

PASSES = [0, 1, 2, 4, 8, 16]
QUICK_PASSES = [0, 4]
POLL_US = 1000

PLAIN = "plain"
# What plain calls are compared with: variants, and their titles.
TITLES = {
    "uring": "uring",
    "uring-sqpoll": "uring, calls on another core",
    "threads": "threads, calls on another core",
    "divided": "plain calls, two threads",
}


NO_CLIENT = -1


def settings_of(plan: Plan, name: str, passes: int, client: int) -> Settings:
    settings: Settings = {
        "variant": name,
        "core": plan.cores.measured,
        "passes": passes,
        "client": client,
        "outstanding": 1500,
        "bytes": 4096,
        "batch": 32,
        "reps": 5,
    }
    if name == "divided":
        settings["cores"] = plan.cores.other
    elif name not in (PLAIN, "uring"):
        settings["kernel_cores"] = str(plan.cores.other)
        settings["poll_us"] = POLL_US
    return settings


def variants(plan: Plan, passes: int, client: int = NO_CLIENT) -> list[Settings]:
    return [settings_of(plan, name, passes, client) for name in (PLAIN, *TITLES)]


def measure(run: Run, plan: Plan) -> None:
    for passes in QUICK_PASSES if plan.quick else PASSES:
        for client in (NO_CLIENT, plan.cores.other):
            measure_all_raw(run, plan, BENCH, variants(plan, passes, client))


def show(run: Run) -> list[str]:
    return [
        text
        for client in distinct(run.of(BENCH), "client")
        for text in show_client(run, client)
    ]


def show_client(run: Run, client: int) -> list[str]:
    rows = []
    for passes in distinct(run.of(BENCH, client=client), "passes"):
        these = run.of(BENCH, client=client, passes=passes)
        found = {m.settings["variant"]: m for m in these}
        plain = found.get(PLAIN)
        if not plain:
            continue
        cells = [
            table.ratio(ratio(plain.series(SERIES), found[name].series(SERIES)))
            if name in found
            else table.NOTHING
            for name in TITLES
        ]
        rows.append([str(passes), table.number(plain.median(SERIES)), *cells])
    if not rows:
        return []
    head = ["passes", "plain, ns", *TITLES.values()]
    sent = "" if client == NO_CLIENT else ", and sent to a client on the other core"
    title = f"crawl: plain ns per file, hashed in so many passes{sent}; speed-ups"
    return ["\n".join([title, table.table(head, rows)])]
