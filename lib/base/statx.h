/* SPDX-License-Identifier: MIT */
/*
 * The kernel's struct statx, which glibc's <sys/stat.h> includes. musl's has fewer
 * fields, and the same name since 1.2.4.
 */
#ifndef FLEXSC_STATX_H
#define FLEXSC_STATX_H

#include <features.h>

#ifdef __GLIBC__
#include <sys/stat.h>
#else
#define statx		musl_statx
#define statx_timestamp	musl_statx_timestamp
#include <sys/stat.h>
#undef statx
#undef statx_timestamp
#include <linux/stat.h>
#endif

#endif /* FLEXSC_STATX_H */
