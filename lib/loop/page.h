/* SPDX-License-Identifier: MIT */
/* Syscall pages: entries and calls, and the list of free entries. Owner only. */
#ifndef FLEXSC_PAGE_H
#define FLEXSC_PAGE_H

#include <stdbool.h>
#include <stdint.h>

struct flexsc_loop;

int flexsc__pages_init(struct flexsc_loop *loop, uint32_t max_entries);
void flexsc__pages_fini(struct flexsc_loop *loop);
/* Double the pages. False: the limit is reached, or there is no memory. */
bool flexsc__pages_grow(struct flexsc_loop *loop);

#endif /* FLEXSC_PAGE_H */
