/* SPDX-License-Identifier: MIT */
/*
 * An owner that is bound to one core, and loops whose calls execute on another one
 * (kernel_cores): for pollers.c, failing_polled.c, listed_cores.c and identity.c.
 */
#ifndef FLEXSC_TESTS_TWO_CORES_H
#define FLEXSC_TESTS_TWO_CORES_H

#include "tests/harness/harness.h"

#include "lib/base/cores.h"

#define LOOPS		3U

static struct flexsc_loop *loops[LOOPS];
/* The owner's core, another one, and both as lists. */
static int own_core, other_core;
static char own_list[16], other_list[16];

/* Bind the owner to one core, and find another core for kernel_cores. */
static inline void use_two_cores(void)
{
	cpu_set_t mine;

	own_core = first_core();
	CHECK_EQ(sched_getaffinity(0, sizeof(mine), &mine), 0);
	for (other_core = own_core + 1; other_core < CORES_MAX; other_core++)
		if (CPU_ISSET(other_core, &mine))
			break;
	if (other_core == CORES_MAX)
		SKIP("needs two cores");
	CPU_ZERO(&mine);
	CPU_SET(own_core, &mine);
	CHECK_EQ(sched_setaffinity(0, sizeof(mine), &mine), 0);
	snprintf(own_list, sizeof(own_list), "%d", own_core);
	snprintf(other_list, sizeof(other_list), "%d", other_core);
}

/* Finds the line that begins with "key" in a file of this task; "value" is the rest. */
static inline bool file_line(const char *task, const char *file, const char *key,
			     char *value, size_t size)
{
	char path[300], line[200];
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%s/%s", task, file);
	f = fopen(path, "re");
	while (f && !found && fgets(line, sizeof(line), f)) {
		found = !strncmp(line, key, strlen(key));
		line[strcspn(line, "\n")] = 0;
		snprintf(value, size, "%s", line + strlen(key));
	}
	if (f)
		fclose(f);
	return found;
}

static inline bool is_polled(struct flexsc_loop *loop)
{
	CHECK(!strcmp(flexsc_loop_engine(loop), "uring"));
	return !flexsc_loop_why(loop);
}

/* A call that io_uring makes: a failing close(). */
static inline void works(struct flexsc_loop *loop)
{
	for (unsigned int i = 0; i < 10; i++)
		CHECK_EQ(DO(loop, SYS_close, -1), -EBADF);
}

static inline void make_loops(const char *list)
{
	for (unsigned int i = 0; i < LOOPS; i++) {
		loops[i] = NEW_LOOP(.kernel_cores = list);
		if (!is_polled(loops[i]))
			SKIP("%s", flexsc_loop_why(loops[i]));
		works(loops[i]);
	}
}

static inline void end_loops(unsigned int first)
{
	for (unsigned int i = first; i < LOOPS; i++)
		CHECK_EQ(flexsc_loop_destroy(loops[i]), 0);
}

#endif /* FLEXSC_TESTS_TWO_CORES_H */
