/* SPDX-License-Identifier: MIT */
/*
 * runtime/sched/identity.c beside a model of libc: a change sends a "signal" to each
 * thread, hosts first, and waits until all have handled it. The clock stands still, so
 * that no limit ends a wait.
 */
#include "tests/harness/harness.h"

#include <semaphore.h>

#include "lib/base/clock.h"

#define time_monotonic()	0
#include "runtime/sched/identity.c"

#define CARRIERS	3U
#define HOSTS		3U
#define CHANGERS	3U
#define CHANGES		MANY(200)

struct runtime flexsc__runtime;

static struct carrier carriers[CARRIERS];
static atomic_bool pending[CARRIERS];	/* the carrier has the signal pending */
static sem_t signals[HOSTS + CARRIERS], handled;
static uint32_t change;			/* the number of the present change */
static _Atomic uint32_t last[CARRIERS];	/* the last change of each carrier */
static sem_t returns;			/* the stuck carrier's call ends */
static atomic_bool stuck;		/* carrier 0 gets stuck at the next change */
static atomic_bool over;

void flexsc__proc_status(const struct carrier *c, struct status_value *values, size_t n)
{
	for (size_t i = 0; i < n; i++)
		strcpy(values[i].text, "0");
	if (pending[c - carriers])
		snprintf(values[0].text, sizeof(values[0].text), "%lx",
			 (unsigned long)SIGNAL_BIT(SIGNAL_SETXID));
}

static void *host(void *arg)
{
	sem_t *signal = arg;

	while (!sem_wait(signal) && !over) {
		flexsc__identity_await();
		for (unsigned int i = 0; i < CARRIERS; i++)
			CHECK(last[i] == change || pending[i]);
		CHECK_EQ(sem_post(&handled), 0);
	}
	return NULL;
}

static void *carrier(void *arg)
{
	const size_t i = (size_t)((sem_t *)arg - signals) - HOSTS;

	while (!sem_wait(arg) && !over) {
		sched_yield();
		if (!i && stuck)
			CHECK_EQ(sem_wait(&returns), 0);
		last[i] = change;
		pending[i] = false;
		flexsc__identity_changed(&carriers[i]);
		CHECK_EQ(sem_post(&handled), 0);
	}
	return NULL;
}

static void await_threads(unsigned int n)
{
	while (n--)
		CHECK_EQ(sem_wait(&handled), 0);
}

static void change_all(void)
{
	static pthread_mutex_t in_libc = PTHREAD_MUTEX_INITIALIZER;

	CHECK_EQ(pthread_mutex_lock(&in_libc), 0);
	change++;
	for (unsigned int i = 0; i < HOSTS + CARRIERS; i++) {
		if (i >= HOSTS)
			pending[i - HOSTS] = true;
		CHECK_EQ(sem_post(&signals[i]), 0);
		sched_yield();
	}
	await_threads(HOSTS + CARRIERS - 1);
	if (stuck)
		CHECK_EQ(sem_post(&returns), 0);
	await_threads(1);
	CHECK_EQ(pthread_mutex_unlock(&in_libc), 0);
}

static void *changer(void *arg)
{
	(void)arg;
	for (unsigned int i = 0; i < (stuck ? MANY(20) : CHANGES); i++) {
		flexsc__identity_begin();
		/* Each fourth call fails without a change. */
		if (i % 4)
			change_all();
		flexsc__identity_end();
	}
	return NULL;
}

static void run_changers(unsigned int n)
{
	pthread_t threads[HOSTS + CARRIERS], changers[CHANGERS];

	flexsc__runtime.carriers = carriers;
	CHECK_EQ(sem_init(&handled, 0, 0) | sem_init(&returns, 0, 0), 0);
	for (unsigned int i = 0; i < CARRIERS; i++)
		flexsc__identity_join(&carriers[i]);
	for (unsigned int i = 0; i < HOSTS + CARRIERS; i++) {
		CHECK_EQ(sem_init(&signals[i], 0, 0), 0);
		threads[i] = test_thread(i < HOSTS ? host : carrier, &signals[i]);
	}
	for (unsigned int i = 0; i < n; i++)
		changers[i] = test_thread(changer, NULL);
	for (unsigned int i = 0; i < n; i++)
		CHECK_EQ(pthread_join(changers[i], NULL), 0);
	over = true;
	for (unsigned int i = 0; i < HOSTS + CARRIERS; i++) {
		CHECK_EQ(sem_post(&signals[i]), 0);
		CHECK_EQ(pthread_join(threads[i], NULL), 0);
	}
}

TEST_LIMIT(a_host_waits_for_the_carriers_of_its_own_change, 60)
{
	run_changers(CHANGERS);
}

/* A carrier that can't handle its signal yet can't act with the old user, either. */
TEST_LIMIT(a_stuck_carrier_keeps_no_host_from_changing, 60)
{
	stuck = true;
	run_changers(1);
}
