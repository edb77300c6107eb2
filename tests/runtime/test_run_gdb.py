# SPDX-License-Identifier: MIT
"""User threads in gdb: the state of each, and its back trace."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from fixtures import PATIENCE
from programs import CARRIED, Program, installed, launcher, started

SCRIPT = Path(__file__).resolve().parents[2] / "runtime" / "counters" / "flexsc_gdb.py"

# One thread for each state in which a user thread can be, each in a function of its
# own.
SOURCE = """
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static int fds[2];
static volatile int done;
static _Thread_local int mine;

#define THREAD(name, what)					\\
	__attribute__((noinline)) void *name(void *arg)		\\
	{							\\
		char byte;					\\
								\\
		mine = (int)sizeof(#name);			\\
		done += (int)(what);				\\
		return &done + byte;				\\
	}

THREAD(reads_a_pipe, read(fds[0], &byte, 1))
THREAD(wants_a_lock, pthread_mutex_lock(&held))
THREAD(takes_a_nap, sleep(100))
THREAD(waits_for_a_signal, pause())

static void *computes(void *arg)
{
	for (;;)
		done++;
	return arg;
}

int main(void)
{
	void *(*const all[])(void *) = {
		reads_a_pipe, wants_a_lock, takes_a_nap, waits_for_a_signal,
		computes,
	};
	pthread_t thread;

	if (pipe(fds) || pthread_mutex_lock(&held))
		return 1;
	for (int i = 0; i < 5; i++)
		if (pthread_create(&thread, NULL, all[i], NULL))
			return 1;
	usleep(300000);
	puts("ready");
	fflush(stdout);
	return pthread_join(thread, NULL);
}
"""

PLACES = {
    "reads_a_pipe": "call read",
    "wants_a_lock": "futex 0x",
    "takes_a_nap": "timer",
    "waits_for_a_signal": "on its host",
    "computes": "on its host",
    "main": "on its host",
}


@pytest.fixture(scope="module")
def waiting(tmp_path_factory: pytest.TempPathFactory) -> str:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("cc is missing: install gcc")
    folder = tmp_path_factory.mktemp("gdb")
    (folder / "waiting.c").write_text(SOURCE)
    # The program needs no debug information: the runtime has its own.
    argv = [compiler, "-O1", "-w", "-o", "waiting", "waiting.c"]
    subprocess.run(argv, cwd=folder, check=True, timeout=60)
    return str(folder / "waiting")


def gdb(*arguments: str, commands: list[str]) -> str:
    argv = [installed("gdb", "gdb"), "-nx", "-q", "--batch", *arguments]
    for command in (f"source {SCRIPT}", *commands):
        argv += ["-ex", command]
    done = subprocess.run(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=3 * PATIENCE,
        check=False,
    )
    refused = "ptrace: Operation not permitted"
    if refused in done.stdout or "Python scripting is not" in done.stdout:
        pytest.skip(done.stdout)
    # gdb 16 prints this warning even for core files that it has written.
    small = r"warning: Section `\.reg-xstate/\d+' in core file too small\.\n"
    return re.sub(small, "", done.stdout)


class Live(Program):
    """The waiting program. Its constructor returns when all threads wait."""

    def __init__(self, way: str, words: list[str], log: Path) -> None:
        super().__init__(way, words, log)
        self.wait_until(lambda: self.output() == "ready\n")
        # On a busy machine, some threads haven't begun to wait then. Main still has to
        # return to its host for its join.
        self.wait_until(self.all_wait)

    def gdb(self, *commands: str) -> str:
        return gdb("-p", str(self.process.pid), commands=list(commands))

    def all_wait(self) -> bool:
        rows = listed(self.gdb("info uthreads"))
        return rows.keys() == PLACES.keys() and all(
            rows[function][1].startswith(place) for function, place in PLACES.items()
        )


@pytest.fixture(scope="module")
def live(waiting: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """One program, shared by all tests that only look at it."""
    with started(
        Live("uring-1", [waiting], tmp_path_factory.mktemp("live") / "log")
    ) as p:
        yield p


def listed(text: str) -> dict[str, tuple[int, str]]:
    """Return thread and state by the innermost function in the program."""
    rows = re.findall(r"^ +(\d+)  0x[0-9a-f]+  (.{22})  (.*)$", text, re.MULTILINE)
    return {row[2].split(" < ")[-1]: (int(row[0]), row[1].strip()) for row in rows}


def traces(text: str) -> list[str]:
    return text.split("\nUser thread ")[1:]


def check_list(text: str) -> None:
    rows = listed(text)
    assert rows.keys() == PLACES.keys(), text
    for function, place in PLACES.items():
        assert rows[function][1].startswith(place), text


def check_traces(text: str) -> None:
    """Each function appears in one trace, which begins and ends correctly."""
    found = traces(text)
    assert len(found) == len(PLACES), text
    for function in PLACES:
        (trace,) = (t for t in found if re.search(rf" {function} \(", t))
        frames = re.findall(r"^#(\d+) ", trace, re.MULTILINE)
        assert [int(frame) for frame in frames] == list(range(len(frames)))
        assert "host_main" not in trace
        end = "main" if function == "main" else r"(__GI___)?clone3?"
        last = [line for line in trace.splitlines() if line.startswith("#")][-1]
        assert re.search(rf" {end} \(", last), trace


@pytest.mark.parametrize("way", CARRIED)
def test_gdb_shows_each_user_thread(way: str, waiting: str, tmp_path: Path) -> None:
    with started(Live(way, [waiting], tmp_path / "log")) as program:
        text = program.gdb("info uthreads", "uthread apply all bt")
        check_list(text)
        check_traces(text)
        # gdb has changed nothing.
        assert program.status() is None
        again = program.gdb("info uthreads")
        assert listed(again) == listed(text)


def test_commands_see_one_user_thread(live: Live) -> None:
    tids = {name: row[0] for name, row in listed(live.gdb("info uthreads")).items()}
    one = tids["reads_a_pipe"]
    text = live.gdb(
        f"uthread {one} bt",
        f"uthread {one} info registers rip",
        "thread 1",
        "frame",
    )
    assert text.count("reads_a_pipe") == 1
    frame = re.search(r"^#0  0x0*([0-9a-f]+) ", text, re.MULTILINE)
    register = re.search(r"^rip +0x([0-9a-f]+) ", text, re.MULTILINE)
    assert frame and register and frame[1] == register[1], text
    # The previously selected thread is selected again.
    assert frame[1] not in text.rpartition("\n#0")[2]


def test_a_core_file_shows_user_threads(waiting: str, tmp_path: Path) -> None:
    log, core = tmp_path / "log", tmp_path / "core"
    run = [*launcher("uring-1"), "--entries", "64", waiting]
    with started(Live("native", run, log)) as program:
        made = gdb("-p", str(program.process.pid), commands=[f"gcore {core}"])
    assert core.exists(), made
    try:
        text = gdb(
            waiting, str(core), commands=["info uthreads", "uthread apply all bt"]
        )
    finally:
        core.unlink()
    check_list(text)
    check_traces(text)


def test_an_error_is_one_clear_line(live: Live, tmp_path: Path) -> None:
    assert "usage: uthread TID COMMAND" in live.gdb("uthread bt")
    assert "no user thread 1; see info uthreads" in live.gdb("uthread 1 bt")
    text = gdb(commands=["info uthreads"])
    assert "libflexsc-runtime.so isn't loaded; was the program started" in text
    for output in (live.gdb("uthread 1 bt"), text):
        assert "Traceback" not in output
