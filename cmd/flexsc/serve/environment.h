/* SPDX-License-Identifier: MIT */
/*
 * The common things of a worker's exchanges. The worker's thread alone touches
 * them, except for the settings and the log's file, which are all workers'.
 */
#ifndef SERVE_ENVIRONMENT_H
#define SERVE_ENVIRONMENT_H

#include <linux/openat2.h>

#include "buffer.h"
#include "cache.h"
#include "clock.h"
#include "log.h"
#include "settings.h"

struct flexsc_loop;

struct environment {
	struct flexsc_loop *loop;
	const struct settings *settings;
	struct clock clock;
	struct buffers buffers;
	struct cache cache;
	struct log log;
	/* Arguments of openat2(), for a file and for a folder. */
	struct open_how how_file;
	struct open_how how_folder;
};

#endif /* SERVE_ENVIRONMENT_H */
