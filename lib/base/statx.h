/* SPDX-License-Identifier: MIT */
/*
 * The kernel's struct statx. glibc's <sys/stat.h> includes it. musl's <sys/stat.h>
 * declares a struct with fewer fields, which since musl 1.2.4 has the same name: rename
 * that one.
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
