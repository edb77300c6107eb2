/* SPDX-License-Identifier: MIT */
/*
 * A trial is a script of system calls that runs twice, first with plain calls and
 * then through the loop, each time in a new directory. Both runs record notes of
 * what they observe. The two lists of notes must be the same.
 *
 * A script records results by their meaning: RET for a value that is the same in
 * every run, FD for a new descriptor, whose number may differ, and DATA for the
 * bytes that a call wrote.
 */
#ifndef FLEXSC_TESTS_TRIAL_H
#define FLEXSC_TESTS_TRIAL_H

#include "tests/harness/harness.h"

#include <inttypes.h>

#define TRIAL_NOTES	256

struct trial_note {
	int line;
	const char *what;
	int64_t value;
};

struct trial {
	struct flexsc_loop *loop;	/* NULL: the oracle's run */
	unsigned int n;
	struct trial_note notes[TRIAL_NOTES];
};

static inline int64_t trial_call(struct trial *t, unsigned int nr, uint64_t a,
				 uint64_t b, uint64_t c, uint64_t d,
				 uint64_t e, uint64_t f)
{
	int64_t ret;

	if (t->loop)
		return do_call(t->loop, nr, a, b, c, d, e, f);
	/* The kernel may interrupt the call while it removes an earlier ring. */
	do {
		ret = plain_call(nr, a, b, c, d, e, f);
	} while (ret == -EINTR);
	return ret;
}

static inline int64_t trial_note(struct trial *t, int line, const char *what,
				 int64_t value)
{
	CHECK(t->n < TRIAL_NOTES);
	t->notes[t->n++] = (struct trial_note){ line, what, value };
	return value;
}

static inline void trial_data(struct trial *t, int line, const void *data,
			      size_t size)
{
	uint64_t hash = 14695981039346656037ULL;

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ ((const uint8_t *)data)[i]) * 1099511628211ULL;
	trial_note(t, line, "data", (int64_t)hash);
}

static inline int trial_fd(struct trial *t, int line, const char *what,
			   int64_t fd)
{
	trial_note(t, line, what, fd < 0 ? fd : 0);
	return (int)fd;
}

/* All four need a variable "t", the trial. */
#define SYS(...)	trial_call(t, ARGS(__VA_ARGS__))
#define RET(...)	trial_note(t, __LINE__, #__VA_ARGS__, SYS(__VA_ARGS__))
#define FD(...)		trial_fd(t, __LINE__, #__VA_ARGS__, SYS(__VA_ARGS__))
#define DATA(p, size)	trial_data(t, __LINE__, p, size)

static inline void trial_compare(const struct trial *oracle,
				 const struct trial *engine, const char *file)
{
	for (unsigned int i = 0; i < oracle->n && i < engine->n; i++) {
		const struct trial_note *expected = &oracle->notes[i];
		const struct trial_note *got = &engine->notes[i];

		CHECK_EQ(got->line, expected->line);
		if (got->value != expected->value)
			test_fail(file, got->line,
				  "%s: %" PRId64 " by the loop, %" PRId64
				  " by the plain call",
				  got->what, got->value, expected->value);
	}
	CHECK_EQ(engine->n, oracle->n);
	CHECK(oracle->n > 0);
}

static inline void trial_run(void (*script)(struct trial *t), const char *file)
{
	static struct trial oracle, engine;

	enter_scratch();
	script(&oracle);
	leave_scratch();
	engine.loop = test_loop();
	enter_scratch();
	script(&engine);
	leave_scratch();
	trial_compare(&oracle, &engine, file);
	CHECK_EQ(flexsc_loop_destroy(engine.loop), 0);
}

#define TRIAL(name)							\
	static void trial_##name(struct trial *t);			\
	TEST(name)							\
	{								\
		trial_run(trial_##name, __FILE__);			\
	}								\
	static void trial_##name(struct trial *t)

#endif /* FLEXSC_TESTS_TRIAL_H */
