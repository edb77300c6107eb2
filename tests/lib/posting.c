/* SPDX-License-Identifier: MIT */
/*
 * Posting: when the callback of a post runs, and which errors a post returns.
 * Results of the calls themselves are in results_*.c.
 */
#include "tests/harness/harness.h"
#include "tests/lib/counted.h"

LOOP_TEST(the_callback_runs_once_and_never_inside_the_post)
{
	static struct call calls[1000];

	for (unsigned int i = 0; i < 1000; i++) {
		calls[i].cb.callback = call_done;
		POST(loop, &calls[i], SYS_getppid);
		CHECK_EQ(calls[i].runs, 0);
	}
	CHECK_EQ(flexsc_loop_run(loop), 0);
	run_for(loop, 20);
	for (unsigned int i = 0; i < 1000; i++) {
		CHECK_EQ(calls[i].runs, 1);
		CHECK_EQ(calls[i].cb.ret, getppid());
	}
}

LOOP_TEST(a_cb_without_callback_gets_its_result)
{
	struct flexsc_cb cb = { .ret = 12345 };

	CHECK_EQ(flexsc_loop_call(loop, &cb, ARGS(SYS_close, -1)), 0);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK_EQ(cb.ret, -EBADF);
}

LOOP_TEST(calls_without_cb_run)
{
	int fd[100];

	for (unsigned int i = 0; i < 100; i++) {
		fd[i] = fcntl(0, F_DUPFD, 0);
		CHECK(fd[i] >= 0);
		CHECK_EQ(flexsc_loop_call(loop, NULL, ARGS(SYS_close, fd[i])), 0);
	}
	CHECK_EQ(flexsc_loop_run(loop), 0);
	for (unsigned int i = 0; i < 100; i++)
		CHECK_EQ(fcntl(fd[i], F_GETFD), -1);
	CHECK_EQ(stats_of(loop).completed, 100);
}

LOOP_TEST(calls_without_cb_run_before_the_loop_is_gone)
{
	int fd[100];

	for (unsigned int i = 0; i < 100; i++) {
		fd[i] = fcntl(0, F_DUPFD, 0);
		CHECK_EQ(flexsc_loop_call(loop, NULL, ARGS(SYS_close, fd[i])), 0);
	}
	test_end_loop();
	for (unsigned int i = 0; i < 100; i++)
		CHECK_EQ(fcntl(fd[i], F_GETFD), -1);
}

LOOP_TEST(surplus_arguments_are_ignored)
{
	int fd = fcntl(0, F_DUPFD, 0);

	CHECK_EQ(DO(loop, SYS_getpid, -1, -1, -1, -1, -1, -1), getpid());
	CHECK_EQ(DO(loop, SYS_close, fd, -1, -1, -1, -1, -1), 0);
}

/* Arguments that aren't passed are 0. */
LOOP_TEST(a_call_is_posted_with_three_arguments)
{
	struct call call = CALL_INIT;
	int p[2];
	char c = 'p';

	CHECK_EQ(pipe2(p, O_CLOEXEC), 0);
	CHECK_EQ(write(p[1], "ab", 2), 2);
	for (unsigned int i = 0; i < 2; i++) {
		call.runs = 0;
		CHECK_EQ(flexsc__call3(loop, &call.cb, SYS_read,
					   (uint64_t)p[0], (uintptr_t)&c, 1),
			 0);
		CHECK_EQ(call.runs, 0);
		CHECK_EQ(await_call(loop, &call), 1);
		CHECK_EQ(c, "ab"[i]);
	}
	call.runs = 0;
	CHECK_EQ(flexsc__call3(loop, &call.cb, SYS_getppid, 1, 2, 3), 0);
	CHECK_EQ(await_call(loop, &call), getppid());
	/* The missing offset is 0. A pipe has no offsets, so the call fails. */
	call.runs = 0;
	CHECK_EQ(flexsc__call3(loop, &call.cb, SYS_pwrite64, (uint64_t)p[1],
				   (uintptr_t)"x", 1), 0);
	CHECK_EQ(await_call(loop, &call), -ESPIPE);
	CHECK_EQ(flexsc__call3(NULL, NULL, SYS_close, 0, 0, 0), -ENXIO);
	CHECK_EQ(flexsc__call3(loop, NULL, SYS_exit, 0, 0, 0), -EOPNOTSUPP);
	CHECK_EQ(flexsc__call3(loop, NULL, 100000, 0, 0, 0), -ENOSYS);
	CHECK_EQ(flexsc_loop_call(loop, NULL, SYS_exit, 0, 0, 0, 0, 0, 0),
		 -EOPNOTSUPP);
	CHECK_EQ(flexsc_loop_call(loop, NULL, 511, 0, 0, 0, 0, 0, 0), -ENOSYS);
}

