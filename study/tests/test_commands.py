# SPDX-License-Identifier: MIT
"""flexsc study: each of its measuring loops, and the command as a whole."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fixtures import command
from programs import installed

TIMEOUT = 60
# Where instructions are stepped through, on a machine that others use.
SLOW = 600


def study(
    *args: str, patience: int = TIMEOUT, **env: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [command(), "study", *args],
        capture_output=True,
        text=True,
        timeout=patience,
        check=False,
        env={**os.environ, **env},
    )


def raw(case: str, *args: str) -> Any:
    done = study("--raw", case, "reps=2", *args)
    if "not supported" in done.stderr or "not permitted" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


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
    """Periods of work, of so many units."""
    return units / 256


@pytest.mark.parametrize("call", ["none", "getppid", "stat", "pwrite"])
def test_raw_lost(call: str) -> None:
    found = raw("lost", f"call={call}", "calls=20")
    for name in ("control_ticks", "called_ticks"):
        assert len(found["samples"][name]) == 64
        assert all(t > 0 for t in found["samples"][name])
    # Both sides of each call and of the tenth that warms up: a period that is
    # measured, and the one before. The first of all makes the sum.
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
    # Three kinds of blocks, each twice, in both repetitions.
    assert periods(found["counts"]["units"]) == 1 + 3 * 2 * 2 * blocks


TRAPS = ["none", "stat", "pread", "pwrite", "open-close", "mmap-munmap"]


@pytest.mark.parametrize("call", [*TRAPS, "open-write-close"])
@pytest.mark.parametrize("level", ["l1d", "l1i", "l2", "dtlb"])
def test_raw_footprint(call: str, level: str) -> None:
    done = study("--raw", "footprint", f"call={call}", f"level={level}", "reps=2")
    if "its size isn't known" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    scale = {f"touch_{k}" for k in range(17)}
    assert set(found["samples"]) == {*scale, "call", "call_ticks"}
    assert all(len(ticks) == 2 for ticks in found["samples"].values())
    assert 32 <= found["counts"]["lines"]
    assert found["counts"]["chained"] == found["counts"]["lines"] // 8 * 7


def test_raw_memory() -> None:
    cores = sorted(os.sched_getaffinity(0))
    done = study("--raw", "memory", "mib=2", "reps=3")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["counts"]["cores"] == len(cores)
    for kind in ("plain", "vector"):
        assert len(found["samples"][f"{kind}_bytes_per_tick"]) == 3
        assert all(0 <= p <= 100 for p in found["samples"][f"{kind}_waited_percent"])
    done = study("--raw", "memory", "mib=2", "reps=1", f"cores={cores[0]}")
    assert json.loads(done.stdout)["counts"]["cores"] == 1


def test_memory_is_measured_against_cores(tmp_path: Path) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("there is one core only")
    path = tmp_path / "run.json"
    done = study("memory", "--quick", "--rounds", "1", "--out", str(path))
    assert done.returncode == 0, done.stderr
    assert "memory: each core reads 256 MiB of its own" in done.stdout
    found = json.loads(path.read_text(encoding="utf-8"))["measurements"]
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
def test_the_cost_of_calls_is_measured(tmp_path: Path) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("there is one core only")
    path = tmp_path / "run.json"
    done = study(
        *("cost", "--quick", "--rounds", "1", "--out", str(path)), patience=SLOW
    )
    assert done.returncode == 0, done.stderr
    for title in ("figure 1", "figure 2", "figure 3", "figure 4", "table 1"):
        assert f"({title}" in done.stdout
    found = json.loads(path.read_text(encoding="utf-8"))["measurements"]
    number = {
        name: len([m for m in found if m["bench"] == name])
        for name in ("steps", "lost", "pollute", "footprint")
    }
    # Two works; four calls; two works, three frequencies, with and without calls;
    # seven calls and four levels. Steps and levels aren't known everywhere.
    assert number["lost"] == 4
    assert number["pollute"] == 12
    assert number["steps"] in (0, 2)
    assert number["footprint"] in (0, 7, 14, 21, 28)
    sums = {m["rounds"][0]["counts"]["sum"] for m in found if m["bench"] == "steps"}
    assert sums in (set(), {2576399855, 1284487459})


@pytest.mark.parametrize(
    ("args", "status", "reason"),
    [
        (["sleep"], 2, "--raw sleep: give events, load, steps, lost, pollute"),
        (["load", "port=1", "rate=1", "source=me"], 1, "load: address and source are"),
        (["lost"], 1, "call=close: give none, getppid, stat, pread, pwrite,"),
        (["lost", "call=stat", "work=x"], 1, "work=x: give tree or heap"),
        (["steps", "work=x"], 1, "work=x: give tree or heap"),
        (["pollute", "call=stat", "every=3"], 1, "every=3: give a power of two"),
        (["pollute", "every=8192"], 2, "every=8192: give a number from 1 to 4096"),
        (["footprint", "call=stat", "level=l3"], 1, "level=l3: give l1d, l1i"),
        (["memory", "cores=x"], 1, "cores=x: give cores that this process may use"),
        (["memory", "mib=0"], 2, "mib=0: give a number from 1 to 65536"),
        (["events"], 1, "events: scenario=dormant: give dequeue or preempt"),
        (["events", "scenario=preempt"], 1, "events: preempt: give cores=N"),
    ],
)
def test_bad_settings_are_one_line(args: list[str], status: int, reason: str) -> None:
    done = study("--raw", *args)
    assert done.returncode == status
    assert reason in done.stderr
    assert done.stderr.startswith("flexsc: study: ")
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


def networked(kind: str, *args: str, patience: int = TIMEOUT, **env: str) -> str:
    """A bench's output on a network of this kind; skip the test where there is none."""
    if kind != "lo" and os.geteuid() != 0:
        pytest.skip("network namespaces take root")
    done = study(*args, "--network", kind, patience=patience, **env)
    if "not permitted" in done.stderr or "Read-only" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.long
