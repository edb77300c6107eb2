/* SPDX-License-Identifier: MIT */
/*
 * The owner of a loop does nothing for a while, as if it were stuck in the kernel.
 * Meanwhile another thread acts as owner (lib/run/handover.h). Each byte is read
 * once, by one of the two. Requests in the owner's ring have no effect, or a poller
 * executes them.
 */
#include "tests/harness/harness.h"

#include <semaphore.h>

#include "lib/run/handover.h"

enum { READS = 64, TIMERS = 8 };

static struct {
	struct flexsc_loop *loop;
	pthread_t thread;
	void (*post)(void);	/* what the owner does before it is stuck */
	sem_t stuck, back, over, ends;
} owner;

static int pairs[READS][2];
static struct call reads[READS], timers[TIMERS];
static char bytes[READS];
static bool taken[READS];

static void post_read(struct flexsc_loop *loop, int i)
{
	POST(loop, &reads[i], SYS_read, pairs[i][0], &bytes[i], 1);
}

/* Are the calls in the ring without effect while the owner is stuck? */
static bool rests(void)
{
	return !strcmp(test_engine(), "uring") && !getenv("FLEXSC_TEST_SQPOLL");
}

/* Half of the reads are submitted and armed; the other half isn't submitted. */
static void post_reads_and_timers(void)
{
	for (int i = 0; i < READS; i++) {
		post_read(owner.loop, i);
		if (i == READS / 2)
			CHECK(flexsc_loop_dispatch(owner.loop) >= 0);
	}
	for (int i = 0; i < TIMERS; i++)
		CHECK_EQ(flexsc_loop_timer(owner.loop, &timers[i].cb,
					   1000 * SECOND), 0);
}

/*
 * All reads are armed and then cancelled, a third of them by a deadline. A third of
 * the cancellations isn't submitted when the owner gets stuck.
 */
enum { BY_DEADLINE, SUBMITTED, UNSUBMITTED, WAYS };

static void post_and_cancel_reads(void)
{
	for (int i = 0; i < READS; i++)
		post_read(owner.loop, i);
	for (int i = BY_DEADLINE; i < READS; i += WAYS)
		CHECK_EQ(flexsc_loop_deadline(owner.loop, &reads[i].cb, 1), 0);
	usleep(1000);
	CHECK(flexsc_loop_dispatch(owner.loop) >= 0);
	for (int i = SUBMITTED; i < READS; i += WAYS)
		CHECK_EQ(flexsc_loop_cancel(owner.loop, &reads[i].cb), 0);
	CHECK_EQ(flexsc_loop_submit(owner.loop), 0);
	for (int i = UNSUBMITTED; i < READS; i += WAYS)
		CHECK_EQ(flexsc_loop_cancel(owner.loop, &reads[i].cb), 0);
}

static void *be_stuck(void *arg)
{
	owner.loop = test_loop();
	owner.post();
	CHECK_EQ(sem_post(&owner.stuck), 0);
	CHECK_EQ(sem_wait(&owner.back), 0);
	flexsc__handover_revoke(owner.loop);
	CHECK_EQ(sem_post(&owner.over), 0);
	CHECK_EQ(sem_wait(&owner.ends), 0);
	/* The loop works again, until it is empty. */
	CHECK_EQ(DO(owner.loop, SYS_getpid), getpid());
	CHECK_EQ(flexsc_loop_run(owner.loop), 0);
	CHECK_EQ(flexsc_loop_destroy(owner.loop), 0);
	return arg;
}

static void begin(void (*post)(void))
{
	owner.post = post;
	CHECK_EQ(sem_init(&owner.stuck, 0, 0) | sem_init(&owner.back, 0, 0) |
		 sem_init(&owner.over, 0, 0) | sem_init(&owner.ends, 0, 0), 0);
	for (int i = 0; i < READS; i++) {
		CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pairs[i]), 0);
		reads[i] = (struct call)CALL_INIT;
	}
	for (int i = 0; i < TIMERS; i++)
		timers[i] = (struct call)CALL_INIT;
	owner.thread = test_thread(be_stuck, NULL);
	CHECK_EQ(sem_wait(&owner.stuck), 0);
}

