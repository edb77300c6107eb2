# SPDX-License-Identifier: MIT
"""What the bench of MariaDB reads of sysbench's output."""

from __future__ import annotations

import pytest
from flexbench.samples import BenchError
from flexstudy import mariadb

SYSBENCH = """\
sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)

Latency histogram (values are in milliseconds)
       value  ------------- distribution ------------- count
       0.042 |                                         4
       2.347 |*************                            46
       2.433 |**************************************** 130
       3.425 |***                                      18
      15.268 |                                         2

SQL statistics:
    queries performed:
        read:                            2800
        total:                           4000
    transactions:                        200    (66.12 per sec.)
    queries:                             4000   (1322.31 per sec.)
    ignored errors:                      3      (0.98 per sec.)
    reconnects:                          0      (0.00 per sec.)

General statistics:
    total time:                          3.0250s
    total number of events:              200

Latency (ms):
         min:                                    0.04
         avg:                                    2.51
         max:                                   15.27
         95th percentile:                        3.43

Threads fairness:
    events (avg/stddev):           3.1250/0.45
"""


def test_sysbench_is_read() -> None:
    found = mariadb.parse_sysbench(SYSBENCH)
    assert found.requests == 200
    assert found.requests_per_s == pytest.approx(200 / 3.025)
    assert found.mean_us == pytest.approx(2510)
    assert found.p50_us == pytest.approx(2433)
    assert found.p99_us == pytest.approx(3425)
    assert found.errors == ""


def test_connections_made_again_are_errors() -> None:
    text = SYSBENCH.replace("reconnects:                          0", "reconnects: 7")
    assert mariadb.parse_sysbench(text).errors == "7 reconnects"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "printed no transactions"),
        (SYSBENCH.replace("  200 ", "  0 "), "made no transaction"),
        (SYSBENCH.replace("|", ":"), "no latency histogram"),
        (SYSBENCH.partition("General")[0], "printed no total time"),
        (SYSBENCH.partition("Latency (ms)")[0], "printed no avg"),
    ],
)
def test_sysbench_without_figures_is_an_error(text: str, reason: str) -> None:
    with pytest.raises(BenchError, match=reason):
        mariadb.parse_sysbench(text)


def test_a_load_generator_that_fails_gives_its_reason() -> None:
    say = "echo Running; echo 'FATAL: unable to connect'; echo more; exit 1"
    with pytest.raises(BenchError, match=r"^sysbench: FATAL: unable to connect$"):
        mariadb.run_sysbench(["sh", "-c", say], 1)
    with pytest.raises(BenchError, match=r"^sysbench: exit status 3$"):
        mariadb.run_sysbench(["sh", "-c", "exit 3"], 1)
