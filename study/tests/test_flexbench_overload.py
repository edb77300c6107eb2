# SPDX-License-Identifier: MIT
"""flexbench's overload: its words, sizes, tables and figures."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from fixtures import PATIENCE, eventually
from flexbench import network, quiet, tools
from flexbench.machine import Cores
from flexbench.samples import BenchError, Json, Measurement, Run, Settings
from flexstudy import mix, overload_table
from flexstudy.overload_plan import Options, parse

LOOP = "while True: pass"


def test_words_are_parts_and_settings() -> None:
    words = ["goodput", "trace", "events=send,epoll", "rate=0.5x,2", "work=0"]
    found = parse([*words, "size=1,8", "admission=age,none"])
    assert found == Options(
        parts=["goodput", "trace"],
        events=["send", "epoll"],
        size=["1", "8"],
        rate=["0.5", "2"],
        admission=["age", "none"],
        work=0,
    )
    assert parse(["mix=barford"]).size == ["barford"]


def test_the_mix_is_what_was_seen() -> None:
    found = mix.sizes()
    assert found == mix.sizes()
    assert len(found) == mix.FILES
    assert found != sorted(found)
    ordered = sorted(found)
    # The median of all files is the lognormal's at 0.5 of 0.93: 12.5 KB.
    assert 11 <= ordered[len(ordered) // 2] <= 14
    # Seven percent are in the tail, which begins at 133,000 bytes; three percent of the
    # others are as large.
    assert sum(kib > 131 for kib in found) == 4
    assert 1 <= ordered[0] <= 2
    assert mix.quantile(0.93) == pytest.approx(133_000)
    assert mix.quantile(0.93 / 2) == pytest.approx(11_579, rel=0.01)


@contextlib.contextmanager
def made(
    kind: str, cores: Cores = Cores(measured=1, other=0, load=[0])
) -> Iterator[network.Network]:
    """A network, if it is possible here."""
    needed = ["ip", "tc"] + (["ethtool"] if kind == network.NAPI else [])
    if os.geteuid() != 0 or not all(tools.find(program) for program in needed):
        pytest.skip(f"this takes root, {', '.join(needed)}")
    try:
        with network.network(kind, cores) as net:
            yield net
    except BenchError as error:
        if "not permitted" in str(error) or "Read-only" in str(error):
            pytest.skip(str(error))
        raise


@pytest.mark.parametrize("kind", ["veth", "rps", "napi", "100mbit"])
def test_networks_come_and_go(kind: str) -> None:
    with made(kind) as net:
        route = [*net.client, "ip", "route", "get", net.address, "from", net.source]
        found = subprocess.run(route, capture_output=True, text=True, check=True)
        assert f"{net.address} from {net.source} dev v0" in found.stdout
        name = net.client[-1]
    listed = subprocess.run(["ip", "netns"], capture_output=True, text=True, check=True)
    assert name not in listed.stdout


def test_each_side_receives_in_a_thread_of_its_own() -> None:
    if len(os.sched_getaffinity(0)) < 2 or not tools.find("ethtool"):
        pytest.skip("needs two cores and ethtool")
    before = network.receivers()
    with made("napi"):
        cores = {
            core
            for thread in network.receivers() - before
            for core in os.sched_getaffinity(thread)
        }
        assert cores == {0, 1}
    # A namespace is removed some time after its name.
    assert eventually(lambda: network.receivers() <= before)


def test_a_server_on_several_cores_receives_on_each() -> None:
    if len(os.sched_getaffinity(0)) < 2 or not tools.find("ethtool"):
        pytest.skip("needs two cores and ethtool")
    before = network.receivers()
    # The clients' only core is the server's second one, because the test has two cores.
    with made("napi", Cores(measured=1, other=0, load=[0], more=[0])) as net:
        threads = sorted(network.receivers() - before)
        places = sorted(core for t in threads for core in os.sched_getaffinity(t))
        assert places == [0, 0, 1]
        queues = {}
        for side in (net.server, net.client):
            command = [*side, "ls", "/sys/class/net/v0/queues"]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            queues[side[-1]] = done.stdout.split()
        assert queues[net.server[-1]] == ["rx-0", "rx-1", "tx-0"]
        assert queues[net.client[-1]] == ["rx-0", "tx-0", "tx-1"]
        command = [*net.client, "tc", "qdisc", "show", "dev", "v0"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert done.stdout.count("pfifo") == 2
        assert done.stdout.count("limit 10000p") == 2


ANSWER = """
import socket, sys
with socket.create_server((sys.argv[1], int(sys.argv[2]))) as listener:
    print(flush=True)
    connection, (address, _) = listener.accept()
    used = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
    connection.sendall(f"{address} {used.strip(bytes(1)).decode()}".encode())
