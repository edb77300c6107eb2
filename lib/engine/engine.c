/* SPDX-License-Identifier: MIT */
/* Choosing an engine. Owner only. */
#include "engine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/valgrind.h"
#include "lib/loop/loop.h"
#include "lib/pool/pool.h"
#include "uring.h"

/*
 * If the user requests no engine, the first CHOSEN engines of this list are tried in
 * order: uring, and then threads, because hardened machines forbid io_uring. The others
 * are opened only by name: kmod is experimental, and under sync a call that blocks
 * stops the loop.
 */
static const struct engine *const engines[] = {
	&flexsc__engine_uring,
	&flexsc__engine_threads,
	&flexsc__engine_kmod,
	&flexsc__engine_sync,
};

#define ENGINES		(sizeof(engines) / sizeof(engines[0]))
#define CHOSEN		2

const char *flexsc_engine_name(unsigned int i)
{
	return i < ENGINES ? engines[i]->name : NULL;
}

static const struct engine *engine_find(const char *name)
{
	for (size_t i = 0; i < ENGINES; i++)
		if (!strcmp(engines[i]->name, name))
			return engines[i];
	return NULL;
}

/*
 * Must the engine be skipped here? uring is skipped under Valgrind: Valgrind 3.19
 * withholds signals from a thread in io_uring_enter(), so a loop that sleeps there
 * would never receive one.
 */
static bool is_unfit(struct flexsc_loop *loop, const struct engine *engine)
{
	if (engine != &flexsc__engine_uring || !under_valgrind())
		return false;
	snprintf(loop->why, sizeof(loop->why),
		 "valgrind delivers no signals in io_uring_enter()");
	return true;
}

static int open_engine(struct flexsc_loop *loop, const struct engine *engine)
{
	loop->engine = engine;
	return engine->open(loop);
}

/*
 * Open the first engine that works. If the best engine has failed, loop->why gives the
 * reason, even if another engine works: the user may want to remove the cause. If the
 * best engine works, loop->why keeps its remark.
 */
static int open_best(struct flexsc_loop *loop)
{
	char why[sizeof(loop->why)] = "";
	const char *reason;
	int err = -EOPNOTSUPP;

	for (size_t i = 0; i < CHOSEN && err; i++) {
		err = is_unfit(loop, engines[i]) ?
			      -EOPNOTSUPP :
			      open_engine(loop, engines[i]);
		if (!err || why[0])
			continue;
		reason = loop->why[0] ? loop->why : strerror(-err);
		snprintf(why, sizeof(why), "%s: %.*s", engines[i]->name,
			 (int)sizeof(why) - 16, reason);
	}
	if (why[0])
		memcpy(loop->why, why, sizeof(why));
	return err;
}

int flexsc__engine_open(struct flexsc_loop *loop)
{
	const char *name = loop->options.engine;
	const struct engine *engine;

	if (!name)
		name = secure_getenv("FLEXSC_ENGINE");
	if (!name || !*name)
		return open_best(loop);
	engine = engine_find(name);
	return engine ? open_engine(loop, engine) : -EINVAL;
}

void flexsc__engine_retire(struct flexsc_loop *loop)
{
	flexsc__uring_quit(loop, -EPERM);
	flexsc__engine_retire_ward(loop);
}

void flexsc__engine_retire_ward(struct flexsc_loop *loop)
{
	flexsc__kmod_quit(loop);
	if (loop_pool(loop))
		flexsc__parking_quit(&loop_pool(loop)->parking);
}
