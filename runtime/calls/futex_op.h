/* SPDX-License-Identifier: MIT */
/* The operation and the comparison that a FUTEX_WAKE_OP encodes in a number. */
#ifndef FLEXSC_RUNTIME_FUTEX_OP_H
#define FLEXSC_RUNTIME_FUTEX_OP_H

#include <stdbool.h>
#include <stdint.h>

bool flexsc__futex_op_valid(uint32_t code);

/* Apply the operation to the word. Returns its old value. */
uint32_t flexsc__futex_op_apply(uint32_t *word, uint32_t code);

bool flexsc__futex_op_compare(uint32_t value, uint32_t code);

#endif /* FLEXSC_RUNTIME_FUTEX_OP_H */
