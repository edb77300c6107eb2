# SPDX-License-Identifier: MIT
"""How fast cores read memory, each its own, all at the same time: Geneves 2012, section
4.3. It shows how much memory bandwidth a server's cores share.
"""

from __future__ import annotations

from flexbench import table
from flexbench.compare import Interval, ratio
from flexbench.machine import Cores
from flexbench.runner import DISTURBED, Plan, measure_all
from flexbench.samples import Json, Measurement, Run, Settings

from .raw import raw

BENCH = "memory"
MIB, REPS = 256, 5
KINDS = {"plain": "words of 8 bytes", "vector": "vectors of 16 bytes"}


def series(kind: str) -> str:
    return f"{kind}_bytes_per_tick"


def cores_of(cores: Cores) -> list[list[int]]:
    """1, 2, 4 cores and so on, and all cores."""
    ordered = [cores.measured, *reversed(cores.load)]
    counts = {2**n for n in range(len(ordered).bit_length()) if 2**n < len(ordered)}
    return [ordered[:count] for count in sorted({*counts, len(ordered)})]


def count(m: Measurement) -> int:
    return len(str(m.settings["cores"]).split(","))


def once(plan: Plan, settings: Settings) -> Json:
    """One reading. Its threads report how long they waited for their cores."""
    found = raw(plan.flexsc, BENCH, settings)
    samples = found["samples"]
    waited = [one for kind in KINDS for one in samples[f"{kind}_waited_percent"]]
    samples[DISTURBED] = [max(waited)]
    return found


def measure(run: Run, plan: Plan) -> None:
    variants: list[Settings] = [
        {"cores": ",".join(map(str, cores)), "mib": MIB, "reps": REPS}
        for cores in cores_of(plan.cores)
    ]
    measure_all(run, plan, BENCH, variants, lambda s: once(plan, s))


def beside_one(found: list[Measurement], m: Measurement, kind: str) -> Interval:
    """Throughput relative to one core."""
    return ratio(m.series(series(kind)), found[0].series(series(kind)))


def show(run: Run) -> list[str]:
    found = run.of(BENCH)
    if not found or count(found[0]) != 1:
        return []
    head = ["cores"]
    for kind in KINDS:
        head += [f"{kind}, bytes/tick", "times 1 core"]
    rows = []
    for m in found:
        row = [str(count(m))]
        for kind in KINDS:
            row.append(table.number(m.median(series(kind))))
            row.append(table.ratio(beside_one(found, m, kind)))
        rows.append(row)
    title = (
        f"memory: each core reads {found[0].settings['mib']} MiB of its own, "
        f"{' or '.join(KINDS.values())}; {len(found[0].rounds)} rounds\n"
    )
    return [title + table.table(head, rows)]
