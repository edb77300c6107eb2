/* SPDX-License-Identifier: MIT */
#include "stack.h"

#include <errno.h>
#include <flexsc/ecb.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "ecb.h"

void flexsc__stack_call(void *top, void (*run)(struct flexsc_ecb *ecb),
			struct flexsc_ecb *ecb);

int flexsc__stack_begin(struct flexsc_ecb *ecb)
{
	const stack_t own = {
		.ss_sp = ecb->stack,
		.ss_size = ecb->stack_size,
	};

	if (!ecb->stack_size)
		return 0;
	return sigaltstack(&own, &ecb->stack_before) ? -errno : 0;
}

void flexsc__stack_end(const struct flexsc_ecb *ecb)
{
	stack_t now;

	if (ecb->stack_size && !sigaltstack(NULL, &now) && now.ss_sp == ecb->stack)
		sigaltstack(&ecb->stack_before, NULL);
}

static bool stack_is_current(const struct flexsc_ecb *ecb)
{
	return (uintptr_t)__builtin_frame_address(0) - (uintptr_t)ecb->stack <
	       ecb->stack_size;
}

void flexsc__stack_run(struct flexsc_ecb *ecb, void (*run)(struct flexsc_ecb *ecb))
{
	uintptr_t top = (uintptr_t)ecb->stack + ecb->stack_size;

	if (!ecb->stack_size || stack_is_current(ecb))
		run(ecb);
	else
		flexsc__stack_call((void *)(top & ~(uintptr_t)15), run, ecb);
}
