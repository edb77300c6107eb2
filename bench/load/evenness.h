/* SPDX-License-Identifier: MIT */
/*
 * How evenly a server serves its n connections: Jain's index over x, a
 * connection's number of answers: (sum x)^2 / (n * sum x^2). The index is 1 if
 * all numbers are equal, and 1/n if one connection has all answers.
 *
 * R. Jain, D. Chiu, W. Hawe: A Quantitative Measure of Fairness and
 * Discrimination for Resource Allocation in Shared Computer Systems, DEC
 * TR-301, 1984.
 */
#ifndef FLEXSC_BENCH_EVENNESS_H
#define FLEXSC_BENCH_EVENNESS_H

struct bench_evenness {
	double count, sum, squares;
};

static inline void bench_evenness_add(struct bench_evenness *evenness, double x)
{
	evenness->count++;
	evenness->sum += x;
	evenness->squares += x * x;
}

static inline void bench_evenness_merge(struct bench_evenness *into,
					const struct bench_evenness *from)
{
	into->count += from->count;
	into->sum += from->sum;
	into->squares += from->squares;
}

/* Jain's index; 0: there was no answer. */
static inline double bench_evenness_index(const struct bench_evenness *evenness)
{
	return evenness->squares > 0 ?
		       evenness->sum * evenness->sum /
			       (evenness->count * evenness->squares) : 0;
}

#endif /* FLEXSC_BENCH_EVENNESS_H */
