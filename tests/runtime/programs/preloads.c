/* SPDX-License-Identifier: MIT */
/*
 * Another library also interposes libc's functions (passing.c). The program calls
 * that library's functions, natively and under the runtime, before it has threads
 * and in them.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>

#include "lib/base/syscall.h"
#include "passing.h"
#include "threads.h"

static const char *const names[] = {
#define SYMBOL(symbol)	#symbol,
#define RING(symbol)
/*
 * The runtime's own thread functions end in the next definition, too. They need
 * valid arguments, so this list omits them.
 */
#define OWN(symbol)
#include "runtime/base/symbols.def"
	"syscall",
};

typedef long function(long, long, long, long, long, long);

static struct passing *find(const char *name)
{
	struct passing *(*find_in_library)(const char *) =
		(struct passing *(*)(const char *))dlsym(RTLD_DEFAULT,
							 "passing_find");

	CHECK(find_in_library != NULL);
	return find_in_library(name);
}

static void *call_all(void *arg)
{
	for (unsigned int i = 0; i < sizeof(names) / sizeof(*names); i++) {
		void *called = dlsym(RTLD_DEFAULT, names[i]);
		struct passing *passing = find(names[i]);
		int ret;

		CHECK(passing && called);
		passing->answers = true;
		ret = (int)((function *)called)(0, 0, 0, 0, 0, 0);
		passing->answers = false;
		if (ret != PASSING_ANSWER)
			test_note("%s() is passed by", names[i]);
		CHECK_EQ(ret, PASSING_ANSWER);
	}
	return arg;
}

TEST(the_first_thread_gets_the_other_library_s_functions)
{
	call_all(NULL);
}

TEST(user_threads_get_the_other_library_s_functions)
{
	join(start(call_all, NULL));
	call_all(NULL);
}

/*
 * A thread that creates another one loses its processor for a while, directly before
 * pthread_create() returns.
 */
static int (*create)(pthread_t *thread, const pthread_attr_t *attr,
		     void *(*run)(void *), void *arg);

static int create_slowly(pthread_t *thread, const pthread_attr_t *attr,
			 void *(*run)(void *), void *arg)
{
	const struct timespec pause = { 0, 100 * MS };
	int err = create(thread, attr, run, arg);

	if (kernel_thread() != getpid())
		raw_syscall(SYS_nanosleep, PTR(&pause), 0, 0, 0, 0, 0);
	return err;
}

static void *read_byte(void *arg)
{
	char byte;

	CHECK_EQ(read(*(int *)arg, &byte, 1), 1);
	return arg;
}

/*
 * Calls that require a process with a single thread work while the runtime has
 * threads.
 */
TEST(a_thread_is_the_only_one_while_the_runtime_makes_a_thread)
{
	struct passing *passing = find("pthread_create");
	pthread_t thread;
	int ends[2];

	create = (int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *),
			  void *))passing->next;
	passing->next = (void *)create_slowly;
	CHECK_EQ(pipe(ends), 0);
	thread = start(read_byte, &ends[0]);
	await_quiet();
	CHECK_EQ(write(ends[1], "b", 1), 1);
	join(thread);
	CHECK_EQ(unshare(CLONE_FS), 0);
	await_unlisted();
}
