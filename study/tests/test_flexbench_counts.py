# SPDX-License-Identifier: MIT
"""flexsc study counts: parsing its tools' output, and the table."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from flexbench import tools
from flexbench.samples import BenchError, Measurement, Run
from flexstudy import counts
from flexstudy.counts import Count
from flexstudy.papers import data_of, index
from flexstudy.report import counted
from flexstudy.report.figure import Row
from flexstudy.report.runs import Runs, Source

AB = """\
Concurrency Level:      32
Time taken for tests:   0.551 seconds
Complete requests:      4000
Failed requests:        0
Keep-Alive requests:    4000
Total transferred:      5372000 bytes
"""


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "ab: no output"),
        ("apr_socket_connect(): Connection refused (111)", "Connection refused"),
        (AB.replace("requests:        0", "requests:        7"), "Failed requests: 7"),
        (AB + "Non-2xx responses:      12\n", "Non-2xx responses: 12"),
    ],
)
def test_an_answer_that_is_wrong_is_an_error(text: str, reason: str) -> None:
    with pytest.raises(BenchError, match=reason):
        counts.parse_ab(text)


# Process 11 has forked 12, which serves.
LOG = """\
==11== Callgrind, a call-graph generating cache profiler
==12==
==12== Events    : Ir
==12== Collected : 4711
==11== Events    : Ir
==11== Collected : 99
"""


@pytest.mark.parametrize("log", ["", LOG, "==1== Collected : 7"])
def test_a_process_that_was_not_counted_is_an_error(log: str) -> None:
    with pytest.raises(BenchError, match="callgrind counted nothing"):
        counts.collected(log, 13)


def test_a_request_is_the_difference() -> None:
    # A start costs 1000, a request 7, and one request more is made than requested.
    assert counts.each(lambda n: Count(1000 + 7 * (n + 1), n + 1), 10) == 7


def test_a_count_that_does_not_rise_is_an_error() -> None:
    with pytest.raises(BenchError, match="hides the cost of requests"):
        counts.each(lambda n: Count(1000, n), 10)
    with pytest.raises(BenchError, match="hides the cost of requests"):
        counts.each(lambda n: Count(n, 5), 10)


def test_calls_are_counted_while_the_load_runs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    perf = tmp_path / "perf"
    perf.write_text(
        "#!/bin/sh\n"
        'test "$1 $2 $3 $4 $5 $7 $8 $9" = '
        '"stat -x, -e raw_syscalls:sys_enter -o -p 47,11 --" || exit 1\n'
        'echo "42,,raw_syscalls:sys_enter,1,100.00,," >"$6"\n'
    )
    perf.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")

    def load(counter: object) -> str:
        assert isinstance(counter, list)
        subprocess.run(counter, check=True, timeout=60)
        return "loaded"

    assert tools.count_calls([47, 11], load) == (42, "loaded")


# The tables.


def run_of(program: str, mode: str, calls: float, executed: float) -> Run:
    samples = {
        counts.CALLS: [calls],
        counts.INSTRUCTIONS: [executed],
        counts.BETWEEN: [executed / calls],
    }
    settings: dict[str, str | int] = {"program": program, "mode": mode}
    settings |= {"connections": 8, "network": "lo"}
    rounds = [{"samples": samples, "counts": {}}]
    return Run({}, [], [Measurement(counts.BENCH, settings, rounds)])


def rows_of(figure: str, run: Run) -> list[Row]:
    (item,) = [item for item in index() if item.id == figure]
    rows = counted.frequency_rows if figure == "osdi-t2" else counted.profile_rows
    return rows(Runs([Source("a.json", run)]), data_of(item))


def test_the_report_has_the_calls_of_a_request() -> None:
    rows = rows_of("atc-t1", run_of("nginx", "new", 12.5, 25000))
    assert [(r.where, r.paper, r.here) for r in rows if r.here] == [
        ("nginx new, 8 clients: calls a request", "12", "12.5"),
        ("nginx new, 8 clients: user instructions a call", "1,460", "2,000"),
    ]
    assert {r.paper for r in rows if r.reason == counted.KERNEL} == {"5,420", "6,540"}
    assert {r.paper for r in rows if "counters" in r.reason} == {
        "0.80, 0.59",
        "0.46, 0.49",
    }
