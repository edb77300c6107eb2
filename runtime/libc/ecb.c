/* SPDX-License-Identifier: MIT */
/*
 * SEND isn't available under flexsc run: a handler preempts a kernel thread, and a user
 * thread has none of its own. These functions replace those of the library that the
 * program was linked with. Any thread.
 */
#include <errno.h>
#include <flexsc/ecb.h>
#include <stdio.h>

#include "runtime/base/interpose.h"

EXPORT int flexsc_ecb_create(struct flexsc_ecb **ecb,
			     const struct flexsc_ecb_options *options)
{
	return -EOPNOTSUPP;
}

EXPORT int flexsc_ecb_probe(const char *backend, char *why, size_t size)
{
	if (why && size)
		snprintf(why, size, "under flexsc run threads have no kernel "
			 "threads of their own");
	return -EOPNOTSUPP;
}
