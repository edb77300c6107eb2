/* SPDX-License-Identifier: MIT */
#include "futex_op.h"

#include <linux/futex.h>

bool flexsc__futex_op_valid(uint32_t code)
{
	return (code >> 28 & 7) <= FUTEX_OP_XOR && (code >> 24 & 15) <= FUTEX_OP_CMP_GE;
}

uint32_t flexsc__futex_op_apply(uint32_t *word, uint32_t code)
{
	uint32_t old = __atomic_load_n(word, __ATOMIC_SEQ_CST), new, arg = code >> 12 & 0xfff;

	if (code >> 28 & FUTEX_OP_OPARG_SHIFT)
		arg = 1U << (arg & 31);
	else
		arg = (uint32_t)((int32_t)(arg << 20) >> 20);
	do {
		switch (code >> 28 & 7) {
		case FUTEX_OP_SET:
			new = arg;
			break;
		case FUTEX_OP_ADD:
			new = old + arg;
			break;
		case FUTEX_OP_OR:
			new = old | arg;
			break;
		case FUTEX_OP_ANDN:
			new = old & ~arg;
			break;
		default:
			new = old ^ arg;
			break;
		}
	} while (!__atomic_compare_exchange_n(word, &old, new, false,
					      __ATOMIC_SEQ_CST,
					      __ATOMIC_SEQ_CST));
	return old;
}

bool flexsc__futex_op_compare(uint32_t value, uint32_t code)
{
	int32_t arg = (int32_t)(code << 20) >> 20, old = (int32_t)value;

	switch (code >> 24 & 15) {
	case FUTEX_OP_CMP_EQ:
		return old == arg;
	case FUTEX_OP_CMP_NE:
		return old != arg;
	case FUTEX_OP_CMP_LT:
		return old < arg;
	case FUTEX_OP_CMP_LE:
		return old <= arg;
	case FUTEX_OP_CMP_GT:
		return old > arg;
	default:
		return old >= arg;
	}
}
