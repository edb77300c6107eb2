/* SPDX-License-Identifier: MIT */
/*
 * Another library stands in front of libc, too (passing.c): the program gets its
 * functions, natively and under the runtime, before there are threads and in them.
 */
#define _GNU_SOURCE
#include <dlfcn.h>

#include "passing.h"
#include "threads.h"

static const char *const names[] = {
#define NAME(symbol, ...)	#symbol,
#define CALL NAME
#define POINT NAME
#define MADE NAME
#define HOME NAME
#define FORK NAME
#define FORK_JUMP NAME
#define WAIT NAME
#define TRY NAME
#define RING(symbol)
/* Those of threads end in the next definition, but want true arguments. */
#define OWN(symbol)
#include "threads/base/symbols.def"
	"syscall",
};

typedef long function(long, long, long, long, long, long);

static void *call_all(void *arg)
{
	struct passing *(*find)(const char *) =
		(struct passing *(*)(const char *))dlsym(RTLD_DEFAULT,
							 "passing_find");

	CHECK(find != NULL);
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