@pytest.mark.skipif(platform.machine() != "x86_64", reason="flexsc run is for x86-64")
@pytest.mark.parametrize("kind", ["lo", "veth"])
def test_a_program_with_an_event_loop_is_measured(tmp_path: Path, kind: str) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("there is one core only")
    # Without perf, which takes longer.
    there = tmp_path / "bin"
    there.mkdir()
    (there / "python3").symlink_to(Path(sys.executable).resolve())
    needed = [("taskset", "util-linux"), ("named", "bind9"), ("ip", "iproute2")]
    for name, package in (*needed, ("sh", "dash")):
        (there / name).symlink_to(installed(name, package))
    path = tmp_path / "run.json"
    quickly = ["--quick", "--rounds", "1", "--seconds", "1", "--connections", "8"]
    said = networked(
        *(kind, "programs", "bind", *quickly, "--out", str(path)), PATH=str(there)
    )
    assert "programs with an event loop: us of the processor" in said
    assert f"\nnetwork {kind}, 1 rounds of 1 s\n" in said
    assert "bind, 1 kept" in said and "bind, 8 kept" in said
    assert "perf isn't installed" in said
    found = json.loads(path.read_text(encoding="utf-8"))
    for measurement in found["measurements"]:
        (round_,) = measurement["rounds"]
        (us,) = round_["samples"]["cpu_us"]
        assert 0 < us < 1e6 and round_["counts"]["answers"] > 0
        assert round_["samples"]["disturbed_percent"][0] >= 0
        assert measurement["settings"]["network"] == kind
    assert len(found["measurements"]) == 4


@pytest.mark.long
def test_the_calls_and_instructions_of_a_request_are_counted(tmp_path: Path) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("there is one core only")
    needed = [("valgrind", "valgrind"), ("perf", "linux-perf"), ("apache2", "apache2")]
    for name, package in (*needed, ("memcached", "memcached")):
        installed(name, package)
    path = tmp_path / "run.json"
    words = ["counts", "memcached", "apache", "--quick", "--out", str(path)]
    done = study(*words, patience=SLOW)
    if "perf: " in done.stdout:
        pytest.skip(done.stdout.strip().splitlines()[-1])
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(path.read_text(encoding="utf-8"))
    assert found["notes"] == []
    by_mode = {
        (m["settings"]["program"], m["settings"]["mode"]): m["rounds"][0]["samples"]
        for m in found["measurements"]
    }
    (get,) = by_mode["memcached", "kept"]["calls_per_request"]
    # A read and a sendmsg for each, and an epoll_wait for all that are there. It is a
    # difference of two counts, of which one may have an end more than the other.
    assert 1.9 < get < 2.5
    for samples in by_mode.values():
        (calls,) = samples["calls_per_request"]
        (executed,) = samples["instructions_per_request"]
        assert samples["instructions_per_call"] == [executed / calls]
        assert 500 < executed < 200_000
    kept, closed = (by_mode["apache", mode] for mode in ("kept", "closed"))
    for series in ("calls_per_request", "instructions_per_request"):
        assert kept[series][0] < closed[series][0]


# A perf on a processor that counts: each event is counted so often as it has letters.
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


