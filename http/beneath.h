/* SPDX-License-Identifier: MIT */
/*
 * Opening a file below a folder where openat2() doesn't work: on an old kernel, in a
 * sandbox, under a filter of system calls. Any thread; it may wait for a disk.
 */
#ifndef HTTP_BENEATH_H
#define HTTP_BENEATH_H

/* Why openat2() doesn't work here, as an errno; 0: it works. */
int beneath_needed(int root);

/*
 * Open path as openat2() does with RESOLVE_BENEATH and RESOLVE_NO_MAGICLINKS.
 * Returns a descriptor or -errno: -EXDEV if path or a symbolic link leads out of
 * the folder.
 */
int beneath_open(int root, const char *path, int flags);

#endif /* HTTP_BENEATH_H */
