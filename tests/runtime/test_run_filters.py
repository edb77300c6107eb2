# SPDX-License-Identifier: MIT
"""flexsc run under a seccomp filter that the process already has, as in a container."""

from __future__ import annotations

import errno
import functools
import platform
import re
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import filters
import pytest

from fixtures import PATIENCE, command
from programs import compiled, installed

ROOT = Path(__file__).resolve().parents[2]
# With arguments "LISTED OTHER CALLS PROGRAM...", the program installs a filter and
# executes another one. LISTED is the action at the calls; OTHER the one at all others.
SOURCE = r"""
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static void need(int done)
{
	if (!done)
		_exit(9);
}

static void execute_under_a_filter(char **argv)
{
	static struct sock_filter code[2048] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	};
	struct sock_fprog program = { 1, code };

	for (char *nr = strtok(argv[3], ","); nr; nr = strtok(NULL, ",")) {
		code[program.len++] = (struct sock_filter)
			BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, atoi(nr), 0, 1);
		code[program.len++] = (struct sock_filter)
			BPF_STMT(BPF_RET | BPF_K, strtoul(argv[1], NULL, 0));
	}
	code[program.len++] = (struct sock_filter)
		BPF_STMT(BPF_RET | BPF_K, strtoul(argv[2], NULL, 0));
	need(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	     !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
	execv(argv[4], argv + 4);
	_exit(8);
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int turn;
static atomic_int handled;

static void handle(int signo)
{
	handled = signo;
}

static void *echo(void *arg)
{
	int fd = *(int *)arg;
	char c;

	while (read(fd, &c, 1) == 1)
		need(write(fd, &c, 1) == 1);
	return arg;
}

static void *take_turn(void *arg)
{
	pthread_mutex_lock(&mutex);
	while (turn != *(int *)arg)
		pthread_cond_wait(&cond, &mutex);
	turn++;
	pthread_cond_broadcast(&cond);
	pthread_mutex_unlock(&mutex);
	return arg;
}

/* Long enough for the monitor, which sends the carrier away. */
static void *compute(void *arg)
{
	struct timespec now, end;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_nsec += 15000000;
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((now.tv_sec - end.tv_sec) * 1000000000 + now.tv_nsec < end.tv_nsec);
	return arg;
}

static void *sleep_until_signal(void *arg)
{
	const struct timespec brief = { 0, 1000000 };

	while (!handled)
		nanosleep(&brief, NULL);
	return arg;
}

#define START(i, run, arg) need(!pthread_create(&threads[i], NULL, run, arg))

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = handle };
	static int ends[3][2], turns[] = { 0, 1, 2 };
	pthread_t threads[8];
	char c = 'x';

	if (argc > 1)
		execute_under_a_filter(argv);
	need(!sigaction(SIGUSR1, &action, NULL));
	for (int i = 0; i < 3; i++) {
		need(!socketpair(AF_UNIX, SOCK_STREAM, 0, ends[i]));
		START(i, echo, &ends[i][1]);
		START(3 + i, take_turn, &turns[2 - i]);
	}
	START(6, compute, NULL);
	START(7, sleep_until_signal, NULL);
	for (int i = 0; i < 30; i++)
		need(write(ends[i % 3][0], &c, 1) == 1 &&
		     read(ends[i % 3][0], &c, 1) == 1);
	need(!pthread_kill(threads[7], SIGUSR1));
	for (int i = 0; i < 3; i++)
		close(ends[i][0]);
	for (int i = 0; i < 8; i++)
		need(!pthread_join(threads[i], NULL));
	return write(1, "right\n", 6) == 6 ? 7 : 6;
}
"""
RIGHT = (7, "right\n")
TRAP = 0x00030000
ACTIONS = {
    "fails": filters.FAIL | errno.EPERM,
    "kills": filters.KILL,
    "traps": TRAP,
}

# Calls that systemd's @system-service permits also without @resources, and Docker's
# default profile, too. A typical list has many more.
USUAL = """
access arch_prctl brk clock_gettime clock_nanosleep clone clone3 close connect dup dup2
dup3 epoll_create1 epoll_ctl epoll_pwait epoll_wait eventfd2 execve exit exit_group
faccessat faccessat2 fcntl fstat ftruncate futex getdents64 getegid geteuid getgid
getpeername getpid getppid getrandom getrusage getsockname getsockopt gettid getuid
getxattr ioctl kill lseek madvise memfd_create mmap mprotect munmap nanosleep newfstatat
openat pipe2 poll ppoll prctl pread64 preadv2 prlimit64 pselect6 pwrite64 pwritev2 read
readlink readlinkat readv recvfrom recvmsg restart_syscall rseq rt_sigaction
rt_sigprocmask rt_sigqueueinfo rt_sigreturn rt_sigtimedwait rt_tgsigqueueinfo
sched_getaffinity sched_getscheduler sched_yield select semtimedop sendmsg sendto
set_robust_list set_tid_address setsockopt shutdown sigaltstack socket socketpair statx
tgkill timer_create timer_delete timer_settime uname wait4 waitid write writev accept
accept4
"""
RINGS = "io_uring_setup io_uring_enter io_uring_register"


