/* SPDX-License-Identifier: MIT */
#include "sticky.h"

/*
 * Waits that a user thread makes away from home between two waits at home. If they
 * are fewer than NEAR, lodging is cheaper; if they are FAR or more, the last grant
 * is out of date, and the next one begins small.
 */
#define NEAR	16U
#define FAR	4096U

/* The largest grant: waits that a user thread makes at home. */
#define MOST		(1U << 16)
/*
 * Grants after a wait that stopped a carrier until the monitor looked, which takes
 * as long as some thousand waits.
 */
#define STUCK_LEAST	(1U << 10)
#define STUCK_MOST	(1U << 22)
#define STUCK_GROWTH	16U

static void lodge_begin(struct uthread *u, uint32_t grant, uint32_t most)
{
	if (!flexsc__runtime.lodging)
		return;
	u->lodge.grant = grant < most ? grant : most;
	u->lodge.left = u->lodge.grant;
}

static uint32_t take_distance(struct uthread *u)
{
	uint32_t away = u->lodge.away;

	u->lodge.away = 0;
	if (away >= FAR)
		u->lodge.grant = 0;
	return away;
}

void flexsc__lodge(struct uthread *u)
{
	if (!at_home() && take_distance(u) < NEAR)
		lodge_begin(u, 2 * u->lodge.grant + 1, MOST);
}

void flexsc__lodge_stuck(struct uthread *u)
{
	uint32_t grant;

	take_distance(u);
	grant = STUCK_GROWTH * u->lodge.grant;
	lodge_begin(u, grant > STUCK_LEAST ? grant : STUCK_LEAST, STUCK_MOST);
}
