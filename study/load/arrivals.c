/* SPDX-License-Identifier: MIT */
#include "arrivals.h"

#include <math.h>

#include "bench/raw/loop.h"

#define SECOND	1000000000ULL

void bench_arrivals_init(struct bench_arrivals *arrivals, uint64_t rate,
			 uint64_t count, bool poisson, uint64_t seed)
{
	*arrivals = (struct bench_arrivals){
		.count = count, .rate = rate, .stride = 1,
		.poisson = poisson, .random = seed,
	};
	/* Makes similar seeds give unrelated numbers. */
	for (int i = 0; i < 16; i++)
		bench_random(&arrivals->random);
}

uint64_t bench_arrivals_due(const struct bench_arrivals *arrivals)
{
	if (arrivals->made >= arrivals->count)
		return UINT64_MAX;
	if (arrivals->poisson)
		return arrivals->begin + (uint64_t)arrivals->at;
	return arrivals->begin + arrivals->made * SECOND / arrivals->rate;
}

/* A random number greater than 0 and at most 1. */
static double chance(uint64_t *random)
{
	return ((double)(bench_random(random) >> 11) + 1) / 0x1p53;
}

static void pass(struct bench_arrivals *arrivals, uint64_t count)
{
	arrivals->made += count;
	for (; arrivals->poisson && count; count--)
		arrivals->at -= log(chance(&arrivals->random)) *
				(double)SECOND / (double)arrivals->rate;
}

void bench_arrivals_share(struct bench_arrivals *arrivals, uint64_t index,
			  uint64_t threads)
{
	pass(arrivals, index);
	arrivals->stride = threads;
}

void bench_arrivals_pass(struct bench_arrivals *arrivals)
{
	pass(arrivals, arrivals->stride);
}
