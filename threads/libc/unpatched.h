/* SPDX-License-Identifier: MIT */
/*
 * Where libc can't be patched: its locks suspend no user threads then, they
 * block kernel threads. So who would wait for other threads does so at home:
 * the functions of preload/symbols.def that may, see whether they have to, come
 * home, and go on as libc's own; a wake-up is the kernel's. Whatever else of
 * libc's makes calls that the hook has to see has a function in front of it,
 * too: signal handlers, masks in jumps and contexts, closing descriptors.
 *
 * What is left are the locks inside libc: of streams, the loader, the heap. Who
 * waits for one blocks his carrier until the monitor moves him home. Who holds
 * it may be suspended meanwhile, in a constructor or after flockfile(), and goes
 * on when the carrier has seen all those who came before.
 *
 * The functions pass on to libc's until the runtime starts, and for good if
 * libc is patched: that takes a jump.
 */
#ifndef FLEXSC_THREADS_UNPATCHED_H
#define FLEXSC_THREADS_UNPATCHED_H

#include <stdbool.h>

/* Is it so? Never changes back. */
extern bool flexsc__unpatched;

/* From here on it is. Once, before there are other threads. */
void flexsc__unpatched_begin(void);

#endif /* FLEXSC_THREADS_UNPATCHED_H */