/* The upper half of an int argument is ignored. */
LOOP_TEST(int_arguments_may_have_garbage_above)
{
	uint64_t garbage = 0xdeadbeef00000000ULL;
	char c;
	int p[2];

	CHECK_EQ(pipe2(p, O_CLOEXEC), 0);
	CHECK_EQ(DO(loop, SYS_write, garbage | (uint64_t)p[1], "x", 1), 1);
	CHECK_EQ(DO(loop, SYS_read, garbage | (uint64_t)p[0], &c, 1), 1);
	CHECK_EQ(DO(loop, SYS_close, garbage | (uint64_t)p[0]), 0);
	CHECK_EQ(DO(loop, SYS_fcntl, garbage | (uint64_t)p[0], F_GETFD), -EBADF);
}

static void repost(struct flexsc_cb *cb)
{
	CHECK_EQ(cb->ret, getppid());
	if (++done < 1000)
		CHECK_EQ(flexsc_loop_call(loop, cb, ARGS(SYS_getppid)), 0);
}

LOOP_TEST(a_callback_may_post_its_own_cb)
{
	struct flexsc_cb cb = { .callback = repost };

	CHECK_EQ(flexsc_loop_call(loop, &cb, ARGS(SYS_getppid)), 0);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK_EQ(done, 1000);
}

/* A tree of posts: every callback posts two more cbs, and then frees its own. */
static void branch(struct flexsc_cb *cb)
{
	intptr_t depth = (intptr_t)cb->arg;

	done++;
	for (unsigned int i = 0; depth && i < 2; i++) {
		struct flexsc_cb *child = malloc(sizeof(*child));

		CHECK(child);
		child->callback = branch;
		child->arg = (void *)(depth - 1);
		CHECK_EQ(flexsc_loop_call(loop, child, ARGS(SYS_getppid)), 0);
	}
	memset(cb, 0x5a, sizeof(*cb));
	free(cb);
}

TEST(a_callback_may_post_others_and_free_its_cb)
{
	struct flexsc_cb *root = malloc(sizeof(*root));

	CHECK(root);
	root->callback = branch;
	root->arg = (void *)10;
	loop = test_loop();
	CHECK_EQ(flexsc_loop_call(loop, root, ARGS(SYS_getppid)), 0);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK_EQ(done, 2047);
}

