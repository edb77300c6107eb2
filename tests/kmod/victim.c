// SPDX-License-Identifier: MIT
/*
 * A privileged program, with the set-user-ID bit: it becomes root, prints a line,
 * and sleeps until standard input is readable. The user that has executed it may not
 * send it signals then, so no other process may end or disturb the sleep. Runs in a
 * guest, by hostile.c and fuzz.c.
 *
 * The status is 0, or describes the error. An interruption is reported in the
 * kernel's log, too, because the fuzzer doesn't get the status.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

enum { NOT_ROOT = 1, INTERRUPTED = 2, WOKEN = 3, BROKEN = 4 };

/* One sleep is the program's own. A busy kernel may cause two more. */
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
