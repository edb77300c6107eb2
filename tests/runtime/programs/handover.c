/* SPDX-License-Identifier: MIT */
/*
 * Threads hand over to each other in a pool. Meanwhile threads are cancelled, get
 * signals, fork, end, or are moved.
 *
 * Each disturbance meets all kinds of listeners and queues.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "pool.h"

/* No disturbance. */

TEST_LIMIT(each_item_comes_out_once, 60)
{
	pools_run(&(struct disturbance){ 0 });
}

/* Cancellation. */

static void cancel_worker(void)
{
	pthread_t *worker = &pool.workers[test_random() % WORKERS];

	CHECK_EQ(pthread_cancel(*worker), 0);
	CHECK(join(*worker) == PTHREAD_CANCELED);
	*worker = start(pool_work, NULL);
}

TEST_LIMIT(workers_are_cancelled, 60)
{
	pools_run(&(struct disturbance){ { 30 }, .act = cancel_worker });
}

static void cancel_listener(void)
{
	CHECK_EQ(pthread_cancel(pool.listener), 0);
	CHECK(join(pool.listener) == PTHREAD_CANCELED);
	pool.listener = start(pool_listen, NULL);
}

TEST_LIMIT(the_listener_is_cancelled, 60)
{
	pools_run(&(struct disturbance){ { 30 }, .act = cancel_listener });
}

/* Signals. */

static void count(int signo)
{
	(void)signo;
	if (pool_role != OTHER)
		pool_counts[HANDLED + pool_role]++;
}

static void handle_signals(void)
{
	struct sigaction action = { .sa_handler = count };

	CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
	action.sa_flags = SA_RESTART;
	CHECK_EQ(sigaction(SIGUSR2, &action, NULL), 0);
	CHECK_EQ(sigaction(SIGALRM, &action, NULL), 0);
}

static pthread_t any_thread(void)
{
	const uint64_t i = test_random() % (WORKERS + 2);

	return i < WORKERS ? pool.workers[i] : pool.listener;
}

static void send_signal(void)
{
	const int signo = test_random() % 2 ? SIGUSR1 : SIGUSR2;

	if (test_random() % 4)
		CHECK_EQ(pthread_kill(any_thread(), signo), 0);
	else
		CHECK_EQ(kill(getpid(), signo), 0);
}

TEST_LIMIT(signals_interrupt_listener_and_workers, 60)
{
	const struct itimerval timer = { { 0, 700 }, { 0, 700 } }, none = { 0 };

	handle_signals();
	setitimer(ITIMER_REAL, &timer, NULL);
	pools_run(&(struct disturbance){ { 60, [HANDLED] = 10, 10 },
					 .act = send_signal });
	setitimer(ITIMER_REAL, &none, NULL);
}

/* Forks by the listener and by workers, at any time. */

static pthread_mutex_t child_mutex;
static pthread_cond_t child_cond;
static int child_turn;

static void *take_turns(void *arg)
{
	const int me = arg != NULL;

	for (int i = 0; i < 10; i++) {
		lock(&child_mutex);
		while (child_turn != me)
			pthread_cond_wait(&child_cond, &child_mutex);
		child_turn = !me;
		unlock(&child_mutex);
		pthread_cond_signal(&child_cond);
	}
	return NULL;
}

static void hand_over_in_child(void)
{
	pthread_t other;

	pthread_mutex_init(&child_mutex, NULL);
	pthread_cond_init(&child_cond, NULL);
	child_turn = 0;
	other = start(take_turns, &child_turn);
	take_turns(NULL);
	join(other);
}

/* As test_reap(), but continues after signals. */
static void reap(int pid)
{
	int status;

	while (waitpid(pid, &status, 0) != pid)
		CHECK_EQ(errno, EINTR);
	CHECK_EQ(status, 0);
}

/*
 * The most forks of listener and workers each, in a pool. The listener's waits may end
 * without an item, and each 32nd of its turns forks. On a busy machine these forks
 * would take the time that the feeder and the workers need.
 */
#define MOST_FORKS	8

static void fork_one(void)
{
	const unsigned int n = pool_counts[FORKS + pool_role];
	int pid;

	if (n >= MOST_FORKS)
		return;
	pool_counts[FORKS + pool_role]++;
	pid = test_fork();
	if (pid) {
		reap(pid);
		return;
	}
	alarm(20);
	if (n % 4 == 1)
		hand_over_in_child();
	if (n % 4 == 3)
		execl("/bin/true", "true", NULL);
	test_leave();
}

static void fork_at_item(uint32_t item)
{
	if (item % 32 == 5)
		fork_one();
}

static void fork_at_turn(void)
{
	static unsigned int turns;

	if (turns++ % 32 == 5)
		fork_one();
}

TEST_LIMIT(listener_and_workers_fork, 60)
{
	pools_run(&(struct disturbance){ { [FORKS] = 4, 4 },
					 .at_turn = fork_at_turn,
					 .at_item = fork_at_item });
}

