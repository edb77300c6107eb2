# SPDX-License-Identifier: MIT
"""flexbench: its statistics on data with known results, its tables, its files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from bench_runs import LOAD_RATES, empty_run, load_of, once, plan
from flexbench import (
    calls,
    command,
    compare,
    crawl,
    examples,
    idle,
    machine,
    quiet,
    reads,
    runner,
    running,
    samples,
    serve,
    servers,
    sweep,
    table,
    threads,
    timers,
    tools,
)
from flexbench.__main__ import COMMAND
from flexbench.samples import BenchError, Json, Measurement, Run, Settings

# Statistics.


def test_median_interval_of_known_data() -> None:
    # With 7 samples, the extremes enclose the median in 126 of 128 cases. The second
    # smallest and second largest do so in 112 cases only.
    found = compare.median_interval([7, 1, 6, 2, 5, 3, 4])
    assert (found.low, found.median, found.high) == (1, 4, 7)
    assert found.coverage == pytest.approx(126 / 128)


def test_interval_of_few_samples_states_its_confidence() -> None:
    found = compare.median_interval([3, 1, 2])
    assert (found.low, found.high) == (1, 3)
    assert found.coverage == pytest.approx(0.75)
    assert compare.median_interval([5]).coverage == 0


def test_ratio_pairs_the_rounds() -> None:
    # The machine gets slower and slower, but each round has the ratio 2.
    found = compare.ratio([2, 4, 8, 16], [1, 2, 4, 8])
    assert (found.low, found.median, found.high) == (2, 2, 2)


def test_ratio_of_different_rounds_is_refused() -> None:
    with pytest.raises(ValueError, match="same rounds"):
        compare.ratio([1, 2], [1])


# Order.


def test_variants_alternate_in_both_directions() -> None:
    order = list(runner.alternate(["a", "b", "c"], 3))
    assert [v for _, v in order] == ["a", "b", "c", "c", "b", "a", "a", "b", "c"]
    assert [i for i, _ in order] == [0, 0, 0, 1, 1, 1, 2, 2, 2]


def test_a_variant_that_fails_is_left_out_and_noted_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shares(monkeypatch, *[0.0] * 6)

    def measure(settings: Settings) -> Json:
        if settings["variant"] == "bad":
            raise BenchError("bad: doesn't work here")
        return once("ns", 1.0)[0]

    run = empty_run()
    variants: list[Settings] = [{"variant": "good"}, {"variant": "bad"}]
    for _ in range(2):
        runner.measure_all(run, plan(), "calls", variants, measure)
    assert [m.settings["variant"] for m in run.measurements] == ["good", "good"]
    assert [len(m.rounds) for m in run.measurements] == [3, 3]
    assert run.notes == ["calls: skipping a variant: bad: doesn't work here"]


# Load of other processes.


def shares(monkeypatch: pytest.MonkeyPatch, *percents: float) -> None:
    """Simulate the share of the core that other processes use, one value per try."""
    left = list(percents)

    class Others:
        def __init__(self, cores: list[int]) -> None:
            assert cores == [plan().cores.measured]

        def percent(self) -> float:
            return left.pop(0)

    monkeypatch.setattr(runner.quiet, "Others", Others)


ROUGH = (
    "calls: other processes used more than 5 % of the "
    "measured cores in some rounds: "
)


@pytest.mark.parametrize(
    ("percents", "tries", "rough"),
    [
        ([4.9], 1, False),
        ([90, 5.1, 5.0], 3, False),
        ([90, 80, 70], 3, True),
    ],
)
def test_a_round_disturbed_by_other_processes_is_void(
    monkeypatch: pytest.MonkeyPatch, percents: list[float], tries: int, rough: bool
) -> None:
    shares(monkeypatch, *percents)
    run, times = empty_run(), iter(range(tries))
    thorough = replace(plan(rounds=1), quick=False)
    runner.measure_all(
        run, thorough, "calls", [{}], lambda _: once("ns", float(next(times)))[0]
    )
    (measurement,) = run.measurements
    assert measurement.series("ns") == [tries - 1]
    assert measurement.series(runner.DISTURBED) == [percents[tries - 1]]
    assert [note.startswith(ROUGH) for note in run.notes] == [True] * rough


def test_a_benchmark_may_measure_the_disturbance_itself() -> None:
    def measure(settings: Settings) -> Json:
        found = once("ns", 1.0)[0]
        found["samples"][runner.DISTURBED] = [0.0]
        return found

    run = empty_run()
    runner.measure_all(run, plan(), "calls", [{}], measure)
    assert run.measurements[0].series(runner.DISTURBED) == [0.0] * 3
    assert run.notes == []


# Tables.


def test_table_aligns_columns() -> None:
    text = table.table(["batch", "plain"], [["1", "96.8"], ["512", "1,234"]])
    assert text == "batch  plain\n1       96.8\n512    1,234"


def calls_run() -> Run:
    run = empty_run()
    for variant, values in (
        ("plain", (100.0, 110.0, 120.0)),
        ("liburing", (50.0, 55.0, 60.0)),
        ("uring", (55.0, 60.5, 66.0)),
    ):
        settings = runner_settings(variant)
        run.measurements.append(
            Measurement("calls", settings, once(calls.SERIES, *values))
        )
    return run


def runner_settings(variant: str) -> Settings:
    every = calls.variants(plan(), "close", calls.SAME, 64)
    return next(s for s in every if s["variant"] == variant)


def test_calls_are_compared_with_raw_io_uring() -> None:
    (text,) = calls.show(calls_run())
    title, head, row = text.splitlines()
    assert title.startswith("close: nanoseconds a call, on the same core")
    assert head.split() == [
        *["batch", "plain", "liburing", "uring"],
        *["uring/liburing", "uring/plain"],
    ]
    assert row.split()[:4] == ["64", "110", "55.0", "60.5"]
    assert "1.10 (1.10-1.10)" in row
    assert "0.55 (0.55-0.55)" in row


def test_calls_are_made_on_as_many_cores_as_asked() -> None:
    cores = machine.Cores(3, 1, [0, 1], [2])
    both = replace(plan(), cores=cores, numbers=(1, 2))
    for place in calls.places(both):
        for one in calls.variants(both, "read", place, 8):
            assert (one["core"], one["kernel_cores"]) == (3, "2")
    assert calls.SAME not in calls.places(both)
    one = replace(plan(), numbers=(1,))
    assert calls.places(one) == [calls.SAME]
    assert len(calls.places(plan())) == 3


def test_the_module_is_measured_in_all_places() -> None:
    for place in calls.VARIANTS:
        every = calls.variants(plan(), "getppid", place, 64)
        assert "kmod" in {one["variant"] for one in every}
        assert ("kmod", "plain") in calls.COMPARED[place]


def test_timers_few_and_many_are_compared() -> None:
    run = empty_run()
    for settings, value in zip(
        timers.variants(plan(), "dormant"), (100.0, 125.0), strict=True
    ):
        run.measurements.append(
            Measurement("timers", settings, once(timers.SERIES, value, value))
        )
    (text,) = timers.show(run)
    assert "1.25 (1.25-1.25)" in text
    assert "100,000" in text.splitlines()[1]


def test_reads_are_compared_both_ways() -> None:
    run = empty_run()
    values = {"liburing": (300.0, 330.0), "uring": (360.0, 363.0)}
    for settings in reads.variants(plan(), "dormant"):
        few, many = values[str(settings["variant"])]
        value = many if int(settings["outstanding"]) > 50000 else few
        rounds = once(reads.SERIES, value, bytes=1.6e7, resident=1e7)
        rounds[0]["samples"][reads.WRITING] = [70.0]
        run.measurements.append(Measurement("reads", settings, rounds))
    (text,) = reads.show(run)
    raw, ours, both = text.splitlines()[-4:-1]
    assert "1.10 (1.10-1.10)" in raw
    assert "1.01 (1.01-1.01)" in ours
    assert "1.20 (1.20-1.20)" in both
    assert "1.10 (1.10-1.10)" in both
    assert "160 bytes of library memory" in text


def test_crawling_is_compared_with_plain_calls() -> None:
    run = empty_run()
    times = dict(
        zip([crawl.PLAIN, *crawl.TITLES], [6.0, 6.0, 4.0, 12.0, 3.0], strict=True)
    )
    for client, slower in ((crawl.NO_CLIENT, 1), (0, 2)):
        for settings in crawl.variants(plan(), 4, client):
            value = times[str(settings["variant"])] * slower
            run.measurements.append(
                Measurement("crawl", settings, once(crawl.SERIES, value))
            )
    alone, sent = crawl.show(run)
    assert "client" not in alone.splitlines()[0]
    assert "sent to a client" in sent.splitlines()[0]
    assert alone.splitlines()[-1].split()[:2] == ["4", "6.00"]
    assert sent.splitlines()[-1].split()[:2] == ["4", "12.0"]
    ratios = ["1.00 (1.00", "1.50 (1.50", "0.50 (0.50", "2.00 (2.00"]
    places = [alone.index(one) for one in ratios]
    assert places == sorted(places)


def serve_run() -> Run:
    run = empty_run()
    for variant, rate, count in (("flexsc", 100000.0, 0.1), ("nginx", 50000.0, 8.0)):
        figures = {"requests_per_s": rate, "p50_us": 9.0, "p99_us": 9.0}
        one: Json = {
            "samples": {k: [v] for k, v in {**figures, "busy_percent": 99.0}.items()},
            "counts": {"syscalls_per_request": count},
        }
        settings: Settings = {
            "variant": variant,
            "mode": "plain",
            "seconds": 5,
            "bytes": 1024,
            "connections": 128,
        }
        run.measurements.append(Measurement("serve", settings, [one, one]))
    return run


def test_servers_are_compared() -> None:
    (text,) = serve.show(serve_run())
    assert "100,000  50,000  2.00 (2.00-2.00)" in text
    assert "system calls/request " in text
    assert "0.100" in text


def test_a_module_that_is_not_built_is_one_line(tmp_path: Path) -> None:
    flexsc = tmp_path / "cmd/flexsc"
    flexsc.parent.mkdir(parents=True)
    flexsc.touch(0o755)
    with pytest.raises(BenchError, match="install nginx-dev"):
        servers.module(str(flexsc))
    built = tmp_path / "nginx/ngx_http_flexsc_module.so"
    built.parent.mkdir()
    built.touch()
    assert servers.module(str(flexsc)) == built


def threads_run() -> Run:
    run = empty_run()
    for cores in (1, 2):
        for connections in (1, 512):
            for settings in threads.variants(plan(), "echo", connections, cores):
                rate = LOAD_RATES[str(settings["variant"])]
                run.measurements.append(load_of(settings, rate))
    for settings in threads.entries_variants(plan()):
        rate = 90000.0 if settings["entries"] else 60000.0
        run.measurements.append(load_of(settings, rate))
    for variant, resident in (("native", 12000.0), ("flexsc", 18000.0)):
        weights = {"rss_bytes": resident, "kernel_bytes": 3e4, "threads": 10002.0}
        one: Json = {"samples": {k: [v] for k, v in weights.items()}, "counts": {}}
        key: Settings = {"part": "idle", "variant": variant, "connections": 10000}
        run.measurements.append(Measurement("threads", key, [one]))
    return run


def test_blocking_servers_are_compared_natively_and_with_epoll() -> None:
    rate, late, rate_of_two, _, entries, memory = threads.show(threads_run())
    title, head, *rows = rate.splitlines()
    assert title.startswith("threads: 64 bytes echoed, server on one core: requests")
    assert head.split()[1:6] == [
        *["native", "flexsc", "epoll"],
        *["flexsc/native", "flexsc/epoll"],
    ]
    assert [row.split()[0] for row in rows] == ["1", "512"]
    assert all("2.00 (2.00-2.00)  1.20 (1.20-1.20)  99/99/99" in r for r in rows)
    assert "0.50 (0.50-0.50)" in late
    assert "epoll" not in rate_of_two
    assert entries.splitlines()[4].split()[:3] == ["64", "90,000", "1.50"]
    assert "10,000 idle connections" in memory
    assert "12,000  18,000  1.50 (1.50-1.50)" in memory


def test_a_blocking_server_that_failed_leaves_a_gap() -> None:
    run = threads_run()
    gone: Settings = {"part": "load", "variant": "flexsc", "connections": 512}
    run.measurements = [m for m in run.measurements if not m.fits(gone)]
    rate = threads.show(run)[0]
    assert rate.splitlines()[-1].split() == [
        *["512", "60,000", "-", "100,000", "-", "-", "99/99"]
    ]


def test_a_sweep_of_servers_has_the_module_beside_them() -> None:
    run = serve_run()
    ours = run.measurements[0]
    module = Measurement("serve", {**ours.settings, "variant": "module"}, ours.rounds)
    run.measurements.append(module)
    run.measurements += [
        Measurement("serve", {**m.settings, "connections": 1}, m.rounds)
        for m in run.measurements
    ]
    rate, late = serve.show(run)
    assert rate.splitlines()[1].split()[:4] == [
        *["connections", "flexsc", "nginx", "module"]
    ]
    assert [row.split()[0] for row in rate.splitlines()[2:]] == ["1", "128"]
    assert "p99 module" in late


@pytest.mark.parametrize(
    ("quick", "sweeps", "counts"),
    [
        (False, False, [8]),
        (False, True, [1, 4, 16, 64, 128, 256, 512, 1000]),
        (True, True, [1, 16, 256, 1000]),
    ],
)
def test_a_sweep_is_a_plan_for_each_number_of_clients(
    quick: bool, sweeps: bool, counts: list[int]
) -> None:
    how = replace(plan(), quick=quick, connections=8, sweep=sweeps)
    found = sweep.plans(how, sweep.WEB)
    assert [one.connections for one in found] == counts
    assert sorted(counts) == counts  # the last variant has the most clients


def test_a_core_s_time_is_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    # Of two cores, one is idle all the time.
    busy = [30, 10, 20, 25, 5, 4, 1, 5, 30, 0]
    ticks = [[[0] * 10] * 2, [busy, [0, 0, 0, 100, 0, 0, 0, 0, 0, 0]]]
    monkeypatch.setattr(quiet, "cores_ticks", lambda cores: ticks.pop(0))
    assert quiet.Shares([3, 2]).samples() == {
        "user_percent": [20.0],
        "system_percent": [12.5],
        "idle_percent": [65.0],
        "busy_percent": [35.0],
    }


def test_clients_stay_off_the_server_s_cores() -> None:
    for count, left in ((1, [0, 1, 2]), (2, [0, 1])):
        server = threads.server_cores(plan(), count)
        assert len(server) == count
        assert threads.client_cores(plan(), server) == left


def test_a_missing_server_is_one_line() -> None:
    with pytest.raises(BenchError, match="no server echo-threads beside /bin/true"):
        examples.command(replace(plan(), flexsc="/bin/true"), "echo", "native")


def test_a_program_has_a_carrier_per_core() -> None:
    assert running.carriers(plan()) == ["--carriers", "1"]
    several = replace(plan(), cores=machine.Cores(3, 1, [0, 1], [2]))
    assert running.carriers(several) == ["--carriers", "2"]
    assert running.elsewhere(several) == ["--kernel-cores", "2"]
    assert "worker_processes 2;" in servers.nginx_config(
        servers.Place(Path(), "127.0.0.1", 80), servers.Site(Path()), [3, 2]
    )


def test_a_baseline_replaces_native_runs() -> None:
    two = replace(plan(), baseline="old/flexsc")
    assert running.way(plan(), "native", "--carriers", "1") == []
    assert running.way(two, "native") == ["old/flexsc", "run", "--"]
    assert running.way(two, "flexsc") == [plan().flexsc, "run", "--"]
    assert running.way(two, "epoll") == []


def test_a_native_run_under_flexsc_run_is_no_result(tmp_path: Path) -> None:
    said = tmp_path / "stderr"
    for text, wrong in (
        ("", False),
        ("echo-threads: accept: Interrupted\n", False),
        ("flexsc: run: running natively: no engine\n", True),
    ):
        said.write_text(text)
        with said.open() as stderr:
            program = running.Program("flexsc echo", 1, 1, stderr)
            if not wrong:
                program.check()
                continue
            with pytest.raises(BenchError, match="refused to start it.*no engine"):
                program.check()


def test_too_few_descriptors_for_idle_connections_are_a_reason() -> None:
    with (
        pytest.raises(BenchError, match=r"need 100,000,200 descriptors, but only"),
        idle.descriptors(100000000),
    ):
        pass


# Files.


def test_run_survives_its_file(tmp_path: Path) -> None:
    run = calls_run()
    run.note("serve: wrk isn't installed")
    samples.save(run, tmp_path / "run.json")
    assert samples.load(tmp_path / "run.json") == run


def test_repetitions_of_a_round_count_as_one() -> None:
    rounds: list[Json] = [
        {"samples": {"ns": [1.0, 9.0, 2.0]}, "counts": {}},
        {"samples": {"ns": [4.0, 4.0, 5.0]}, "counts": {}},
    ]
    found = Measurement("calls", {}, rounds)
    assert found.series("ns") == [2.0, 4.0]
    assert found.median("ns") == 3.0


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("not json", "not a result file of flexsc bench"),
        ("[]", "not a result file of flexsc bench"),
        ('{"flexbench": 1}', "not a result file of flexsc bench"),
        ('{"flexbench": 99}', "another version"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "other.json"
    path.write_text(text)
    with pytest.raises(BenchError, match=reason):
        samples.load(path)


def test_a_kept_run_is_shown_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.json"
    samples.save(calls_run(), path)
    assert command.main(COMMAND, ["--show", str(path)]) == 0
    said = capsys.readouterr().out
    assert "flexsc 0.1.0 (abc123) on Linux 6.1.0, A Processor, 4 cores" in said
    assert "mitigations: spectre_v2\n" in said
    assert "1.10 (1.10-1.10)" in said


# Missing programs.


def test_a_missing_program_names_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setattr(tools, "ELSEWHERE", "/nonexistent")
    with pytest.raises(BenchError, match="Debian's package nginx-light"):
        tools.need("nginx")
    run = empty_run()
    with pytest.raises(BenchError, match="nginx isn't installed"):
        serve.measure(run, plan())


# Cores.


def test_load_stays_off_the_measured_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "siblings", lambda core: {core})
    assert machine.choose({0, 1, 2, 3}) == machine.Cores(3, 2, [0, 1, 2])
    assert machine.choose({2, 5}) == machine.Cores(5, 2, [2])


def test_the_other_half_of_a_core_is_avoided(monkeypatch: pytest.MonkeyPatch) -> None:
    halves = {2, 3}
    monkeypatch.setattr(machine, "siblings", lambda c: halves if c in halves else {c})
    assert machine.choose({0, 1, 2, 3}) == machine.Cores(3, 1, [0, 1])
    assert machine.choose({2, 3}) == machine.Cores(3, 2, [2])


def test_all_numbers_of_cores_leave_half_to_the_clients(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(machine, "siblings", lambda core: {core})
    assert machine.counts(set(range(8))) == [1, 2, 4]
    assert machine.counts({0, 1}) == machine.counts({0}) == [1]
    assert machine.counts(set(range(13))) == [1, 2, 4]


def test_a_server_on_several_cores_may_crowd_its_clients(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(machine, "siblings", lambda core: {core})
    found = machine.choose(set(range(5)), 2)
    assert found == machine.Cores(4, 2, [0, 1, 2], [3])
    assert found.server == [4, 3]
    assert machine.crowded(found) == ""
    found = machine.choose(set(range(5)), 3)
    assert (found.server, found.load) == ([4, 3, 2], [0, 1])
    assert machine.crowded(found) == "3 cores of the server, 2 of the clients"
    found = machine.choose({0, 1}, 2)
    assert (found.server, found.load) == ([1, 0], [0, 1])
    assert machine.crowded(found) == "the clients share the server's cores"
    with pytest.raises(BenchError, match="--cores 3: too many, .* has 2 physical"):
        machine.choose({0, 1}, 3)


def test_a_server_has_physical_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "siblings", lambda core: {core, (core + 4) % 8})
    assert machine.counts(set(range(8))) == [1, 2]
    found = machine.choose(set(range(8)), 2)
    assert found == machine.Cores(7, 5, [0, 1, 4, 5], [6])
    with pytest.raises(BenchError, match="has 4 physical cores"):
        machine.choose(set(range(8)), 5)


@pytest.mark.parametrize(
    ("samples", "mark"),
    [
        ({"busy_percent": [99.0]}, ""),
        ({"busy_percent": [90.0]}, "*"),
        ({}, ""),  # from a file of an older version
    ],
)
def test_clients_that_are_the_limit_are_marked(samples: Json, mark: str) -> None:
    rounds: list[Json] = [{"samples": {"requests_per_s": [150.0], **samples}}]
    found = table.rate(Measurement("serve", {}, rounds), "requests_per_s")
    assert found == f"150{mark}"
    assert table.explained(found).endswith("its clients were the limit") == bool(mark)
