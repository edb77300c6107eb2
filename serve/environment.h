/* SPDX-License-Identifier: MIT */
/*
 * The common things of a worker's exchanges. The worker's thread alone touches
 * them, except for the settings and the log's file, which are all workers'.
 */
#ifndef SERVE_ENVIRONMENT_H
#define SERVE_ENVIRONMENT_H

#include <stdbool.h>

#include <linux/openat2.h>

#include "log.h"
#include "settings.h"
#include "http/buffer.h"
#include "http/cache.h"
#include "http/clock.h"

struct flexsc_loop;

struct environment {
	struct flexsc_loop *loop;
	const struct settings *settings;
	struct clock clock;
	struct buffers buffers;
	struct cache cache;
	struct log log;
	/*
	 * Arguments of openat2(), for a file and for a folder. Without symbolic
	 * links a name leads nowhere but below the root, and the kernel needn't
	 * look whether it does, which takes 3 % of a request: how[0]. How[1]
	 * follows links, and is used from the first name on that has one.
	 */
	struct open_how how[2][2];
	bool links;
	/* Why a name is walked instead (http/beneath.h), or 0. */
	int no_openat2;
};

#endif /* SERVE_ENVIRONMENT_H */
