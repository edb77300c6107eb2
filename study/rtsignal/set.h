/* SPDX-License-Identifier: MIT */
/*
 * Signals as groups: SIGRTMIN is group 0. The others are the kernel's own. Any
 * thread.
 */
#ifndef STUDY_RTSIGNAL_SET_H
#define STUDY_RTSIGNAL_SET_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define SIGNALS		31	/* real-time signals, at most */
#define OUTSIDE		(1U << SIGNALS)	/* the group of what the kernel has */
#define INSIDE		(OUTSIDE - 1)

static inline bool is_realtime(int signo)
{
	return signo >= SIGRTMIN && signo <= SIGRTMAX;
}

static inline uint32_t signal_group(int signo)
{
	return (uint32_t)(signo - SIGRTMIN);
}

static inline int group_signal(uint32_t group)
{
	return (int)group + SIGRTMIN;
}

/* As the kernel has a set: 64 signals, beginning with 1. */
static inline uint64_t set_bits(const sigset_t *set)
{
	uint64_t bits;

	memcpy(&bits, set, sizeof(bits));
	return bits;
}

/* Groups of the set's real-time signals. */
static inline uint32_t set_groups(const sigset_t *set)
{
	return (uint32_t)(set_bits(set) >> (SIGRTMIN - 1)) & INSIDE;
}

static inline sigset_t set_of(uint64_t bits)
{
	sigset_t set;

	sigemptyset(&set);
	memcpy(&set, &bits, sizeof(bits));
	return set;
}

/* The set's signals of the kernel's own, but for the notification's SIGURG. */
static inline sigset_t set_others(const sigset_t *set)
{
	return set_of(set_bits(set) & ((1ULL << (SIGRTMIN - 1)) - 1) &
		      ~(1ULL << (SIGURG - 1)));
}

static inline bool set_empty(const sigset_t *set)
{
	return !set_bits(set);
}

/* The set with real-time signals as the groups say. */
static inline sigset_t set_with(const sigset_t *set, uint32_t groups)
{
	return set_of((set_bits(set) & ((1ULL << (SIGRTMIN - 1)) - 1)) |
		      (uint64_t)(groups & INSIDE) << (SIGRTMIN - 1));
}

#endif /* STUDY_RTSIGNAL_SET_H */
