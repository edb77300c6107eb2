/* SPDX-License-Identifier: MIT */
/*
 * Real-time signals of the process, as their owner has them:
 *
 *	set.h		signals of the kernel's sets, and groups
 *	queue.c		what is queued
 *	signals.c	a thread becomes the owner; signals are gathered, handled
 *	action.c	actions; signals are sent, blocked, pending
 *	wait.c		the owner waits for them
 *
 * Each number has a group and a user event there, which says that its queue isn't
 * empty. What the kernel has is an event of the last group.
 *
 * The owner alone, in a critical section, uses the fields, except where it says
 * "any".
 */
#ifndef STUDY_RTSIGNAL_SIGNALS_H
#define STUDY_RTSIGNAL_SIGNALS_H

#include <flexsc/ecb.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "queue.h"
#include "set.h"

/* What becomes of a signal. */
struct action {
	struct sigaction action;
	uint32_t blocks;	/* groups, while its handler runs */
	bool blocks_others;	/* and signals of the kernel's */
};

struct signals {
	struct flexsc_ecb *ecb;		/* any; NULL: there is no owner */
	pid_t pid;			/* any: the process', and its user's */
	uid_t uid;			/* any */
	unsigned int events[SIGNALS];	/* any: of user events */
	bool before;			/* there was an owner, even if none is */
	bool full;			/* not all of the kernel's is brought in */
	uint32_t blocked;		/* groups */
	struct action actions[SIGNALS];
};

extern struct signals rtsig__signals;

/* The calling thread's relation to the signals. Any thread. */
enum signals_whose {
	SIGNALS_NOBODYS,
	SIGNALS_OWN,
	SIGNALS_OTHERS,
};

enum signals_whose rtsig__signals_whose(void);
/* Become the owner, unless this thread is it. NULL: errno says why not. */
struct flexsc_ecb *rtsig__signals_own(void);

/* What a handler is told. */
siginfo_t rtsig__signals_info(uint32_t group, const struct queued *queued);

/*
 * Any thread, any signal handler: have the owner look at these groups, in the
 * end of its critical section if it is in one.
 */
void rtsig__signals_tell(uint32_t groups);

/*
 * The rest is the owner's, in a critical section. Where that is said to be the
 * only one, it isn't inside of another.
 */

/* From here on these groups are blocked, and the others aren't. */
void rtsig__signals_block(uint32_t groups);

/* The only one. Bring in what the kernel has. Returns groups with signals. */
uint32_t rtsig__signals_gather(void);
/* The only one. Groups that are to be handled: ready, and not blocked. */
uint32_t rtsig__signals_due(void);
/* The only one. Leave it, when all that is due is handled. */
void rtsig__signals_leave(void);

/* Enter one. True: it is the only one. */
bool rtsig__signals_enter(void);

#endif /* STUDY_RTSIGNAL_SIGNALS_H */
