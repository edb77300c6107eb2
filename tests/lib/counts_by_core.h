/* SPDX-License-Identifier: MIT */
/* The counters by core, which a loop with kernel_cores publishes. */
#ifndef FLEXSC_TESTS_COUNTS_BY_CORE_H
#define FLEXSC_TESTS_COUNTS_BY_CORE_H

#include "tests/harness/harness.h"

/* Reads the counters of the process's only loop. */
static inline struct flexsc_stats_cores read_cores(void)
{
	struct flexsc_stats_cores cores;
	int fd = find_fd("memfd:" FLEXSC_STATS_NAME);

	CHECK(fd >= 0);
	CHECK_EQ(pread(fd, &cores, sizeof(cores), FLEXSC_STATS_CORES), sizeof(cores));
	return cores;
}

#endif /* FLEXSC_TESTS_COUNTS_BY_CORE_H */