TEST(a_loop_that_is_null_is_enxio)
{
	struct flexsc_cb cb = { .callback = count_done };
	struct flexsc_stats stats;

	CHECK_EQ(flexsc_loop_call(NULL, &cb, ARGS(SYS_getpid)), -ENXIO);
	CHECK_EQ(flexsc_loop_cancel(NULL, &cb), -ENXIO);
	CHECK_EQ(flexsc_loop_cancel_fd(NULL, 0), -ENXIO);
	CHECK_EQ(flexsc_loop_deadline(NULL, &cb, 1), -ENXIO);
	CHECK_EQ(flexsc_loop_getppid_after(NULL, &cb, &cb, 0), -ENXIO);
	CHECK_EQ(flexsc_loop_timer(NULL, &cb, 1), -ENXIO);
	CHECK_EQ(flexsc_loop_signal(NULL, &cb, SIGUSR1), -ENXIO);
	CHECK_EQ(flexsc_loop_wake(NULL, &cb), -ENXIO);
	CHECK_EQ(flexsc_loop_run(NULL), -ENXIO);
	CHECK_EQ(flexsc_loop_stop(NULL), -ENXIO);
	CHECK_EQ(flexsc_loop_submit(NULL), -ENXIO);
	CHECK_EQ(flexsc_loop_dispatch(NULL), -ENXIO);
	CHECK_EQ(flexsc_loop_wait(NULL, 0), -ENXIO);
	CHECK_EQ(flexsc_loop_stats(NULL, &stats, sizeof(stats)), -ENXIO);
	CHECK_EQ(flexsc_loop_create(NULL, NULL), -EINVAL);
	CHECK_EQ(flexsc_loop_destroy(NULL), 0);
	CHECK(!flexsc_loop_default());
	CHECK_EQ(flexsc_getpid(&cb), -ENXIO);
	CHECK_EQ(flexsc_cancel(&cb), -ENXIO);
	CHECK_EQ(flexsc_timer(&cb, 1), -ENXIO);
	CHECK_EQ(flexsc_work(&cb, NULL, NULL), -ENXIO);
	CHECK_EQ(flexsc_accept_multishot(&cb, 0, 0), -ENXIO);
	CHECK_EQ(flexsc_main_loop(), -ENXIO);
	CHECK_EQ(flexsc_wait(0), -ENXIO);
	/* The error for a loop that is NULL. */
	CHECK_EQ(flexsc_fini(), 0);
	CHECK_EQ(done, 0);
}

/* Only a build with checks detects this. In others the behaviour is undefined. */
LOOP_TEST(posting_a_pending_cb_is_ebusy)
{
	struct call timer = CALL_INIT;
	int ret;

	CHECK_EQ(flexsc_loop_timer(loop, &timer.cb, 3600 * SECOND), 0);
	ret = flexsc_loop_signal(loop, &timer.cb, SIGUSR1);
	if (ret == 0)
		SKIP("the library was built without checks");
	CHECK_EQ(ret, -EBUSY);
	CHECK_EQ(flexsc_loop_call(loop, &timer.cb, ARGS(SYS_getpid)), -EBUSY);
	/* A timer that is posted again is replaced: see timer.c. */
	CHECK_EQ(flexsc_loop_timer(loop, &timer.cb, 3600 * SECOND), 0);
	CHECK_EQ(timer.runs, 0);
	CHECK_EQ(flexsc_loop_cancel(loop, &timer.cb), 0);
	CHECK_EQ(await_call(loop, &timer), -ECANCELED);
	timer.runs = 0;
	POST(loop, &timer, SYS_getpid);
	CHECK_EQ(flexsc_loop_call(loop, &timer.cb, ARGS(SYS_getpid)), -EBUSY);
	CHECK_EQ(flexsc_loop_timer(loop, &timer.cb, 0), -EBUSY);
	CHECK_EQ(await_call(loop, &timer), getpid());
	CHECK_EQ(flexsc_loop_wake(loop, &timer.cb), 0);
	CHECK_EQ(flexsc_loop_timer(loop, &timer.cb, 0), -EBUSY);
	CHECK_EQ(flexsc_loop_run(loop), 0);
}

static int refusal;

static void post_while_closing(struct flexsc_cb *cb)
{
	static struct flexsc_cb other;

	done++;
	refusal = flexsc_loop_call(loop, cb, ARGS(SYS_getpid));
	CHECK_EQ(refusal, -ESHUTDOWN);
	CHECK_EQ(flexsc_loop_call(loop, NULL, ARGS(SYS_getpid)), -ESHUTDOWN);
	CHECK_EQ(flexsc_loop_timer(loop, &other, 1), -ESHUTDOWN);
	CHECK_EQ(flexsc_loop_signal(loop, &other, SIGUSR1), -ESHUTDOWN);
}