@pytest.mark.long
@pytest.mark.skipif(platform.machine() != "x86_64", reason="flexsc run is for x86-64")
def test_counters_are_read_while_a_program_is_loaded(tmp_path: Path) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("there is one core only")
    installed("memcached", "memcached")
    perf = tmp_path / "perf"
    text = COUNTING_PERF.format(python=sys.executable, patience=TIMEOUT)
    perf.write_text(text, encoding="utf-8")
    perf.chmod(0o755)
    path = tmp_path / "run.json"
    # Long enough for a perf that is slow to begin.
    quickly = ["--quick", "--rounds", "1", "--seconds", "3", "--out", str(path)]
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = study("counters", "memcached", *quickly, **env)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "counters: memcached, misses in 1,000 instructions" in done.stdout
    measured = json.loads(path.read_text(encoding="utf-8"))["measurements"]
    assert [m["settings"]["variant"] for m in measured] == ["native", "flexsc"]
    for measurement in measured:
        samples = measurement["rounds"][0]["samples"]
        assert samples["ipc_user"] == [len("instructions:u") / len("cycles:u")]
        assert samples["branch_mpki_kernel"] == [
            1000 * len("branch-misses:k") / len("instructions:k")
        ]


def test_a_program_whose_tools_are_missing_is_not_counted(tmp_path: Path) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("there is one core only")
    (tmp_path / "python3").symlink_to(Path(sys.executable).resolve())
    for name in ("sh", "taskset"):
        (tmp_path / name).symlink_to(installed(name, "util-linux"))
    done = study("counts", "bind", PATH=str(tmp_path))
    assert done.returncode == 1
    assert "counts: bind is left out: perf isn't installed" in done.stdout


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "modes"),
    [
        ("lo", ["plain", "tls", "proxy"]),
        ("rps", ["new", "1m"]),
    ],
)
def test_nginx_is_measured_with_the_module(
    tmp_path: Path, kind: str, modes: list[str]
) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("there is one core only")
    built = Path(command()).resolve().parents[1] / "nginx/ngx_http_flexsc_module.so"
    if not built.is_file():
        pytest.skip("the module isn't built: install nginx-dev")
    for name in ("nginx", "wrk", "openssl"):
        installed(name, name)
    path = tmp_path / "run.json"
    quickly = ["--quick", "--rounds", "1", "--seconds", "1", "--out", str(path)]
    said = networked(kind, "nginx", *modes, *quickly)
    assert f"module and without; network {kind}, 1 rounds of 1 s\n" in said
    found = json.loads(path.read_text(encoding="utf-8"))
    settings = [m["settings"] for m in found["measurements"]]
    both = ("module", "stock")
    assert [(s["mode"], s["variant"], s["network"]) for s in settings] == [
        (mode, variant, kind) for mode in modes for variant in both
    ], said
    for measurement in found["measurements"]:
        (us,) = measurement["rounds"][0]["samples"]["cpu_us"]
        assert 0 < us < 1e6


@pytest.mark.long
@pytest.mark.parametrize("kind", ["lo", "napi"])
def test_the_study_compares_models(tmp_path: Path, kind: str) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("there is one core only")
    installed("wrk", "wrk")
    path = tmp_path / "run.json"
    models = ["loops", "stages"]
    if platform.machine() == "x86_64":
        models.append("threads-flexsc")
    quickly = ["--quick", "--rounds", "1", "--seconds", "1", "--connections", "16"]
    said = networked(kind, "webserver", "page", *models, *quickly, "--out", str(path))
    assert f"16 of them, a file of 1024 bytes; network {kind}, 1 rounds" in said
    found = json.loads(path.read_text(encoding="utf-8"))
    assert [m["settings"]["model"] for m in found["measurements"]] == [
        *models,
        "events",
    ], said
    for measurement in found["measurements"]:
        samples = measurement["rounds"][0]["samples"]
        assert samples["requests_per_s"][0] > 0
        assert 0 < samples["cpu_us"][0] < 1e6


