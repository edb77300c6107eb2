/* SPDX-License-Identifier: MIT */
/*
 * Functions shared within this folder and with runtime.c. libc's headers declare the
 * functions in front of libc's.
 */
#ifndef FLEXSC_RUNTIME_LIBC_H
#define FLEXSC_RUNTIME_LIBC_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * sites.c: patch libc. Places that may make a futex call, end a thread or set a signal
 * handler are patched all or not at all, because a wake-up that misses a waiter is
 * lost. Places of calls that change descriptors or concern the thread itself are
 * patched where there is room for a jump; with "deep", so are the places of all other
 * calls. Once, before there are other threads. Returns how many were patched, or -1
 * with the reason in "why".
 */
int flexsc__sites_patch(bool deep, char *why, size_t size);

/*
 * sites.c: should the runtime see this call where it can, because the call changes
 * descriptors or concerns the thread itself?
 */
bool flexsc__sites_need(long nr);

/*
 * unpatched.c: where libc isn't patched, the runtime can't work with another library
 * that changes descriptors or sets signal handlers by functions of its own. Returns the
 * name of such a function, or NULL.
 */
const char *flexsc__unpatched_obstacle(void);

/*
 * unpatched.c: libc isn't patched, so use the functions in front of it from now on. Once,
 * before there are other threads.
 */
void flexsc__unpatched_begin(void);

/* forks.c: may the call make a process? */
bool flexsc__forks_makes_child(long nr);

/* forks.c: make such a call for the program. Returns a value, or -1 with errno set. */
long flexsc__forks_plainly(long nr, const uint64_t args[6]);

/*
 * handlers.c: functions marked TRY in base/symbols.def, which set signal handlers where
 * libc isn't patched. Used by unpatched.c.
 */
int try_sigaction(int signo, const struct sigaction *new,
		  struct sigaction *old);
sighandler_t try_signal(int signo, sighandler_t handler);
sighandler_t try_bsd_signal(int signo, sighandler_t handler);
sighandler_t try_ssignal(int signo, sighandler_t handler);
sighandler_t try_sysv_signal(int signo, sighandler_t handler);
sighandler_t try___sysv_signal(int signo, sighandler_t handler);

#endif /* FLEXSC_RUNTIME_LIBC_H */
