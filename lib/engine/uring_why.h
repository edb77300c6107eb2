/* SPDX-License-Identifier: MIT */
#ifndef FLEXSC_URING_WHY_H
#define FLEXSC_URING_WHY_H

#include <stddef.h>

/* Why io_uring_setup() failed with err, in one line. Owner only. */
void flexsc__uring_why(int err, char *why, size_t size);

#endif /* FLEXSC_URING_WHY_H */
