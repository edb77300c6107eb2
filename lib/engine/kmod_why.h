/* SPDX-License-Identifier: MIT */
#ifndef FLEXSC_KMOD_WHY_H
#define FLEXSC_KMOD_WHY_H

#include <stddef.h>

#define KMOD_DEVICE	"/dev/flexsc"

/*
 * Say in one line why the module doesn't work here, as err tells: then
 * -EOPNOTSUPP. An error that has other causes is returned as it is. Any thread.
 */
int flexsc__kmod_why(int err, char *why, size_t size);

#endif /* FLEXSC_KMOD_WHY_H */
