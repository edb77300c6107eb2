/* SPDX-License-Identifier: MIT */
/*
 * The engine of web-loops' loops: --engine and --cores. The program's first
 * thread tries both options before a loop has a thread of its own.
 */
#include "engine.h"

#include <errno.h>
#include <flexsc/flexsc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"

const char *engine_name, *engine_cores;

int engine_start(struct flexsc_loop **loop)
{
	struct flexsc_options o = FLEXSC_OPTIONS_INIT;

	o.engine = engine_name;
	o.kernel_cores = engine_cores;
	return flexsc_loop_create(loop, &o);
}

/* May a call of the engine wait while the loop goes on? A server needs that. */
static bool engine_waits(void)
{
	return !engine_name || !strcmp(engine_name, "uring") ||
	       !strcmp(engine_name, "threads") || !strcmp(engine_name, "kmod");
}

void engine_try(void)
{
	struct flexsc_loop *loop;
	char why[256] = "";
	int err = engine_waits() ? engine_start(&loop) : -EINVAL;

	if (!err) {
		flexsc_loop_destroy(loop);
		return;
	}
	if (!engine_waits())
		fprintf(stderr, "web-loops: --engine %s: give uring, threads or "
			"kmod\n", engine_name);
	else if (err == -EINVAL && engine_cores)
		fprintf(stderr, "web-loops: --cores %s: give cores that are "
			"there, as 2,4-6\n", engine_cores);
	else if (err == -EOPNOTSUPP && engine_name &&
		 flexsc_engine_probe(engine_name, why, sizeof(why)))
		fprintf(stderr, "web-loops: --engine %s: %s\n", engine_name, why);
	else
		command_complain("no loop", -err);
	exit(err == -EINVAL ? 2 : 1);
}
