/* SPDX-License-Identifier: MIT */
/*
 * What the exchanges of a worker share. Only the worker's thread uses it,
 * except for the settings and the log's file, which all workers share.
 */
#ifndef SERVE_ENVIRONMENT_H
#define SERVE_ENVIRONMENT_H

#include <stdbool.h>

#include <linux/openat2.h>

#include "counts.h"
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
	struct counts counts;
	/*
	 * Arguments of openat2(), for a file and for a folder. how[0] refuses
	 * symbolic links. Then no name can lead out of the root, and the kernel
	 * skips the check for that, which takes 3 % of a request. how[1]
	 * follows links, and is used once a name has turned out to contain one.
	 */
	struct open_how how[2][2];
	bool links;
	/*
	 * If openat2() doesn't work here: its errno, and paths are walked
	 * instead (http/beneath.h). Otherwise 0.
	 */
	int no_openat2;
};

#endif /* SERVE_ENVIRONMENT_H */
