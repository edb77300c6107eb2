/* SPDX-License-Identifier: MIT */
#include "multishot.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/files/fds.h"
#include "lib/files/plan.h"
#include "lib/files/guard.h"
#include "lib/files/private_fd.h"
#include "buffers.h"
#include "staged.h"
#include "loop.h"
#include "ready.h"

#define MULTISHOTS_MAX	(1U << 20)
#define SHOTS_MAX	(1U << 20)

/* One result of a multishot call that continues. */
struct shot {
	struct flexsc_cb cb;	/* arg points to the multishot call */
	uint32_t next;		/* in the list of free shots */
};

static void multishot_over(struct flexsc_cb *own);
static void multishot_report(struct flexsc_cb *cb);

static struct multishot *multishot_at(const struct flexsc_loop *loop,
				      uint32_t index)
{
	return (struct multishot *)loop->multishots.all.base + index;
}

static struct shot *shot_at(const struct flexsc_loop *loop, uint32_t index)
{
	return (struct shot *)loop->multishots.shots.base + index;
}

static struct multishot *multishot_of(struct flexsc_cb *own)
{
	return (struct multishot *)((char *)own -
				    offsetof(struct multishot, own));
}

static uint32_t index_of(const struct multishot *multishot)
{
	return (uint32_t)(multishot - multishot_at(multishot_loop(multishot), 0));
}

/* Memory. */

/* Called at a loop's first multishot call, because most loops never make any. */
static int multishots_make(struct multishots *all)
{
	int err = flexsc__arena_init(&all->all, sizeof(struct multishot),
				     MULTISHOTS_MAX);

	if (err)
		return err;
	err = flexsc__arena_init(&all->shots, sizeof(struct shot), SHOTS_MAX);
	if (err)
		flexsc__arena_fini(&all->all);
	all->free = all->free_shots = NONE;
	return err;
}

void flexsc__multishots_fini(struct flexsc_loop *loop)
{
	flexsc__arena_fini(&loop->multishots.all);
	flexsc__arena_fini(&loop->multishots.shots);
}

static struct multishot *multishot_alloc(struct flexsc_loop *loop)
{
	struct multishots *all = &loop->multishots;
	uint32_t first = all->all.count;
	struct multishot *multishot;

	if (!all->all.base && multishots_make(all))
		return NULL;
	if (all->free == NONE) {
		if (flexsc__arena_grow(&all->all))
			return NULL;
		for (uint32_t i = all->all.count; i-- > first;) {
			multishot_at(loop, i)->next = all->free;
			all->free = i;
		}
	}
	multishot = multishot_at(loop, all->free);
	all->free = multishot->next;
	return multishot;
}

static struct shot *shot_alloc(struct flexsc_loop *loop)
{
	struct multishots *all = &loop->multishots;
	uint32_t first = all->shots.count;
	struct shot *shot;

	if (all->free_shots == NONE) {
		if (flexsc__arena_grow(&all->shots))
			return NULL;
		for (uint32_t i = all->shots.count; i-- > first;) {
			shot_at(loop, i)->next = all->free_shots;
			all->free_shots = i;
		}
	}
	shot = shot_at(loop, all->free_shots);
	all->free_shots = shot->next;
	return shot;
}

static void shot_free(struct flexsc_loop *loop, struct shot *shot)
{
	shot->next = loop->multishots.free_shots;
	loop->multishots.free_shots = (uint32_t)(shot - shot_at(loop, 0));
}

/* Posting the plain calls of which a multishot call consists. */

int flexsc__multishot_post(struct flexsc_loop *loop, struct flexsc_cb *own,
			   unsigned int nr,
			   const uint64_t args[FLEXSC_ARGS_MAX])
{
	struct staged call = { .nr = (uint16_t)nr };
	int err = flexsc__post_check(loop, own);

	if (err)
		return err == -ESHUTDOWN ? -ECANCELED : err;
	memcpy(call.args, args, sizeof(call.args));
	return flexsc__staged_post(loop, own, &call, 0);
}

/* Completions. */

/* End a multishot call, except for its last completion, which the caller reports. */
static void multishot_free(struct multishot *multishot)
{
	struct flexsc_loop *loop = multishot_loop(multishot);

	RULE(!multishot->shots && multishot->taken == NO_BUFFER);
	multishot->cb = NULL;
	multishot->next = loop->multishots.free;
	loop->multishots.free = index_of(multishot);
	if (multishot->buffers)
		multishot->buffers->users--;
	multishot->how->end(multishot);
}

