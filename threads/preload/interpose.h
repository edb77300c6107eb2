/* SPDX-License-Identifier: MIT */
/*
 * Standing in front of libc: what is exported, and how to reach the function
 * that the program would have found. Any thread.
 */
#ifndef FLEXSC_THREADS_INTERPOSE_H
#define FLEXSC_THREADS_INTERPOSE_H

#define EXPORT	__attribute__((visibility("default")))

/*
 * The next definition of a symbol; those we need exist in every libc. Takes the
 * dynamic loader's lock, so no lock of the runtime's may be held.
 */
void *flexsc__real(const char *name);

#define REAL(name) ((__typeof__(&name))flexsc__real(#name))

#endif /* FLEXSC_THREADS_INTERPOSE_H */