@functools.cache
def numbers() -> dict[str, int]:
    """Return the numbers of the calls that this machine has."""
    column = 1 + (platform.machine() == "aarch64")
    lines = (ROOT / "lib/calls/syscalls.tbl").read_text().splitlines()
    rows = [line.split() for line in lines if re.match(r"\w+ +[-\d]+ +[-\d]+ ", line)]
    return {row[0]: int(row[column]) for row in rows if row[column] != "-"}


def own_calls() -> list[str]:
    """Return the calls that the runtime makes itself, and those of trying them."""
    text = (ROOT / "runtime/calls/own_calls.def").read_text()
    names = re.findall(
        r"^(?:(?:OWN|NEW)_CALL\(|CALL_OF\(OWN_\w+, )(\w+)", text, re.MULTILINE
    )
    assert len(names) > 60
    return [name for name in [*names, "rt_sigreturn"] if name in numbers()]


class Filtered:
    """A program that is executed under a filter, and its results without flexsc run."""

    def __init__(self, program: str) -> None:
        self.program = program
        self.native = functools.cache(self._native)

    def run(
        self, names: str, listed: int, other: int, *argv: str, within: str = ""
    ) -> tuple[int, str, str]:
        """Run argv under the filter. "within" is the engine of a flexsc run that
        starts before the filter exists.
        """
        calls = ",".join(str(numbers()[n]) for n in names.split() if n in numbers())
        outer = [command(), "run", "--engine", within] if within else []
        done = subprocess.run(
            [*outer, self.program, str(listed), str(other), calls, *argv],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    def _native(self, name: str, action: int, *argv: str) -> tuple[int, str]:
        return self.run(name, action, filters.ALLOW, *argv)[:2]

    def works(self, name: str, action: int) -> bool:
        """Does the program work natively under this filter, and does the command, of
        which the loader has to find the libraries?
        """
        return (
            self.native(name, action, self.program) == RIGHT
            and self.native(name, action, command(), "run", "--help")[0] == 0
        )


@pytest.fixture(scope="module")
def filtered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Filtered]:
    folder = tmp_path_factory.mktemp("filters")
    yield Filtered(compiled(folder, SOURCE, "-pthread"))


def is_clear(result: tuple[int, str, str]) -> bool:
    """Is the result right, or does one line give the reason for having no result?"""
    status, stdout, stderr = result
    if (status, stdout) == RIGHT and not stderr:
        return True
    one_line = bool(re.fullmatch(r"flexsc: run: .*seccomp filter.*\n", stderr))
    return one_line and (status, stdout) in (RIGHT, (2, ""))


@pytest.mark.parametrize("engine", ["uring", "threads"])
@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("within", [False, True])
def test_a_filter_forbids_one_call(
    filtered: Filtered, engine: str, action: str, within: bool
) -> None:
    """The filter exists before flexsc run, or comes between it and the program."""
    argv = [] if within else [command(), "run", "--engine", engine]

    def result(name: str) -> tuple[int, str, str] | None:
        if not filtered.works(name, ACTIONS[action]):
            return None
        words = [*argv, filtered.program]
        inner = engine if within else ""
        return filtered.run(name, ACTIONS[action], filters.ALLOW, *words, within=inner)

    with ThreadPoolExecutor(4) as pool:
        results = dict(zip(own_calls(), pool.map(result, own_calls())))
    tried = {name: found for name, found in results.items() if found}
    assert len(tried) > 30
    assert not {name: found for name, found in tried.items() if not is_clear(found)}


def test_without_a_filter_no_child_tries_calls(
    filtered: Filtered, tmp_path: Path
) -> None:
    """Such a child is the only process that the program would have to wait for."""
    output = tmp_path / "trace"
    trace = [installed("strace", "strace"), "-f", "-o", str(output)]
    trace += ["-e", "trace=wait4,seccomp", command(), "run", filtered.program]
    done = subprocess.run(trace, capture_output=True, timeout=PATIENCE, check=False)
    if "right" not in done.stdout.decode():
        pytest.skip(f"strace isn't allowed to trace here: {done.stderr.decode()}")
    assert "exited with 7" in output.read_text()
    assert "wait4(" not in output.read_text()


@pytest.mark.parametrize("engine", ["uring", "threads"])
@pytest.mark.parametrize("action", ACTIONS)
def test_usual_lists_permit_the_runtime_s_calls(
    filtered: Filtered, engine: str, action: str
) -> None:
    names = USUAL + (RINGS if engine == "uring" else "")
    argv = [command(), "run", "--engine", engine, "--stats", filtered.program]
    status, out, err = filtered.run(names, filters.ALLOW, ACTIONS[action], *argv)
    assert (status, out) == RIGHT, err
    assert f"engine {engine}\n" in err and "flexsc: " not in err


def test_a_container_s_profile_selects_threads(filtered: Filtered) -> None:
    """Docker's default profile makes clone3 fail as if the kernel didn't have it."""
    missing = filters.FAIL | errno.ENOSYS
    argv = [filtered.program, str(missing), str(filters.ALLOW)]
    argv += [str(numbers()["clone3"]), command(), "run", "--stats", filtered.program]
    names, forbids = USUAL + " seccomp", ACTIONS["fails"]
    status, out, err = filtered.run(names, filters.ALLOW, forbids, *argv)
    assert (status, out) == RIGHT, err
    assert err.startswith("flexsc: run: using syscall threads, because io_uring ")
    assert "engine threads\n" in err and err.count("flexsc: ") == 1
