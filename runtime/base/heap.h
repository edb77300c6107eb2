/* SPDX-License-Identifier: MIT */
/* The heap of the runtime. heap.c has the rules. */
#ifndef FLEXSC_RUNTIME_HEAP_H
#define FLEXSC_RUNTIME_HEAP_H

#include <stddef.h>

/* As malloc() and related functions. */
void *flexsc__heap_malloc(size_t bytes);
void *flexsc__heap_calloc(size_t n, size_t size);
void *flexsc__heap_realloc(void *memory, size_t bytes);
void *flexsc__heap_aligned_alloc(size_t alignment, size_t bytes);
void flexsc__heap_free(void *memory);

/* Reset the lock in a forked child: the thread that held it does not exist there. */
void flexsc__heap_forked(void);

#endif /* FLEXSC_RUNTIME_HEAP_H */
