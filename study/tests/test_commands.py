# SPDX-License-Identifier: MIT
"""flexsc study: each of its measuring loops, and the whole command."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fixtures import command, flexsc
from flexbench import machine
from flexbench.samples import BenchError
from flexstudy import ports
from programs import installed

TIMEOUT = 180
# Time limit for single-stepping, on a machine that others use.
SLOW = 600
needs_run = pytest.mark.skipif(
    platform.machine() != "x86_64", reason="flexsc run is for x86-64"
)


def study(
    *args: str, patience: int = TIMEOUT, **env: str
) -> subprocess.CompletedProcess[str]:
    return flexsc("study", *args, patience=patience, **env)


def raw(case: str, *args: str) -> Any:
    done = study("--raw", case, "reps=2", *args)
    for reason in ("not supported", "not permitted", "its size is unknown"):
        if reason in done.stderr:
            pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


Measured = Callable[..., tuple[str, list[Any]]]


@pytest.fixture
def measured(tmp_path: Path) -> Measured:
    """Returns a function that runs a bench quickly, in one round, and returns its
    output and the measurements. network: its kind; without it the test is skipped.
    """
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs two cores")

    def run(
        *args: str, network: str = "", patience: int = TIMEOUT, **env: str
    ) -> tuple[str, list[Any]]:
        if network not in ("", "lo") and os.geteuid() != 0:
            pytest.skip("needs root, for network namespaces")
        path = tmp_path / "run.json"
        words = [*args, "--quick", "--rounds", "1", "--out", str(path)]
        words += ["--network", network] if network else []
        done = study(*words, patience=patience, **env)
        if "not permitted" in done.stderr or "Read-only" in done.stderr:
            pytest.skip(done.stderr.strip())
        assert done.returncode == 0, done.stdout + done.stderr
        found = json.loads(path.read_text(encoding="utf-8"))
        return done.stdout, found["measurements"]

    return run


def path_of(folder: Path, *programs: tuple[str, str]) -> str:
    """A PATH with only these programs; each comes with its package."""
    folder.mkdir()
    (folder / "python3").symlink_to(Path(sys.executable).resolve())
    for name, package in programs:
        (folder / name).symlink_to(installed(name, package))
    return str(folder)


def settings_of(found: list[Any], *names: str) -> list[tuple[Any, ...]]:
    return [tuple(m["settings"].get(name) for name in names) for m in found]


@pytest.mark.parametrize("variant", ["signal", "uring"])
def test_raw_events(variant: str) -> None:
    found = raw(
        "events", f"variant={variant}", "scenario=dequeue", "batch=10", "calls=200"
    )
    assert found["case"] == "events"
    for name in ("ns_to_queue", "ns_to_dequeue"):
        assert all(0 < t < 1e7 for t in found["samples"][name])
    found = raw(
        "events", f"variant={variant}", "scenario=preempt", "cores=0", "calls=20"
    )
    assert all(0 < t < 1e9 for t in found["samples"]["ns_to_preempt"])


def periods(units: float) -> float:
    """The number of periods with so many units of work."""
    return units / 256


@pytest.mark.parametrize("call", ["none", "getppid", "stat", "pwrite"])
def test_raw_lost(call: str) -> None:
    found = raw("lost", f"call={call}", "calls=20")
    for name in ("control_ticks", "called_ticks"):
        assert len(found["samples"][name]) == 64
        assert all(t > 0 for t in found["samples"][name])
    # 20 calls, and a tenth more to warm up. For each call two sides are measured. Each
    # side runs a period before the measured one. The first period of all computes the
    # sum.
    assert periods(found["counts"]["units"]) == 1 + 2 * 2 * (20 + 2)
    assert found["counts"]["ticks_per_us"] > 0


@pytest.mark.parametrize("work", ["tree", "heap"])
@pytest.mark.parametrize(("every", "blocks"), [(1, 1), (64, 1), (1024, 4)])
def test_raw_pollute(work: str, every: int, blocks: int) -> None:
    found = raw("pollute", f"work={work}", f"every={every}", "call=pwrite")
    assert set(found["samples"]) == {
        *("control_ticks", "direct_ticks", "called_ticks"),
        *("clock_ticks", "direct_call_ticks", "call_ticks"),
    }
    assert all(len(ticks) == 2 for ticks in found["samples"].values())
    assert all(t > 0 for ticks in found["samples"].values() for t in ticks)
    # Three kinds of blocks, each run twice, in both repetitions.
    assert periods(found["counts"]["units"]) == 1 + 3 * 2 * 2 * blocks


@pytest.mark.parametrize("call", ["none", "pwrite", "open-write-close"])
@pytest.mark.parametrize("level", ["l1d", "l1i", "l2", "dtlb"])
def test_raw_footprint(call: str, level: str) -> None:
    found = raw("footprint", f"call={call}", f"level={level}")
    scale = {f"touch_{k}" for k in range(17)}
    assert set(found["samples"]) == {*scale, "call", "call_ticks"}
    assert all(len(ticks) == 2 for ticks in found["samples"].values())
    assert 32 <= found["counts"]["lines"]
    assert found["counts"]["chained"] == found["counts"]["lines"] // 8 * 7


def test_raw_memory() -> None:
    cores = sorted(os.sched_getaffinity(0))
    found = raw("memory", "mib=2")
    assert found["counts"]["cores"] == len(cores)
    for kind in ("plain", "vector"):
        assert len(found["samples"][f"{kind}_bytes_per_tick"]) == 2
        assert all(0 <= p <= 100 for p in found["samples"][f"{kind}_waited_percent"])
    assert raw("memory", "mib=2", f"cores={cores[0]}")["counts"]["cores"] == 1


def test_memory_is_measured_against_cores(measured: Measured) -> None:
    said, found = measured("memory")
    assert "memory: each core reads 256 MiB of its own" in said
    counts = [m["rounds"][0]["counts"]["cores"] for m in found]
    assert counts[0] == 1 and counts == sorted(set(counts))


def test_the_file_of_plain_calls_is_removed(tmp_path: Path) -> None:
    done = study(
        *("--raw", "lost", "call=open-write-close", "calls=1"), TMPDIR=str(tmp_path)
    )
    assert done.returncode == 0, done.stderr
    assert not list(tmp_path.iterdir())
    done = study("--raw", "lost", "call=stat", TMPDIR=str(tmp_path / "none"))
    assert done.returncode == 1
    assert "No such file or directory" in done.stderr


@pytest.mark.long
def test_the_cost_of_calls_is_measured(measured: Measured) -> None:
    said, found = measured("cost", patience=SLOW)
    for title in ("figure 1", "figure 2", "figure 3", "figure 4", "table 1"):
        assert f"({title}" in said
    number = {
        name: len([m for m in found if m["bench"] == name])
        for name in ("steps", "lost", "pollute", "footprint")
    }
    # steps: two kinds of work. lost: four calls. pollute: two kinds of work at three
    # frequencies, with and without calls. footprint: seven calls, four levels. Steps
    # and levels aren't available everywhere.
    assert number["lost"] == 4
    assert number["pollute"] == 12
    assert number["steps"] in (0, 2)
    assert number["footprint"] in (0, 7, 14, 21, 28)
    sums = {m["rounds"][0]["counts"]["sum"] for m in found if m["bench"] == "steps"}
    assert sums in (set(), {2576399855, 1284487459})


# Settings after --raw, or words of a bench.
WRONG = [
    (["--raw", "sleep"], 2, "--raw sleep: give events, load, steps, lost, pollute"),
    (["--raw", "lost"], 1, "call=close: give none, getppid, stat, pread, pwrite,"),
    (["--raw", "lost", "call=stat", "work=x"], 1, "work=x: give tree or heap"),
    (["--raw", "pollute", "call=stat", "every=3"], 1, "every=3: give a power of two"),
    (["--raw", "pollute", "every=8192"], 2, "every=8192: give a number from 1 to"),
    (["--raw", "footprint", "call=stat", "level=l3"], 1, "level=l3: give l1d, l1i"),
    (["--raw", "memory", "cores=x"], 1, "cores=x: give cores that this process may"),
    (["--raw", "events"], 1, "events: scenario=dormant: give dequeue or preempt"),
    (["--raw", "events", "scenario=preempt"], 1, "events: preempt: give cores=N"),
    (["--raw", "load", "port=1"], 1, "load: missing rate=N or trace=FILE; for"),
    (["--raw", "load", "port=1", "rate=1", "source=me"], 1, "load: address and"),
    (["--raw", "load", "trace="], 2, "trace=: give a path of ASCII characters"),
    (["--raw", "load", 'trace=a"b'], 2, 'trace=a"b: give a path of ASCII'),
    (["--raw", "load", "port=1", "trace=/no/such"], 1, "load: /no/sheet: No such"),
    (
        ["--raw", "load", "port=1", "trace=x", "order=1"],
        1,
        "load: order=1: not possible",
    ),
    (
        ["--raw", "load", "port=1", "rate=1", "cut=1", "count=5"],
        1,
        "load: cut=1: needs",
    ),
    (["webserver", "fast"], 1, "study: fast: give page, new, pages, specweb, "),
    (["webserver", "page", "--cores", "2"], 1, "--cores doesn't apply to study page"),
    (["webserver", "--cores", "1000"], 1, "--cores 1000: too many, "),
    (["programs", "redis", "--cores", "2"], 1, "--cores doesn't apply to redis, "),
    (["nginx", "--tune"], 1, "--tune doesn't apply to nginx"),
    (["nginx", "1m", "--cores", "2"], 1, "--cores doesn't apply to 1m, only to plain"),
    (["cost", "--cores", "2"], 1, "--cores doesn't apply to cost, "),
    (["nginx", "ftp"], 1, "nginx: ftp: give plain, kept, cached, "),
    (["programs", "emacs"], 1, "programs: emacs: give apache, mariadb, cpp, java, "),
    (["programs", "--network", "wire"], 1, "--network wire: give lo, veth, rps"),
    (["cost", "--network", "rps"], 1, "--network doesn't apply to cost, "),
    (["counts", "redis"], 1, "counts: redis: give apache, mariadb, "),
    (["overload", "fast"], 1, 'overload: unknown word "fast": give saturation'),
    (["overload", "rate=x"], 1, "rate=x: give 0.01x to 100x"),
    (["overload", "size=1,"], 1, "size=: give KiB from 1 to 1024"),
    (["overload", "work=1.5"], 1, "work=1.5: give a number from 0 to 100000"),
    (["report", "--only", "osdi-f99"], 1, "report: --only osdi-f99: unknown figure"),
    (["report", "--from", "/no/a.json"], 1, "report: /no/a.json: No such file"),
    (["report", "--quick"], 1, "report: --quick needs --measure"),
    (["report", "--out", "/dev/null"], 1, "report: /dev/null/raw: Not a directory"),
]


@pytest.mark.parametrize(("args", "status", "reason"), WRONG)
def test_a_wrong_command_line_is_one_line(
    tmp_path: Path, args: list[str], status: int, reason: str
) -> None:
    if args[0] == "report" and "--out" not in args:
        args = [*args, "--out", str(tmp_path)]
    done = study(*args)
    assert done.returncode == status
    assert done.stderr.startswith(f"flexsc: study: {reason}")
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


@pytest.mark.long
@needs_run
@pytest.mark.parametrize("kind", ["lo", "veth"])
def test_a_program_with_an_event_loop_is_measured(
    tmp_path: Path, measured: Measured, kind: str
) -> None:
    # Without perf, which takes longer.
    path = path_of(
        tmp_path / "bin",
        *[("taskset", "util-linux"), ("named", "bind9"), ("ip", "iproute2")],
        ("sh", "dash"),
    )
    words = ["programs", "bind", "--seconds", "1", "--connections", "8"]
    said, found = measured(*words, network=kind, PATH=path)
    assert "programs with an event loop: us of the processor" in said
    assert f"\nnetwork {kind}, 1 rounds of 1 s\n" in said
    assert "bind, 1 kept" in said and "bind, 8 kept" in said
    assert "perf isn't installed" in said
    for measurement in found:
        (round_,) = measurement["rounds"]
        assert 0 < round_["samples"]["cpu_us"][0] < 1e6
        assert round_["counts"]["answers"] > 0
    assert settings_of(found, "network") == [(kind,)] * 4


@pytest.mark.long
def test_the_calls_and_instructions_of_a_request_are_counted(
    measured: Measured,
) -> None:
    needed = [("valgrind", "valgrind"), ("perf", "linux-perf"), ("apache2", "apache2")]
    for name, package in (*needed, ("memcached", "memcached")):
        installed(name, package)
    said, found = measured("counts", "memcached", "apache", patience=SLOW)
    if "perf: " in said:
        pytest.skip(said.strip().splitlines()[-1])
    samples = [m["rounds"][0]["samples"] for m in found]
    by_mode = dict(zip(settings_of(found, "program", "mode"), samples, strict=True))
    (get,) = by_mode["memcached", "kept"]["calls_per_request"]
    # A request takes a read and a sendmsg, and all available requests share one
    # epoll_wait. The result is a difference of two counts, of which one may include the
    # end of one more connection.
    assert 1.9 < get < 2.5
    for one in samples:
        (calls,), (executed,) = (
            one[f"{what}_per_request"] for what in ("calls", "instructions")
        )
        assert one["instructions_per_call"] == [executed / calls]
        assert 500 < executed < 200_000
    kept, closed = (by_mode["apache", mode] for mode in ("kept", "closed"))
    for series in ("calls_per_request", "instructions_per_request"):
        assert kept[series][0] < closed[series][0]


# A perf on a processor with counters: each event is counted as often as it has letters.
COUNTING_PERF = """\
#!{python} -IS
import re, signal, sys, threading
events = re.findall(r"[\\w.-]+:[uk]", " ".join(sys.argv))
text = "".join(f"{{len(event)}},,{{event}},1000,100.00,,\\n" for event in events)
if "-p" in sys.argv:
    interrupted = threading.Event()
    signal.signal(signal.SIGINT, lambda *_: interrupted.set())
    interrupted.wait({patience})
    open(sys.argv[sys.argv.index("-o") + 1], "w").write(text)
