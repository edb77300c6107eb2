# SPDX-License-Identifier: MIT
"""Threads that hand work to each other under flexsc run: what they cost the kernel.

A hand-over between two threads on the same carrier needs no system call. So a
listener that hands over what its waits report runs on a carrier beside its workers.
An event loop, which wakes no other thread, waits on its host as natively. These
tests use no clock. Counters show where a thread waited, how often it moved between
its host and a carrier, and how often the kernel switched between the program's
threads.
"""

from __future__ import annotations

import re
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from fixtures import PATIENCE, flexsc
from programs import calls_made, compiled, launcher
from test_run_counters import Report

WAYS = ("uring-1", "uring-4")
LISTENERS = ("epoll", "select", "poll")
LOOPS = ("loop", "seldom", "computing")
PAIRS = ("condition", "timed", "semaphore", "barrier", "futex", "mutex", "rwlock")
TURNS = 4096
PASSES = 20000
SELDOM = 300  # as in pools.c
# The monitor makes some calls every 10 ms.
OWN = PASSES / 100


@pytest.fixture(scope="module")
def pools(tmp_path_factory: pytest.TempPathFactory) -> str:
    source = Path(__file__).with_name("pools.c").read_text()
    return compiled(tmp_path_factory.mktemp("pools"), source, "-pthread")


class Pool:
    """The running program, which waits for a byte before its turns and after them."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def expect(self, word: str) -> None:
        assert self.process.stdin and self.process.stdout
        assert self.process.stdout.readline() == word + "\n"

    def go(self) -> None:
        assert self.process.stdin
        self.process.stdin.write("x")
        self.process.stdin.flush()

    def turn(self) -> None:
        self.go()
        self.expect("done")

    def counted(self) -> Counter[str]:
        """Return all counters of the runtime. Returns to the host for a reason are "for
        REASON".
        """
        done = flexsc("stat", str(self.process.pid))
        assert done.returncode == 0, done.stderr
        report = Report(done.stdout.partition("\nloop of")[0] + "\n")
        causes = {f"for {name}": n for name, n in report.causes.items()}
        return Counter(report.counters) + Counter(causes)

    def switches(self, kind: str) -> Counter[str]:
        """Count switches by kernel thread: the "voluntary" ones, or as "nonvoluntary"
        the preemptions by the kernel.
        """
        found: Counter[str] = Counter()
        for status in Path(f"/proc/{self.process.pid}/task").glob("*/status"):
            with suppress(OSError):  # the thread has ended meanwhile
                counts = re.findall(
                    rf"^{kind}_ctxt_switches:\t(\d+)", status.read_text(), re.MULTILINE
                )
                found[status.parent.name] = sum(map(int, counts))
        return found

    def resident(self) -> int:
        """Return the resident memory in KiB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(r"VmRSS:\s+(\d+) kB", status)
        assert found
        return int(found[1])


