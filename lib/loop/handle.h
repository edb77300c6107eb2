/* SPDX-License-Identifier: MIT */
/* Handles lead from a pending cb to its call, timer or signal. Owner only. */
#ifndef FLEXSC_HANDLE_H
#define FLEXSC_HANDLE_H

#include <flexsc/flexsc.h>
#include <stdbool.h>
#include <stdint.h>

struct flexsc_loop;
struct multishot;

/*
 * cb->handle of a pending cb: the kind and index of the object that will complete the
 * cb. The handle of an idle cb may be uninitialised memory. So a handle is valid only
 * if the object that it names points back at the cb.
 */
enum handle_kind {
	HANDLE_NONE = 0,
	HANDLE_CALL,
	HANDLE_STAGED,
	HANDLE_TIMER,
	HANDLE_SIGNAL,
	HANDLE_WOKEN,	/* see wake.h */
	HANDLE_MULTISHOT,	/* see multishot.h */
};

#define HANDLE_SHIFT	60

static inline uint64_t handle_make(enum handle_kind kind, uint64_t index)
{
	return (uint64_t)kind << HANDLE_SHIFT | index;
}

static inline enum handle_kind handle_kind(uint64_t handle)
{
	return (enum handle_kind)(handle >> HANDLE_SHIFT);
}

static inline uint64_t handle_index(uint64_t handle)
{
	return handle & ((1ULL << HANDLE_SHIFT) - 1);
}

bool flexsc__cb_pending(struct flexsc_loop *loop, const struct flexsc_cb *cb);

/* Returns the multishot call that the cb belongs to, or NULL. */
struct multishot *flexsc__cb_multishot(struct flexsc_loop *loop,
				       const struct flexsc_cb *cb);

/* May this cb be posted on this loop? 0 or -errno. */
int flexsc__post_check(struct flexsc_loop *loop, struct flexsc_cb *cb);

#endif /* FLEXSC_HANDLE_H */