/*
 * A listener that alternately needs its host and a carrier. What it does at a turn
 * moves it away from its host, moves it there, or keeps it there.
 */

static int own_pipe[2];

static void use_core(bool one)
{
	static cpu_set_t all;
	cpu_set_t set;

	if (!CPU_COUNT(&all))
		CHECK_EQ(sched_getaffinity(0, sizeof(all), &all), 0);
	CPU_ZERO(&set);
	CPU_SET(first_core(), &set);
	CHECK_EQ(sched_setaffinity(0, sizeof(all), one ? &set : &all), 0);
}

static void be_restless(void)
{
	static const struct sched_param none;
	char byte;

	switch (pool_counts[MOVES]++ % 12) {
	case 0:
		use_core(true);
		break;
	case 2:
		use_core(false);
		break;
	case 3:
		sched_setscheduler(0, SCHED_BATCH, &none);
		break;
	case 5:
		sched_setscheduler(0, SCHED_OTHER, &none);
		break;
	case 6:
		while (write(own_pipe[1], "x", 1) != 1)
			CHECK_EQ(errno, EINTR);
		while (read(own_pipe[0], &byte, 1) != 1)
			CHECK_EQ(errno, EINTR);
		break;
	case 7:
		usleep(50);
		break;
	case 8:
		pool.listening = (pool.listening + 1) % BY_POLL_OF_ONE;
		break;
	case 10:
		for (int i = 0; i < 10; i++)
			epoll_wait(pool.set, &(struct epoll_event){ 0 }, 1, 0);
		break;
	default:
		sched_yield();
		break;
	}
}

TEST_LIMIT(the_listener_moves_at_every_turn, 60)
{
	CHECK_EQ(pipe(own_pipe), 0);
	pools_run(&(struct disturbance){ { [MOVES] = 100 },
					 .at_turn = be_restless });
}

/* Workers that hold the queue's mutex while they compute, sleep, or end. */

static void keep_mutex(uint32_t item)
{
	lock(&pool.mutex);
	if (item % 16 == 3)
		compute(300000);
	else if (item % 16 == 7)
		usleep(300);
	unlock(&pool.mutex);
}

static void *die_with_mutex(void *arg)
{
	lock(&pool.mutex);
	return arg;
}

static void let_one_die(void)
{
	join(start(die_with_mutex, NULL));
}

static const int types[] = { PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ERRORCHECK,
			     PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ADAPTIVE_NP };

/* Priority inheritance and robustness, each with and without the other. */
static struct pool pool_with(int type, int protocol, int robustness)
{
	return (struct pool){ .listening = BY_EPOLL,
			      .queueing = type % 2 ? BY_TIMED_CONDITION :
						     BY_CONDITION,
			      .mutex_type = types[type], .protocol = protocol,
			      .robustness = robustness };
}

TEST_LIMIT(the_queue_is_locked_for_long, 60)
{
	const struct disturbance d = { .at_item = keep_mutex };

	for (int type = 0; turns_left((unsigned int)type, 4); type++) {
		pool_run(&d, pool_with(type, PTHREAD_PRIO_NONE,
				       PTHREAD_MUTEX_STALLED));
		pool_run(&d, pool_with(type, PTHREAD_PRIO_INHERIT,
				       PTHREAD_MUTEX_STALLED));
	}
}

TEST_LIMIT(owners_of_the_queue_s_mutex_end, 60)
{
	const struct disturbance d = { { 30 }, .act = let_one_die,
				       .at_item = keep_mutex };

	for (int type = 0; turns_left((unsigned int)type, 4); type++) {
		pool_run(&d, pool_with(type, PTHREAD_PRIO_NONE,
				       PTHREAD_MUTEX_ROBUST));
		pool_run(&d, pool_with(type, PTHREAD_PRIO_INHERIT,
				       PTHREAD_MUTEX_ROBUST));
	}
}

/* All disturbances at once. */

static void do_anything(void)
{
	switch (test_random() % 8) {
	case 0:
		cancel_worker();
		break;
	case 1:
		cancel_listener();
		break;
	default:
		send_signal();
		break;
	}
}

static void be_anywhere(void)
{
	/* Not test_random(), which would give each new listener the same numbers. */
	static unsigned int turns;

	if (turns++ % 32 == 5)
		fork_one();
	else
		be_restless();
}

static void fork_or_keep_mutex(uint32_t item)
{
	if (item % 64 == 5)
		fork_one();
	else
		keep_mutex(item);
}

TEST_LIMIT(all_disturbances_happen_at_once, 60)
{
	handle_signals();
	CHECK_EQ(pipe(own_pipe), 0);
	pools_run(&(struct disturbance){ { 20, 36, [HANDLED] = 3, 3, [FORKS] = 1, 1 },
					 .act = do_anything,
					 .at_turn = be_anywhere,
					 .at_item = fork_or_keep_mutex });
}
