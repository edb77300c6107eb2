/* SPDX-License-Identifier: MIT */
/*
 * Reading a thread's "status" file in /proc. The file may be long, because it lists all
 * supplementary groups of the process. Any thread.
 */
#ifndef FLEXSC_STATUS_H
#define FLEXSC_STATUS_H

#include <stdbool.h>
#include <stddef.h>

struct status_value {
	const char *name;	/* including the colon: "State:" */
	char text[32];		/* beginning of the value; "" if the name is missing */
};

/*
 * Reads the file by this call, and fills in the n values. SYS_read reads from the file's
 * position on, SYS_pread64 from its beginning. False: nothing could be read, and all
 * values are "".
 */
bool flexsc__status_read(int fd, long nr, struct status_value *values, size_t n);

#endif /* FLEXSC_STATUS_H */