else:
    sys.stderr.write(text)
"""


def need_nginx() -> None:
    built = Path(command()).resolve().parents[1] / "nginx/ngx_http_flexsc_module.so"
    if not built.is_file():
        pytest.skip("the module isn't built: install nginx-dev")
    for name in ("nginx", "wrk"):
        installed(name, name)


def need_memcached() -> None:
    try:
        ports.memcached(command())
    except BenchError as error:
        pytest.skip(str(error))


@pytest.mark.long
@pytest.mark.parametrize(
    ("program", "need", "variants"),
    [
        ("memcached", need_memcached, ["stock", "ported"]),
        ("nginx", need_nginx, ["stock", "module", "serve"]),
    ],
)
def test_counters_are_read_while_a_program_is_loaded(
    tmp_path: Path,
    measured: Measured,
    program: str,
    need: Callable[[], None],
    variants: list[str],
) -> None:
    need()
    perf = tmp_path / "perf"
    text = COUNTING_PERF.format(python=sys.executable, patience=TIMEOUT)
    perf.write_text(text, encoding="utf-8")
    perf.chmod(0o755)
    # Long enough for a perf that starts slowly.
    path = f"{tmp_path}:{os.environ['PATH']}"
    said, found = measured("counters", program, "--seconds", "3", PATH=path)
    assert f"counters: {program}, misses in 1,000 instructions" in said
    assert settings_of(found, "variant") == [(variant,) for variant in variants], said
    for measurement in found:
        samples = measurement["rounds"][0]["samples"]
        assert samples["ipc_user"] == [len("instructions:u") / len("cycles:u")]
        assert samples["branch_mpki_kernel"] == [
            1000 * len("branch-misses:k") / len("instructions:k")
        ]


def test_a_program_whose_tools_are_missing_is_not_counted(tmp_path: Path) -> None:
    tools = [("sh", "util-linux"), ("taskset", "util-linux")]
    done = study("counts", "bind", PATH=path_of(tmp_path / "bin", *tools))
    assert done.returncode == 1
    assert "counts: skipping bind: perf isn't installed" in done.stdout


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "modes"), [("lo", ["plain", "tls", "proxy"]), ("rps", ["new", "1m"])]
)
def test_nginx_is_measured_with_the_module(
    measured: Measured, kind: str, modes: list[str]
) -> None:
    need_nginx()
    installed("openssl", "openssl")
    said, found = measured("nginx", *modes, "--seconds", "1", network=kind)
    assert f"module and without; network {kind}, 1 rounds of 1 s\n" in said
    both = ("module", "stock")
    assert settings_of(found, "mode", "variant", "network") == [
        (mode, variant, kind) for mode in modes for variant in both
    ], said
    assert all(0 < m["rounds"][0]["samples"]["cpu_us"][0] < 1e6 for m in found)


@pytest.mark.long
def test_nginx_on_two_cores_has_a_worker_with_calls_elsewhere(
    measured: Measured,
) -> None:
    need_nginx()
    if len(machine.whole(os.sched_getaffinity(0))) < 2:
        pytest.skip("needs two physical cores")
    said, found = measured("nginx", "plain", "--seconds", "1", "--cores", "2")
    assert settings_of(found, "variant", "cores") == [
        (variant, 2) for variant in ("module", "stock", "remote", "stock-one")
    ], said
    assert "one worker with the module, calls on other cores; plain, 128" in said
    assert all(m["rounds"][0]["samples"]["requests_per_s"][0] > 0 for m in found)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["lo", "napi"])
def test_the_study_compares_models(measured: Measured, kind: str) -> None:
    installed("wrk", "wrk")
    models = ["loops", "stages"]
    if platform.machine() == "x86_64":
        models.append("threads-flexsc")
    words = ["webserver", "page", *models, "--seconds", "1", "--connections", "16"]
    said, found = measured(*words, network=kind)
    assert f"16 of them, a file of 1024 bytes; network {kind}, 1 rounds" in said
    assert settings_of(found, "model") == [(name,) for name in (*models, "events")]
    for measurement in found:
        samples = measurement["rounds"][0]["samples"]
        assert samples["requests_per_s"][0] > 0
        assert 0 < samples["cpu_us"][0] < 1e6


@pytest.mark.long
@pytest.mark.parametrize(("kind", "workload"), [("lo", "pages"), ("napi", "specweb")])
def test_models_are_offered_sessions(
    tmp_path: Path, measured: Measured, kind: str, workload: str
) -> None:
    words = ["webserver", workload, "loops"]
    said, found = measured(*words, network=kind, patience=SLOW, TMPDIR=str(tmp_path))
    assert f"study {workload}: " in said and "at twice the best peak" in said
    both = ["loops", "events"]
    assert [
        (m["bench"], m["settings"]["model"], m["settings"].get("times")) for m in found
    ] == [("study-peak", name, None) for name in both] + [
        ("study-offered", name, times) for times in ("0.5", "1", "2") for name in both
    ], said
    for measurement in found:
        (one,) = measurement["rounds"]
        # On a busy machine, a server with twice its peak load may answer only during
        # the warm-up.
        assert one["counts"]["answered"] + one["counts"]["warm_up"] > 0
        assert 0 < one["samples"]["server_us"][0] < 1e6
        wrong = [f"wrong_{what}" for what in ("status", "length", "body", "head")]
        assert sum(one["counts"][end] for end in wrong) == 0
        if measurement["settings"].get("times") != "2":
            assert one["samples"]["answers_per_s"][0] > 0
            assert one["counts"]["answered"] > 0
    # The files have been removed.
    assert [p for p in tmp_path.iterdir() if p.name.startswith("flexbench-")] == []


@pytest.mark.long
@needs_run
def test_a_sweep_goes_through_numbers_of_clients(measured: Measured) -> None:
    installed("named", "bind9")
    said, found = measured("programs", "bind", "--sweep", "--seconds", "1")
    assert set(settings_of(found, "mode", "connections")) == {
        *[("kept", 1), ("kept", 16), ("kept", 256)]
    }
    assert "bind, 256 kept" in said


@pytest.mark.long
@needs_run
def test_programs_that_are_there_are_measured(
    tmp_path: Path, measured: Measured
) -> None:
    if not Path("/usr/lib/apache2/modules/mod_mpm_worker.so").exists():
        pytest.skip("mod_mpm_worker.so is missing: install apache2")
    # Without MariaDB and Java, which take longer.
    there = [(name, name) for name in ("taskset", "apache2", "wrk")]
    path = path_of(tmp_path / "bin", *there)
    words = ["programs", "--seconds", "1", "--connections", "8"]
    said, found = measured(*words, PATH=path)
    assert "programs: Apache, 1 KiB, connections that are kept" in said
    for package in ("mariadb-server", "default-jdk-headless"):
        assert f"comes with Debian's package {package}" in said
    for one in found:
        shares = one["rounds"][0]["samples"]
        parts = [shares[f"{p}_percent"][0] for p in ("user", "system", "idle")]
        assert min(parts) >= 0 and 0 < sum(parts) < 100.1
        assert shares["cpu_us"][0] > 0 and shares["switches"][0] >= 0
    pool = [("cpp", "kept", name) for name in ("native", "flexsc")]
    assert settings_of(found, "program", "mode", "variant") == [
        ("apache", mode, name)
        for mode in ("kept", "closed")
        for name in ("event-native", "event-flexsc", "native", "flexsc")
    ] + (pool if "C++ pool" in said else [])


@pytest.mark.long
@needs_run
def test_an_executor_is_measured(measured: Measured) -> None:
    installed("java", "default-jdk-headless")
    installed("wrk", "wrk")
    said, found = measured("programs", "java", "--connections", "4", patience=SLOW)
    assert "programs: Java executor" in said
    assert settings_of(found, "variant") == [("native",), ("flexsc",)]


@needs_run
def test_programs_are_measured_on_two_cores(measured: Measured) -> None:
    installed("wrk", "wrk")
    words = ["programs", "cpp", "--seconds", "1", "--connections", "8"]
    said, found = measured(*words, "--cores", "1,2", patience=SLOW)
    cores = settings_of(found, "cores", "variant")
    one = [(1, "native"), (1, "flexsc")]
    two = [(2, "native"), (2, "flexsc"), (2, "flexsc-remote")]
    assert cores == one + two
    assert "pool, flexsc run, calls elsewhere" in said
    assert "2 cores, network lo" in said
