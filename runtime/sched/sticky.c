/* SPDX-License-Identifier: MIT */
#include "sticky.h"

/*
 * Limits for the number of waits that a user thread makes away from its host, between
 * two waits that need the host. For fewer than NEAR waits, staying on the host is
 * cheaper. After FAR or more waits, the last grant is out of date, so grants start
 * small again.
 */
#define NEAR	16U
#define FAR	4096U

/* The largest grant: waits that a user thread makes on its host. */
#define MOST		(1U << 16)
/*
 * A wait that blocks its carrier until the monitor's next check takes as long as some
 * thousand other waits. The next grant is STUCK_GROWTH times the last one, but at least
 * STUCK_LEAST and at most STUCK_MOST.
 */
#define STUCK_LEAST	(1U << 10)
#define STUCK_MOST	(1U << 22)
#define STUCK_GROWTH	16U

static void sticky_begin(struct uthread *u, uint32_t grant, uint32_t most)
{
	if (!flexsc__runtime.sticky)
		return;
	u->sticky.grant = grant < most ? grant : most;
	u->sticky.left = u->sticky.grant;
}

static uint32_t take_distance(struct uthread *u)
{
	uint32_t away = u->sticky.away;

	u->sticky.away = 0;
	if (away >= FAR)
		u->sticky.grant = 0;
	return away;
}

void flexsc__sticky_wait(struct uthread *u)
{
	if (!on_host() && take_distance(u) < NEAR)
		sticky_begin(u, 2 * u->sticky.grant + 1, MOST);
}

void flexsc__sticky_stuck(struct uthread *u)
{
	uint32_t grant;

	take_distance(u);
	grant = STUCK_GROWTH * u->sticky.grant;
	sticky_begin(u, grant > STUCK_LEAST ? grant : STUCK_LEAST, STUCK_MOST);
}