@contextmanager
def begun(way: str, argv: list[str]) -> Iterator[Pool]:
    """Start the program, and let it make turns until each thread waits where it will
    stay.
    """
    with subprocess.Popen(
        [*launcher(way), *argv],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            pool = Pool(process)
            pool.expect("ready")
            yield pool
            pool.go()
            assert process.wait(PATIENCE) == 0
        finally:
            process.kill()


def counted(
    way: str, pools: str, kind: str, turns: int = TURNS, stops: int = 0
) -> Counter[str]:
    """Count during this many turns, and stop the program this often meanwhile."""
    with begun(way, [pools, kind, str(turns)]) as pool:
        switches, before = pool.switches("voluntary"), pool.counted()
        preemptions = pool.switches("nonvoluntary")
        pool.go()
        for _ in range(stops):
            pool.process.send_signal(signal.SIGSTOP)
            time.sleep(0.004)
            pool.process.send_signal(signal.SIGCONT)
            time.sleep(0.001)
        pool.expect("done")
        after = pool.counted()
        after.subtract(before)
        # Counter subtraction drops negative values, which belong to threads that have
        # ended.
        after["kernel_switches"] = (pool.switches("voluntary") - switches).total()
        after["preemptions"] = (pool.switches("nonvoluntary") - preemptions).total()
    return after


@pytest.mark.parametrize("kind", (*LISTENERS, *LOOPS, *PAIRS, "lock", "silent"))
def test_the_turns_end_natively(kind: str, pools: str) -> None:
    with begun("native", [pools, kind, "64"]) as pool:
        pool.turn()


@pytest.mark.parametrize("way", WAYS)
def test_a_listener_that_hands_over_runs_beside_its_workers(
    way: str, pools: str
) -> None:
    found = counted(way, pools, "epoll")
    assert found["departures"] + found["returns"] < TURNS / 8, found
    assert found["natively"] < TURNS / 8, found
    assert found["polled"] > 0, found
    if way == "uring-1":
        assert found["kernel_switches"] < TURNS / 4, found


def test_a_worker_without_a_processor_does_not_count_as_computing(pools: str) -> None:
    """Stopping the program resembles a machine that is busy with other programs."""
    found = counted("uring-1", pools, "epoll", 4 * TURNS, stops=40)
    assert found["natively"] < TURNS / 8, found


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", ("select", "poll"))
def test_a_listener_that_needs_its_host_hands_over_there(
    way: str, kind: str, pools: str
) -> None:
    found = counted(way, pools, kind)
    assert found["departures"] + found["returns"] < TURNS / 8, found


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", ("lock", "silent"))
def test_a_listener_that_wakes_no_worker_runs_beside_its_workers(
    way: str, kind: str, pools: str
) -> None:
    found = counted(way, pools, kind)
    assert found["departures"] + found["returns"] < TURNS / 8, found
    assert found["natively"] + found["kernel_waits"] < TURNS / 8, found


@pytest.mark.parametrize("way", WAYS)
def test_a_loop_that_wakes_no_thread_stays_on_its_host(way: str, pools: str) -> None:
    found = counted(way, pools, "loop")
    # Each turn has a wait, a receive and a send.
    assert found["natively"] >= 3 * (TURNS - 20), found
    assert found["returns"] < 20, found


@pytest.mark.parametrize("way", WAYS)
def test_a_loop_that_seldom_wakes_a_thread_seldom_leaves_its_host(
    way: str, pools: str
) -> None:
    found = counted(way, pools, "seldom")
    assert found["departures"] <= 2 * (TURNS / SELDOM + 1), found
    assert found["natively"] > TURNS / 8, found


@pytest.mark.parametrize("way", WAYS)
def test_a_loop_beside_threads_that_compute_stays_on_its_host(
    way: str, pools: str
) -> None:
    """Two turns in four are jobs of 1.8 ms. Natively, the kernel preempts such a job."""
    jobs = 80
    found = counted(way, pools, "computing", 2 * jobs)
    assert found["natively"] > jobs, found
    assert found["handovers"] <= 1, found
    # A worker that the monitor moved to its host leaves it again, and so does a loop
    # that waits for the queue's lock.
    left = found["departures"] - found["for (preempted)"]
    assert left < jobs / 8, found


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", PAIRS)
def test_a_hand_over_takes_no_system_call(way: str, kind: str, pools: str) -> None:
    found = counted(way, pools, kind, PASSES)
    assert found["futex_waits"] >= PASSES / 2, found
    # While the kernel runs another program on a carrier's processor, another carrier
    # takes one of the two threads. They are on one carrier again after some calls.
    most = OWN + 10 * found["preemptions"]
    assert found["calls"] - found["avoided"] < most, found


@pytest.mark.parametrize("way", WAYS)
def test_a_time_limit_takes_no_memory_when_its_wait_is_over(
    way: str, pools: str
) -> None:
    """The time limit is an hour away, and its timer belongs to another carrier."""
    with begun(way, [pools, "timed", str(PASSES)]) as pool:
        before = pool.resident()
        pool.turn()
        # A timer takes more than 100 bytes.
        assert pool.resident() - before < PASSES * 100 / 1024 / 2


def test_a_request_takes_fewer_mode_switches_than_natively(
    pools: str, tmp_path: Path
) -> None:
    """strace shows hardly any call except the request's receive, send and epoll_ctl()."""
    calls = {}
    for way in ("native", "uring-1"):
        with begun(way, [pools, "epoll", str(TURNS)]) as pool:
            calls[way] = calls_made(pool.process.pid, pool.turn, tmp_path / way)
        print(way, {name: n / TURNS for name, n in calls[way].items()})
    # In a build with checks, each lock of the runtime records its holder's id.
    del calls["uring-1"]["gettid"]
    assert calls["uring-1"].total() < calls["native"].total(), calls
    for name in ("futex", "epoll_wait", "io_uring_enter"):
        assert calls["uring-1"][name] < TURNS / 4, calls


@pytest.mark.parametrize("kind", PAIRS)
def test_strace_sees_no_call_for_a_hand_over(
    kind: str, pools: str, tmp_path: Path
) -> None:
    with begun("uring-1", [pools, kind, str(PASSES)]) as pool:
        calls = calls_made(pool.process.pid, pool.turn, tmp_path / kind)
    # The program waits for a byte before and after.
    assert calls["io_uring_enter"] > 0, calls
    # Under strace the passes may take seconds, and the monitor works all the time.
    seen = calls["futex"] + calls["write"] + calls["io_uring_enter"]
    assert seen < PASSES / 4, calls