static void send_bytes(int from, int to)
{
	for (int i = from; i < to; i++)
		CHECK_EQ(write(pairs[i][1], "b", 1), 1);
}

/* Calls that the heir can't take complete by themselves. */
static void take_reads(struct flexsc_loop *heir)
{
	uint64_t ns;

	for (int i = 0; i < READS; i++) {
		if (reads[i].runs ||
		    !flexsc__handover_take(owner.loop, &reads[i].cb, true, &ns))
			continue;
		CHECK_EQ(ns, 0);
		taken[i] = true;
		post_read(heir, i);
	}
}

static void take_timers(struct flexsc_loop *heir)
{
	uint64_t ns;

	for (int i = 0; i < TIMERS; i++) {
		CHECK(flexsc__handover_take(owner.loop, &timers[i].cb, false, &ns));
		CHECK(ns > 900 * SECOND && ns <= 1001 * SECOND);
		CHECK_EQ(flexsc_loop_timer(heir, &timers[i].cb, 1), 0);
	}
}

static unsigned int runs_of(const struct call *calls, int n)
{
	unsigned int runs = 0;

	for (int i = 0; i < n; i++)
		runs += calls[i].runs;
	return runs;
}

static void let_owner_return(void)
{
	flexsc__handover_end(owner.loop, owner.thread);
	CHECK_EQ(sem_post(&owner.back), 0);
	CHECK_EQ(sem_wait(&owner.over), 0);
}

static void end(struct flexsc_loop *heir)
{
	CHECK_EQ(sem_post(&owner.ends), 0);
	CHECK_EQ(pthread_join(owner.thread, NULL), 0);
	CHECK_EQ(flexsc_loop_destroy(heir), 0);
}

/* Bytes that arrive while the owner is stuck are still there afterwards. */
static void end_with_bytes(struct flexsc_loop *heir)
{
	send_bytes(0, READS);
	let_owner_return();
	end(heir);
	for (int i = 0; i < READS; i++) {
		CHECK_EQ(recv(pairs[i][0], &bytes[i], 1, MSG_DONTWAIT), 1);
		CHECK_EQ(recv(pairs[i][0], &bytes[i], 1, MSG_DONTWAIT), -1);
		CHECK_EQ(reads[i].runs, 1);
	}
}

TEST(an_heir_takes_the_calls_of_its_ward)
{
	struct flexsc_loop *heir = test_loop();

	/* The sync engine has no pending calls. */
	CHECK_EQ(flexsc__handover_possible(heir), strcmp(test_engine(), "sync") != 0);
	if (!flexsc__handover_possible(heir))
		return;
	begin(post_reads_and_timers);
	/* Bytes arrive before, during and after the adoption. */
	send_bytes(0, READS / 4);
	flexsc__handover_begin(owner.loop, heir);
	flexsc__handover_results(owner.loop);
	take_reads(heir);
	take_timers(heir);
	send_bytes(READS / 4, READS);
	while (runs_of(reads, READS) < READS ||
	       runs_of(timers, TIMERS) < TIMERS) {
		CHECK(flexsc_loop_wait(heir, 1000000) >= 0);
		CHECK(flexsc_loop_dispatch(heir) >= 0);
		flexsc__handover_results(owner.loop);
	}
	for (int i = 0; i < READS; i++) {
		CHECK(!rests() || taken[i]);
		CHECK_EQ(reads[i].runs, 1);
		CHECK_EQ(reads[i].cb.ret, 1);
		CHECK_EQ(bytes[i], 'b');
	}
	end_with_bytes(heir);
}

TEST(an_heir_ends_the_calls_that_its_ward_cancelled)
{
	struct flexsc_loop *heir = test_loop();
	uint64_t ns;

	if (!flexsc__handover_possible(heir))
		return;
	begin(post_and_cancel_reads);
	flexsc__handover_begin(owner.loop, heir);
	flexsc__handover_results(owner.loop);
	for (int i = 0; i < READS; i++)
		if (!reads[i].runs && flexsc__handover_take(owner.loop, &reads[i].cb,
							 true, &ns)) {
			CHECK_EQ(ns, 0);
			reads[i].cb.callback(&reads[i].cb);
		}
	/* Calls that the heir can't take complete by themselves. */
	while (runs_of(reads, READS) < READS) {
		CHECK(flexsc_loop_wait(heir, 1000000) >= 0);
		flexsc__handover_results(owner.loop);
	}
	for (int i = 0; i < READS; i++)
		CHECK_EQ(reads[i].cb.ret,
			 i % WAYS == BY_DEADLINE ? -ETIME : -ECANCELED);
	end_with_bytes(heir);
}