/* Complete the program's cb with a result and the buffer of that result. */
static struct flexsc_cb *multishot_tell(struct multishot *multishot,
					int64_t ret, uint32_t which, bool more)
{
	struct flexsc_cb *cb = multishot->cb;

	cb->flags = 0;
	cb->handle = 0;
	if (which != NO_BUFFER) {
		flexsc__buffers_give(multishot->buffers, which);
		cb->flags = FLEXSC_CB_BUFFER;
		cb->buffer = which;
	}
	if (!multishot->buffers)
		multishot->how->accepted(multishot, ret);
	if (more) {
		cb->flags |= FLEXSC_CB_MORE;
		cb->handle = handle_make(HANDLE_MULTISHOT, index_of(multishot));
	} else {
		multishot_free(multishot);
	}
	cb->ret = ret;
	return cb;
}

/* Split the posted call's result into the result to report and its buffer. */
static int64_t multishot_result(struct multishot *multishot, int64_t ret,
				uint32_t *which)
{
	*which = multishot->taken;
	multishot->taken = NO_BUFFER;
	if (multishot->buffers && multishot->buffers->lent && !multishot->waits &&
	    ret >= 0) {
		*which = (uint32_t)(ret >> 32) - 1;
		ret = (int32_t)ret;
	}
	if (ret <= 0 && *which != NO_BUFFER) {
		flexsc__buffers_put(multishot->buffers, *which);
		*which = NO_BUFFER;
	}
	return ret;
}

/* Undo a result that won't be reported: free its buffer, or close the connection. */
static void multishot_drop(struct multishot *multishot, int64_t ret,
			   uint32_t which)
{
	if (which != NO_BUFFER)
		flexsc__buffers_put(multishot->buffers, which);
	else if (!multishot->buffers && !multishot->waits && ret >= 0)
		flexsc__private_fd_close((int)ret);
}

/* Is the result a success, after which the multishot call can continue? */
static bool is_good(const struct multishot *multishot, int64_t ret)
{
	return multishot->buffers ? ret > 0 : ret >= 0;
}

/*
 * Handle the end of the posted call. Returns the program's cb, or NULL if there is
 * nothing to report.
 */
static struct flexsc_cb *multishot_end(struct multishot *multishot)
{
	const bool waited = multishot->waits;
	uint32_t which;
	int64_t ret = multishot_result(multishot, multishot->own.ret, &which);
	int err;

	if (multishot->failed) {
		multishot_drop(multishot, ret, which);
		return multishot_tell(multishot, multishot->failed, NO_BUFFER,
				      false);
	}
	if (waited && ret >= 0) {
		err = multishot->cancelled ? -ECANCELED :
					     multishot->how->try(multishot);
		return err ? multishot_tell(multishot, err, NO_BUFFER, false) :
			     NULL;
	}
	if (ret == -EAGAIN) {
		ret = multishot->how->again(multishot);
		if (!ret)
			return NULL;
	}
	if (!is_good(multishot, ret))
		return multishot_tell(multishot, ret, NO_BUFFER, false);
	return multishot_tell(multishot, ret, which,
			      !multishot->cancelled &&
				      !multishot->how->next(multishot, ret));
}

void flexsc__multishot_postpone(struct multishot *multishot)
{
	struct flexsc_loop *loop = multishot_loop(multishot);

	loop->events++;
	flexsc__ready(loop, &multishot->own, multishot->own.ret);
}

static void multishot_over(struct flexsc_cb *own)
{
	struct multishot *multishot = multishot_of(own);
	struct flexsc_cb *cb;

	if (multishot->shots) {
		flexsc__multishot_postpone(multishot);
		return;
	}
	cb = multishot_end(multishot);
	if (cb && cb->callback)
		cb->callback(cb);
}

/* Complete the program's cb with a shot from the ready list. */
static struct flexsc_cb *shot_take(struct flexsc_cb *cb)
{
	struct multishot *multishot = cb->arg;
	int64_t ret = cb->ret;
	uint32_t which;

	shot_free(multishot_loop(multishot), (struct shot *)cb);
	multishot->shots--;
	ret = multishot_result(multishot, ret, &which);
	return multishot_tell(multishot, ret, which, true);
}

static void multishot_report(struct flexsc_cb *cb)
{
	cb = shot_take(cb);
	if (cb->callback)
		cb->callback(cb);
}

/*
 * Give up a result, because there is no memory to report it: cancel the call, which
 * ends with -ENOMEM.
 */
static void multishot_fail(struct multishot *multishot, int64_t ret)
{
	uint32_t which;

	ret = multishot_result(multishot, ret, &which);
	multishot_drop(multishot, ret, which);
	multishot->failed = -ENOMEM;
	flexsc__multishot_cancel(multishot);
}

int64_t flexsc__multishot_filled(struct flexsc_cb *own, int32_t res,
				 uint32_t which)
{
	multishot_of(own)->buffers->out++;
	return (int64_t)((uint64_t)(which + 1) << 32 | (uint32_t)res);
}

