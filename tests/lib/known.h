/* SPDX-License-Identifier: MIT */
/*
 * Counted and checked calls on descriptors whose facts the library caches. If an
 * engine has direct calls (lib/loop/direct.h), reads of these descriptors are
 * direct.
 */
#ifndef FLEXSC_TESTS_KNOWN_H
#define FLEXSC_TESTS_KNOWN_H

#include "tests/harness/harness.h"
#include "tests/lib/counted.h"

#define CALLS	64U

static inline void init(struct call *calls, unsigned int n,
			void (*callback)(struct flexsc_cb *cb))
{
	done = 0;
	memset(calls, 0, n * sizeof(*calls));
	for (unsigned int i = 0; i < n; i++)
		calls[i].cb.callback = callback;
}

/*
 * Creates two connected sockets and reads from each, so that the library caches
 * their facts.
 */
static inline void known_pair(int p[2])
{
	char c;

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, p), 0);
	CHECK_EQ(write(p[1], "k", 1), 1);
	CHECK_EQ(DO(loop, SYS_read, p[0], &c, 1), 1);
}

static inline void feed(int fd, unsigned int n)
{
	char bytes[4096] = { 0 };

	while (n) {
		ssize_t wrote = write(fd, bytes, n < 4096 ? n : 4096);

		CHECK(wrote > 0);
		n -= (unsigned int)wrote;
	}
}

/* Reads the bytes that are available, and returns their number. */
static inline unsigned int left(int fd)
{
	char bytes[4096];
	unsigned int n = 0;
	ssize_t got;

	while ((got = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0)
		n += (unsigned int)got;
	return n;
}

static inline void check_each_once(const struct call *calls, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		CHECK_EQ(calls[i].runs, 1);
	CHECK_EQ(done, n);
}

/* Each call has read a byte, or was cancelled and has not. No byte is lost. */
static inline void check_bytes(const struct call *calls, unsigned int n, int fd,
			unsigned int fed)
{
	unsigned int read = 0;

	check_each_once(calls, n);
	for (unsigned int i = 0; i < n; i++) {
		CHECK(calls[i].cb.ret == 1 || is_cancelled(calls[i].cb.ret));
		read += calls[i].cb.ret == 1;
	}
	CHECK_EQ(read + left(fd), fed);
}

static inline void post_reads(struct call *calls, unsigned int n, int fd)
{
	static char byte;

	for (unsigned int i = 0; i < n; i++)
		POST(loop, &calls[i], SYS_read, fd, &byte, 1);
}

#endif /* FLEXSC_TESTS_KNOWN_H */
