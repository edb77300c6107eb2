/* SPDX-License-Identifier: MIT */
/*
 * The places inside libc and the dynamic loader that make system calls. They
 * are found by decoding the functions that have them, and patched in memory to
 * come to the hook. Only the instructions before a "syscall" are replaced, by a
 * jump to a trampoline (x86_64/trampolines.S); the "syscall" itself stays.
 *
 * Called once, before there are other threads.
 */
#ifndef FLEXSC_RUNTIME_SITES_H
#define FLEXSC_RUNTIME_SITES_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Patch the places that may make a futex call, end a thread or set a signal
 * handler: all or none, because a wake-up that misses a waiter is lost. Places
 * of calls that change descriptors or are about the thread itself are patched
 * where there is room for a jump; with "deep", all other calls' places, too.
 * Returns how many were patched, or -1 with the reason in "why".
 */
int flexsc__sites_patch(bool deep, char *why, size_t size);

/*
 * Does the runtime have to see this call where it can, because it changes descriptors
 * or is about the thread itself?
 */
bool flexsc__sites_need(long nr);

#endif /* FLEXSC_RUNTIME_SITES_H */