"""


def congestion(one: socket.socket) -> str:
    used = one.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
    return used.strip(bytes(1)).decode()


def test_a_network_has_the_settings_of_a_tuned_server() -> None:
    host = Path("/proc/sys/net/core/somaxconn").read_text(encoding="ascii")
    with made("veth") as net:
        assert net.settings["net.core.somaxconn"] == "200000"
        assert net.settings["net.ipv4.tcp_wmem"] == "4096 65536 4194304"
        assert "vm.max_map_count" not in net.settings
        route = [*net.server, "ip", "route"]
        found = subprocess.run(route, capture_output=True, text=True, check=True)
        assert "congctl cubic" in found.stdout
        read = [*net.client, "cat", "/proc/sys/net/core/somaxconn"]
        there = subprocess.run(read, capture_output=True, text=True, check=True)
        assert there.stdout == "200000\n"
    assert Path("/proc/sys/net/core/somaxconn").read_text(encoding="ascii") == host


def test_a_visitor_of_a_network_comes_back() -> None:
    here = os.readlink("/proc/thread-self/ns/net")
    with made("rps") as net:
        port = net.free_port()
        command = [*net.server, sys.executable, "-c", ANSWER, net.address, str(port)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as server:
            try:
                assert server.stdout and server.stdout.readline()
                with (
                    network.visit(net.client),
                    socket.create_connection((net.address, port), 10) as client,
                ):
                    assert os.readlink("/proc/thread-self/ns/net") != here
                    assert client.recv(100).decode() == f"{net.host} cubic"
                    assert congestion(client) == "cubic"
            finally:
                server.kill()
        assert os.readlink("/proc/thread-self/ns/net") == here
    with network.visit([]):
        assert os.readlink("/proc/thread-self/ns/net") == here


def test_the_clock_of_a_process_is_its_own() -> None:
    before, used = quiet.clock_s(os.getpid()), time.process_time()
    while time.process_time() < used + 0.05:
        pass
    assert quiet.clock_s(os.getpid()) - before >= 0.05
    with pytest.raises(OSError, match="Invalid argument"):
        quiet.clock_s(1 << 22)


def test_somebody_else_s_process_is_noticed() -> None:
    # The shell ends at once, so the loop isn't a descendant of this process.
    one = f'taskset -c 0 "{sys.executable}" -c "{LOOP}"'
    start = f"{one} >/dev/null 2>&1 & echo $!"
    done = subprocess.run(
        ["sh", "-c", start], capture_output=True, check=True, timeout=PATIENCE
    )
    pid = int(done.stdout)
    try:
        others = quiet.Others([0])
        assert eventually(lambda: others.percent() > quiet.LIMIT_PERCENT)
    finally:
        os.kill(pid, signal.SIGKILL)


class Machine:
    """A machine whose clocks advance only when the test sets them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = self.idle = self.stolen = self.ours = self.ended = 0.0
        self.theirs = {100: 7.0}
        monkeypatch.setattr(quiet, "cores_s", self.cores_s)
        monkeypatch.setattr(quiet, "clock_s", lambda pid: self.ours)
        monkeypatch.setattr(quiet, "ended_s", lambda: self.ended)
        monkeypatch.setattr(quiet, "tasks", self.tasks)
        # Real measurements of other tests may have set it.
        monkeypatch.setattr(quiet.Elsewhere, "used_s", 0.0)
        monkeypatch.setattr("time.monotonic", lambda: self.now)
        monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 1})

    def cores_s(self, cores: list[int], *columns: int) -> list[float]:
        assert columns in ((3, 4), (7,))
        return [self.stolen if columns == (7,) else self.idle for _ in cores]

    def tasks(self) -> dict[int, quiet.Task]:
        all_tasks = [quiet.Task(os.getpid(), 100, 0, 3.0 * self.now)]
        all_tasks += [quiet.Task(pid, 1, 0, used) for pid, used in self.theirs.items()]
        # A kernel thread, which works for us and for others.
        all_tasks.append(quiet.Task(2, 0, quiet.KERNEL_THREAD, self.now))
        return {task.pid: task for task in all_tasks}


