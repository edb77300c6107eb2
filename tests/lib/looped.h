/* SPDX-License-Identifier: MIT */
/*
 * Looped multi-calls: a chain whose calls have no callbacks, except the last one, may be
 * continued by the engine. The effects and results are those of a chain with
 * callbacks, which the owner continues. So most tests run both. For looped.c and
 * looped_cancel.c.
 */
#ifndef FLEXSC_TESTS_LOOPED_H
#define FLEXSC_TESTS_LOOPED_H

#include "tests/harness/harness.h"

/* May the engine continue the chains of this test? */
static bool quiet;

static inline struct call quiet_call(void)
{
	struct call call = CALL_INIT;

	if (quiet)
		call.cb.callback = NULL;
	return call;
}

/* LOOPED(name): a test with a loop, of each kind of chain. */
#define LOOPED_(id, body, ...)						\
	TEST(id##_by_the_engine)					\
	{								\
		quiet = true;						\
		loop = NEW_LOOP(__VA_ARGS__);				\
		body();							\
	}								\
	TEST(id##_by_the_owner)						\
	{								\
		loop = NEW_LOOP(__VA_ARGS__);				\
		body();							\
	}
#define LOOPED(id, ...)							\
	static void id(void);						\
	LOOPED_(id, id, __VA_ARGS__)					\
	static void id(void)

#define SAME	(FLEXSC_CHAIN_ARG(0) | FLEXSC_CHAIN_SAME)

struct file_read {
	struct call opened, got, closed;
	char text[64];
};

/* Posts a chain that reads the name of this program. */
static inline void post_read(struct file_read *file)
{
	file->opened = quiet_call();
	file->got = quiet_call();
	file->closed = (struct call)CALL_INIT;
	POST(loop, &file->opened, SYS_openat, AT_FDCWD, "/proc/self/comm",
	     O_RDONLY | O_CLOEXEC, 0);
	POST_AFTER(loop, &file->opened, FLEXSC_CHAIN_ARG(0), &file->got, SYS_read,
		   -1, file->text, sizeof(file->text));
	POST_AFTER(loop, &file->got, SAME | FLEXSC_CHAIN_ALWAYS, &file->closed,
		   SYS_close, -1);
}

static inline void check_read(const struct file_read *file)
{
	char want[64] = "";
	int fd = open("/proc/self/comm", O_RDONLY | O_CLOEXEC);

	CHECK(file->opened.cb.ret >= 0);
	CHECK_EQ(file->got.cb.ret, read(fd, want, sizeof(want)));
	CHECK_EQ(strcmp(file->text, want), 0);
	CHECK_EQ(file->closed.cb.ret, 0);
	CHECK_EQ(close(fd), 0);
}

static const char names[6][2] = { "a", "b", "c", "d", "e", "f" };

static inline bool exists(unsigned int which)
{
	struct stat st;

	return stat(names[which], &st) == 0;
}

/* Posts mkdir("b"), mkdir("c") and so on behind calls[0]. The last has a callback. */
static inline void post_directories(struct call *calls, unsigned int n)
{
	for (unsigned int i = 1; i < n; i++) {
		calls[i] = quiet_call();
		if (i == n - 1)
			calls[i] = (struct call)CALL_INIT;
		POST_AFTER(loop, &calls[i - 1], 0, &calls[i], SYS_mkdirat,
			   AT_FDCWD, names[i], 0700);
	}
}

/* A chain whose first call reads from an empty pipe. */
struct waiting {
	struct call calls[6];
	int p[2];
	char c;
};

static inline void post_waiting(struct waiting *chain)
{
	NEEDS_WAITING_ENGINE();
	enter_scratch();
	CHECK_EQ(pipe2(chain->p, O_CLOEXEC), 0);
	chain->calls[0] = quiet_call();
	POST(loop, &chain->calls[0], SYS_read, chain->p[0], &chain->c, 1);
	post_directories(chain->calls, 6);
}

static inline void end_waiting(const struct waiting *chain)
{
	CHECK_EQ(write(chain->p[1], "x", 1), 1);
	CHECK_EQ(flexsc_loop_run(loop), 0);
}

#endif /* FLEXSC_TESTS_LOOPED_H */
