/* SPDX-License-Identifier: MIT */
#include "front.h"

const void *flexsc__front_target(struct front *front)
{
	const void *target = flexsc__real_foreign(front->which);

	if (!target)
		target = front->own;
	__atomic_store_n(&front->target, target, __ATOMIC_RELAXED);
	return target;
}
