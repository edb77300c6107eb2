# SPDX-License-Identifier: MIT
"""The drivers of study/servers/webserver do the same amount of work per request:
callgrind counts the instructions of the core, web_next() and web_done(), in each of
them.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from fixtures import PATIENCE, Client, eventually, request
from programs import compiled, installed
from test_webserver import program

REQUESTS = 800
LIMIT = 12 * PATIENCE  # the longest time that a driver may run
# Requests sent at once. A driver calls the core once more after EAGAIN, which a receive
# returns at most once per burst.
BURST = 10
CORE = ("web_next", "web_done")
# The clock writes the date once a second, whatever the number of requests.
CLOCK = "clock_update"
# The function that writes an answer's head.
ANSWER = "response_file"

DRIVERS = {
    "web-threads": ["--threads", "4"],
    "web-events": [],
    "web-loops": [],
    "web-stages": [],
}

# The valgrind of Debian 12 makes openat2() fail with ENOSYS. This syscall(), through
# which the drivers make calls, opens files by openat(). io_uring opens files without
# valgrind.
WITHOUT_OPENAT2 = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>

long syscall(long nr, long a, long b, long c, long d, long e, long f)
{
	long (*next)(long, ...) = dlsym(RTLD_NEXT, "syscall");
	const struct open_how *how = (const struct open_how *)c;

	if (nr == SYS_openat2)
		return openat((int)a, (const char *)b, (int)how->flags);
	return next(nr, a, b, c, d, e, f);
}
"""


class Profile:
    """callgrind's counts. costs: each function's instructions, including those of
    functions that it calls; recursive functions are counted too often. calls: the
    number of calls of each function.
    """

    def __init__(self, text: str) -> None:
        self.costs: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()
        name = called = ""
        for line in text.splitlines():
            key, _, value = line.partition("=")
            if key == "fn":
                name = value
            elif key == "cfn":
                called = value
            elif key == "calls":
                self.calls[called] += int(value.split()[0])
            elif name and re.match(r"[+*0-9-]", line):
                # The line after "calls=" has the cost of the calls.
                self.costs[name] += int(line.split()[-1])


def test_a_profile_is_summed_up() -> None:
    text = "events: Ir\nfn=a\n1 10\n2 5\ncfn=b\ncalls=3 7\n2 300\n\nfn=b\n7 300\n"
    profile = Profile(text + "fn=a\n* 1\ncfn=b\ncalls=2 7\n+1 4\n\ntotals: 316\n")
    assert profile.costs == {"a": 320, "b": 300}
    assert profile.calls == {"b": 5}


def ask(client: Client) -> None:
    client.send(request("/hello.txt") * BURST)
    for _ in range(BURST):
        answer = client.read()
        assert answer.status == 200
        assert len(answer.body) == 1024


class Counted:
    """A driver under callgrind."""

    def __init__(self, name: str, root: Path, folder: Path) -> None:
        preloaded = compiled(folder, WITHOUT_OPENAT2, "-shared", "-fPIC")
        self.file = folder / "profile"
        command = [
            *(
                installed("valgrind", "valgrind"),
                "--tool=callgrind",
                "--fair-sched=try",
            ),
            *("--compress-strings=no", f"--callgrind-out-file={self.file}"),
            *(program(name), *DRIVERS[name], str(root)),
        ]
        self.log = (folder / "log").open("w+")
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
            env={**os.environ, "LD_PRELOAD": preloaded, "FLEXSC_ENGINE": "uring"},
        )

        self.limit = threading.Timer(LIMIT, self.process.kill)
        self.limit.start()

    def port(self) -> int:
        assert self.process.stdout
        line = self.process.stdout.readline()
        self.log.seek(0)
        said = self.log.read()
        if not line and "web-loops: no loop: " in said:
            pytest.skip(f"no io_uring here: {said.strip().splitlines()[-1]}")
        assert line, said
        return int(line)

    def ended(self) -> bool:
        return self.process.poll() is not None

    def end(self) -> None:
        self.limit.cancel()
        if not self.ended():
            self.process.kill()
        self.process.wait()
        assert self.process.stdout
        self.process.stdout.close()
        self.log.close()

    def profile(self) -> Profile:
        return Profile(self.file.read_text())


@contextlib.contextmanager
def counted(name: str, root: Path, folder: Path) -> Iterator[Counted]:
    running = Counted(name, root, folder)
    try:
        yield running
    finally:
        running.end()


def terminate(running: Counted, client: Client) -> None:
    """End the driver. valgrind runs one thread at a time, and takes io_uring_enter()
    for a call that doesn't wait, so web-loops' main thread runs only while there are
    requests.
    """
    running.process.terminate()

    def ended() -> bool:
        with contextlib.suppress(OSError, EOFError):
            ask(client)
        return running.ended()

    assert eventually(ended, 6 * PATIENCE)


def work(name: str, root: Path, folder: Path) -> float:
    """The core's instructions per request."""
    with counted(name, root, folder) as running, Client(running.port()) as client:
        client.socket.settimeout(6 * PATIENCE)
        for _ in range(REQUESTS // BURST):
            ask(client)
        terminate(running, client)
        found = running.profile()
        assert found.calls[ANSWER] >= REQUESTS
        core = sum(found.costs[function] for function in CORE) - found.costs[CLOCK]
        return core / found.calls[ANSWER]


def test_the_core_takes_the_same_instructions_in_each_driver(
    tree: Path, tmp_path: Path
) -> None:
    found = {}
    for name in DRIVERS:
        (tmp_path / name).mkdir()
        found[name] = work(name, tree, tmp_path / name)
    print(found)
    # A request is parsed, a file is looked up, a head is written.
    assert min(found.values()) > 1000
    assert max(found.values()) <= 1.01 * min(found.values()), found
