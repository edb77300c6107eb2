/* SPDX-License-Identifier: MIT */
/*
 * Opening a file below a folder where openat2() doesn't work: on an old kernel,
 * in a sandbox, under a system-call filter. Any thread may call this; it may
 * wait for a disk.
 */
#ifndef HTTP_BENEATH_H
#define HTTP_BENEATH_H

/* Returns the errno with which openat2() fails here; 0: it works. */
int beneath_needed(int root);

/*
 * Open path as openat2() does with RESOLVE_BENEATH and RESOLVE_NO_MAGICLINKS.
 * Returns a descriptor or -errno: -EXDEV if path or a symbolic link leads out of
 * the folder.
 */
int beneath_open(int root, const char *path, int flags);

#endif /* HTTP_BENEATH_H */
