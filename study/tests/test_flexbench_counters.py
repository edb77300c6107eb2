# SPDX-License-Identifier: MIT
"""flexsc study counters: parsing perf's counts. The texts have the form of perf stat -x
in its manual page (CSV FORMAT), with invented numbers.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from bench_runs import plan
from fixtures import command
from flexbench import machine, quiet, tools
from flexbench.samples import BenchError, Measurement, Run, Settings
from flexstudy import counters
from flexstudy.papers import data_of, index
from flexstudy.report import figures
from flexstudy.report.figure import Row
from flexstudy.report.runs import Runs, Source
from programs import installed

EVENTS = {"ipc": "cycles", "icache_mpki": "L1-icache-load-misses"}
COUNTED = """\
# started on Tue Nov 24 04:00:00 2026

3000,,instructions:u,2000123456,50.00,0.75,insn per cycle
4000,,cycles:u,2000123456,50.00,,
1000,,instructions:k,2000123456,50.00,0.40,insn per cycle
2500,,cycles:k,2000123456,50.00,,
2000,,instructions:u,2000123456,50.00,,insn per cycle
30,,L1-icache-load-misses:u,2000123456,50.00,,
500,,instructions:k,2000123456,50.00,,insn per cycle
0,,L1-icache-load-misses:k,2000123456,50.00,,
"""


def test_each_figure_is_of_its_own_group() -> None:
    assert counters.figures_of(COUNTED, EVENTS) == {
        "ipc_user": 0.75,
        "ipc_kernel": 0.4,
        "icache_mpki_user": 15,
        "icache_mpki_kernel": 0,
    }


@pytest.mark.parametrize("value", ["<not counted>", "<not supported>"])
def test_what_was_not_counted_has_no_figure(value: str) -> None:
    for line, name in (("30,,L1", "icache_mpki_user"), ("4000,,cyc", "ipc_user")):
        text = COUNTED.replace(line, line.replace(line.split(",")[0], value))
        found = counters.figures_of(text, EVENTS)
        assert name not in found and len(found) == 3
    text = COUNTED.replace("4000,,cycles", "0,,cycles")
    assert "ipc_user" not in counters.figures_of(text, EVENTS)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "perf: no output"),
        ("No permission to enable instructions:u event.\n", "perf: No permission"),
        (COUNTED.replace("cycles:k", "cpu/cycles/k"), "perf: # started"),
        (COUNTED.rpartition("0,,L1")[0], "perf: # started"),
    ],
)
def test_another_output_is_an_error(text: str, reason: str) -> None:
    with pytest.raises(BenchError, match=reason):
        counters.figures_of(text, EVENTS)


# A perf that counts the events in SUPPORTED.
PERF = """\
#!/bin/sh
case " $SUPPORTED " in
*" ${4%:u} "*) echo "12,,$4,1000,100.00,," >&2 ;;
*) echo "$NOTHING" >&2; exit "$STATUS" ;;
esac
"""


@pytest.fixture
def perf(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    path = tmp_path / "perf"
    path.write_text(PERF)
    path.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("NOTHING", "<not supported>,,instructions:u,0,100.00,,")
    monkeypatch.setenv("STATUS", "0")
    assert tools.need("perf") == str(path)
    return monkeypatch


def test_a_machine_without_counters_is_told_in_a_sentence(
    perf: pytest.MonkeyPatch,
) -> None:
    perf.setenv("SUPPORTED", "")
    with pytest.raises(BenchError, match="hardware counters.*: instructions:u is <not"):
        counters.available(Run({}, []))
    perf.setenv("NOTHING", "event syntax error: 'instructions:u'")
    perf.setenv("STATUS", "129")
    with pytest.raises(BenchError, match="hardware counters.*: event syntax error"):
        counters.available(Run({}, []))


def test_an_event_that_the_processor_lacks_is_left_out(
    perf: pytest.MonkeyPatch,
) -> None:
    perf.setenv("SUPPORTED", "instructions cycles l2d_cache_refill branch-misses")
    run = Run({}, [])
    assert counters.available(run) == {
        "ipc": "cycles",
        "l2_mpki": "l2d_cache_refill",
        "branch_mpki": "branch-misses",
    }
    assert "counters: this processor doesn't count i-cache misses" in run.notes


# The tables.


def measured(program: str, variant: str, **samples: float) -> Measurement:
    one = {"samples": {k: [v] for k, v in samples.items()}, "counts": {}}
    settings: Settings = {"program": program, "mode": "kept"}
    return Measurement(counters.BENCH, {**settings, "variant": variant}, [one] * 3)


def run_of(program: str, *variants: str) -> Run:
    base, other = variants or ("native", "flexsc")
    samples = {"ipc_kernel": 0.25, "l3_mpki_kernel": 2.0}
    return Run(
        {},
        [],
        [
            measured(program, base, ipc_user=0.5, **samples),
            measured(program, other, ipc_user=0.75, l3_mpki_kernel=1.0),
        ],
    )


def test_the_report_has_the_models_cycles() -> None:
    rows = rows_of("geneves-t2", run_of("webserver", "threads", "loops"))
    assert [row.where for row in rows[:2]] == ["1 cores", "2 cores"]
    assert rows[-1].where == "threads, 1 core: cycles"
    assert rows[-1].here == "2.00 in user mode, 4.00 in the kernel"


def test_servers_are_compared_with_the_stock_one() -> None:
    rows = rows_of("atc-f10", run_of("nginx", "stock", "module"))
    assert rows[0].here == "instructions in a cycle: module 0.750 beside 0.500 stock"


def test_the_models_of_the_study_are_loaded() -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs two cores")
    installed("wrk", "wrk")
    how = replace(
        plan(command()), cores=machine.choose(os.sched_getaffinity(0)), connections=4
    )
    with counters.models(how, counters.MODELS) as found:
        assert list(found) == ["threads", "events", "stages", "loops"]
        for pid, load in found.values():
            before = quiet.clock_s(pid)
            load()
            assert quiet.clock_s(pid) > before


def test_the_table_has_what_was_counted() -> None:
    (text,) = counters.show(run_of("apache"))
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "user: instructions in a cycle 0.500 0.750 1.50 (1.50-1.50)" in lines
    assert "kernel: L3 misses 2.00 1.00 0.50 (0.50-0.50)" in lines
    assert "user: branch misses - - -" in lines


def rows_of(figure: str, run: Run) -> list[Row]:
    (item,) = [item for item in index() if item.id == figure]
    runs = Runs([Source("a.json", run)])
    return figures.FIGURES[figure].rows(runs, data_of(item))


@pytest.mark.parametrize(
    ("figure", "program", "paper", "four"),
    [
        ("osdi-t4", "apache", "0.940 beside 0.480", "0.740 beside 0.450"),
        ("osdi-t5", "mariadb", "1.10 beside 1.12", "0.720 beside 0.550"),
    ],
)
def test_the_report_has_the_counts_of_one_core(
    figure: str, program: str, paper: str, four: str
) -> None:
    rows = rows_of(figure, run_of(program))
    assert len(rows) == 28
    assert (rows[0].paper, rows[14].paper) == (paper, four)
    assert [(r.where, r.here) for r in rows if not r.reason] == [
        ("1 core, user: instructions in a cycle", "0.750 beside 0.500 natively"),
        ("1 core, kernel: L3 misses", "1.00 beside 2.00 natively"),
    ]
    assert {r.reason for r in rows[14:]} == {"not measured on 4 cores"}


def test_the_report_has_the_counts_of_each_number_of_cores() -> None:
    """The paper has 1 and 4 cores; a machine may have measured others."""
    run = run_of("apache")
    for cores, ipc in ((2, 0.25), (4, 0.125)):
        for variant, times in (("native", 1), ("flexsc", 2)):
            m = measured("apache", variant, ipc_user=times * ipc)
            m.settings["cores"] = cores
            run.measurements.append(m)
    rows = rows_of("osdi-t4", run)
    assert len(rows) == 3 * 14
    name = "user: instructions in a cycle"
    found = {r.where: (r.paper, r.here) for r in rows if r.where.endswith(name)}
    assert found == {
        f"1 core, {name}": ("0.940 beside 0.480", "0.750 beside 0.500 natively"),
        f"2 cores, {name}": ("", "0.500 beside 0.250 natively"),
        f"4 cores, {name}": ("0.740 beside 0.450", "0.250 beside 0.125 natively"),
    }
    # Four cores were measured, but not this event.
    assert rows[-1].reason == "this processor didn't count the event"


@pytest.mark.parametrize(
    ("figure", "program", "here"),
    [("atc-f6", "memcached", 1), ("atc-f10", "nginx", 3)],
)
def test_the_report_has_the_points_of_one_core(
    figure: str, program: str, here: int
) -> None:
    rows = rows_of(figure, run_of(program))
    assert len([r for r in rows if r.here]) == here
    assert all(bool(r.here) != bool(r.reason) for r in rows)
    reasons = {r.reason for r in rows if r.point and r.point.cores in ("2", "4")}
    assert all(reason.startswith("not measured on ") for reason in reasons)
