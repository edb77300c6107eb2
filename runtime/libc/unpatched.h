/* SPDX-License-Identifier: MIT */
/*
 * Where libc can't be patched, its locks suspend no user threads but block
 * kernel threads. So a user thread that would wait for other threads does so on
 * its host. The functions of base/symbols.def that may wait see whether they
 * have to, return to its host, and go on as libc's own; a wake-up is the kernel's.
 *
 * Other calls of libc's that the hook has to see have functions in front of
 * them, too: setting signal handlers, changing masks by jumps and contexts,
 * closing descriptors.
 *
 * Locks inside libc remain: of streams, the loader, the heap. A user thread
 * that waits for one blocks its carrier until the monitor moves it to its host. The
 * lock's holder may be suspended meanwhile, in a constructor or after
 * flockfile(), and goes on when the carrier has run all user threads that were
 * queued before.
 *
 * Until the runtime starts, and for good if libc is patched, these functions
 * pass on to libc's, at the price of a jump.
 */
#ifndef FLEXSC_RUNTIME_UNPATCHED_H
#define FLEXSC_RUNTIME_UNPATCHED_H

/*
 * The name of a function of another library's that changes descriptors or sets signal
 * handlers without the functions here; or NULL. The runtime can't work with it where
 * libc isn't patched.
 */
const char *flexsc__unpatched_obstacle(void);

/*
 * libc isn't patched: use the functions here from now on. Once, before there are other
 * threads.
 */
void flexsc__unpatched_begin(void);

#endif /* FLEXSC_RUNTIME_UNPATCHED_H */
