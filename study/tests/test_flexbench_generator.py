# SPDX-License-Identifier: MIT
"""flexsc bench generator: what httperf prints, and when clients agree."""

from __future__ import annotations

import pytest
from flexbench.compare import Interval
from flexbench.samples import (
    BenchError,
    Measurement,
    Run,
)
from flexstudy import generator

# As httperf 0.9.0 prints it; lines that nobody reads are left out.
HTTPERF = """\
httperf --hog --timeout=10 --client=0/1 --server=127.0.0.1 --port=8080 --uri=/
Maximum connect burst length: 10

Total: connections 400 requests 8000 replies 8000 test-duration 2.500 s

Reply rate [replies/s]: min 0.0 avg 0.0 max 0.0 stddev 0.0 (0 samples)
Reply time [ms]: response 8.1 transfer 0.0
Reply status: 1xx=0 2xx=8000 3xx=0 4xx=0 5xx=0

Errors: total 0 client-timo 0 socket-timo 0 connrefused 0 connreset 0
Errors: fd-unavail 0 addrunavail 0 ftab-full 0 other 0
"""


def test_httperf_is_read() -> None:
    found = generator.parse_httperf(HTTPERF)
    assert found["samples"] == {
        "responses_per_s": [3200.0],
        "exchange_mean_us": [8100.0],
    }
    assert found["counts"] == {"answered": 8000}


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("fd-unavail 0", "fd-unavail 851"),
        ("client-timo 0", "client-timo 1"),
        ("2xx=8000 3xx=0 4xx=0", "2xx=7999 3xx=0 4xx=1"),
    ],
)
def test_an_error_of_httperf_s_voids_it(was: str, now: str) -> None:
    with pytest.raises(BenchError, match="httperf: under load: Errors: ") as error:
        generator.parse_httperf(HTTPERF.replace(was, now))
    assert now.partition(" 3xx")[0] in str(error.value)


@pytest.mark.parametrize("text", ["", "httperf: too many sessions (1001)", "\n\n"])
def test_httperf_without_an_answer_is_one_line(text: str) -> None:
    with pytest.raises(BenchError) as error:
        generator.parse_httperf(text)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (0.96, 1.04, "the clients agree within 5 %"),
        (0.90, 0.94, "THE CLIENTS DIFFER by more than 5 %"),
        (1.06, 1.50, "THE CLIENTS DIFFER by more than 5 %"),
        (0.90, 0.96, "whether the clients agree within 5 % can't be told"),
        (0.80, 1.20, "whether the clients agree within 5 % can't be told"),
    ],
)
def test_clients_agree_by_the_interval(low: float, high: float, words: str) -> None:
    found = Interval(low, (low + high) / 2, high, 1)
    assert generator.verdict(found).startswith(words)


def measurement(part: str, variant: str, *rates: float) -> Measurement:
    settings: dict[str, str | int] = {"variant": variant, "part": part, "seconds": 2}
    found = Measurement(generator.BENCH, settings)
    for rate in rates:
        samples = {"responses_per_s": [rate], "exchange_mean_us": [40.0]}
        found.rounds.append({"samples": samples, "counts": {}})
    return found


def test_the_verdict_is_on_top() -> None:
    run = Run({}, [])
    run.measurements.append(measurement("sessions", "load", 990, 1000, 1010))
    assert generator.show(run) == []
    run.measurements.append(measurement("sessions", "httperf", 500, 500, 500))
    (text,) = generator.show(run)
    lines = text.splitlines()
    assert lines[0].startswith("generator: THE CLIENTS DIFFER by more than 5 %")
    assert lines[1].split() == ["sessions", "load", "httperf", "load/httperf"]
    assert lines[2].split() == ["answers/s", "1,000", "500", "2.00", "(1.98-2.02)"]
    assert len(lines) == 4


def test_parts_have_names() -> None:
    assert generator.parse([]) == ["closed", "sessions"]
    assert generator.parse(["sessions", "sessions"]) == ["sessions"]
    with pytest.raises(BenchError, match="generator: open: give closed, sessions"):
        generator.parse(["open"])
