/* SPDX-License-Identifier: MIT */
/*
 * Looks symbols up in the libraries that the program started with, in the dynamic
 * loader's order, while the process has one thread.
 *
 * dlsym() can't be used: for a missing symbol it allocates a message, and the caller
 * that waits for the symbol may be the program's malloc().
 */
#ifndef FLEXSC_RUNTIME_OBJECTS_H
#define FLEXSC_RUNTIME_OBJECTS_H

#include <stdbool.h>
#include <stddef.h>

/* The result of a look-up. */
struct definition {
	void *address;	/* NULL: not found */
	bool foreign;	/* a library other than libc defines it */
};

/*
 * Look up the default version of each name in the objects after this library. Skips
 * names that are in "found" already.
 */
void flexsc__objects_find(const char *const *names, struct definition *found,
			  size_t n);

/* Does this path name a part of libc that makes system calls? */
bool flexsc__object_is_libc(const char *path);

#endif /* FLEXSC_RUNTIME_OBJECTS_H */
