/* SPDX-License-Identifier: MIT */
/*
 * A struct of options that a program passes begins with the struct's size, a size_t,
 * because later releases append fields. A program that was compiled for an older
 * release passes a shorter struct. A program that was compiled for a newer release may
 * pass a longer struct, if the fields that this library lacks are zero, which is their
 * default.
 */
#ifndef FLEXSC_OPTIONS_H
#define FLEXSC_OPTIONS_H

#include <errno.h>
#include <stddef.h>
#include <string.h>

/*
 * Copy options to own, which the caller has zeroed and which has "known" bytes.
 * -EINVAL: the options are shorter than "least", or bytes beyond "known" aren't zero.
 */
static inline int options_copy(void *own, size_t known, const void *options,
			       size_t least)
{
	const size_t size = *(const size_t *)options;
	const char *bytes = options;

	if (size < least)
		return -EINVAL;
	for (size_t i = known; i < size; i++)
		if (bytes[i])
			return -EINVAL;
	memcpy(own, options, size < known ? size : known);
	return 0;
}

#endif /* FLEXSC_OPTIONS_H */
