# SPDX-License-Identifier: MIT
"""The counters of flexsc run: --stats, flexsc stat and flexsc top."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import tempfile
import termios
from pathlib import Path

import pytest

from exposition import samples
from fixtures import PATIENCE, command, eventually, flexsc
from programs import CARRIED, Program, launcher, started
from test_command import one_line
from test_run import THREADED, Done, python

WAYS = (
    "plainly",
    "exposed",
    "posted",
    "futex_waits",
    "futex_wakes",
    "polled",
    "slept",
    "answered",
    "kernel_waits",
    "kernel_wakes",
    "on_host",
    "natively",
)
HEAD = "flexsc run: "

# A thread waits for each of READS bytes, and main waits for its answers.
READS = 300
TALK = f"""
first = thread
r, w = os.pipe()
back_r, back_w = os.pipe()
def answer():
    for _ in range({READS}):
        os.write(back_w, os.read(r, 1))
thread = threading.Thread(target=answer)
thread.start()
for _ in range({READS}):
    os.write(w, b"x")
    assert os.read(back_r, 1) == b"x"
thread.join()
"""
# join() returns a moment before the thread ends. Prints how often it had to wait for
# the thread of THREADED, and for the one of TALK.
LEAVE = """
waits = 0
for ends in first, thread:
    while os.path.exists(f"/proc/self/task/{ends.native_id}"):
        time.sleep(0.05)
        waits += 1
print(waits, flush=True)
os._exit(4)
"""


class Report:
    """A parsed report."""

    def __init__(self, text: str) -> None:
        assert text.startswith(HEAD)
        self.head = text.splitlines()[0]
        found = re.findall(r"^  (\w+) +(-?\d+)  \w", text, re.MULTILINE)
        self.counters = {name: int(value) for name, value in found}
        found = re.findall(r"^    +(\d+)  for (.+)$", text, re.MULTILINE)
        self.causes = {name: int(value) for value, name in found}
        rows = re.findall(r"^ +\d+ +\d+ +\d+ +\d+ +\d+ +\d+ +\d+$", text, re.MULTILINE)
        self.carriers = [[int(word) for word in row.split()] for row in rows]

    def __getitem__(self, name: str) -> int:
        return self.counters[name]

    def check(self) -> None:
        """Check the relations that hold in every report."""
        assert self["calls"] == sum(self[name] for name in WAYS)
        assert self["returns"] == sum(self.causes.values())
        assert self["switches"] == sum(row[2] for row in self.carriers)
        assert self["posted"] >= sum(row[3] for row in self.carriers)
        assert self["steals"] == sum(row[4] for row in self.carriers)
        assert self["stolen"] >= self["steals"]
        assert self["alive"] <= self["threads"]
        assert self["found"] <= self["spins"]


def counted(way: str, argv: list[str], **options: object) -> Done:
    run = [*launcher(way), "--stats", *argv]
    return subprocess.run(
        run, capture_output=True, text=True, timeout=PATIENCE, **options
    )  # type: ignore[call-overload, no-any-return]


def reports(text: str) -> list[Report]:
    return [Report(HEAD + part) for part in text.split(HEAD)[1:]]


def test_the_block_does_not_touch_the_output() -> None:
    done = counted("uring-1", python(TALK + "print('said')"))
    assert (done.returncode, done.stdout) == (0, "said\n")
    (report,) = reports(done.stderr)
    assert "engine uring" in report.head and "carriers: 1," in report.head


@pytest.mark.parametrize("way", CARRIED)
def test_calls_are_counted_by_their_way(way: str) -> None:
    engine, _, carriers = way.partition("-")
    done = counted(way, python(TALK + LEAVE))
    assert done.returncode == 4
    waits = int(done.stdout)
    assert done.stderr.count(HEAD) == 1
    report = Report(done.stderr)
    report.check()
    assert f"engine {engine}" in report.head
    assert f"carriers: {carriers}," in report.head
    assert len(report.carriers) == int(carriers)
    # Main, the thread of THREADED, and the thread that answers.
    assert report["threads"] == 3
    assert report["alive"] == 1
    # Main and the thread each waited for every byte. There are few other calls.
    assert 2 * READS <= report["posted"] <= 4 * READS + 200
    assert report["switches"] >= report["posted"]
    assert 1 + waits <= report["slept"] <= 9 + waits
    assert report["departures"] >= 3
    assert report.causes["(thread end)"] <= 2


@pytest.mark.parametrize("way", CARRIED)
def test_returns_have_their_causes(way: str) -> None:
    """A call that needs its thread's identity, made on a carrier each time.

    A deadline of time.sleep() may pass before the call, which then doesn't wait.
    usleep() always waits.
    """
    script = """
