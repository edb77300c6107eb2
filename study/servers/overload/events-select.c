/* SPDX-License-Identifier: MIT */
/*
 * select: the kernel is given bitmaps of all descriptors that wait, each time. It
 * takes larger ones than FD_SETSIZE, which is the C library's limit.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "events.h"

#define BITS	(8 * (int)sizeof(unsigned long))

static struct {
	unsigned long *wanted, *found;
} reading, writing;
static int listening, highest;

static void set(unsigned long *bits, int fd, bool to)
{
	unsigned long bit = 1UL << fd % BITS;

	if (to)
		bits[fd / BITS] |= bit;
	else
		bits[fd / BITS] &= ~bit;
}

static bool begin(int listener)
{
	size_t words = (size_t)server_limit / BITS + 1;
	unsigned long *bits = calloc(4 * words, sizeof(*bits));

	if (!bits) {
		perror("http-events: select");
		return false;
	}
	reading.wanted = bits;
	reading.found = bits + words;
	writing.wanted = bits + 2 * words;
	writing.found = bits + 3 * words;
	listening = highest = listener;
	set(reading.wanted, listener, true);
	return true;
}

static void tell(int word)
{
	unsigned long found = reading.found[word] | writing.found[word];

	for (; found; found &= found - 1) {
		int fd = word * BITS + __builtin_ctzl(found);

		if (fd == listening)
			server_accept(fd);
		else
			server_ready(fd);
	}
}

static void wait_for_events(void)
{
	int words = highest / BITS + 1;
	size_t size = (size_t)words * sizeof(unsigned long);

	memcpy(reading.found, reading.wanted, size);
	memcpy(writing.found, writing.wanted, size);
	/* glibc's own function may refuse what is more than an fd_set. */
	if (syscall(SYS_pselect6, highest + 1, reading.found, writing.found,
		    NULL, NULL, NULL) <= 0)
		return;
	for (int i = 0; i < words; i++)
		tell(i);
}

static void watch(int fd, bool sending)
{
	set(reading.wanted, fd, !sending);
	set(writing.wanted, fd, sending);
	if (fd > highest)
		highest = fd;
}

static void close_it(int fd)
{
	set(reading.wanted, fd, false);
	set(writing.wanted, fd, false);
	close(fd);
}

static void admit(bool yes)
{
	set(reading.wanted, listening, yes);
}

const struct model model_select = {
	.name = "select", .delivery = "batched", .notification = "batched",
	.accepting = "in batches", .begin = begin, .wait = wait_for_events,
	.watch = watch, .close = close_it, .admit = admit,
};
