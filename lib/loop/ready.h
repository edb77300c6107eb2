/* SPDX-License-Identifier: MIT */
/*
 * The ready list: cbs that have their result without an entry, oldest first. It
 * is threaded through the cbs' handles, which belong to the library until their
 * callbacks run. Owner only.
 */
#ifndef FLEXSC_READY_H
#define FLEXSC_READY_H

#include <flexsc/flexsc.h>
#include <stdint.h>

struct flexsc_loop;

struct cb_list {
	struct flexsc_cb *head, *tail;
};

/* A cb is a link of one list at a time; while it is, handle is the link. */
static inline struct flexsc_cb *cb_next(const struct flexsc_cb *cb)
{
	return (struct flexsc_cb *)(uintptr_t)cb->handle;
}

static inline void cb_set_next(struct flexsc_cb *cb, struct flexsc_cb *next)
{
	cb->handle = (uintptr_t)next;
}

void flexsc__ready(struct flexsc_loop *loop, struct flexsc_cb *cb, int64_t ret);

/* Take the oldest cb, or NULL. */
struct flexsc_cb *flexsc__ready_take(struct flexsc_loop *loop);

#endif /* FLEXSC_READY_H */