import ctypes
usleep = ctypes.CDLL(None).usleep
def work():
    for _ in range(20):
        usleep(1000)
        os.sched_getaffinity(0)
        usleep(1000)
        os.setpriority(os.PRIO_PROCESS, 0, 0)
thread = threading.Thread(target=work)
thread.start()
thread.join()
"""
    report = Report(counted(way, python(script)).stderr)
    report.check()
    assert report.causes["sched_getaffinity"] == 20
    assert report.causes["setpriority"] == 20
    assert report["slept"] >= 40
    assert report["departures"] >= 40


# Calls that would wait if the descriptor or the call weren't non-blocking. The
# descriptors are created before the first thread and after it, with the flag set
# initially, later, and through a duplicate.
IMPATIENT = f"""
import fcntl, os, socket

def refused(call, *arguments):
    for _ in range({READS}):
        try:
            call(*arguments)
        except BlockingIOError:
            continue
        raise AssertionError(call)

def fill(fd):
    while True:
        try:
            os.write(fd, b"x" * 4096)
        except BlockingIOError:
            return

def make():
    r, w = os.pipe2(os.O_NONBLOCK)
    fill(w)
    later, _ = os.pipe()
    fcntl.fcntl(later, fcntl.F_SETFL, os.O_NONBLOCK)
    shared = os.dup(later)
    event = os.eventfd(0, os.EFD_NONBLOCK)
    one, other = socket.socketpair()
    one.setblocking(False)
    datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
    datagrams.bind(("127.0.0.1", 0))
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setblocking(False)
    empty, _ = os.pipe2(os.O_NONBLOCK)
    keep.append((later, _, other, datagrams, listener, one))
    return [
        (os.read, empty, 1),
        (os.readv, empty, [bytearray(1)]),
        (os.write, w, b"x" * 4096),
        (os.read, later, 1),
        (os.read, shared, 1),
        (os.read, event, 8),
        (one.recv, 1),
        (one.recvmsg, 1),
        (other.recv, 1, socket.MSG_DONTWAIT),
        (datagrams.recvfrom, 1),
        (listener.accept,),
    ]

def refuse_all(calls):
    for call in calls:
        refused(*call)

keep = []
"""


@pytest.mark.parametrize("way", CARRIED)
def test_a_non_blocking_call_causes_no_switch(way: str) -> None:
    """EAGAIN is returned at once: no call is posted, and no other thread runs."""
    script = f"""
{IMPATIENT}
early = make()
{THREADED}
thread = threading.Thread(target=lambda: refuse_all(early + make()))
thread.start()
thread.join()
"""
    argv = [python("")[0], "-S", "-c", script]
    report = Report(counted(way, argv).stderr)
    report.check()
    calls = 22 * READS
    on_the_spot = report["exposed"] + report["plainly"] + report["natively"]
    assert on_the_spot >= calls
    assert report["posted"] < 50
    # A thread that keeps its carrier for long still lets others run, once in 16 calls.
    assert report["switches"] < calls / 16 + 100
    assert report["returns"] < 50


# How a thread with two descriptors waits for either of them.
LOOPS = {
    "epoll": """
poll = select.epoll()
poll.register(a, select.EPOLLIN)
poll.register(b, select.EPOLLPRI)
wait = poll.poll
""",
    "poll": """
poll = select.poll()
poll.register(a, select.POLLIN)
poll.register(b, select.POLLPRI)
wait = poll.poll
""",
    "select": """
def wait():
    return select.select([a], [], [b])[0]
""",
}


def looping(kind: str) -> list[str]:
    # Python's main thread keeps the interpreter's lock until it waits in join(). If both
    # threads wanted the lock, their hand-overs would count.
    return python(f"""
import select, socket
a, b = socket.socketpair()
a.setblocking(False)
b.setblocking(False)
{LOOPS[kind]}
joins = False
def turn(many):
    while not joins:
        time.sleep(0.001)
    for _ in range(many):
        b.send(b"x")
        assert wait() and a.recv(1) == b"x"
thread = threading.Thread(target=turn, args=({READS},))
thread.start()
sys.setswitchinterval(1000)
joins = True
thread.join()
""")


@pytest.mark.parametrize("kind", LOOPS)
@pytest.mark.parametrize("way", CARRIED)
def test_an_event_loop_stays_on_its_host(way: str, kind: str) -> None:
    report = Report(counted(way, looping(kind)).stderr)
    report.check()
    # The thread returns to its host once, and waits and receives there.
    assert report["natively"] >= 3 * READS - 50
    assert report["polled"] <= 10
    assert report["returns"] < 50


@pytest.mark.parametrize("way", CARRIED)
def test_a_timed_wait_for_one_descriptor_is_no_loop(way: str) -> None:
    """A server that limits a client's time makes these calls: poll(), then a receive."""
    script = f"""
import socket
a, b = socket.socketpair()
a.settimeout(10)
b.settimeout(10)
def answer():
    for _ in range({READS}):
        b.send(b.recv(1))
thread = threading.Thread(target=answer)
thread.start()
for _ in range({READS}):
    a.send(b"x")
    assert a.recv(1) == b"x"
thread.join()
"""
    report = Report(counted(way, python(script)).stderr)
    report.check()
    if way.startswith("uring"):
        assert report["polled"] >= 2 * READS - 20
        assert report["natively"] < 50
    assert report["returns"] < 50


