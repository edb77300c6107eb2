/* SPDX-License-Identifier: MIT */
/*
 * A pool whose threads are created later, by another thread, as in flexsc run:
 * lib/pool/own_thread.h.
 */
#include "tests/harness/harness.h"

#include <sys/socket.h>

#include "lib/pool/own_thread.h"

#define RECEIVERS	4

/* These replace lib/pool/own_thread.c. */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct own_birth *births;	/* guarded by the mutex */
static atomic_bool later;

int flexsc__own_thread(pthread_t *thread, void *(*run)(void *), void *arg,
		       const cpu_set_t *cores)
{
	(void)cores;
	return -pthread_create(thread, NULL, run, arg);
}

void flexsc__own_join(pthread_t thread)
{
	pthread_join(thread, NULL);
}

int flexsc__own_thread_later(struct own_birth *birth)
{
	if (!later)
		return own_birth_make(birth);
	pthread_mutex_lock(&mutex);
	birth->next = births;
	births = birth;
	pthread_mutex_unlock(&mutex);
	return OWN_LATER;
}

static void make_requested(void)
{
	struct own_birth *birth, *next;

	pthread_mutex_lock(&mutex);
	birth = births;
	births = NULL;
	pthread_mutex_unlock(&mutex);
	for (; birth; birth = next) {
		next = birth->next;
		CHECK_EQ(own_birth_make(birth), 0);
	}
}

/* A receive that needs a thread: it waits for the second of two bytes. */
struct receiver {
	struct call call;
	int fds[2];
	char bytes[2];
};

static void post_receive(struct receiver *r)
{
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, r->fds), 0);
	CHECK_EQ(write(r->fds[1], "x", 1), 1);
	r->call = (struct call)CALL_INIT;
	POST(loop, &r->call, SYS_recvfrom, r->fds[0], r->bytes, 2, MSG_WAITALL,
	     NULL, NULL);
}

static void turn(void)
{
	flexsc_loop_submit(loop);
	flexsc_loop_wait(loop, 1000000);
	flexsc_loop_dispatch(loop);
}

/*
 * The only thread executes the calls in their order. So once a later call has
 * completed, all receives are deferred.
 */
static void defer_all(struct receiver *receivers)
{
	struct call last = CALL_INIT;
	char byte;
	int p[2];

	for (int i = 0; i < RECEIVERS; i++)
		post_receive(&receivers[i]);
	CHECK_EQ(pipe(p), 0);
	CHECK_EQ(write(p[1], "x", 1), 1);
	POST(loop, &last, SYS_read, p[0], &byte, 1);
	while (!last.runs)
		turn();
}

TEST_LIMIT(each_deferred_call_gets_a_thread, 30)
{
	struct receiver receivers[RECEIVERS];

	loop = NEW_LOOP(.engine = "threads");
	later = true;
	defer_all(receivers);
	/* The last call completes although all others still wait. */
	for (int i = RECEIVERS; i-- > 0;) {
		CHECK_EQ(write(receivers[i].fds[1], "y", 1), 1);
		while (!receivers[i].call.runs) {
			make_requested();
			turn();
		}
		CHECK_EQ(receivers[i].call.cb.ret, 2);
	}
	CHECK_EQ(flexsc_loop_destroy(loop), 0);
	loop = NULL;
}