@pytest.mark.long
@pytest.mark.parametrize(("kind", "workload"), [("lo", "pages"), ("napi", "specweb")])
def test_models_are_offered_sessions(tmp_path: Path, kind: str, workload: str) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("there is one core only")
    path = tmp_path / "run.json"
    said = networked(
        *(kind, "webserver", workload, "loops", "--quick", "--out", str(path)),
        patience=SLOW,
        TMPDIR=str(tmp_path),
    )
    assert f"study {workload}: " in said and "at twice the best peak" in said
    found = json.loads(path.read_text(encoding="utf-8"))["measurements"]
    both = ["loops", "events"]
    assert [
        (m["bench"], m["settings"]["model"], m["settings"].get("times")) for m in found
    ] == [("study-peak", name, None) for name in both] + [
        ("study-offered", name, times) for times in ("0.5", "1", "2") for name in both
    ], said
    for measurement in found:
        (one,) = measurement["rounds"]
        # On a busy machine, a server that is offered twice its peak may answer in the
        # warm-up alone.
        answers = one["counts"]["answered"] + one["counts"]["warm_up"]
        assert answers > 0
        assert 0 < one["samples"]["server_us"][0] < 1e6
        wrong = [f"wrong_{what}" for what in ("status", "length", "body", "head")]
        assert sum(one["counts"][end] for end in wrong) == 0
        if measurement["settings"].get("times") != "2":
            assert one["samples"]["answers_per_s"][0] > 0
            assert one["counts"]["answered"] > 0
        assert measurement["settings"]["network"] == kind
    peaks = [m["rounds"][0]["samples"]["jain"][0] for m in found[:2]]
    assert all(0 < jain <= 1 for jain in peaks)
    # The files are gone.
    assert [p for p in tmp_path.iterdir() if p.name.startswith("flexbench-")] == []


def test_the_study_has_words() -> None:
    done = study("webserver", "fast")
    assert (done.returncode, done.stdout) == (1, "")
    assert "study: fast: give page, new, pages, specweb, " in done.stderr
    assert done.stderr.count("\n") == 1
    done = study("nginx", "--tune")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "flexsc: study: nginx: --tune is of webserver\n"


def test_the_study_s_servers_have_as_many_cores_as_clients_leave() -> None:
    said = {
        ("nginx", "--cores", "2"): "nginx: --cores is of webserver",
        (
            "webserver",
            "page",
            "--cores",
            "2",
        ): "study page is of one core, and --cores of " "pages, specweb",
        ("webserver", "--cores", "1000"): "--cores 1000: of the ",
        ("webserver", "--cores", "0"): "argument --cores: invalid",
        ("webserver", "--cores", "1,two"): "argument --cores: invalid",
    }
    for words, error in said.items():
        done = study(*words)
        assert (done.returncode != 0, done.stdout) == (True, "")
        assert error in done.stderr


def test_programs_have_names() -> None:
    done = study("programs", "emacs")
    assert (done.returncode, done.stdout) == (1, "")
    assert (
        "programs: emacs: give apache, mariadb, apache-entries, nginx, " in done.stderr
    )
    assert done.stderr.count("\n") == 1


@pytest.mark.long
@pytest.mark.skipif(platform.machine() != "x86_64", reason="flexsc run is for x86-64")
def test_a_sweep_goes_through_numbers_of_clients(tmp_path: Path) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("there is one core only")
    installed("named", "bind9")
    path = tmp_path / "run.json"
    quickly = ["--sweep", "--quick", "--rounds", "1", "--seconds", "1"]
    done = study("programs", "bind", *quickly, "--out", str(path))
    assert done.returncode == 0, done.stderr
    found = json.loads(path.read_text(encoding="utf-8"))["measurements"]
    settings = [m["settings"] for m in found]
    assert {(s["mode"], s["connections"]) for s in settings} == {
        *[("kept", 1), ("kept", 16), ("kept", 256)]
    }
    assert "bind, 256 kept" in done.stdout


@pytest.mark.long
@pytest.mark.skipif(platform.machine() != "x86_64", reason="flexsc run is for x86-64")
def test_programs_that_are_there_are_measured(tmp_path: Path) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("there is one core only")
    if not Path("/usr/lib/apache2/modules/mod_mpm_worker.so").exists():
        pytest.skip("no mod_mpm_worker.so: install apache2")
    # Without MariaDB, which takes longer.
    there = tmp_path / "bin"
    there.mkdir()
    (there / "python3").symlink_to(Path(sys.executable).resolve())
    for name in ("taskset", "apache2", "wrk"):
        (there / name).symlink_to(installed(name, name))
    path = tmp_path / "run.json"
    quickly = ["--quick", "--rounds", "1", "--seconds", "1", "--connections", "8"]
    done = study("programs", *quickly, "--out", str(path), PATH=str(there))
    assert done.returncode == 0, done.stderr
    assert "programs: Apache, 1 KiB, 8 connections" in done.stdout
    assert "comes with Debian's package mariadb-server" in done.stdout
    found = json.loads(path.read_text(encoding="utf-8"))
    for one in found["measurements"]:
        shares = one["rounds"][0]["samples"]
        parts = [shares[f"{p}_percent"][0] for p in ("user", "system", "idle")]
        assert min(parts) >= 0 and 0 < sum(parts) < 100.1
    settings = [m["settings"] for m in found["measurements"]]
    assert [(s["mode"], s["variant"]) for s in settings] == [
        *[("kept", "native"), ("kept", "flexsc")],
        *[("closed", "native"), ("closed", "flexsc")],
    ]
