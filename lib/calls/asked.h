/* SPDX-License-Identifier: MIT */
/* How much a call is asked to transfer. Any thread that has the entry. */
#ifndef FLEXSC_ASKED_H
#define FLEXSC_ASKED_H

#include <linux/flexsc.h>
#include <stdint.h>

/* Bytes, which a result tells how many were; 0 for calls without a length. */
uint64_t flexsc__requested_length(const struct flexsc_entry *entry);

#endif /* FLEXSC_ASKED_H */
