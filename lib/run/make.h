/* SPDX-License-Identifier: MIT */
/* A loop is made with its engine, and destroyed. Owner only. */
#ifndef FLEXSC_MAKE_H
#define FLEXSC_MAKE_H

#include <flexsc/flexsc.h>
#include <stddef.h>

/* why, if there is one, gets the reason for a failure as one line. */
int flexsc__loop_create(struct flexsc_loop **out,
			const struct flexsc_options *options, char *why,
			size_t size);

#endif /* FLEXSC_MAKE_H */