static int listener;

static void post_accept(struct flexsc_loop *loop, struct call *call)
{
	*call = (struct call)CALL_INIT;
	POST(loop, call, SYS_accept, listener, 0, 0);
	CHECK(flexsc_loop_dispatch(loop) >= 0);
}

static void post_owners_accept(void)
{
	post_accept(owner.loop, &reads[0]);
}

/* A connection wakes only the oldest request that waits for one. */
TEST(a_ward_that_returns_takes_no_connection_from_others)
{
	struct flexsc_loop *heir = test_loop();
	struct sockaddr_in address;
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	struct call accepted;
	uint64_t ns;

	if (!flexsc__handover_possible(heir))
		return;
	listener = listening_socket(&address, 0, 8);
	begin(post_owners_accept);
	flexsc__handover_begin(owner.loop, heir);
	flexsc__handover_results(owner.loop);
	/*
	 * With syscall threads the heir can't take the call, because a thread waits
	 * in it. Nor can it with a poller, which executes the call.
	 */
	if (flexsc__handover_take(owner.loop, &reads[0].cb, true, &ns)) {
		let_owner_return();
		post_accept(heir, &accepted);
		CHECK_EQ(connect(fd, (const struct sockaddr *)&address,
				 sizeof(address)), 0);
		CHECK(await_call(heir, &accepted) >= 0);
	} else {
		CHECK(!rests());
		CHECK_EQ(connect(fd, (const struct sockaddr *)&address,
				 sizeof(address)), 0);
		while (!reads[0].runs) {
			CHECK(flexsc_loop_wait(heir, 1000000) >= 0);
			flexsc__handover_results(owner.loop);
		}
		let_owner_return();
	}
	end(heir);
}

/* More results than a ring holds, or than one turn dispatches. */
enum { MANY = 9000 };

static struct call *many;
static uint64_t *counts;
static int counter;

static void post_count(struct flexsc_loop *loop, int i)
{
	POST(loop, &many[i], SYS_read, counter, &counts[i], sizeof(*counts));
}

static void post_many(void)
{
	for (int i = 0; i < MANY; i++)
		post_count(owner.loop, i);
	CHECK_EQ(flexsc_loop_submit(owner.loop), 0);
}

TEST(an_heir_repeats_no_call_that_has_a_result)
{
	struct flexsc_loop *heir = test_loop();
	unsigned int n = 0;
	uint64_t ns;

	if (!flexsc__handover_possible(heir))
		return;
	many = calloc(MANY, sizeof(*many));
	counts = calloc(MANY, sizeof(*counts));
	for (int i = 0; i < MANY; i++)
		many[i] = (struct call)CALL_INIT;
	counter = eventfd(MANY, EFD_SEMAPHORE);
	CHECK(counter >= 0);
	begin(post_many);
	flexsc__handover_begin(owner.loop, heir);
	flexsc__handover_results(owner.loop);
	for (int i = 0; i < MANY; i++)
		if (!many[i].runs &&
		    flexsc__handover_take(owner.loop, &many[i].cb, true, &ns)) {
			post_count(heir, i);
			n++;
		}
	/* Each read takes 1 of MANY. So all reads complete only if each is made once. */
	n = runs_of(many, MANY) + n;
	while (runs_of(many, MANY) < n) {
		CHECK(flexsc_loop_wait(heir, 1000000) >= 0);
		CHECK(flexsc_loop_dispatch(heir) >= 0);
	}
	let_owner_return();
	end(heir);
	for (int i = 0; i < MANY; i++) {
		CHECK_EQ(many[i].runs, 1);
		CHECK_EQ(counts[i], 1);
	}
	free(many);
	free(counts);
}
