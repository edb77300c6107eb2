# SPDX-License-Identifier: MIT
"""flexbench's overload: its words, sizes, tables and figures."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))

from flexbench import mix, network, overload_table, plot, quiet, tools
from flexbench.machine import Cores
from flexbench.overload_plan import Options, parse
from flexbench.samples import BenchError, Json, Measurement, Run, Settings


def test_words_are_parts_and_settings() -> None:
    words = ["goodput", "trace", "events=send,epoll", "rate=0.5x,2", "work=0"]
    found = parse([*words, "size=1,8", "admission=age,none"], "veth")
    assert found == Options(
        parts=["goodput", "trace"],
        events=["send", "epoll"],
        size=["1", "8"],
        rate=["0.5", "2"],
        admission=["age", "none"],
        work=0,
        network="veth",
    )
    assert parse(["mix=barford"]).size == ["barford"]


@pytest.mark.parametrize(
    "word",
    ["", "=", "rate", "rate=", "rate=x", "rate=nan", "size=1,", "size=-1", "work=1.5"],
)
def test_other_words_are_refused(word: str) -> None:
    with pytest.raises(BenchError) as error:
        parse([word])
    assert "\n" not in str(error.value)


def test_the_mix_is_what_was_seen() -> None:
    found = mix.sizes()
    assert found == mix.sizes()
    assert len(found) == mix.FILES
    assert found != sorted(found)
    ordered = sorted(found)
    # The median of all is the lognormal's at 0.5 of 0.93: 12.5 KB.
    assert 11 <= ordered[len(ordered) // 2] <= 14
    # Seven of a hundred are in the tail, which begins at 133,000 bytes; and three
    # of a hundred others are as large.
    assert sum(kib > 131 for kib in found) == 4
    assert 1 <= ordered[0] <= 2
    assert mix.quantile(0.93) == pytest.approx(133_000)
    assert mix.quantile(0.93 / 2) == pytest.approx(11_579, rel=0.01)


def test_other_networks_take_root(monkeypatch: pytest.MonkeyPatch) -> None:
    cores = Cores(measured=1, other=0, load=[0])
    with network.network("lo", cores) as lo:
        assert lo.server == lo.client == []
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with (
        pytest.raises(BenchError, match="--network rps takes root"),
        network.network("rps", cores),
    ):
        pass


@pytest.mark.parametrize("kind", ["veth", "rps", "100mbit"])
def test_networks_come_and_go(kind: str) -> None:
    cores = Cores(measured=1, other=0, load=[0])
    if os.geteuid() != 0 or not tools.find("ip") or not tools.find("tc"):
        pytest.skip("this takes root, ip and tc")
    try:
        with network.network(kind, cores) as net:
            route = [*net.client, "ip", "route", "get", net.address, "from", net.source]
            found = subprocess.run(route, capture_output=True, text=True, check=True)
            assert f"{net.address} from {net.source} dev v0" in found.stdout
            name = net.client[-1]
    except BenchError as error:
        if "not permitted" in str(error) or "Read-only" in str(error):
            pytest.skip(str(error))
        raise
    listed = subprocess.run(["ip", "netns"], capture_output=True, text=True, check=True)
    assert name not in listed.stdout


def test_a_core_that_is_shared_is_noticed() -> None:
    program = "while True: pass"
    one = ["taskset", "-c", "0", sys.executable, "-c", program]
    watches = []
    with (
        subprocess.Popen(one) as first,
        subprocess.Popen(one) as second,
    ):
        try:
            watches = [quiet.Watch(p.pid, 0) for p in (first, second)]
            with pytest.raises(subprocess.TimeoutExpired):
                first.wait(1)
            shares = [watch.percent() for watch in watches]
        finally:
            first.kill()
            second.kill()
    assert all(share > quiet.LIMIT_PERCENT for share in shares)


TIMES = ["connect_mean_us", "connect_p99_us", "response_mean_us", "response_p50_us"]
TIMES += ["response_p99_us", "behind_p99_us", "disturbed_percent"]


def measurement(part: str, variant: str, times: str, rate: float) -> Measurement:
    settings: Settings = {
        "part": part,
        "variant": variant,
        "size": "1",
        "times": times,
        "rate": int(1000 * float(times or 0)),
        "admission": "none",
        "work": 100,
        "backlog": 128,
        "network": "lo",
    }
    samples = {f"{part}_per_s": [rate], "mbit_per_s": [8.0], "order_us": [1.0, 2.0]}
    samples.update({name: [1000.0] for name in TIMES})
    counts = {"offered": 100, "answered": 60, "listen_overflows": 7, "unsent": 0}
    round_: Json = {"samples": samples, "counts": {**counts, "server_cpu_us": 6000}}
    return Measurement("overload", settings, [round_])


def a_run() -> Run:
    models = [
        ["epoll", "batched", "batched", "in batches", "the kernel"],
        ["send", "immediate", "preemptive", "at delivery", "uring"],
    ]
    found = [measurement("saturation", "epoll", "", 1000)]
    found.append(measurement("saturation", "send", "", 950))
    for part in ("responses", "goodput"):
        for times, epoll, send in [
            ("0.5", 500, 500),
            ("1", 1000, 950),
            ("2", 250, 931),
        ]:
            found.append(measurement(part, "epoll", times, epoll))
            found.append(measurement(part, "send", times, send))
    found.append(measurement("kept", "epoll", "", 0))
    found.append(measurement("trace", "epoll", "1.2", 0))
    return Run(machine={"models": models}, command=["overload"], measurements=found)


def test_the_tables() -> None:
    run = a_run()
    text = "\n".join(overload_table.show(run))
    assert "send    immediate    preemptive  at delivery       uring" in text
    lines = text.splitlines()
    assert any(x.split() == ["send", "950", "0.950"] for x in lines)
    assert [x.split() for x in lines].count(["2x", "2,000", "250", "931"]) == 2
    # At twice the saturation point, of its own peak and of the best.
    assert [x.split() for x in lines].count(["epoll", "0.250", "0.250"]) == 2
    assert [x.split() for x in lines].count(["send", "0.980", "0.931"]) == 2
    # 40 of 100 were lost.
    assert "40.0" in next(x for x in lines if x.startswith("2x send"))
    # 6,000 us of the server's for 60 answers.
    assert ["epoll", "1,000", "1,000", "100"] in [x.split() for x in lines]
    assert run.notes == []


def test_late_clients_are_told() -> None:
    run = a_run()
    late = measurement("goodput", "send", "3", 1)
    late.rounds[0]["samples"]["behind_p99_us"] = [30000.0]
    late.rounds[0]["counts"]["unsent"] = 5
    run.measurements.append(late)
    overload_table.show(run)
    assert len(run.notes) == 2
    assert "the clients were 30 ms late themselves" in run.notes[0]
    assert "no descriptor or port for 5 requests" in run.notes[1]


def test_nothing_measured_is_nothing_shown() -> None:
    assert overload_table.show(Run(machine={}, command=[])) == []


def test_the_figures_are_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="python3-matplotlib isn't installed")
    made = plot.plot(a_run(), tmp_path)
    assert {path.name for path in made} == {
        "overload-saturation.svg",
        "overload-trace-1.2x-1k-lo.svg",
        "overload-responses-responses-1k-lo.svg",
        "overload-responses-mbit-1k-lo.svg",
        "overload-responses-connect-mean-1k-lo.svg",
        "overload-responses-response-mean-1k-lo.svg",
        "overload-goodput-goodput-1k-lo.svg",
        "overload-goodput-response-p99-1k-lo.svg",
    }
    for path in made:
        assert "<svg" in path.read_text(encoding="utf-8")
