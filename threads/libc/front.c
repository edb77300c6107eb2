/* SPDX-License-Identifier: MIT */
#include "front.h"

const void *flexsc__front_target(struct front *front)
{
	const void *foreign = flexsc__real_foreign(front->which);

	front->target = foreign ? foreign : front->own;
	return front->target;
}
