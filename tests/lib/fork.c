/* SPDX-License-Identifier: MIT */
/*
 * fork, exec, threads that end, and loops that are created and destroyed: nothing of
 * the library is inherited by mistake, and nothing leaks.
 */
#include "tests/lib/counted.h"

#include <malloc.h>
#include <spawn.h>

#define READERS		50

extern char **environ;

static struct reader readers[READERS];
static int owner;

static void reader_done(struct flexsc_cb *cb)
{
	CHECK_EQ(getpid(), owner);
	count_call(cb);
}

static void post_reads(void)
{
	owner = getpid();
	for (unsigned int i = 0; i < READERS; i++) {
		reader_open(&readers[i]);
		readers[i].call.cb.callback = reader_done;
		reader_post(&readers[i]);
	}
	run_for(loop, 20);
	CHECK_EQ(done, 0);
}

static void feed_reads(void)
{
	for (unsigned int i = 0; i < READERS; i++)
		reader_feed(&readers[i]);
	CHECK(run_until(loop, &done, READERS, 10000));
	for (unsigned int i = 0; i < READERS; i++) {
		CHECK_EQ(readers[i].call.runs, 1);
		CHECK_EQ(readers[i].call.cb.ret, 1);
	}
}

static void parent_loop_is_stale(struct flexsc_loop *loop)
{
	struct flexsc_cb cb = { .callback = reader_done };

	CHECK_EQ(flexsc_loop_call(loop, &cb, ARGS(SYS_getppid)), -ESTALE);
	CHECK_EQ(flexsc_loop_timer(loop, &cb, 1), -ESTALE);
	CHECK_EQ(flexsc_loop_signal(loop, &cb, SIGUSR1), -ESTALE);
	CHECK_EQ(flexsc_loop_wake(loop, &cb), -ESTALE);
	CHECK_EQ(flexsc_loop_cancel(loop, &readers[0].call.cb), -ESTALE);
	CHECK_EQ(flexsc_loop_cancel_fd(loop, readers[0].p[0]), -ESTALE);
	CHECK_EQ(flexsc_loop_deadline(loop, &readers[0].call.cb, 1), -ESTALE);
	CHECK_EQ(flexsc_loop_getppid_after(loop, &cb, &readers[0].call.cb, 0),
		 -ESTALE);
	CHECK_EQ(flexsc_loop_submit(loop), -ESTALE);
	CHECK_EQ(flexsc_loop_dispatch(loop), -ESTALE);
	CHECK_EQ(flexsc_loop_wait(loop, 0), -ESTALE);
	CHECK_EQ(flexsc_loop_run(loop), -ESTALE);
}

static void own_loop_works(struct flexsc_loop *loop)
{
	struct call reader = CALL_INIT;
	char c = 0;
	int p[2];

	CHECK_EQ(DO(loop, SYS_getpid), getpid());
	CHECK_EQ(pipe2(p, O_CLOEXEC), 0);
	CHECK_EQ(write(p[1], "y", 1), 1);
	POST(loop, &reader, SYS_read, p[0], &c, 1);
	CHECK_EQ(await_call(loop, &reader), 1);
	CHECK_EQ(c, 'y');
}

/*
 * TSan supports no new threads in a child of a process with threads: it takes the
 * parent's threads for them.
 */
#define NEEDS_THREADS_IN_CHILD()					\
	do {								\
		if (UNDER_TSAN && !strcmp(test_engine(), "threads"))	\
			SKIP("TSan supports no threads after a fork");	\
	} while (0)

TEST(a_child_has_no_loop_and_makes_its_own)
{
	struct flexsc_loop *loop;
	int pid;

	NEEDS_THREADS_IN_CHILD();
	CHECK_EQ(flexsc_init(), 0);
	loop = flexsc_loop_default();
	own_loop_works(loop);
	pid = test_fork();
	if (pid == 0) {
		CHECK(!flexsc_loop_default());
		parent_loop_is_stale(loop);
		CHECK_EQ(flexsc_init(), 0);
		CHECK(flexsc_loop_default() != loop);
		own_loop_works(flexsc_loop_default());
		CHECK_EQ(flexsc_fini(), 0);
		CHECK_EQ(flexsc_loop_destroy(loop), 0);
		test_leave();
	}
	test_reap(pid);
	own_loop_works(loop);
	CHECK_EQ(flexsc_fini(), 0);
}

