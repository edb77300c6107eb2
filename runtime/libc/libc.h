/* SPDX-License-Identifier: MIT */
/*
 * What the files of this folder need of each other, and runtime.c of them. The functions
 * in front of libc's are declared in libc's headers.
 */
#ifndef FLEXSC_RUNTIME_LIBC_H
#define FLEXSC_RUNTIME_LIBC_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* decoder.c: was Zydis found? If not, "why" is the reason. */
bool flexsc__decoder_loaded(char *why, size_t size);

/*
 * sites.c: patch the places that may make a futex call, end a thread or set a signal
 * handler: all or none, because a wake-up that misses a waiter is lost. Places of calls
 * that change descriptors or are about the thread itself are patched where there is room
 * for a jump; with "deep", all other calls' places, too. Once, before there are other
 * threads. Returns how many were patched, or -1 with the reason in "why".
 */
int flexsc__sites_patch(bool deep, char *why, size_t size);

/*
 * sites.c: does the runtime have to see this call where it can, because it changes
 * descriptors or is about the thread itself?
 */
bool flexsc__sites_need(long nr);

/*
 * unpatched.c: the name of a function of another library's that changes descriptors or
 * sets signal handlers without the functions here; or NULL. The runtime can't work with
 * it where libc isn't patched.
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
 * handlers.c: the functions that base/symbols.def marks TRY. They set signal handlers
 * where libc isn't patched. Used by unpatched.c.
 */
int try_sigaction(int signo, const struct sigaction *new,
		  struct sigaction *old);
sighandler_t try_signal(int signo, sighandler_t handler);
sighandler_t try_bsd_signal(int signo, sighandler_t handler);
sighandler_t try_ssignal(int signo, sighandler_t handler);
sighandler_t try_sysv_signal(int signo, sighandler_t handler);
sighandler_t try___sysv_signal(int signo, sighandler_t handler);

#endif /* FLEXSC_RUNTIME_LIBC_H */
