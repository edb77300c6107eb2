# SPDX-License-Identifier: MIT
"""flexsc run --kernel-cores: where the program's threads and its system calls run."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fixtures import command, cores_of, flexsc
from programs import Program, children, compiled, installed, started
from test_run import NOBODY, python, run

CORES = sorted(os.sched_getaffinity(0))
pytestmark = pytest.mark.skipif(len(CORES) < 2, reason="needs two cores")
KERNEL = CORES[-1]
OTHERS = set(CORES) - {KERNEL}
ENGINES = ("uring", "threads")

# A thread waits for bytes, so that its calls are posted. Then the program waits.
WAITS = """
r, w = os.pipe()
thread = threading.Thread(target=lambda: [os.read(r, 1) for _ in range(100)])
thread.start()
for _ in range(100):
    os.write(w, b"x")
thread.join()
"""
SHOWS = "print(sorted(os.sched_getaffinity(0)), flush=True)\n"
STAYS = "threading.Thread(target=os.read, args=(r, 1), daemon=True).start()\n"
STAYS += "print('ready', flush=True)\ntime.sleep(1000)\n"

# Each thread passes bytes to itself through a pipe of its own. Then the program waits.
THREADS, TIMES = 256, 300
PASSES = r"""
#include <pthread.h>
#include <unistd.h>

static void *pass(void *arg)
{
	int ends[2];
	char c = 0;

	if (pipe(ends))
		_exit(1);
	for (int i = 0; i < TIMES; i++)
		if (write(ends[1], &c, 1) != 1 || read(ends[0], &c, 1) != 1)
			_exit(2);
	return arg;
}

int main(void)
{
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, pass, NULL))
			_exit(3);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	if (write(1, "ready\n", 6) != 6)
		_exit(4);
	pause();
	return 0;
}
"""


def on_cores(engine: str, script: str, log: Path, *options: str) -> Program:
    """Start a program that prints "ready"."""
    argv = [command(), "run", "--engine", engine, "--kernel-cores", str(KERNEL)]
    program = Program("native", [*argv, *options, *python(script)], log)
    program.wait_until(lambda: "ready\n" in program.output())
    return program


def uring_works() -> bool:
    return run("--engine", "uring", "true").returncode == 0


@pytest.mark.parametrize("engine", ENGINES)
def test_calls_execute_on_the_listed_core(engine: str, tmp_path: Path) -> None:
    """Pollers and syscall threads run there; hosts, carriers and all others don't."""
    with started(on_cores(engine, WAITS + SHOWS + STAYS, tmp_path / "log")) as program:
        found = cores_of(program.process.pid)
        assert program.output() == f"{sorted(OTHERS)}\nready\n"
        assert program.stop(signal.SIGTERM) == -signal.SIGTERM
    listed = [name for name, cores in found if cores == {KERNEL}]
    if engine == "uring":
        assert len(listed) == 1 and listed[0].startswith("iou-sqp-"), found
    else:
        assert listed
    # At least two hosts, the carrier, the spare, the monitor and the maker.
    rest = [cores for _, cores in found if cores != {KERNEL}]
    assert len(rest) >= 6 and all(cores == OTHERS for cores in rest), found


def test_there_is_a_carrier_for_each_remaining_core() -> None:
    done = run("--kernel-cores", str(KERNEL), "--stats", *python(WAITS))
    assert f"carriers: {len(OTHERS)}, " in done.stderr


class Counts:
    """What flexsc stat shows of a process with one carrier."""

    def __init__(self, pid: int) -> None:
        done = flexsc("stat", str(pid))
        assert done.returncode == 0, done.stderr
        found = re.findall(r"^  (\w+) +(-?\d+)  ", done.stdout, re.MULTILINE)
        self.counters = {name: int(value) for name, value in found}
        found = re.findall(r"^  core (\d+) +(\d+)  ", done.stdout, re.MULTILINE)
        self.cores = {int(core): int(calls) for core, calls in found}
        carriers = re.findall(r"^loop of thread (\d+)", done.stdout, re.MULTILINE)
        (self.carrier,) = map(int, carriers)

    def __getitem__(self, name: str) -> int:
        return self.counters[name]


