/* SPDX-License-Identifier: MIT */
#include "ring.h"

#include <errno.h>
#include <stdio.h>

#include "report.h"

#define SQ_ENTRIES	1024
#define CQ_ENTRIES	8192

#define BASIC	(IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP)

static const unsigned int setup_flags[] = {
	BASIC | IORING_SETUP_SUBMIT_ALL | IORING_SETUP_SINGLE_ISSUER |
		IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG,
	BASIC | IORING_SETUP_SUBMIT_ALL | IORING_SETUP_COOP_TASKRUN |
		IORING_SETUP_TASKRUN_FLAG,
	BASIC,
};

int bench_ring_init(struct io_uring *ring)
{
	int err = -EINVAL;

	for (size_t i = 0; i < sizeof(setup_flags) / sizeof(setup_flags[0]) &&
			   err == -EINVAL; i++) {
		struct io_uring_params params = {
			.flags = setup_flags[i],
			.cq_entries = CQ_ENTRIES,
		};

		err = io_uring_queue_init_params(SQ_ENTRIES, ring, &params);
	}
	if (err)
		return bench_failed("io_uring", err);
	io_uring_register_ring_fd(ring);
	return 0;
}
