/* SPDX-License-Identifier: MIT */
/*
 * Looking symbols up in the libraries that the program started with, in the dynamic
 * loader's order. While there is one thread.
 *
 * dlsym() won't do: for a missing symbol it allocates memory for its message, and the
 * program's malloc() may be the caller that waits for the look-up.
 */
#ifndef FLEXSC_RUNTIME_OBJECTS_H
#define FLEXSC_RUNTIME_OBJECTS_H

#include <stdbool.h>
#include <stddef.h>

/* A symbol that was looked up. */
struct definition {
	void *address;	/* NULL: no object defines it */
	bool foreign;	/* another library than libc defines it */
};

/*
 * Look each name up in the objects that come after this library, in its default version.
 * A name for which "found" has an address already is skipped.
 */
void flexsc__objects_find(const char *const *names, struct definition *found,
			  size_t n);

/* Is the object by this path a part of libc that makes system calls? */
bool flexsc__object_is_libc(const char *path);

#endif /* FLEXSC_RUNTIME_OBJECTS_H */
