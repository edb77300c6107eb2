# SPDX-License-Identifier: MIT
"""flexstudy: its tables, for measurements with known figures."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from bench_runs import empty_run, load_of, once, plan
from flexbench import command, machine, network, tools
from flexbench.machine import Cores
from flexbench.runner import Plan
from flexbench.samples import BenchError, Json, Measurement, Run, Settings
from flexbench.servers import Module, Server, Site
from flexstudy import cost, entries, memory, nginx, programs, send, webserver
from flexstudy.__main__ import COMMAND
from flexstudy.under_load import switches

# The cost of calls. Here a tick is a third of a nanosecond.


def lost_run(called: dict[str, list[float]]) -> Run:
    """Slices take 1,000 ticks without a call; two rounds agree."""
    run = empty_run()
    for settings in cost.lost_variants(plan()):
        ticks = called[str(settings["call"])]
        one: Json = {
            "samples": {"control_ticks": [1000.0] * 64, "called_ticks": ticks},
            "counts": {"ticks_per_us": 3000},
        }
        run.measurements.append(Measurement("lost", settings, [one, one]))
    return run


def test_a_program_is_slow_after_a_call() -> None:
    slow = [2000.0, 1250.0, 1040.0, 1010.0]
    run = lost_run(
        {
            "none": [1001.0] * 64,
            "getppid": [1000.0] * 64,
            "stat": [1060.0] * 64,
            "pwrite": slow + [1000.0] * 60,
        }
    )
    speeds, until = cost.show(run)
    first = speeds.splitlines()[2].split()
    assert first == ["1,000", "0.999", "1.000", "0.943", "0.500"]
    rows = {line.split()[0]: line.split()[1:] for line in until.splitlines()[4:]}
    # The means of two slices: 0.65, 0.88, 0.98, 0.995, 1.
    assert rows["pwrite"][:4] == ["3,250", "4,290", "5,300", "1,300"]
    # "none" apparently loses 64 ticks, and speeds have a resolution of a thousandth.
    assert rows["getppid"] == ["0", "0", "0", "below", "64.0"]
    assert rows["stat"][:3] == ["over", "67,840", "over"]
    assert "0.33 ns" in until


def pollute_run(steps: float | None) -> Run:
    """A call takes 100 ticks of a unit's time, 20 of which are the mode switch."""
    run = empty_run()
    for settings in cost.pollute_variants(plan()):
        control = 200 + 50 / int(settings["every"])
        made = settings["call"] != "none"
        ticks = {
            "control_ticks": control,
            "direct_ticks": control + 20,
            "called_ticks": control + (100 if made else 0.1),
            "clock_ticks": 50,
            "direct_call_ticks": 300,
            "call_ticks": 1050 + int(settings["every"]),
        }
        one: Json = {"samples": {k: [v] for k, v in ticks.items()}, "counts": {}}
        run.measurements.append(Measurement("pollute", settings, [one, one]))
    if steps:
        for work in cost.WORKS:
            one = {"samples": {}, "counts": {"instructions": steps}}
            run.measurements.append(Measurement("steps", {"work": work}, [one]))
    return run


def test_a_program_is_slow_between_calls() -> None:
    tree, _, durations = cost.show(pollute_run(256 * 400))
    often = tree.splitlines()[4].split()
    # A unit takes 250 ticks without the call and 350 with it; 20 of the difference are
    # direct. With the fewest clock readings a unit takes 200.
    assert often[:3] == ["400", "1.60", "0.71"]
    assert often[4:6] == ["0.57", "(0.57-0.57)"]
    assert often[6:8] == ["7.4", "21.2"]
    assert durations.splitlines()[3].split()[2] == "1,001"
    # The call's ticks: 1,001 if it is made often, 1,256 if it is made seldom.
    assert "0.80 (0.80-0.80)" in durations.splitlines()[5]


def test_without_a_tracer_frequencies_are_in_units() -> None:
    tree, _, durations = cost.show(pollute_run(None))
    assert tree.splitlines()[4].startswith("1 units")
    assert "256 units" in durations


def footprint_run(nothing: float, scale: list[float]) -> Run:
    run = empty_run()
    for settings in cost.footprint_variants(plan()):
        walks = {f"touch_{k}": [1000 + ticks] for k, ticks in enumerate(scale)}
        call = nothing if settings["call"] == "none" else 640
        one: Json = {
            "samples": {**walks, "call": [1000.0 + call], "call_ticks": [2050.0]},
            "counts": {"lines": 512, "clock_ticks": 50},
        }
        run.measurements.append(Measurement("footprint", settings, [one, one]))
    return run