WAITING_TEST(a_fork_while_calls_are_pending_disturbs_neither)
{
	int pid;

	NEEDS_THREADS_IN_CHILD();
	post_reads();
	for (unsigned int i = 0; i < 4; i++) {
		pid = test_fork();
		if (pid == 0) {
			parent_loop_is_stale(loop);
			if (i & 1)
				test_end_loop();
			own_loop_works(test_loop());
			/*
			 * In the child, ASan doesn't know the parent's threads, and
			 * would report leaks.
			 */
			if ((i & 2) && !UNDER_ASAN)
				exit(EXIT_SUCCESS);
			test_leave();
		}
		test_reap(pid);
	}
	CHECK_EQ(done, 0);
	feed_reads();
	own_loop_works(loop);
}

/* Calls that were posted and not yet submitted belong to the parent, too. */
LOOP_TEST(a_fork_before_the_batch_runs_nothing_twice)
{
	int event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), pid;
	uint64_t one = 1, sum = 0;

	for (unsigned int i = 0; i < 100; i++)
		CHECK_EQ(flexsc_loop_call(loop, NULL,
					  ARGS(SYS_write, event, &one, 8)), 0);
	pid = test_fork();
	if (pid == 0) {
		CHECK_EQ(flexsc_loop_run(loop), -ESTALE);
		test_end_loop();
		test_leave();
	}
	test_reap(pid);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK_EQ(read(event, &sum, 8), 8);
	CHECK_EQ(sum, 100);
}

/*
 * The child keeps running. The descriptors that it inherited must not keep the pipes
 * open.
 */
WAITING_TEST(a_child_that_keeps_running_holds_nothing)
{
	struct call reader = CALL_INIT;
	int p[2], stay[2], pid;
	char c;

	CHECK_EQ(pipe2(p, O_CLOEXEC), 0);
	CHECK_EQ(pipe2(stay, O_CLOEXEC), 0);
	POST(loop, &reader, SYS_read, p[0], &c, 1);
	run_for(loop, 20);
	pid = test_fork();
	if (pid == 0) {
		close(p[0]);
		close(p[1]);
		close(stay[1]);
		CHECK_EQ(read(stay[0], &c, 1), 0);
		test_leave();
	}
	CHECK_EQ(flexsc_loop_cancel(loop, &reader.cb), 0);
	CHECK(is_cancelled(await_call(loop, &reader)));
	test_end_loop();
	close(p[0]);
	signal(SIGPIPE, SIG_IGN);
	for (unsigned int i = 0; i < 500; i++) {
		if (write(p[1], "x", 1) < 0)
			break;
		sleep_ms(10);
	}
	CHECK_EQ(write(p[1], "x", 1), -1);
	CHECK_EQ(errno, EPIPE);
	close(stay[1]);
	test_reap(pid);
}

/*
 * The tests below execute this program again. The new process reports how many
 * descriptors it has inherited.
 */
__attribute__((constructor)) static void count_inherited(void)
{
	if (getenv("FLEXSC_TEST_COUNT_FDS"))
		_exit((int)count_fds());
}

static int inherited_fds(void)
{
	char *argv[] = { (char *)"count", NULL };
	int pid, status;

	setenv("FLEXSC_TEST_COUNT_FDS", "1", 1);
	CHECK_EQ(posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, environ),
		 0);
	unsetenv("FLEXSC_TEST_COUNT_FDS");
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status));
	return WEXITSTATUS(status);
}

TEST(exec_inherits_no_descriptor)
{
	int before = inherited_fds();
	struct call signal_cb = CALL_INIT;

	loop = test_loop();
	CHECK_EQ(flexsc_init(), 0);
	CHECK_EQ(flexsc_loop_signal(loop, &signal_cb.cb, SIGUSR1), 0);
	if (strcmp(test_engine(), "sync"))
		post_reads();
	CHECK(count_fds() > (unsigned int)before);
	CHECK_EQ(inherited_fds(), before);
	if (strcmp(test_engine(), "sync"))
		feed_reads();
	CHECK_EQ(flexsc_fini(), 0);
	test_end_loop();
}

static void *use_default_loop(void *arg)
{
	CHECK_EQ(flexsc_init(), 0);
	own_loop_works(flexsc_loop_default());
	return arg;
}

static void in_a_thread(void *(*run)(void *))
{
	pthread_t thread;

	thread = test_thread(run, NULL);
	CHECK_EQ(pthread_join(thread, NULL), 0);
}

