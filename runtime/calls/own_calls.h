/* SPDX-License-Identifier: MIT */
/*
 * Tries the runtime's own system calls (own_calls.def) in a short-lived child, because a
 * seccomp filter may make them fail or end the process at them. Any thread. The command
 * flexsc run links this, too.
 */
#ifndef FLEXSC_RUNTIME_OWN_CALLS_H
#define FLEXSC_RUNTIME_OWN_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Calls that only some processes make. */
enum own_group {
	OWN_RINGS = 1 << 0,	/* with io_uring */
	OWN_MODULE = 1 << 1,	/* with the kernel module */
	OWN_CORES = 1 << 2,	/* with --kernel-cores */
	OWN_COMMAND = 1 << 3,	/* flexsc run, before it executes the program */
};

/* A filter that the child installs: arguments of seccomp(2). */
struct filter {
	uint64_t program;
	uint64_t flags;
};

enum verdict {
	PERMITS,
	FORBIDS,
	IS_REFUSED,		/* The kernel refuses the filter. */
	NOT_TRIED,		/* No child could be made. */
};

/*
 * Does the filter permit the calls of all processes and of these groups? NULL: the
 * filters that the caller already has. FORBIDS: the name of the first such call goes to
 * "which".
 */
enum verdict flexsc__own_calls_try(unsigned int groups, const struct filter *filter,
				   const char **which);

/*
 * Do the caller's filters forbid a call of all processes, of these groups, or with these
 * kernel cores (NULL or "": none)? The reason goes to "why".
 */
bool flexsc__own_calls_forbidden(unsigned int groups, const char *kernel_cores, char *why,
				 size_t size);

#endif /* FLEXSC_RUNTIME_OWN_CALLS_H */