LOOP_TEST(posting_while_the_loop_is_destroyed_is_eshutdown)
{
	struct flexsc_cb call = { .callback = post_while_closing };
	struct flexsc_cb timer = { .callback = post_while_closing };

	CHECK_EQ(flexsc_loop_call(loop, &call, ARGS(SYS_getppid)), 0);
	CHECK_EQ(flexsc_loop_timer(loop, &timer, 3600 * SECOND), 0);
	test_end_loop();
	CHECK_EQ(done, 2);
	CHECK_EQ(refusal, -ESHUTDOWN);
	CHECK(call.ret == getppid() || call.ret == -ECANCELED);
	CHECK_EQ(timer.ret, -ECANCELED);
}

TEST(the_paper_s_functions_use_the_default_loop)
{
	struct flexsc_cb open_cb = { .callback = count_done };
	struct flexsc_cb read_cb = { .callback = count_done };
	char buf[5] = "";

	CHECK_EQ(flexsc_init(), 0);
	CHECK_EQ(flexsc_openat(&open_cb, AT_FDCWD, "/proc/self/comm", O_RDONLY, 0),
		 0);
	CHECK_EQ(flexsc_main_loop(), 0);
	CHECK(open_cb.ret >= 0);
	CHECK_EQ(flexsc_read(&read_cb, (int)open_cb.ret, buf, 4), 0);
	CHECK_EQ(flexsc_main_loop(), 0);
	CHECK_EQ(read_cb.ret, 4);
	CHECK_EQ(flexsc_close(NULL, (int)open_cb.ret), 0);
	CHECK_EQ(flexsc_main_loop(), 0);
	CHECK_EQ(fcntl((int)open_cb.ret, F_GETFD), -1);
	CHECK_EQ(done, 2);
	CHECK_EQ(flexsc_fini(), 0);
	CHECK(!flexsc_loop_default());
}

#ifdef PR_SET_SYSCALL_USER_DISPATCH
/* While "dispatch" is set to block, the kernel sends SIGSYS for each system call. */
static volatile char dispatch = SYSCALL_DISPATCH_FILTER_ALLOW;
static volatile sig_atomic_t trapped;

static void on_trap(int signo)
{
	(void)signo;
	dispatch = SYSCALL_DISPATCH_FILTER_ALLOW;
	trapped++;
}

static void trap_system_calls(void)
{
	signal(SIGSYS, on_trap);
	if (prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, 0, 0,
		  &dispatch))
		SKIP("syscall user dispatch doesn't work here: %s", strerror(errno));
	dispatch = SYSCALL_DISPATCH_FILTER_BLOCK;
	syscall(SYS_getppid);
	CHECK_EQ(trapped, 1);
	trapped = 0;
}

/* The first round may allocate pages and lists. The second round has all it needs. */
static void post_one_of_each(struct call *calls)
{
	for (unsigned int i = 0; i < 32; i++) {
		flexsc_loop_call(loop, &calls[i].cb, ARGS(SYS_getppid));
		flexsc_loop_deadline(loop, &calls[i].cb, 3600 * SECOND);
		if (i % 4 == 0)
			flexsc_loop_getppid_after(loop, NULL, &calls[i].cb, 0);
	}
	flexsc_loop_timer(loop, &calls[32].cb, 3600 * SECOND);
	flexsc_loop_cancel(loop, &calls[32].cb);
	flexsc_loop_cancel(loop, &calls[31].cb);
}

LOOP_TEST(posting_makes_no_system_call)
{
	static struct call calls[33];
	unsigned int ran = 0;

	if (SANITIZED)
		SKIP("sanitizers make additional system calls");
	for (unsigned int i = 0; i < 33; i++)
		calls[i].cb.callback = call_done;
	post_one_of_each(calls);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	trap_system_calls();
	dispatch = SYSCALL_DISPATCH_FILTER_BLOCK;
	post_one_of_each(calls);
	dispatch = SYSCALL_DISPATCH_FILTER_ALLOW;
	CHECK_EQ(trapped, 0);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	for (unsigned int i = 0; i < 33; i++)
		ran += calls[i].runs;
	CHECK_EQ(ran, 66);
}
#endif
