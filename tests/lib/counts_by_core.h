/* SPDX-License-Identifier: MIT */
/* The counters by core, which a loop with kernel_cores publishes. */
#ifndef FLEXSC_TESTS_COUNTS_BY_CORE_H
#define FLEXSC_TESTS_COUNTS_BY_CORE_H

#include "tests/harness/harness.h"

/* Reads the counters of the process's only loop. */
static inline struct flexsc_stats_cores read_cores(void)
{
	struct flexsc_stats_cores cores;
	char path[40], name[60];

	for (int fd = 3; fd < 1000; fd++) {
		ssize_t length;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		length = readlink(path, name, sizeof(name) - 1);
		name[length > 0 ? length : 0] = 0;
		if (!strstr(name, "memfd:" FLEXSC_STATS_NAME))
			continue;
		CHECK_EQ(pread(fd, &cores, sizeof(cores), FLEXSC_STATS_CORES),
			 sizeof(cores));
		return cores;
	}
	test_fail(__FILE__, __LINE__, "no counters");
}

#endif /* FLEXSC_TESTS_COUNTS_BY_CORE_H */
