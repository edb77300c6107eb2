/* SPDX-License-Identifier: MIT */
/*
 * The ready list: cbs that got their result without an entry, oldest first. The list is
 * linked through the cbs' handles, which belong to the library until their callbacks
 * run. Owner only.
 */
#ifndef FLEXSC_READY_H
#define FLEXSC_READY_H

#include <flexsc/flexsc.h>
#include <stdint.h>

struct flexsc_loop;

struct cb_list {
	struct flexsc_cb *head, *tail;
};

/*
 * Returns the next cb of the same list. While a cb is in a list, its handle is the
 * link.
 */
static inline struct flexsc_cb *cb_next(const struct flexsc_cb *cb)
{
	return (struct flexsc_cb *)(uintptr_t)cb->handle;
}

static inline void cb_set_next(struct flexsc_cb *cb, struct flexsc_cb *next)
{
	cb->handle = (uintptr_t)next;
}

static inline void cb_list_add(struct cb_list *list, struct flexsc_cb *cb)
{
	cb_set_next(cb, NULL);
	if (list->head)
		cb_set_next(list->tail, cb);
	else
		list->head = cb;
	list->tail = cb;
}

void flexsc__ready(struct flexsc_loop *loop, struct flexsc_cb *cb, int64_t ret);

/* Return cbs, which were taken from the list, to its front. */
void flexsc__ready_return(struct flexsc_loop *loop, struct cb_list *taken);

/* Take the oldest cb, or NULL. */
struct flexsc_cb *flexsc__ready_take(struct flexsc_loop *loop);

#endif /* FLEXSC_READY_H */
