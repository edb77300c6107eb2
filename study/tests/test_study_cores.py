# SPDX-License-Identifier: MIT
"""The study's servers on two cores. The tests have only two cores, so the clients share
one of the server's: the figures mean nothing, and only the servers are checked.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

import pytest
from fixtures import command
from flexbench import pair, servers, tools
from flexbench.machine import Cores
from flexbench.runner import Plan
from flexbench.samples import Run
from flexbench.servers import Server
from flexstudy.webserver import offered, subjects

CORES = sorted(os.sched_getaffinity(0))[-2:]
pytestmark = pytest.mark.skipif(len(CORES) < 2, reason="needs two cores")


def plan() -> Plan:
    cores = Cores(CORES[-1], CORES[0], [CORES[0]], [CORES[0]])
    return Plan(command(), cores, True, 1, 1, 1024, None)


def threads_of(pid: int) -> list[int]:
    return [int(name) for name in os.listdir(f"/proc/{pid}/task")]


def places(pids: Iterable[int]) -> set[int]:
    return {core for pid in pids for core in os.sched_getaffinity(pid)}


def check(server: Server) -> None:
    """Does the server use both cores, with a worker on each?"""
    assert places(threads_of(server.pid)) == set(CORES)
    workers = servers.children(server.pid)
    if server.name in ("events", "helpers"):
        assert len(workers) == 1  # the second worker is the parent
    if server.name == "nginx":
        assert len(workers) == len(places(workers)) == 2
        assert all(len(os.sched_getaffinity(worker)) == 1 for worker in workers)
    if server.name in ("loops", "serve"):
        assert len(threads_of(server.pid)) >= 2


@pytest.mark.parametrize("name", subjects.NAMES)
def test_a_server_uses_two_cores(name: str) -> None:
    if name == subjects.NGINX and not tools.find("nginx"):
        pytest.skip("nginx isn't installed")
    some = plan()
    tuning = subjects.tunings(name, 32, 2)[0]
    with pair.file_of(1024) as folder:
        content = (folder / "root" / pair.FILE).read_bytes()
        with subjects.started(some, name, tuning, folder) as server:
            servers.check(some.network, server, pair.FILE, content)
            check(server)


def test_peaks_of_two_cores_are_measured() -> None:
    """The processor time of copies and of workers counts as the server's."""
    names = ["events", "nginx"] if tools.find("nginx") else ["events"]
    run = Run(machine={}, command=[])
    with offered.started(run, plan(), "pages", names) as sweep:
        sweep.measure(offered.PEAK, sweep.peak, connections=256)
    assert not [note for note in run.notes if "left out" in note], run.notes
    found = run.of(offered.PEAK, workload="pages", cores=2)
    assert [m.settings["model"] for m in found] == names
    for measurement in found:
        assert measurement.median(offered.ANSWERS) > 100
        assert 0.5 < measurement.median("server_us") < 10_000
        assert measurement.rounds[0]["counts"]["wrong_body"] == 0
