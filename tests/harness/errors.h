/* SPDX-License-Identifier: MIT */
/* The name of an error. musl has no function for it: there it is the number. */
#ifndef FLEXSC_TESTS_ERRORS_H
#define FLEXSC_TESTS_ERRORS_H

#include <stdio.h>
#include <string.h>

static inline const char *error_name(int error)
{
#ifdef __GLIBC__
	return strerrorname_np(error);
#else
	static _Thread_local char number[16];

	snprintf(number, sizeof(number), "%d", error);
	return number;
#endif
}

#endif /* FLEXSC_TESTS_ERRORS_H */
