/* SPDX-License-Identifier: MIT */
/*
 * The program and the libraries that it started with, in the order in which the
 * dynamic loader looks for symbols. While there is one thread.
 *
 * dlsym() isn't used, because for a missing symbol it allocates memory for its
 * message. The program's malloc() may be what waits for the look-up.
 */
#ifndef FLEXSC_THREADS_OBJECTS_H
#define FLEXSC_THREADS_OBJECTS_H

#include <stdbool.h>
#include <stddef.h>

/* What is found under a name. */
struct definition {
	void *address;	/* NULL: no object defines it */
	bool foreign;	/* another library than libc defines it */
};

/*
 * Looks for each name in the objects after this library, in their default versions.
 * Where "found" has an address, the name isn't looked for.
 */
void flexsc__objects_find(const char *const *names, struct definition *found,
			  size_t n);

/* Is the object by this path a part of libc that makes system calls? */
bool flexsc__object_is_libc(const char *path);

#endif /* FLEXSC_THREADS_OBJECTS_H */
