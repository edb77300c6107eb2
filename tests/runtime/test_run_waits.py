# SPDX-License-Identifier: MIT
"""Waits of every kind under flexsc run, checked by counters.

A wait that needs its own kernel thread returns a user thread to its host. A posted
call moves it to a carrier again. A thread that makes both in turn has to stay on its
host: two hand-overs for each wait would make it several times slower than natively.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from fixtures import PATIENCE

from programs import compiled, launcher
from test_run_counters import Report, counted

ROUNDS = 400
WAYS = ("uring-1", "uring-4", "threads-1")

# Main wakes the other thread in the way under test, and waits for a byte.
SOURCE = """
#define _GNU_SOURCE
#include <linux/aio_abi.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int pipes[2][2], set, queue, semaphores, file;
static aio_context_t aio;
static sem_t *shared;
static sigset_t user;
static pthread_t other;

static void check(int so, const char *what)
{
	if (so)
		return;
	perror(what);
	exit(1);
}

static void write_to(int i)
{
	check(write(pipes[i][1], "x", 1) == 1, "write");
}

static void read_from(int i)
{
	char byte;

	check(read(pipes[i][0], &byte, 1) == 1, "read");
}

static void wake_other(void)
{
	write_to(0);
}

static void by_select(void)
{
	fd_set fds;

	FD_ZERO(&fds);
	FD_SET(pipes[0][0], &fds);
	check(select(pipes[0][0] + 1, &fds, NULL, NULL, NULL) == 1, "select");
	read_from(0);
}

static void by_poll(void)
{
	struct pollfd fds[2] = { { pipes[0][0], POLLIN, 0 }, { -1, 0, 0 } };

	check(poll(fds, 2, 60000) == 1, "poll");
	read_from(0);
}

static void by_epoll(void)
{
	struct timespec limit = { 60, 0 };
	struct epoll_event event;

	check(epoll_pwait2(set, &event, 1, &limit, NULL) == 1, "epoll_pwait2");
	read_from(0);
}

static void by_aio(void)
{
	struct iocb cb = { .aio_lio_opcode = IOCB_CMD_POLL,
			   .aio_fildes = (unsigned int)pipes[0][0],
			   .aio_buf = POLLIN }, *list = &cb;
	struct io_event event;

	check(syscall(SYS_io_submit, aio, 1, &list) == 1, "io_submit");
	check(syscall(SYS_io_getevents, aio, 1, 1, &event, NULL) == 1,
	      "io_getevents");
	read_from(0);
}

/* Makes a system call that the runtime can't see, as a library may. */
static void by_itself(void)
{
	char byte;
	long n;

	do {
		__asm__ volatile("syscall"
				 : "=a"(n)
				 : "0"(SYS_read), "D"(pipes[0][0]), "S"(&byte),
				   "d"(1)
				 : "rcx", "r11", "memory");
	} while (n == -EINTR);
	check(n == 1, "syscall");
}

static void post_semaphore(void)
{
	struct sembuf up = { 0, 1, 0 };

	check(!semop(semaphores, &up, 1), "semop");
}

static void by_semaphore(void)
{
	struct sembuf down = { 0, -1, 0 };

	check(!semop(semaphores, &down, 1), "semop");
}

struct message {
	long type;
	char byte;
};

static void send_message(void)
{
	struct message message = { 1, 0 };

	check(!msgsnd(queue, &message, 1, 0), "msgsnd");
}

static void by_message(void)
{
	struct message message;

	check(msgrcv(queue, &message, 1, 1, 0) == 1, "msgrcv");
}

static void post_shared(void)
{
	sem_post(shared);
}

static void by_shared(void)
{
	sem_wait(shared);
}

static void send_signal(void)
{
	pthread_kill(other, SIGUSR1);
}

static void by_signal(void)
{
	int signo;

	check(!sigwait(&user, &signo), "sigwait");
}

/* A lock that no other thread wants. */
static void by_lock(void)
{
	struct flock whole = { .l_type = F_WRLCK };

	check(!flock(file, LOCK_EX) && !flock(file, LOCK_UN), "flock");
	check(!fcntl(file, F_OFD_SETLKW, &whole), "fcntl");
	whole.l_type = F_UNLCK;
	check(!fcntl(file, F_OFD_SETLKW, &whole), "fcntl");
	read_from(0);
}

