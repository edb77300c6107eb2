/* SPDX-License-Identifier: MIT */
#include "lodge.h"

/*
 * Waits between two for which a user thread comes home: with fewer than NEAR,
 * lodging is cheaper; after FAR, what earlier waits showed is out of date.
 */
#define NEAR	16U
#define FAR	4096U

/* Waits at home that are granted at most. */
#define MOST		(1U << 16)
/*
 * Waits at home after one that stopped a carrier: the stop took as long as some
 * thousand waits.
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