@pytest.mark.parametrize("way", CARRIED)
def test_an_event_loop_can_be_treated_as_other_threads(way: str) -> None:
    run = [*launcher(way), "--stats", "--without", "loops", *looping("poll")]
    done = subprocess.run(
        run, capture_output=True, text=True, timeout=PATIENCE, check=True
    )
    report = Report(done.stderr)
    report.check()
    assert report["natively"] == 0


@pytest.mark.parametrize("way", CARRIED)
def test_locks_stay_in_user_space(way: str) -> None:
    script = """
locks = [threading.Semaphore(0) for _ in range(2)]
def work(mine, other):
    for _ in range(100):
        other.release()
        mine.acquire()
thread = threading.Thread(target=work, args=locks)
thread.start()
work(*reversed(locks))
thread.join()
"""
    report = Report(counted(way, python(script)).stderr)
    report.check()
    assert report["futex_waits"] >= 100
    assert report["futex_wakes"] >= 100
    assert report["posted"] < 300


# When and where the report appears


def test_without_the_option_nothing_is_added() -> None:
    done = subprocess.run(
        [*launcher("uring-1"), *python(TALK)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    "end",
    [
        "",
        "sys.exit(0)",
        "os._exit(0)",
        "threading.Thread(target=os._exit, args=(0,)).start(); time.sleep(9)",
        "os.close(2)",
        "os.closerange(3, 65536)",
        "os.closerange(0, 65536)",
        "f = os.open('/dev/null', os.O_WRONLY); [os.dup2(f, n) for n in (0, 1, 2)]",
        "import resource as r; r.setrlimit(r.RLIMIT_NOFILE, (50, 50))",
    ],
)
def test_the_report_appears_once_however_the_program_ends(end: str) -> None:
    done = counted("uring-1", python(end))
    assert (done.returncode, done.stdout) == (0, "")
    (report,) = reports(done.stderr)
    report.check()


def test_before_the_first_thread_the_program_may_close_everything() -> None:
    """The program has closed all descriptors, so the report can't appear. It must not
    go to another file.
    """
    script = f"""
import os
os.closerange(0, 65536)
for i in range(600):
    os.open("out", os.O_WRONLY | os.O_CREAT, 0o600)
{THREADED}
"""
    with tempfile.TemporaryDirectory() as folder:
        argv = [python("")[0], "-S", "-c", script]
        done = counted("uring-1", argv, cwd=folder)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        assert (Path(folder) / "out").read_text() == ""


def test_a_program_without_threads_has_one_line() -> None:
    done = counted("uring-1", ["sh", "-c", "true; true"])
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.count("\n") == 1 and "made no threads" in done.stderr


def test_children_with_threads_have_their_own_reports() -> None:
    script = """
def child(threads):
    pid = os.fork()
    if pid:
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        return
    for _ in range(threads):
        thread = threading.Thread(target=time.sleep, args=(0.01,))
        thread.start()
        thread.join()
    os._exit(0)
child(0)
child(5)
os.system("true")
import subprocess
subprocess.run(["sh", "-c", "true; true"], check=True)
"""
    done = counted("uring-1", python(script))
    assert (done.returncode, done.stdout) == (0, "")
    first, second = reports(done.stderr)
    first.check()
    second.check()
    assert first["threads"] == 6
    assert second["threads"] == 2
    assert first.head.split(":")[1] != second.head.split(":")[1]


def test_after_exec_the_report_is_the_new_program_s() -> None:
    inner = ["-S", "-c", THREADED]
    script = TALK + f"os.execv(sys.executable, [sys.executable, *{inner!r}])"
    (report,) = reports(counted("uring-1", python(script)).stderr)
    assert report["threads"] == 2
    assert report["posted"] < READS


# Live processes

WAITS = """
r, w = os.pipe()
threads = [threading.Thread(target=os.read, args=(r, 1)) for _ in range(5)]
for thread in threads:
    thread.start()
def talk():
    r, w = os.pipe()
    while True:
        os.write(w, b"x")
        os.read(r, 1)
threading.Thread(target=talk).start()
print("ready", flush=True)
"""


def seen(program: Program, carriers: int = 1) -> Report:
    done = flexsc("stat", str(program.process.pid))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("\nloop of thread ") == carriers
    return Report(done.stdout.partition("\nloop of")[0] + "\n")


@pytest.mark.parametrize("way", CARRIED)
def test_stat_shows_a_live_process(way: str, tmp_path: Path) -> None:
    with started(Program(way, python(WAITS), tmp_path / "log")) as program:
        program.wait_until(lambda: "ready" in program.output())

        carriers = int(way.partition("-")[2])
        # The readers wait forever, and the thread that talks makes calls forever.
        assert eventually(
            lambda: seen(program, carriers)["alive"] == 7
            and seen(program, carriers)["posted"] > 100
        )
        report = seen(program, carriers)
        assert report["threads"] == 8
        assert f"process {program.process.pid}:" in report.head
        assert eventually(
            lambda: seen(program, carriers)["posted"] > report["posted"] + 100
        )
        done = flexsc("stat", "--prometheus", str(program.process.pid))
        assert (done.returncode, done.stderr) == (0, "")
        found = samples(done.stdout)

        def value(name: str) -> int:
            """Sum the samples of a family that has one sample per way or per loop."""
            return sum(found[key] for key in found if re.match(name, key))

        assert value("flexsc_run_threads{") == 7
        assert value("flexsc_run_threads_made_total{") == 8
        assert value('flexsc_run_calls_total{.*way="posted"') > report["posted"]
        assert value("flexsc_loop_posted_total{") >= report["posted"]


def test_stat_reports_a_process_without_user_threads(tmp_path: Path) -> None:
    sleeps = ["sh", "-c", "echo ready; sleep 100; true"]
    with started(Program("uring-1", sleeps, tmp_path / "log")) as program:
        program.wait_until(lambda: "ready" in program.output())
        done = flexsc("stat", str(program.process.pid))
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.count("\n") == 1 and "made no threads" in done.stderr


def test_top_shows_live_processes(tmp_path: Path) -> None:
    sleeps = python("print('ready', flush=True)\ninput()")
    with (
        started(Program("uring-1", python(WAITS), tmp_path / "busy")) as busy,
        started(Program("uring-1", sleeps, tmp_path / "idle")),
    ):
        busy.wait_until(lambda: "ready" in busy.output())
        # The thread of THREADED ends a moment after its join.
        assert eventually(lambda: seen(busy)["alive"] == 7)
        done = flexsc("top", "-b", "-n", "2")
        assert (done.returncode, done.stderr) == (0, "")
        first, second = done.stdout.split("\n\n")
        for table in (first, second):
            lines = table.splitlines()
            assert lines[0].startswith("flexsc top ")
            assert lines[1].split()[:4] == ["PID", "ALIVE", "CALLS", "AVOIDED"]
            rows = [line.split() for line in lines[2:]]
            calls = [float(row[2]) for row in rows]
            assert calls == sorted(calls, reverse=True)
            mine = {row[0]: row for row in rows}
            row = mine[str(busy.process.pid)]
            assert row[1] == "7" and float(row[2]) > 0 and float(row[4]) > 0


def test_top_shows_servers_and_no_dead_process(tmp_path: Path) -> None:
    script = "time.sleep(100)"
    with started(Program("threads-1", python(script), tmp_path / "log")) as program:
        pid = program.process.pid
        assert eventually(lambda: flexsc("stat", str(pid)).returncode == 0)
    done = flexsc("top", "--batch", "--number=1")
    assert done.returncode == 0
    assert not re.search(rf"^ +{pid} ", done.stdout, re.MULTILINE)


def test_top_ends_at_a_key_and_restores_the_terminal() -> None:
    master, slave = pty.openpty()
    try:
        before = termios.tcgetattr(slave)
        with subprocess.Popen(
            [command(), "top"], stdin=slave, stdout=slave, stderr=slave
        ) as top:
            shown = b""
            while b"flexsc top" not in shown:
                shown += os.read(master, 4096)
            os.write(master, b"q")
            assert top.wait(PATIENCE) == 0
        assert termios.tcgetattr(slave) == before
    finally:
        os.close(master)
        os.close(slave)


@pytest.mark.parametrize(
    "words",
    [["x"], ["-n", "0"], ["-n", "-1"], ["-d", "0"], ["-d", "3601"], ["-d", "x"], []],
)
def test_top_refuses_invalid_arguments(words: list[str]) -> None:
    done = flexsc("top", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert one_line(done.stderr)


@pytest.mark.parametrize("name", ["run", "stat", "top"])
def test_the_help_fits_a_screen(name: str) -> None:
    lines = flexsc(name, "--help").stdout.splitlines()
    assert len(lines) <= 24
    assert max(len(line) for line in lines) <= 80
