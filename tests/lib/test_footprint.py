# SPDX-License-Identifier: MIT
"""A loop, and a thread under flexsc run, need no more than compatibility.md states."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from fixtures import PATIENCE, command
from programs import compiled, launcher

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(command()).resolve().parents[1]
# Creates loops, or threads that wait, and prints what one of them needs: resident
# bytes, descriptors, and kernel threads.
PROGRAM = r"""
#include <flexsc/flexsc.h>
#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define COUNT 64

static int ready[2], never[2];

static long resident(void)
{
	FILE *file = fopen("/proc/self/smaps_rollup", "re");
	char line[256];
	long kib = -1;

	while (fgets(line, sizeof(line), file))
		sscanf(line, "Rss: %ld", &kib);
	fclose(file);
	return kib * 1024;
}

static int entries(const char *folder)
{
	DIR *dir = opendir(folder);
	int n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static void make_loop(void)
{
	struct flexsc_cb cb = { NULL };
	struct flexsc_loop *loop;

	if (flexsc_loop_create(&loop, NULL) ||
	    flexsc_loop_sched_yield(loop, &cb) || flexsc_loop_run(loop))
		exit(1);
}

static void *wait(void *arg)
{
	char byte = 0;

	if (write(ready[1], &byte, 1) != 1 || read(never[0], &byte, 1) != 1)
		exit(2);
	return NULL;
}

static void make_thread(void)
{
	pthread_t thread;
	char byte;

	if (pthread_create(&thread, NULL, wait, NULL) ||
	    read(ready[0], &byte, 1) != 1)
		exit(3);
}

int main(int argc, char **argv)
{
	void (*make)(void) = strcmp(argv[1], "loops") ? make_thread : make_loop;
	int descriptors, threads;
	long bytes;

	/* With huge pages the result would depend on the machine. */
	if (prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) || pipe(ready) || pipe(never))
		return 4;
	for (int i = 0; i < 8; i++)
		make();
	bytes = resident();
	descriptors = entries("/proc/self/fd");
	threads = entries("/proc/self/task");
	for (int i = 0; i < COUNT; i++)
		make();
	/*
	 * Whole ones per thread, or per loop: on a busy machine the runtime adds a spare
	 * carrier, which has a thread and two descriptors.
	 */
	printf("%ld %ld %d %d\n", bytes, (resident() - bytes) / COUNT,
	       (entries("/proc/self/fd") - descriptors) / COUNT,
	       (entries("/proc/self/task") - threads) / COUNT);
	fflush(stdout);
	_exit(0);
}
"""


def limits(what: str) -> list[float]:
    """Return the numbers in a row of the document's table."""
    text = (ROOT / "docs/explanation/compatibility.md").read_text()
    row = re.search(rf"^\| {re.escape(what)} \|(.*)\|$", text, re.MULTILINE)
    assert row, what
    return [float(word) for word in re.findall(r"\d+", row[1])]


@pytest.mark.parametrize(
    ("library", "what"),
    [
        ("lib/libflexsc.so", "static TLS of `libflexsc.so.0`, per thread"),
        (
            "runtime/libflexsc-runtime.so",
            "static TLS of the runtime of `flexsc run`, per thread",
        ),
    ],
)
def test_static_thread_local_storage_has_a_limit(library: str, what: str) -> None:
    readelf = ["readelf", "-lW", BUILD / library]
    done = subprocess.run(readelf, stdout=subprocess.PIPE, text=True, check=True)
    row = re.search(r"^ +TLS +(.*)$", done.stdout, re.MULTILINE)
    assert row
    assert [int(row[1].split()[4], 16)] <= limits(what)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> str:
    folders = (ROOT / "include", ROOT / "include/uapi", BUILD / "include")
    options = [f"-I{folder}" for folder in folders]
    options += [f"-L{BUILD}/lib", f"-Wl,-rpath,{BUILD}/lib"]
    options += ["-Wl,--no-as-needed", "-lflexsc", "-pthread", "-D_GNU_SOURCE"]
    return compiled(tmp_path_factory.mktemp("footprint"), PROGRAM, *options)


def taken(way: str, *words: str, engine: str = "uring") -> tuple[float, list[float]]:
    """Return what the process needs at first, and what each further one needs, in KiB."""
    done = subprocess.run(
        [*launcher(way), *words],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        env={**os.environ, "FLEXSC_ENGINE": engine},
    )
    assert (done.returncode, done.stderr) == (0, "")
    base, size, descriptors, threads = map(float, done.stdout.split())
    return base / 1024, [size / 1024, descriptors, threads]


def within(taken: list[float], limits: list[float]) -> bool:
    return all(one <= most for one, most in zip(taken, limits, strict=True))


@pytest.mark.parametrize("engine", ["sync", "threads", "uring"])
def test_a_loop_s_memory_has_a_limit(program: str, engine: str) -> None:
    _, loop = taken("native", program, "loops", engine=engine)
    assert within(loop, limits(f"a loop with `{engine}`"))


@pytest.mark.parametrize("way", ["uring-4", "threads-4"])
def test_a_thread_s_memory_under_flexsc_run_has_a_limit(program: str, way: str) -> None:
    base, thread = taken(way, program, "threads")
    native_base, native = taken("native", program, "threads")
    more = [a - b for a, b in zip(thread, native, strict=True)]
    assert within(
        more, limits("a thread under `flexsc run`, in addition to its native cost")
    )
    whole = limits(
        "a process under `flexsc run` with 4 carriers, in addition to its native cost"
    )
    assert within([base - native_base], whole)
