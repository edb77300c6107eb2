/* SPDX-License-Identifier: MIT */
/*
 * The choice of an engine, and what engines have in common. Owner only, but
 * for flexsc__engine_ring().
 */
#include "../loop/engine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/futex.h"
#include "../loop/loop.h"
#include "../base/syscall.h"

/* Best first. sync is never chosen: a call that blocks stops its loop. */
static const struct engine *const engines[] = {
	&flexsc__engine_uring,
	&flexsc__engine_kmod,
	&flexsc__engine_threads,
	&flexsc__engine_sync,
};

#define ENGINES		(sizeof(engines) / sizeof(engines[0]))
#define CHOSEN		(ENGINES - 1)

const char *flexsc_engine_name(unsigned int i)
{
	return i < ENGINES ? engines[i]->name : NULL;
}

static const struct engine *find(const char *name)
{
	for (size_t i = 0; i < ENGINES; i++)
		if (!strcmp(engines[i]->name, name))
			return engines[i];
	return NULL;
}

static int open_engine(struct flexsc_loop *loop, const struct engine *engine)
{
	loop->engine = engine;
	return engine->open(loop);
}

/*
 * The first that works. loop->why keeps the reason why the best didn't: the
 * one its user wants to know.
 */
static int open_best(struct flexsc_loop *loop)
{
	char why[sizeof(loop->why)] = "";
	const char *reason;
	int err = -EOPNOTSUPP;

	for (size_t i = 0; i < CHOSEN && err; i++) {
		err = open_engine(loop, engines[i]);
		if (!err || why[0])
			continue;
		reason = loop->why[0] ? loop->why : strerror(-err);
		snprintf(why, sizeof(why), "%s: %.*s", engines[i]->name,
			 (int)sizeof(why) - 16, reason);
	}
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
	engine = find(name);
	return engine ? open_engine(loop, engine) : -EINVAL;
}

const char *flexsc_loop_engine(const struct flexsc_loop *loop)
{
	return loop ? loop->engine->name : NULL;
}

const char *flexsc_loop_why(const struct flexsc_loop *loop)
{
	return loop && loop->why[0] ? loop->why : NULL;
}

int flexsc_engine_probe(const char *name, char *why, size_t size)
{
	struct flexsc_options options = FLEXSC_OPTIONS_INIT;
	struct flexsc_loop *loop;
	int err;

	if (!name || !find(name))
		return -EINVAL;
	options.engine = name;
	err = flexsc__loop_create(&loop, &options, why, size);
	if (!err)
		flexsc_loop_destroy(loop);
	return err;
}

/* In common. */

void flexsc__engine_inline(struct flexsc_loop *loop, uint32_t index)
{
	struct flexsc_entry *entry = entry_of(loop, index);

	entry_begin_alone(entry);
	count(&loop->stats->by_inline, 1);
	count_shared(&loop->stats->mode_switches, 1);
	call_done(loop, index,
		  raw_syscall(entry->nr, entry->args[0], entry->args[1],
			      entry->args[2], entry->args[3], entry->args[4],
			      entry->args[5]));
}

/*
 * The owner is about to sleep, unless there is something to do: see
 * loop_notify().
 */
bool flexsc__sleep_begin(struct flexsc_loop *loop)
{
	atomic_store(&loop->sleeping, true);
	if (!flexsc__loop_ready(loop))
		return true;
	atomic_store(&loop->sleeping, false);
	return false;
}

void flexsc__sleep_end(struct flexsc_loop *loop)
{
	atomic_store(&loop->sleeping, false);
	count(&loop->stats->wakeups, 1);
}

void flexsc__engine_spin(const struct flexsc_loop *loop, uint64_t ns)
{
	uint64_t most = loop->options.spin_us * 1000ULL;
	uint64_t until;

	if (!most)
		return;
	until = flexsc__now() + (ns < most ? ns : most);
	while (!flexsc__loop_stirs(loop) && flexsc__now() < until)
		cpu_relax();
}

void flexsc__engine_sleep(struct flexsc_loop *loop, uint64_t ns)
{
	uint32_t bell;

	if (!ns)
		return;
	flexsc__engine_spin(loop, ns);
	bell = atomic_load(&loop->bell);
	if (!flexsc__sleep_begin(loop))
		return;
	count_shared(&loop->stats->mode_switches, 1);
	futex_wait(&loop->bell, bell, ns);
	flexsc__sleep_end(loop);
}

void flexsc__engine_ring(struct flexsc_loop *loop)
{
	atomic_fetch_add(&loop->bell, 1);
	count_shared(&loop->stats->mode_switches, 1);
	futex_wake(&loop->bell);
}