/* own_loop_works() leaves a pipe in each round. The library may leave nothing. */
TEST(the_end_of_a_thread_ends_its_default_loop)
{
	unsigned int fds;

	in_a_thread(use_default_loop);
	CHECK(falls_to(count_tasks, 1 + TSAN_TASKS));
	fds = count_fds();
	for (unsigned int i = 0; i < 10; i++)
		in_a_thread(use_default_loop);
	CHECK(falls_to(count_fds, fds + 20));
	CHECK(falls_to(count_tasks, 1 + TSAN_TASKS));
}

static struct flexsc_loop *left_by_thread;

static void *leave_a_loop(void *arg)
{
	CHECK_EQ(flexsc_loop_create(&left_by_thread, NULL), 0);
	CHECK_EQ(flexsc_loop_set_default(left_by_thread), 0);
	return arg;
}

/* flexsc_loop_set_default() doesn't transfer the loop: its creator still destroys it. */
TEST(the_end_of_a_thread_keeps_a_loop_that_was_only_set)
{
	struct flexsc_stats stats;

	in_a_thread(leave_a_loop);
	CHECK_EQ(flexsc_loop_stats(left_by_thread, &stats, sizeof(stats)), 0);
	CHECK_EQ(strcmp(flexsc_loop_engine(left_by_thread), test_engine()), 0);
}

static void come_and_go(void)
{
	struct flexsc_loop *loop = test_loop();
	struct call timer = CALL_INIT, signal_cb = CALL_INIT, sleeper = CALL_INIT;
	static const struct timespec brief = { 0, 1000 };

	CHECK_EQ(flexsc_loop_timer(loop, &timer.cb, 3600 * SECOND), 0);
	CHECK_EQ(flexsc_loop_signal(loop, &signal_cb.cb, SIGUSR1), 0);
	POST(loop, &sleeper, SYS_nanosleep, &brief, NULL);
	CHECK_EQ(await_call(loop, &sleeper), 0);
	CHECK_EQ(DO(loop, SYS_getppid), getppid());
	CHECK_EQ(flexsc_loop_destroy(loop), 0);
	CHECK_EQ(timer.runs + signal_cb.runs, 2);
}

TEST_LIMIT(a_thousand_loops_leave_nothing, 60)
{
	unsigned int fds, maps;

	/*
	 * Otherwise malloc() would map an arena for each thread that contends, and
	 * their number varies.
	 */
#ifdef __GLIBC__
	mallopt(M_ARENA_MAX, 1);
#endif
	for (unsigned int i = 0; i < 20; i++)
		come_and_go();
	fds = count_fds();
	maps = count_maps();
	for (unsigned int i = 0; i < MANY(1000); i++)
		come_and_go();
	CHECK_EQ(count_fds(), fds);
	CHECK(falls_to(count_tasks, 1 + TSAN_TASKS));
	/* libc may keep some thread stacks. A leak would show 1000. */
	CHECK(count_maps() <= maps + 10);
}

/* A failed creation leaks nothing either. */
TEST(a_thousand_failures_leave_nothing)
{
	struct flexsc_options bad = FLEXSC_OPTIONS_INIT;
	struct flexsc_loop *loop;
	unsigned int fds, maps;

	bad.kernel_cores = "99999";
	CHECK_EQ(flexsc_loop_create(&loop, &bad), -EINVAL);
	fds = count_fds();
	maps = count_maps();
	for (unsigned int i = 0; i < 1000; i++)
		CHECK_EQ(flexsc_loop_create(&loop, &bad), -EINVAL);
	CHECK_EQ(count_fds(), fds);
	CHECK(count_maps() <= maps + 4);
}

/* Loops of one thread and of several threads don't affect each other. */
static void *churn(void *arg)
{
	for (unsigned int i = 0; i < MANY(100); i++) {
		struct flexsc_loop *a = test_loop(), *b = test_loop();

		CHECK_EQ(DO(a, SYS_getppid), getppid());
		CHECK_EQ(DO(b, SYS_getppid), getppid());
		CHECK_EQ(flexsc_loop_destroy(a), 0);
		CHECK_EQ(flexsc_loop_destroy(b), 0);
	}
	return arg;
}

TEST_LIMIT(threads_make_and_destroy_loops_at_once, 40)
{
	pthread_t threads[4];

	for (unsigned int i = 0; i < 4; i++)
		threads[i] = test_thread(churn, NULL);
	/*
	 * The child would inherit a sanitizer's locks, held by threads that don't
	 * exist in it.
	 */
	for (unsigned int i = 0; i < 20 && !SANITIZED; i++) {
		int pid = test_fork();

		if (pid == 0) {
			own_loop_works(test_loop());
			test_leave();
		}
		test_reap(pid);
	}
	for (unsigned int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
}
