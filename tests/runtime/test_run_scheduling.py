# SPDX-License-Identifier: MIT
"""Which carrier runs which threads: stealing from other carriers, and spinning for
work.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from fixtures import PATIENCE, eventually, flexsc
from programs import Program, launcher, started
from test_run_counters import Report

SPIN = 20e-6  # seconds for which one carrier spins before it sleeps

# Main makes many threads runnable on its carrier, and keeps that carrier until they
# have run. If asked to, another thread keeps a second carrier until all are runnable.
# /proc/thread-self names the kernel thread that reads it: a round in which main was
# moved doesn't count. The program prints how many rounds counted, of the rounds that it
# made within some seconds.
SHARES = r"""
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 64, ROUNDS = 10 };

static _Atomic unsigned turn;
static atomic_int ran, elsewhere, mine;
static atomic_int wanted, kept, ends;

static int here(void)
{
	char text[64] = "";

	if (readlink("/proc/thread-self", text, sizeof(text) - 1) < 0)
		abort();
	return atoi(strrchr(text, '/') + 1);
}

static void *work(void *arg)
{
	for (unsigned i = 0; !ends; i++) {
		while (turn == i)
			syscall(SYS_futex, &turn, FUTEX_WAIT_PRIVATE, i, NULL);
		elsewhere += here() != mine;
		ran++;
	}
	return arg;
}

static void *keep(void *arg)
{
	while (!ends) {
		usleep(1000);
		if (!wanted)
			continue;
		kept = 1;
		while (wanted)
			;
		kept = 0;
	}
	return arg;
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec / 1e9;
}

static void make_runnable(int last)
{
	ran = elsewhere = 0;
	mine = here();
	ends = last;
	turn++;
	syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, THREADS);
}

/* Makes no call, so the carrier runs no other thread meanwhile. */
static int see_them_run(void)
{
	double end = now() + 60;

	while (ran < THREADS && now() < end)
		;
	if (ran < THREADS)
		exit(2);
	if (mine == gettid() || here() != mine)
		return 0;
	if (elsewhere < THREADS)
		exit(3);
	return 1;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS + 1];
	int rounds = 0, keeper = argc > 2;
	double end = now() + atoi(argv[1]);

	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, work, NULL))
			return 1;
	if (keeper && pthread_create(&threads[THREADS], NULL, keep, NULL))
		return 1;
	while (rounds < ROUNDS && now() < end) {
		usleep(5000);
		wanted = keeper;
		while (kept != keeper)
			;
		make_runnable(0);
		wanted = 0;
		rounds += see_them_run();
	}
	usleep(5000);
	make_runnable(1);
	for (int i = 0; i < THREADS + keeper; i++)
		pthread_join(threads[i], NULL);
	printf("%d\n", rounds);
	return 0;
}
"""

# Each thread repeatedly sleeps for longer than a carrier spins.
SLEEPS = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void *work(void *arg)
{
	const struct timespec moment = { 0, 60000 };

	for (int i = 0; i < 4000; i++)
		nanosleep(&moment, NULL);
	return arg;
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 1;
	struct timespec begin, end;
	pthread_t threads[64];

	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (int i = 0; i < n; i++)
		if (pthread_create(&threads[i], NULL, work, NULL))
			return 1;
	for (int i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	clock_gettime(CLOCK_MONOTONIC, &end);
	printf("%f\n", end.tv_sec - begin.tv_sec +
	       (end.tv_nsec - begin.tv_nsec) / 1e9);
	return 0;
}
"""

# Threads that have run, and then wait forever.
WAITS = r"""
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static int fds[2];

static void *work(void *arg)
{
	char byte;

	usleep(1000);
	return read(fds[0], &byte, 1) < 0 ? arg : NULL;
}

int main(void)
{
	pthread_t threads[16];

	if (pipe(fds))
		return 1;
	for (int i = 0; i < 16; i++)
		if (pthread_create(&threads[i], NULL, work, NULL))
			return 1;
	usleep(100000);
	puts("ready");
	fflush(stdout);
	return pthread_join(threads[0], NULL);
}
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("cc is missing: install gcc")
    folder = tmp_path_factory.mktemp("scheduling")

    def build(source: str) -> str:
        program = folder / f"program-{len(list(folder.iterdir()))}"
        argv = [compiler, "-O1", "-w", "-D_GNU_SOURCE"]
        argv += ["-o", str(program), "-x", "c", "-"]
        subprocess.run(argv, input=source, text=True, check=True, timeout=60)
        return str(program)

    return build


def counted(
    way: str, argv: list[str], cores: set[int] | None = None
) -> tuple[str, Report]:
    """Return the program's output, and the counters."""
    done = subprocess.run(
        [*launcher(way), "--stats", *argv],
        capture_output=True,
        text=True,
        timeout=3 * PATIENCE,
        check=False,
        preexec_fn=lambda: os.sched_setaffinity(0, cores) if cores else None,
    )
    assert done.returncode == 0, done.stderr
    report = Report(done.stderr)
    report.check()
    return done.stdout, report