void flexsc__multishot_shot(struct flexsc_cb *own, int64_t ret)
{
	struct multishot *multishot = multishot_of(own);
	struct flexsc_loop *loop = multishot_loop(multishot);
	/*
	 * After a result was lost, report no later result: the data that the program
	 * receives would have a gap.
	 */
	struct shot *shot = multishot->failed ? NULL : shot_alloc(loop);

	if (!shot) {
		multishot_fail(multishot, ret);
		return;
	}
	shot->cb.callback = multishot_report;
	shot->cb.arg = multishot;
	multishot->shots++;
	loop->events++;
	flexsc__ready(loop, &shot->cb, ret);
}

/* Harvests. */

static struct multishot *multishot_behind(const struct flexsc_cb *cb)
{
	if (cb->callback == multishot_report)
		return cb->arg;
	if (cb->callback == multishot_over)
		return multishot_of((struct flexsc_cb *)cb);
	return NULL;
}

bool flexsc__multishot_is_again(const struct flexsc_cb *cb)
{
	const struct multishot *multishot = multishot_behind(cb);

	return multishot &&
	       multishot->harvest == multishot_loop(multishot)->multishots.harvests;
}

struct flexsc_cb *flexsc__multishot_harvested(struct flexsc_cb *cb)
{
	struct multishot *multishot = multishot_behind(cb);

	if (!multishot)
		return cb;
	if (cb != &multishot->own) {
		cb = shot_take(cb);
	} else if (multishot->shots || flexsc__multishot_is_again(cb)) {
		flexsc__multishot_postpone(multishot);
		return NULL;
	} else {
		cb = multishot_end(multishot);
	}
	if (cb)
		multishot->harvest = multishot_loop(multishot)->multishots.harvests;
	return cb;
}

/* Posting and cancelling. */

void flexsc__multishot_cancel(struct multishot *multishot)
{
	multishot->cancelled = true;
	flexsc_loop_cancel(multishot_loop(multishot), &multishot->own);
}

/*
 * Did the program post the call with this descriptor, and is the descriptor still open?
 */
static bool multishot_names(const struct multishot *multishot, int fd)
{
	return multishot->guard ? guard_is_named(multishot->guard, fd) :
				  multishot->fd == fd;
}

int flexsc__multishots_cancel_fd(struct flexsc_loop *loop, int fd)
{
	int n = 0;

	for (uint32_t i = 0; i < loop->multishots.all.count; i++) {
		struct multishot *multishot = multishot_at(loop, i);

		if (!multishot->cb || !multishot_names(multishot, fd) ||
		    multishot->cancelled)
			continue;
		flexsc__multishot_cancel(multishot);
		n++;
	}
	return n;
}

/*
 * Would a request of the engine on this descriptor wait as flexsc-multishot(3)
 * describes? If not, posted calls are used.
 */
static bool waits_in_engine(int fd)
{
	const struct flexsc_entry entry = { .nr = SYS_accept4,
					    .args = { (uint64_t)fd } };

	return plan_admit(&entry);
}

static int multishot_start(struct flexsc_loop *loop, struct flexsc_cb *cb,
			   int fd, int flags, struct flexsc_buffers *buffers)
{
	struct multishot *multishot;
	bool in_engine;
	int err;

	/*
	 * At least one buffer must be free: otherwise the engine's receive fails at
	 * once.
	 */
	if (buffers)
		in_engine = buffers->lent && buffers->out < buffers->count;
	else
		in_engine = loop->engine->accepts_many &&
			    loop->engine->accepts_many(loop);
	multishot = multishot_alloc(loop);
	if (!multishot)
		return -ENOMEM;
	*multishot = (struct multishot){
		.own = { .callback = multishot_over, .arg = loop },
		.buffers = buffers, .taken = NO_BUFFER,
		.fd = fd, .file = fd, .flags = flags,
	};
	multishot->how = in_engine && waits_in_engine(fd) ?
				 &flexsc__multishot_ring :
				 &flexsc__multishot_repeat;
	err = multishot->how->begin(multishot);
	if (err) {
		multishot->next = loop->multishots.free;
		loop->multishots.free = index_of(multishot);
		return err;
	}
	multishot->cb = cb;
	if (buffers)
		buffers->users++;
	cb->handle = handle_make(HANDLE_MULTISHOT, index_of(multishot));
	return 0;
}

int flexsc_loop_accept_multishot(struct flexsc_loop *loop,
				 struct flexsc_cb *cb, int sockfd, int flags)
{
	int err = flexsc__post_check(loop, cb);

	if (err)
		return err;
	if (!cb || flags & ~(SOCK_CLOEXEC | SOCK_NONBLOCK))
		return -EINVAL;
	return multishot_start(loop, cb, sockfd, flags, NULL);
}

int flexsc_loop_recv_multishot(struct flexsc_loop *loop, struct flexsc_cb *cb,
			       int sockfd, struct flexsc_buffers *buffers)
{
	int err = flexsc__post_check(loop, cb);

	if (err)
		return err;
	if (!cb || !buffers || buffers->loop != loop)
		return -EINVAL;
	return multishot_start(loop, cb, sockfd, 0, buffers);
}
