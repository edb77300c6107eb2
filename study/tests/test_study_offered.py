# SPDX-License-Identifier: MIT
"""The web server study in an open loop: offered rates, marks, and tables."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from fixtures import eventually
from flexbench import servers
from flexbench.machine import Cores
from flexbench.runner import Plan
from flexbench.samples import BenchError, Json, Measurement, Run, Settings
from flexbench.servers import Server
from flexstudy import webserver
from flexstudy.webserver import limits, offered, sessions, subjects, watching
from flexstudy.webserver.offered import OFFERED, PEAK
from flexstudy.webserver.sessions import SESSIONS, Site
from flexstudy.webserver.watching import Look, Stretches
from flexstudy.webserver.workload import Request

PLAN = Plan("flexsc", Cores(1, 0, [0]), True, 3, 5, 1024, None)


# Observing.


def test_counters_are_read_from_the_kernel_s_files() -> None:
    text = "Ip: Forwarding InHdrErrors\nIp: 1 2\nTcp: Max RetransSegs\nTcp: -1 7\n"
    assert watching.snmp(text)["Tcp:RetransSegs"] == 7
    row = "1 2 3 {} 5 6 7 8 9 10 11 {} 13 14 15 16"
    dev = f"Inter-|\n face |bytes\n lo: {row.format(1, 0)}\n v0: {row.format(2, 4)}\n"
    assert watching.dropped(dev) == 7
    assert watching.faults("1 (a ) b) S 1 1 1 0 -1 64 100 0 33 0 5 6") == 33
    assert watching.read_bytes("rchar: 1\nread_bytes: 4096\nwrite_bytes: 2\n") == 4096


def test_the_busiest_stretch_counts() -> None:
    """Idle for a second, busy for two, idle for one."""
    stretches = Stretches([3, 4])
    idle = [0.0, 1.0, 1.0, 1.1, 2.1]
    stretches.looks = [Look(float(at), [0.0, one]) for at, one in enumerate(idle)]
    assert stretches.percent([4], 2) == pytest.approx(95)
    assert stretches.percent([4], 1) == pytest.approx(100)
    # The stretch is as long as the whole run, or longer.
    assert stretches.percent([4], 9) == pytest.approx(100 * 1.9 / 4)
    assert stretches.percent([3], 2) == pytest.approx(100)


def test_cores_are_looked_at_while_the_block_runs() -> None:
    with Stretches([0]) as stretches:
        pass
    assert len(stretches.looks) >= 2
    assert 0 <= stretches.percent([0], 1) <= 100


def test_files_that_would_not_stay_in_memory_are_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watching, "available_bytes", lambda: 1000)
    sessions.check_memory(800)
    with pytest.raises(
        BenchError, match="need 801 bytes of memory, but only 1,000 are"
    ):
        sessions.check_memory(801)


# Offered rates.


def site(name: str = "pages") -> Site:
    session = [Request(sessions.fileset.page(64))] * 20
    return Site(SESSIONS[name], Path("/nowhere"), [], [session])


def test_all_models_are_offered_what_the_best_can_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[str, dict[str, object]]] = []
    peaks = {"events": 1000.0, "loops": 2000.0}

    def load(
        plan: Plan,
        site: Site,
        server: Server,
        seconds: int,
        warm_s: int,
        **more: object,
    ) -> Json:
        asked.append((server.name, more))
        return {
            "samples": {
                "answers_per_s": [peaks[server.name]],
                "disturbed_percent": [0],
            },
            "counts": {},
        }

    monkeypatch.setattr(sessions, "load", load)
    run = Run(machine={}, command=[])
    sweep = offered.Sweep(run, offered.shortened(PLAN), "pages", site())
    sweep.found = {n: (Server(n, "http://127.0.0.1:1/", 1), []) for n in peaks}
    sweep.sweep()
    rates = {(name, more["rate"]) for name, more in asked if "rate" in more}
    assert rates == {(name, rate) for name in peaks for rate in (50, 100, 200)}
    assert all(m["arrivals"] == "poisson" for _, m in asked if "rate" in m)
    assert {more["think"] for _, more in asked if "rate" not in more} == {0}
    assert [m.settings["offered_per_s"] for m in run.of(OFFERED, model="events")] == [
        *(1000, 2000, 4000)
    ]
    assert {m.settings["scaling"] for m in run.of(PEAK)} == {0}


def test_sessions_that_take_longer_have_fewer_requests_yet() -> None:
    file = sessions.fileset.page(64)
    # With think times scaled to 5 %, requests are due after 0, 1, 2.5 and 4 seconds.
    drawn = [[Request(file, 20), Request(file, 30), Request(file, 30), Request(file)]]
    thinks = Site(SESSIONS["specweb"], Path("/nowhere"), [], drawn)
    assert thinks.due(1) == pytest.approx(1 + 1 + 0.5 + 0)
    assert thinks.due(2) == pytest.approx(1 + 1 + 0.75 + 0)
    assert thinks.due(1000) == pytest.approx(4, abs=0.01)
    assert site().due(1) == 20


def test_what_a_load_has_found_is_put_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: Settings = {}

    def raw(flexsc: str, case: str, settings: Settings, before: list[str]) -> Json:
        asked.update(settings)
        counts = {"spun_us": 0, "server_cpu_us": 900, "answered": 80, "warm_up": 10}
        return {"samples": {}, "counts": counts}

    grown = iter([{"retransmits": 5}, {"retransmits": 7}])
    monkeypatch.setattr(sessions, "raw", raw)
    monkeypatch.setattr(watching, "counters", lambda _: next(grown))
    monkeypatch.setattr(watching, "settle", lambda _: None)
    used = iter([0.001, 0.00109])  # of the copies
    monkeypatch.setattr(watching, "copies_s", lambda _: next(used))
    server = Server("loops", "http://127.0.0.1:4711/", 17)
    found = sessions.load(PLAN, site(), server, 3, 2, rate=50)
    assert found["counts"]["retransmits"] == 2
    assert found["samples"]["server_us"] == [pytest.approx(11)]
    for name in ("busy_percent", "busiest_percent", "client_percent"):
        assert 0 <= found["samples"][name][0] <= 100
    assert asked["port"] == 4711
    assert asked["pid"] == 17
    # The warm-up precedes the seconds that count.
    assert (asked["seconds"], asked["warm_ms"], asked["cut"]) == (5, 2000, 1)
    assert (asked["rate"], asked["timeout_ms"]) == (50, 10_000)


def test_the_time_of_copies_is_their_clocks() -> None:
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as child:
        try:
            before = watching.copies_s(os.getpid())
            assert eventually(lambda: watching.copies_s(os.getpid()) > before)
        finally:
            child.kill()


def test_a_model_that_can_t_run_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def started(plan: Plan, name: str, tuning: list[str], at: Path) -> Iterator[Server]:
        if name == "loops":
            raise BenchError("no engine")
        yield Server(name, " ".join(tuning), 1)

    monkeypatch.setattr(subjects, "started", started)
    monkeypatch.setattr(servers, "check", lambda *_: None)
    files = replace(site("pages"), files=[sessions.fileset.page(64)])
    run = Run(machine={}, command=[])
    sweep = offered.Sweep(run, PLAN, "pages", files)
    with offered.ExitStack() as stack:
        sweep.start(stack, ["events", "loops", "nginx"])
    assert list(sweep.found) == ["events", "nginx"]
    assert sweep.found["nginx"][1] == []
    assert run.notes == ["study pages: skipping loops: no engine"]


# Marks, and tables.


def add(
    run: Run, bench: str, model: str, times: str, answers: float, **more: float
) -> None:
    settings: Settings = {
        **{"workload": "specweb", "model": model, "seconds": 2, "network": "lo"},
        **{"connections": 128, "folders": 64, "cores": int(more.get("cores", 1))},
    }
    if bench == OFFERED:
        settings |= {"times": times, "offered_per_s": round(1000 * float(times))}
    samples = {
        "answers_per_s": [answers],
        "answers_mbit_per_s": [answers / 10],
        "server_us": [7.5],
        "busy_percent": [more.get("busy", 99.0)],
        "client_percent": [more.get("client", 50.0)],
        "busiest_percent": [more.get("busiest", more.get("busy", 99.0))],
        "behind_p99_us": [more.get("behind", 10.0)],
    }
    for name in ("response",):
        for percentile, ms in (("p50", 2), ("p90", 3), ("p99", 8), ("p999", 9)):
            samples[f"{name}_{percentile}_us"] = [1000.0 * ms]
    counts = {"offered": 100, "answered": 70, "cut": 20, "late": 10}
    if more.get("follows"):
        counts = {"offered": 100, "answered": 97, "cut": 3}
    counts |= {"unsent": int(more.get("unsent", 0))}
    counts |= {"listen_overflows": int(more.get("overflows", 0))}
    one: Json = {"samples": samples, "counts": counts}
    run.measurements.append(Measurement(bench, settings, [one, one]))


def only(bench: str, times: str, answers: float, **more: float) -> Measurement:
    run = Run(machine={}, command=[])
    add(run, bench, "loops", times, answers, **more)
    return run.measurements[0]


def test_a_peak_that_idles_is_limited() -> None:
    assert not limits.limited(only(PEAK, "", 1000))
    assert limits.limited(only(PEAK, "", 1000, busy=94))
    assert limits.limited(only(PEAK, "", 1000, client=91))
    # The server's other cores wait for its busiest one.
    assert not limits.limited(only(PEAK, "", 1000, busy=60, busiest=99))


def test_a_server_that_idles_is_limited_if_it_lags_behind() -> None:
    assert not limits.limited(only(OFFERED, "0.5", 499, busy=50, follows=1))
    assert limits.limited(only(OFFERED, "2", 1000, busy=90))
    assert not limits.limited(only(OFFERED, "2", 1000, busy=96))
    assert limits.limited(only(OFFERED, "2", 1000, busy=96, unsent=1))
    assert limits.limited(only(OFFERED, "0.5", 499, client=91, follows=1))


def swept() -> Run:
    run = Run(machine={}, command=[])
    add(run, PEAK, "loops", "", 1000)
    add(run, PEAK, "events", "", 800, busy=80)
    for times, loops, events in (("0.8", 801, 790), ("2", 900, 400)):
        add(run, OFFERED, "loops", times, loops, busy=98)
        add(run, OFFERED, "events", times, events, overflows=7)
    return run


def test_each_number_of_cores_has_tables_and_peaks_stand_beside_each_other() -> None:
    run = swept()
    add(run, PEAK, "loops", "", 1900, cores=2)
    add(run, OFFERED, "loops", "2", 1800, busy=98, cores=2)
    add(run, OFFERED, "loops", "0.8", 1500, cores=2, overflows=3)
    one, two, peaks = webserver.show(run)
    assert "network lo, 2 rounds" in one and "2 cores" not in one
    assert "static files; 2 cores, network lo, 2 rounds" in two
    assert "events" not in two
    lines = [" ".join(line.split()) for line in peaks.splitlines()]
    assert lines == [
        "study specweb: peaks against cores, good answers a second",
        "model 1 core 2 cores",
        "loops 1,000 1,900",
        "events 800* -",
    ]
    (note,) = [text for text in run.notes if "backlog" in text]
    assert "loops at 0.8x on 2 cores 6" in note


def test_servers_on_several_cores_have_as_many_times_the_clients(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[object] = []

    def load(plan: Plan, *args: object, **more: object) -> Json:
        asked.append(more.get("connections"))
        samples = {"answers_per_s": [1000.0], "disturbed_percent": [0]}
        return {"samples": samples, "counts": {}}

    monkeypatch.setattr(sessions, "load", load)
    run, cores = Run(machine={}, command=[]), Cores(3, 1, [0, 1], [2])
    some = replace(PLAN, cores=cores, rounds=1, numbers=[1, 2])
    sweep = offered.Sweep(run, some, "pages", site())
    sweep.found = {"loops": (Server("loops", "http://127.0.0.1:1/", 1), [])}
    # A peak on another number of cores doesn't change the scale.
    add(run, PEAK, "loops", "", 5)
    sweep.sweep()
    assert asked == [256, None, None, None]
    assert {m.settings["cores"] for m in run.of(OFFERED)} == {2}
    assert {m.settings["scaling"] for m in run.of(OFFERED)} == {1}
    assert run.of(OFFERED, times="1")[0].settings["offered_per_s"] == 1000


def test_tables_have_models_down_and_points_across() -> None:
    run = swept()
    (text,) = webserver.show(run)
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert lines[0].startswith("study specweb: SPECweb99's static files; network lo, 2")
    # The closed loop.
    assert "loops 1,000 100 7.50 2.00 8.00 99.0 50.0" in lines
    assert "events 800* 80.0 7.50 2.00 8.00 80.0 50.0" in lines
    # Good answers.
    assert "model 0.8x 2x" in lines
    assert "offered 800 2,000" in lines
    assert "loops 801 900" in lines
    assert "loops 80.1 90.0" in lines
    # Ten of 100 requests were late, relative to the 80 that weren't cut off.
    assert "loops 12.5 12.5" in lines
    # The latency, p50/p90 and p99/p99.9.
    assert "loops 2.00/3.00 2.00/3.00" in lines
    assert "loops 8.00/9.00 8.00/9.00" in lines
    # At twice the best peak: relative to its own best, which may come from the open
    # loop.
    assert "loops 900 0.900" in lines
    assert "events 400 0.500" in lines
    assert lines[-1].startswith("* a core of the clients was busy for more than 90 %")


def test_what_went_wrong_is_noted_once() -> None:
    run = swept()
    add(run, OFFERED, "stages", "2", 100, unsent=3, behind=30_000)
    webserver.show(run)
    webserver.show(run)
    assert run.notes == [
        "study specweb: requests not sent, because the clients had no descriptor or port "
        "left (ulimit -Hn): stages at 2x 6",
        "study specweb: connections refused because the server's backlog was full: "
        "events at 0.8x 14, events at 2x 14",
        "study specweb: the clients sent requests late, by ms (99th percentile): "
        "stages at 2x 30",
    ]


def test_a_point_may_lack_a_model() -> None:
    run = swept()
    add(run, OFFERED, "stages", "2", 100)
    (text,) = webserver.show(run)
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "stages - 100" in lines
    assert "stages 100 1.00" in lines
