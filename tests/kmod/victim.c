// SPDX-License-Identifier: MIT
/*
 * A privileged program, executed with the set-user-ID bit: it becomes root, says
 * so on standard output, and sleeps until standard input is readable. Whoever
 * executed it may not send it a signal then, so nothing else ends or disturbs
 * the sleep. Runs in a guest, by hostile.c and fuzz.c.
 *
 * Status: 0, or what went wrong. An interruption is in the kernel's log as well: the
 * fuzzer doesn't get the status.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

enum { NOT_ROOT = 1, INTERRUPTED = 2, WOKEN = 3, BROKEN = 4 };

/* A sleep is one; two more are for what a busy kernel does. */
#define SLEEPS	3

static long sleeps(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_nvcsw;
}

static int complain(void)
{
	static const char text[] = "BUG: a privileged program was interrupted\n";
	int log = open("/dev/kmsg", O_WRONLY | O_CLOEXEC);

	return write(log, text, sizeof(text) - 1) > 0 ? INTERRUPTED : BROKEN;
}

int main(void)
{
	struct epoll_event event = { .events = EPOLLIN };
	int queue = epoll_create1(0);
	unsigned long interrupted = 0;
	long before, woken;

	if (setresgid(0, 0, 0) || setresuid(0, 0, 0))
		return NOT_ROOT;
	if (epoll_ctl(queue, EPOLL_CTL_ADD, STDIN_FILENO, &event) ||
	    write(STDOUT_FILENO, "r", 1) != 1)
		return BROKEN;
	before = sleeps();
	while (epoll_wait(queue, &event, 1, -1) != 1)
		interrupted++;
	woken = sleeps() - before - 1;
	fprintf(stderr, "# interrupted %lu times, woken %ld times\n",
		interrupted, woken);
	if (interrupted)
		return complain();
	return woken >= SLEEPS ? WOKEN : 0;
}