static const struct wait {
	const char *name;
	void (*wake_other)(void), (*wait)(void);
} waits[] = {
	{ "select", wake_other, by_select },
	{ "poll", wake_other, by_poll },
	{ "epoll_pwait2", wake_other, by_epoll },
	{ "io_getevents", wake_other, by_aio },
	{ "semtimedop", post_semaphore, by_semaphore },
	{ "msgrcv", send_message, by_message },
	{ "futex", post_shared, by_shared },
	{ "sigwait", send_signal, by_signal },
	{ "lock", wake_other, by_lock },
	{ "itself", wake_other, by_itself },
};

static const struct wait *chosen;

static void *answer(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		chosen->wait();
		write_to(1);
	}
	return arg;
}

int main(int argc, char **argv)
{
	struct epoll_event event = { .events = EPOLLIN };

	check(argc == 2 && !pipe(pipes[0]) && !pipe(pipes[1]), "pipe");
	set = epoll_create1(0);
	check(!epoll_ctl(set, EPOLL_CTL_ADD, pipes[0][0], &event), "epoll_ctl");
	check(!syscall(SYS_io_setup, 1, &aio), "io_setup");
	queue = msgget(IPC_PRIVATE, 0600);
	semaphores = semget(IPC_PRIVATE, 1, 0600);
	check(queue >= 0 && semaphores >= 0, "msgget");
	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	sem_init(shared, 1, 0);
	file = open(".", O_TMPFILE | O_RDWR, 0600);
	check(file >= 0, "open");
	sigemptyset(&user);
	sigaddset(&user, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &user, NULL);
	for (unsigned int i = 0; i < sizeof(waits) / sizeof(*waits); i++)
		if (!strcmp(waits[i].name, argv[1]))
			chosen = &waits[i];
	alarm(60);
	pthread_create(&other, NULL, answer, NULL);
	for (int i = 0; i < ROUNDS; i++) {
		chosen->wake_other();
		read_from(1);
	}
	pthread_join(other, NULL);
	msgctl(queue, IPC_RMID, NULL);
	semctl(semaphores, 0, IPC_RMID);
	puts("done");
	return 0;
}
"""

KINDS = (
    "select",
    "poll",
    "epoll_pwait2",
    "io_getevents",
    "semtimedop",
    "msgrcv",
    "futex",
    "sigwait",
)


@pytest.fixture(scope="module")
def waits(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("waits")
    return compiled(folder, SOURCE, f"-DROUNDS={ROUNDS}", "-pthread")


def measured(way: str, program: str, kind: str) -> Report:
    done = counted(way, [program, kind], cwd=Path(program).parent)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    report = Report(done.stderr)
    report.check()
    return report


@pytest.mark.parametrize("kind", (*KINDS, "lock", "itself"))
def test_the_waits_work_as_natively(waits: str, kind: str) -> None:
    done = subprocess.run(
        [*launcher("native"), waits, kind],
        cwd=Path(waits).parent,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_thread_that_often_needs_its_host_stays_there(
    way: str, kind: str, waits: str
) -> None:
    """Each thread returns to its host several times, and stays twice as long each time.

    A thread on its host also makes its other calls there, so no syscall thread waits
    for it. In each round main may post a read and a write.
    """
    report = measured(way, waits, kind)
    assert report["returns"] < ROUNDS / 8
    assert report["departures"] < ROUNDS / 8
    assert report["posted"] < 3 * ROUNDS


@pytest.mark.parametrize("way", WAYS)
def test_a_lock_that_is_free_needs_no_thread(way: str, waits: str) -> None:
    report = measured(way, waits, "lock")
    assert report["returns"] < 20
    # A thread begins on its host, and makes its first round there.
    assert report["exposed"] >= 4 * (ROUNDS - 1)
    # Only the calls for the pipes' bytes.
    assert report["posted"] <= 4 * ROUNDS + 20


@pytest.mark.parametrize("way", WAYS)
def test_an_unseen_wait_keeps_a_carrier_a_few_times(way: str, waits: str) -> None:
    """The monitor finds such a wait after at least 10 ms. Then the thread stays on its
    host.
    """
    report = measured(way, waits, "itself")
    assert report.causes.get("(preempted)", 0) < 20
