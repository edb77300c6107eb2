/* SPDX-License-Identifier: MIT */
/* An event control block, used without the library. For tests. */
#ifndef FLEXSC_TESTS_ECB_H
#define FLEXSC_TESTS_ECB_H

#include <linux/flexsc_send.h>

#include "raw.h"

struct ecb {
	int fd;
	struct flexsc_ecb_create args;
	struct flexsc_event_control *control;
	struct flexsc_event_slot *slots;
};

void ecb_open(struct ecb *ecb, uint32_t events, uint32_t flags);
void ecb_close(struct ecb *ecb);

/* A store to a word of the owner's, and a full barrier: U3. */
static inline void ecb_store(uint32_t *word, uint32_t value)
{
	__atomic_exchange_n(word, value, __ATOMIC_SEQ_CST);
}

#endif /* FLEXSC_TESTS_ECB_H */