CALLS = 2 * THREADS * TIMES
# A carrier enters the kernel only to sleep, or to wake the poller: 300 to 800 times on a
# busy machine. Without kernel cores it enters 5,500 times, at least once per 32 calls.
FEW = CALLS / 40


@contextlib.contextmanager
def passed(folder: Path, *before: str) -> Iterator[Program]:
    """Run PASSES up to its last call."""
    options = [f"-DTHREADS={THREADS}", f"-DTIMES={TIMES}", "-pthread"]
    argv = [*before, command(), "run", "--engine", "uring", "-c", "1"]
    argv += ["--kernel-cores", str(KERNEL), compiled(folder, PASSES, *options)]
    with started(Program("native", argv, folder / "log")) as program:
        program.wait_until(lambda: program.output().endswith("ready\n"))
        yield program


def test_the_listed_core_executes_all_posted_calls(tmp_path: Path) -> None:
    with passed(tmp_path) as program:
        counts = Counts(program.process.pid)
        threads = cores_of(program.process.pid)
    assert [cores for name, cores in threads if "iou-sqp-" in name] == [{KERNEL}]
    assert counts["posted"] == counts["by_uring"] == CALLS
    assert counts.cores == {KERNEL: CALLS}
    assert counts["mode_switches"] < FEW


def test_carriers_make_few_system_calls(tmp_path: Path) -> None:
    """All that the carrier makes, also those that it doesn't count."""
    listed = tmp_path / "strace"
    strace = [installed("strace", "strace"), "-f", "-qq", "-o", str(listed)]
    if subprocess.run([*strace, "true"], capture_output=True).returncode:
        pytest.skip("strace isn't allowed to trace here")
    with passed(tmp_path, *strace) as program:
        (pid,) = children(program.process.pid)
        carrier = Counts(pid).carrier
    begun = re.findall(rf"^{carrier} +\w+\(", listed.read_text(), re.MULTILINE)
    assert 0 < len(begun) < FEW


@pytest.mark.parametrize(
    ("cores", "word"),
    [
        ("", "2,4-6"),
        ("x", "2,4-6"),
        ("1-", "2,4-6"),
        ("3-1", "2,4-6"),
        ("0,,1", "2,4-6"),
        ("1023", "core 1023 doesn't exist"),
        (f"{KERNEL},1023", "core 1023 doesn't exist"),
        (",".join(map(str, CORES)), "no core for the program"),
    ],
)
def test_lists_that_cannot_be_used(cores: str, word: str) -> None:
    done = run("--kernel-cores", cores, "true")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"flexsc: run: --kernel-cores {cores}: ")
    assert word in done.stderr and done.stderr.count("\n") == 1


def test_the_last_list_counts() -> None:
    first, last = str(CORES[0]), str(KERNEL)
    script = "print(sorted(os.sched_getaffinity(0)))"
    done = run("--kernel-cores", first, "--kernel-cores", last, *python(script))
    assert (done.stdout, done.stderr) == (f"{sorted(OTHERS)}\n", "")


def test_children_keep_the_rule(tmp_path: Path) -> None:
    """Forked children, also without the variable; and programs that they execute."""
    script = """
os.environ.pop("FLEXSC_KERNEL_CORES")
pid = os.fork()
if pid:
    print("ready", pid, flush=True)
    os._exit(os.waitpid(pid, 0)[1])
"""
    inner = WAITS + STAYS.replace("ready", "child")
    argv = [command(), "run", "-c", "1", "--kernel-cores", str(KERNEL)]
    argv += python(script + inner)
    with started(Program("native", argv, tmp_path / "log")) as program:
        program.wait_until(lambda: "child\n" in program.output())
        found = re.search(r"ready (\d+)", program.output())
        assert found
        names = cores_of(int(found[1]))
    assert any(name.startswith("iou-sqp-") for name, _ in names) == uring_works()
    assert {KERNEL} in [cores for _, cores in names]
    again = run(
        "--kernel-cores",
        str(KERNEL),
        *("sh", "-c", '"$@"; true', "sh", *python(WAITS + SHOWS)),
    )
    assert (again.stdout, again.stderr) == (f"{sorted(OTHERS)}\n", "")


