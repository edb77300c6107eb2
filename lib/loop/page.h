/* SPDX-License-Identifier: MIT */
/*
 * Syscall pages: entries, the struct call of each, and the list of free entries. Owner
 * only.
 */
#ifndef FLEXSC_PAGE_H
#define FLEXSC_PAGE_H

#include <stdbool.h>
#include <stdint.h>

struct flexsc_loop;

int flexsc__pages_init(struct flexsc_loop *loop, uint32_t max_entries);
void flexsc__pages_fini(struct flexsc_loop *loop);
/* Double the number of pages. False: the limit is reached, or memory is short. */
bool flexsc__pages_grow(struct flexsc_loop *loop);

#endif /* FLEXSC_PAGE_H */