def test_lines_are_read_off_the_scale() -> None:
    # Ten ticks per line: a call of 640 ticks takes 64 lines. The functions around it
    # touch 50 (k is 5) and 72.
    run = footprint_run(0, [10.0 * (512 * k * k // 256) for k in range(17)])
    lines, l1i, l1d, l2, dtlb = cost.show(run)
    row = lines.splitlines()[2].split()
    assert row[:4] == ["stat", "2,000", "64.0", "(64.0-64.0)"]
    assert "of l1i, of 512 lines:" in l1i.splitlines()[0]
    assert "of l1d, of 512 lines:" in l1d.splitlines()[0]
    assert l1d.splitlines()[-1].split() == ["512", "5,120"]
    assert "of l2," in l2
    assert "of dtlb," in dtlb


def test_lines_below_the_resolution_are_none() -> None:
    # First "none" apparently takes 700 ticks; then the scale begins with equal costs.
    run = footprint_run(700, [10.0 * (512 * k * k // 256) for k in range(17)])
    assert "below 70.0" in cost.show(run)[0]
    run = footprint_run(0, [0.0, *[700.0] * 11, *(1000.0 * k for k in range(1, 6))])
    assert "below 242" in cost.show(run)[0]


def test_send_is_compared_with_signals() -> None:
    run = empty_run()
    values = {"signal": 1000.0, "uring": 50.0}
    for settings in send.variants(plan()):
        variant = str(settings["variant"])
        if variant not in values:
            continue
        samples = once(send.DEQUEUE, values[variant], values[variant])
        for one in samples:
            one["samples"] |= {send.QUEUE: [700.0], send.PREEMPT: [15000.0]}
        run.measurements.append(Measurement("send", settings, samples))
    dequeued, preempted = send.show(run)
    assert "0.05 (0.05-0.05)" in dequeued.splitlines()[-1]
    assert dequeued.splitlines()[-1].startswith("100")
    assert "15,000" in preempted


def test_nginx_is_compared_with_itself() -> None:
    run = empty_run()
    for variant, us in (("module", 7.0), ("stock", 14.0)):
        settings: Settings = {
            "variant": variant,
            "mode": "kept",
            "bytes": 1024,
            "connections": 128,
        }
        rounds = once("cpu_us", us, 2 * us)
        run.measurements.append(Measurement("nginx", settings, rounds))
    (text,) = nginx.show(run)
    assert "1024 bytes, 128 connections, keeping the file open" in text
    assert "2.00 (2.00-2.00)" in text
    assert nginx.show(empty_run()) == []


def remote_run(*variants: str) -> Run:
    """nginx on two cores; the variants have 1, 2, ... thousand requests per second."""
    run = empty_run()
    for index, variant in enumerate(variants, 1):
        settings: Settings = {
            **{"variant": variant, "mode": "plain", "cores": 2},
            **{"bytes": 1024, "connections": 256, "seconds": 1},
        }
        samples = {"requests_per_s": [1000.0 * index], "cpu_us": [12.0 / index]}
        samples |= {"p50_us": [60.0 / index], "p99_us": [240.0 / index]}
        rounds: list[Json] = [{"samples": samples, "counts": {}}]
        run.measurements.append(Measurement("nginx", settings, rounds))
    return run


def test_a_worker_with_calls_elsewhere_is_compared_with_one_and_with_all() -> None:
    variants = "module", "stock", "stock-one", "remote"
    every, remote = nginx.show(remote_run(*variants))
    assert "12.0   6.00  0.50 (0.50-0.50)" in every
    lines = remote.splitlines()
    assert "plain, 256 connections, 2 cores" in lines[0]
    assert "stock, 2 workers" in lines[1]
    rate = ["requests/s", "4,000", "3,000", "2,000"]
    assert re.split(" {2,}", lines[2]) == [
        *rate,
        "1.33 (1.33-1.33)",
        "2.00 (2.00-2.00)",
    ]
    assert lines[3].startswith("latency p50, us")
    assert lines[3].endswith("0.75 (0.75-0.75)  0.50 (0.50-0.50)")
    assert len(nginx.show(remote_run("module", "stock"))) == 1


@pytest.mark.parametrize(
    ("more", "names"), [([], []), ([3], ["remote", "stock-one"])], ids=["one", "two"]
)
def test_only_several_cores_have_a_worker_with_calls_elsewhere(
    tmp_path: Path, more: list[int], names: list[str]
) -> None:
    cores = Cores(measured=5, other=4, load=[0, 1], more=more)
    module, site = Module(tmp_path / "module.so", 0), Site(tmp_path)
    found = nginx.one_worker(replace(plan(), cores=cores), site, module)
    assert list(found) == names
    for name, one in found.items():
        assert (list(one.module.kernel_cores) if one.module else None) == (
            [3] if name == "remote" else None
        )


def test_a_worker_that_could_not_use_the_module_voids_the_mode(tmp_path: Path) -> None:
    server = Server("remote", "http://127.0.0.1:1/", 1)
    (tmp_path / "remote").mkdir()
    log = tmp_path / "remote" / "error.log"
    log.write_text("[warn] 7#7: 4096 worker_connections exceed\n", encoding="utf-8")
    nginx.check_calls(server, tmp_path)
    with log.open("a", encoding="utf-8") as file:
        file.write("[warn] 7#7: flexsc_kernel_cores 3: no io_uring\n")
    with pytest.raises(BenchError, match=r"remote: .*_cores 3: no io_uring"):
        nginx.check_calls(server, tmp_path)


def test_long_answers_count_with_the_client_s_time() -> None:
    run = empty_run()
    for variant, us in (("module", 70.0), ("stock", 140.0)):
        settings: Settings = {
            "variant": variant,
            "mode": "1m",
            "bytes": 1 << 20,
            "connections": 16,
            "seconds": 5,
            "network": "rps",
        }
        samples = {"cpu_us": [1.0], "both_us": [us]}
        rounds: list[Json] = [{"samples": samples, "counts": {}}]
        run.measurements.append(Measurement("nginx", settings, rounds))
    (text,) = nginx.show(run)
    assert text.splitlines()[0].endswith("; network rps, 1 rounds of 5 s")
    assert "70.0    140  2.00" in text


# Requests per second of Apache's variants, in the order of the table.
RATED = 16000.0, 24000.0, 20000.0, 30000.0


def programs_run(*counts: int, word: str = "apache") -> Run:
    run, kind = empty_run(), programs.CHOICES[word]
    for mode, count in product(kind.modes, counts or [128]):
        one = replace(plan(), connections=count)
        for variant, rate in zip(kind.variants, RATED, strict=False):
            settings = programs.settings(one, word.partition(":")[0], mode, variant)
            found = load_of(settings, rate)
            run.measurements.append(Measurement("programs", settings, found.rounds))
    return run


def cells_of(text: str) -> list[list[str]]:
    """The rows of a table below two lines of title."""
    return [re.split(r"  +", line) for line in text.splitlines()[2:]]


def test_programs_are_compared_with_what_a_user_would_choose() -> None:
    kept, closed = programs.show(programs_run(1, 256))
    assert kept.splitlines()[:2] == [
        "programs: Apache, 1 KiB, connections that are kept;",
        "network lo, 3 rounds of 1 s",
    ]
    head, *rows = cells_of(kept)
    assert head[:4] == ["connections", "requests/s", "times event", "times native"]
    run = "1.50 (1.50-1.50)"
    for count in ("1", "256"):
        few, rows = rows[:4], rows[4:]
        assert [row[:4] for row in few] == [
            [f"{count}, event", "16,000", "-", "-"],
            [f"{count}, event, flexsc run", "24,000", run, run],
            [f"{count}, worker", "20,000", "1.25 (1.25-1.25)", "-"],
            [f"{count}, worker, flexsc run", "30,000", "1.88 (1.88-1.88)", run],
        ]
    assert rows == []
    assert [few[0][head.index(f"{p}, us")] for p in ("p50", "p99")] == [
        *["62,500", "125,000"]
    ]
    assert "a connection for each request" in closed


def test_a_variant_that_failed_has_no_row() -> None:
    run = programs_run()
    gone: Settings = {"mode": "kept", "variant": "native"}
    run.measurements = [m for m in run.measurements if not m.fits(gone)]
    rows = cells_of(programs.show(run)[0])[1:]
    assert [row[0] for row in rows] == [
        f"128, {name}" for name in ("event", "event, flexsc run", "worker, flexsc run")
    ]
    assert rows[2][2:4] == ["1.88 (1.88-1.88)", "-"]


def test_older_files_have_the_papers_variants_alone() -> None:
    """Their measurements lack processor time and switches."""
    kept, *_ = programs.show(programs_run(word="mariadb:connection"))
    head, native, flexsc = cells_of(kept)
    assert head[2] == "times connection"
    assert native[0] == "128, connection"
    run = "1.50 (1.50-1.50)"
    assert flexsc[:4] == ["128, connection, flexsc run", "24,000", run, run]
    for name in ("CPU, us", "CPU/native", "switches"):
        assert flexsc[head.index(name)] == "-"
    for kind in programs.KINDS.values():
        assert [one.name for one in kind.papers().variants] == ["native", "flexsc"]


def test_a_baseline_runs_all_native_variants() -> None:
    one = replace(plan(), baseline="/other/flexsc")
    before = [variant.before(one)[:2] for variant in programs.KINDS["apache"].variants]
    assert before == [["/other/flexsc", "run"], ["flexsc", "run"]] * 2
    assert programs.KINDS["apache"].variants[0].before(plan()) == []


def test_switches_of_threads_are_counted() -> None:
    before = switches(os.getpid())
    time.sleep(0.001)
    after = switches(os.getpid())
    me = str(threading.get_native_id())
    assert after[me] > before[me]


def test_apache_is_compared_by_entries() -> None:
    run = empty_run()
    kind, every = entries.variants(plan())
    for settings in every:
        rate = 30000.0 if settings["entries"] == 256 else 20000.0
        found = load_of(settings, rate)
        run.measurements.append(Measurement("entries", settings, found.rounds))
    (text,) = entries.show(run)
    rows = [line.split() for line in text.splitlines()[3:]]
    assert [row[0] for row in rows] == ["native", "64", "128", "256", "512"]
    assert rows[3][1:3] == ["30,000", "1.50"]
    assert rows[4][2] == "1.00"
    assert kind.variants[1].options == ["--entries", "64"]


def test_missing_programs_are_a_line_each(monkeypatch: pytest.MonkeyPatch) -> None:
    def need(program: str) -> str:
        if program in ("wrk", "sysbench"):
            raise BenchError(f"{program} isn't installed")
        return program

    monkeypatch.setattr(tools, "need", need)
    run = empty_run()
    programs.measure(run, plan())
    assert run.notes == [
        *["programs: wrk isn't installed", "programs: sysbench isn't installed"]
    ]
    assert run.measurements == []


def test_memory_is_read_by_more_and_more_cores() -> None:
    assert memory.cores_of(machine.Cores(3, 2, [0, 1, 2])) == [
        *[[3], [3, 2], [3, 2, 1, 0]]
    ]
    assert memory.cores_of(machine.Cores(2, 1, [0, 1])) == [[2], [2, 1], [2, 1, 0]]
    assert memory.cores_of(machine.Cores(1, 0, [0])) == [[1], [1, 0]]


def test_memory_is_compared_with_one_core() -> None:
    run = empty_run()
    for cores, plain, vector in (("3", 4.0, 8.0), ("3,2", 8.0, 12.0)):
        samples = {"plain_bytes_per_tick": [plain], "vector_bytes_per_tick": [vector]}
        rounds: list[Json] = [{"samples": samples, "counts": {}}] * 3
        key: Settings = {"cores": cores, "mib": 256, "reps": 5}
        run.measurements.append(Measurement("memory", key, rounds))
    (text,) = memory.show(run)
    (row,) = [line.split() for line in text.splitlines() if line.startswith("2 ")]
    assert row == ["2", "8.00", "2.00", "(2.00-2.00)", "12.0", "1.50", "(1.50-1.50)"]


def test_what_some_numbers_of_cores_had_is_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    @contextmanager
    def made(kind: str, cores: machine.Cores) -> Iterator[network.Network]:
        if len(cores.server) == 2:
            raise BenchError("no second queue")
        yield network.Network()

    def measure(run: Run, plan: Plan) -> None:
        count = len(plan.cores.server)
        run.measurements.append(Measurement("study-peak", {"cores": count}))

    monkeypatch.setattr(command.network, "network", made)
    monkeypatch.setattr(webserver, "measure", measure)
    monkeypatch.setattr(machine, "siblings", lambda core: {core})
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: set(range(8)))
    args = command.parse(COMMAND, ["webserver", "specweb", "--cores", "4,2,1"])
    run = command.measure(COMMAND, args, ["webserver"])
    assert [m.settings["cores"] for m in run.measurements] == [1, 4]
    assert run.notes == ["2 cores: no second queue"]
    assert run.machine["cores"]["servers"] == [[7], [7, 6], [7, 6, 5, 4]]
    args = command.parse(COMMAND, ["webserver", "specweb", "--cores", "2"])
    with pytest.raises(BenchError, match="no second queue"):
        command.measure(COMMAND, args, ["webserver"])