@pytest.mark.parametrize("engine", ENGINES)
def test_a_thread_may_choose_a_kernel_core(engine: str) -> None:
    """The thread's own affinity holds, and ends with its last call for it."""
    script = f"""
r, w = os.pipe()
def work():
    for cores in ({{{KERNEL}}}, {{{CORES[0]}}}, {set(CORES)}, {{{KERNEL}}}):
        os.sched_setaffinity(0, cores)
        assert os.sched_getaffinity(0) == cores
        for _ in range(50):
            os.write(w, b"x")
            os.read(r, 1)
        assert os.sched_getaffinity(0) == cores
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert os.sched_getaffinity(0) == {OTHERS}
print("done")
"""
    done = run("--engine", engine, "--kernel-cores", str(KERNEL), *python(script))
    assert (done.stdout, done.stderr, done.returncode) == ("done\n", "", 0)


def test_a_program_that_is_bound_to_the_kernel_core_runs_without() -> None:
    script = f"""
import os, sys
os.sched_setaffinity(0, {{{KERNEL}}})
os.execv(sys.executable, sys.argv[1:])
"""
    argv = [sys.executable, "-S", "-c", script, *python(WAITS + SHOWS)]
    done = run("--kernel-cores", str(KERNEL), *argv)
    assert done.stdout == f"[{KERNEL}]\n"
    assert done.stderr == (
        "flexsc: run: FLEXSC_KERNEL_CORES ignored: leaves no core for the program "
        "itself\n"
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root privileges")
@pytest.mark.parametrize("engine", ENGINES)
def test_calls_have_the_program_s_changed_user(engine: str, tmp_path: Path) -> None:
    """The poller executes connect() with the user that the program has by then."""
    script = f"""
import socket
os.mkdir("{tmp_path}/private", 0o700)
path = "{tmp_path}/private/socket"
server = socket.socket(socket.AF_UNIX)
server.bind(path)
server.listen(100)
def connect(allowed):
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(path)
            assert allowed, os.geteuid()
        except PermissionError:
            assert not allowed, os.geteuid()
def all_connect(allowed):
    threads = [threading.Thread(target=connect, args=(allowed,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
def failed(args):
    print(args.exc_type, args.exc_value, flush=True)
threading.excepthook = failed
for _ in range(5):
    all_connect(True)
    os.setresuid({NOBODY}, {NOBODY}, 0)
    all_connect(False)
    os.setresuid(0, 0, 0)
all_connect(True)
os.setresuid({NOBODY}, {NOBODY}, {NOBODY})
all_connect(False)
print("done")
"""
    done = run("--engine", engine, "--kernel-cores", str(KERNEL), *python(script))
    assert (done.stdout, done.stderr, done.returncode) == ("done\n", "", 0)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root privileges")
def test_a_refused_poller_leaves_the_engine() -> None:
    """The user has no thread left for the poller, but one for the carrier."""
    user = 60000 + os.getpid() % 5000
    script = f"""
import os, resource, threading
resource.setrlimit(resource.RLIMIT_NPROC, (3, 3))
os.setresuid({user}, {user}, {user})
try:
    threading.Thread(target=int).start()
except RuntimeError:
    print("full")
"""
    argv = ["--engine", "uring", "-c", "1", "--kernel-cores", str(KERNEL)]
    done = run(*argv, sys.executable, "-S", "-c", script)
    assert done.stdout == "full\n"
    assert "flexsc: run: not using the kernel cores: " in done.stderr
    assert "RLIMIT_NPROC" in done.stderr
    assert "syscall threads" not in done.stderr
