/* SPDX-License-Identifier: MIT */
/*
 * A system call preserves nearly all registers. libc's patched calls have to
 * preserve the same ones.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <linux/futex.h>
#include <stdio.h>
#include <sys/syscall.h>

#include "threads.h"

#if defined(__x86_64__)
#include "sites_x86_64.h"
#else
#include "sites_aarch64.h"
#endif

/* Returns libc's syscall(), not the runtime's. */
static long (*libc_syscall(void))(long, ...)
{
	void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
	long (*function)(long, ...);

	CHECK(libc != NULL);
	*(void **)&function = dlsym(libc, "syscall");
	CHECK(function != NULL);
	return function;
}

static void fill(void *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		((uint8_t *)bytes)[i] = (uint8_t)(test_random() >> 7);
}

/* Each round uses other values in the registers. */
static long call_and_compare(enum vectors vectors, uint32_t *word, int op,
			     uint32_t value)
{
	static __thread struct registers in, out;
	long ret;

	fill(&in, sizeof(in));
	in.vectors = vectors;
	in.args[0] = (uintptr_t)word;
	in.args[1] = (uint64_t)op;
	in.args[2] = value;
	in.args[3] = 0;
	prepare(&in);
	ret = call_with(libc_syscall(), SYS_futex, &in, &out);
	CHECK(!memcmp(in.red_zone, out.red_zone, sizeof(in.red_zone)));
	CHECK(!memcmp(in.args, out.args, sizeof(in.args)));
	CHECK(!memcmp(in.kept, out.kept, sizeof(in.kept)));
	CHECK(!memcmp(in.vector, out.vector, vector_bytes[vectors]));
	return ret;
}

enum { PAIRS = 4, ROUNDS = 40 };

struct pair {
	uint32_t word;
	enum vectors vectors;
};

static void *wait_at_site(void *arg)
{
	struct pair *pair = arg;

	for (int i = 0; i < ROUNDS; i++)
		CHECK_EQ(call_and_compare(pair->vectors, &pair->word,
					  FUTEX_WAIT_PRIVATE, 0), 0);
	return arg;
}

/*
 * The word keeps its value: only a thread that was waiting returns successfully from
 * there.
 */
static void *wake_at_site(void *arg)
{
	struct pair *pair = arg;

	for (int i = 0; i < ROUNDS;) {
		long n = call_and_compare(pair->vectors, &pair->word,
					  FUTEX_WAKE_PRIVATE, 1);

		CHECK(n == 0 || n == 1);
		i += (int)n;
		sched_yield();
	}
	return arg;
}

static void wait_and_wake(enum vectors vectors)
{
	pthread_t threads[2 * PAIRS];
	struct pair pairs[PAIRS];

	for (int i = 0; i < PAIRS; i++) {
		pairs[i] = (struct pair){ 0, vectors };
		threads[2 * i] = start(wait_at_site, &pairs[i]);
		threads[2 * i + 1] = start(wake_at_site, &pairs[i]);
	}
	join_all(threads, 2 * PAIRS);
}

TEST(the_place_that_is_tested_here_is_patched)
{
	if (!preloaded() || getenv("FLEXSC_PATCH"))
		SKIP("libc isn't patched");
	join(start(nothing, NULL));
	CHECK(is_patched((const void *)libc_syscall()));
}

TEST(other_registers_survive_a_wait_in_libc)
{
	wait_and_wake(NONE);
}

TEST(all_vector_registers_survive_a_wait_in_libc)
{
	enum vectors vectors = vectors_there_are();

	if (vectors == NONE)
		SKIP("the processor has no vectors that are known here");
	wait_and_wake(vectors);
}