def test_a_core_s_time_is_ours_theirs_or_the_kernel_s(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine = Machine(monkeypatch)
    others = quiet.Others([1])
    # Ten seconds: one idle, six of a process of the bench, two of one that ended.
    machine.now, machine.idle = 10.0, 1.0
    machine.ours, machine.ended = 6.0, 2.0
    # The rest is the kernel's, unless another process' clock accounts for it.
    assert others.percent() == pytest.approx(0)
    machine.theirs[100] += 0.4
    assert others.percent() == pytest.approx(4)
    # Another process' clock may include time on other cores.
    machine.theirs[101] = 8.0
    assert others.percent() == pytest.approx(10)
    # The process that ended used another core, so this core's time belongs to another
    # process.
    monkeypatch.setattr(quiet.Elsewhere, "used_s", 2.0)
    assert others.percent() == pytest.approx(30)
    machine.stolen = 0.5
    assert others.percent() == pytest.approx(30)


def test_others_share_is_of_all_the_server_s_cores(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine = Machine(monkeypatch)
    others = quiet.Others([1, 0])
    # Two cores have twenty seconds: two are idle, twelve are the bench's, the rest is
    # another process'.
    machine.now, machine.idle, machine.ours = 10.0, 1.0, 12.0
    machine.theirs[100] += 8.0
    assert others.percent() == pytest.approx(30)
    # A process of the bench that may not run on these cores has used none of their
    # time.
    others = quiet.Others([2, 3])
    machine.now, machine.ours = 20.0, 24.0
    machine.theirs[100] += 40.0
    assert others.percent() == pytest.approx(100)


def test_what_ticks_cannot_tell_is_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch)
    others = quiet.Others([1])
    machine.now = 0.02
    machine.theirs[100] += 0.02
    assert others.percent() == 0
    machine.now = 0.03
    machine.theirs[100] += 0.01
    assert others.percent() == pytest.approx(100)


def test_a_session_is_preferred_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quiet, "AUTOGROUP", tmp_path / "autogroup")
    with quiet.preferred():
        assert not (tmp_path / "autogroup").exists()
    (tmp_path / "autogroup").write_text("/autogroup-7 nice 3\n")
    with quiet.preferred():
        assert (tmp_path / "autogroup").read_text() == "-20"
    assert (tmp_path / "autogroup").read_text() == "3\n"


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
    found.append(measurement("trace", "epoll", "1.2", 0))
    return Run(machine={"models": models}, command=["overload"], measurements=found)


def test_the_tables() -> None:
    run = a_run()
    text = "\n".join(overload_table.show(run))
    assert "send    immediate    preemptive  at delivery       uring" in text
    lines = text.splitlines()
    assert any(x.split() == ["send", "950", "0.950"] for x in lines)
    assert [x.split() for x in lines].count(["2x", "2,000", "250", "931"]) == 2
    # At twice the saturation point, relative to its own peak and to the best.
    assert [x.split() for x in lines].count(["epoll", "0.250", "0.250"]) == 2
    assert [x.split() for x in lines].count(["send", "0.980", "0.931"]) == 2
    # 40 of 100 were lost.
    assert "40.0" in next(x for x in lines if x.startswith("2x send"))
    assert run.notes == []


def test_late_clients_are_told() -> None:
    run = a_run()
    late = measurement("goodput", "send", "3", 1)
    late.rounds[0]["samples"]["behind_p99_us"] = [30000.0]
    late.rounds[0]["counts"]["unsent"] = 5
    run.measurements.append(late)
    overload_table.show(run)
    assert len(run.notes) == 2
    assert "the clients sent requests 30 ms late" in run.notes[0]
    assert "no descriptor or port left for 5 requests" in run.notes[1]