def two_cores() -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs two cores")


@pytest.mark.parametrize("way", ["uring-2", "uring-4", "threads-2"])
def test_carriers_steal_what_another_cannot_run(
    way: str, built: Callable[[str], str]
) -> None:
    said, report = counted(way, [built(SHARES), "30"])
    assert int(said) > 0
    assert report["stolen"] >= 64 * int(said)


@pytest.mark.parametrize("way", ["uring-2", "threads-2"])
def test_a_carrier_steals_half_at_a_time(way: str, built: Callable[[str], str]) -> None:
    """Of 64 threads the carriers steal 32, 16, 8, 4, 2, 1 and 1."""
    two_cores()
    said, report = counted(way, [built(SHARES), "30", "keeper"])

    assert int(said) > 0
    assert report["stolen"] >= 64 * int(said)
    assert report["stolen"] >= 2 * report["steals"]
    assert report["steals"] >= 5 * int(said)


def test_a_single_carrier_steals_nothing(built: Callable[[str], str]) -> None:
    said, report = counted("uring-1", [built(SHARES), "1"])
    assert said == "0\n"
    assert (report["steals"], report["stolen"], report["wakes"]) == (0, 0, 0)


@pytest.mark.parametrize("way", ["uring-4", "uring-16", "threads-4"])
def test_one_carrier_at_a_time_spins(way: str, built: Callable[[str], str]) -> None:
    """Other carriers without work sleep at once. The number of spins per time is
    limited.
    """
    two_cores()
    said, report = counted(way, [built(SLEEPS), way.partition("-")[2]])
    for_nothing = report["spins"] - report["found"]
    assert 0 < for_nothing < report["sleeps"]
    assert for_nothing * SPIN <= float(said)


def test_no_carrier_spins_if_cores_are_scarce(built: Callable[[str], str]) -> None:
    program = built(SLEEPS)
    one = {min(os.sched_getaffinity(0))}
    for way, cores in (("uring-1", None), ("uring-4", one), ("threads-4", one)):
        _, report = counted(way, [program, "4"], cores)
        assert (report["spins"], report["found"]) == (0, 0)
        assert report["sleeps"] > 0


@pytest.mark.parametrize("way", ["uring-4", "threads-4"])
def test_carriers_without_work_sleep(
    way: str, built: Callable[[str], str], tmp_path: Path
) -> None:
    """Spinning ends."""
    with started(Program(way, [built(WAITS)], tmp_path / "log")) as program:
        program.wait_until(lambda: "ready" in program.output())
        folder = Path(f"/proc/{program.process.pid}/task")

        def seen() -> Report:
            done = flexsc("stat", str(program.process.pid))
            return Report(done.stdout.partition("\nloop of")[0] + "\n")

        carriers = [row[1] for row in seen().carriers]
        assert len(carriers) == 4

        def ticks() -> list[int]:
            """Return the processor time of each carrier."""
            stats = [(folder / f"{tid}/stat").read_text() for tid in carriers]
            words = [stat.rpartition(")")[2].split() for stat in stats]
            return [int(word[11]) + int(word[12]) for word in words]

        def asleep() -> bool:
            """Are all asleep for half a second? There are few wake-ups: for example, an
            ending thread of the engine wakes a carrier.
            """
            before, used = seen(), ticks()
            time.sleep(0.5)
            more = [now - then for now, then in zip(ticks(), used, strict=True)]
            after = seen()
            return max(more) <= 1 and all(
                after[name] - before[name] < 10 for name in ("sleeps", "spins")
            )

        assert eventually(asleep)
