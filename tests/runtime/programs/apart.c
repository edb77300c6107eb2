/* SPDX-License-Identifier: MIT */
/*
 * State that belongs to a kernel thread. Once a user thread has such state, it stays
 * on the kernel thread that holds it.
 */
#define _GNU_SOURCE
#include <linux/close_range.h>
#include <linux/keyctl.h>
#include <linux/mempolicy.h>
#include <linux/perf_event.h>
#include <liburing.h>
#include <sched.h>
#include <stdio.h>
#include <sys/fsuid.h>
#if defined(__x86_64__)
#include <sys/io.h>
#endif
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "threads.h"

static bool is_home(void)
{
	return kernel_thread() == gettid();
}

static int counter_of(pid_t tid, bool inherit)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_TASK_CLOCK,
		.inherit = inherit,
	};

	return (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, 0);
}

/* Each of these gives the calling thread such state, if the kernel permits it. */

static void counts_itself(void)
{
	close(counter_of(0, false));
}

static void counts_itself_by_id(void)
{
	close(counter_of(gettid(), false));
}

static void counts_its_children(void)
{
	close(counter_of(0, true));
}

static void makes_a_ring_for(unsigned int flags)
{
	struct io_uring_params params = { .flags = flags };

	close((int)syscall(SYS_io_uring_setup, 4, &params));
}

static void makes_a_ring_for_itself(void)
{
	makes_a_ring_for(IORING_SETUP_SINGLE_ISSUER);
}

static void makes_a_ring_that_waits_for_its_calls(void)
{
	makes_a_ring_for(IORING_SETUP_COOP_TASKRUN);
}

static void submits_to_its_ring(void)
{
	struct io_uring ring;

	CHECK_EQ(io_uring_queue_init(4, &ring, IORING_SETUP_SINGLE_ISSUER), 0);
	CHECK_EQ(io_uring_submit(&ring), 0);
	io_uring_queue_exit(&ring);
}

static void registers_a_ring(void)
{
	struct io_uring ring;

	CHECK_EQ(io_uring_queue_init(4, &ring, 0), 0);
	CHECK_EQ(io_uring_register_ring_fd(&ring), 1);
	CHECK_EQ(io_uring_submit(&ring), 0);
	io_uring_queue_exit(&ring);
}

static void sets_an_io_priority(void)
{
	syscall(SYS_ioprio_set, 1, 0, 2 << 13 | 4);
}

static void sets_a_memory_policy(void)
{
	syscall(SYS_set_mempolicy, MPOL_LOCAL, NULL, 0);
}

static void joins_a_keyring(void)
{
	syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL);
}

static void has_a_key(void)
{
	syscall(SYS_add_key, "user", "flexsc-test", "x", 1,
		KEY_SPEC_THREAD_KEYRING);
}

static void sets_the_clock_instruction(void)
{
	prctl(PR_SET_TSC, PR_TSC_ENABLE);
}

static void dispatches_calls(void)
{
	prctl(59 /* PR_SET_SYSCALL_USER_DISPATCH */, 0, 0, 0, 0);
}

static void has_a_folder(void)
{
	unshare(CLONE_FS);
}

static void has_descriptors(void)
{
	unshare(CLONE_FILES);
}

static void closes_descriptors_of_its_own(void)
{
	syscall(SYS_close_range, ~0U, ~0U, CLOSE_RANGE_UNSHARE);
}

static void has_a_personality(void)
{
	personality(0);
}

#if defined(__x86_64__)
static void has_ports(void)
{
	ioperm(0x80, 1, 0);
}
#endif

static void has_an_identity(void)
{
	setfsuid(geteuid());
}

static const struct {
	const char *name;
	void (*get)(void);
} states[] = {
	{ "perf_event_open, itself", counts_itself },
	{ "perf_event_open, by its id", counts_itself_by_id },
	{ "perf_event_open, with children", counts_its_children },
	{ "io_uring_setup, one issuer", makes_a_ring_for_itself },
	{ "io_uring_setup, cooperative", makes_a_ring_that_waits_for_its_calls },
	{ "io_uring_submit, one issuer", submits_to_its_ring },
	{ "io_uring_submit, registered", registers_a_ring },
	{ "ioprio_set", sets_an_io_priority },
	{ "set_mempolicy", sets_a_memory_policy },
	{ "keyctl, join", joins_a_keyring },
	{ "add_key", has_a_key },
	{ "prctl, TSC", sets_the_clock_instruction },
	{ "prctl, dispatch", dispatches_calls },
	{ "unshare, FS", has_a_folder },
	{ "unshare, FILES", has_descriptors },
	{ "close_range, UNSHARE", closes_descriptors_of_its_own },
	{ "personality", has_a_personality },
#if defined(__x86_64__)
	{ "ioperm", has_ports },
#endif
	{ "setfsuid", has_an_identity },
};

static void wait_somewhere(void)
{
	for (int i = 0; i < 3; i++)
		usleep(100);
}

static void *stay(void *arg)
{
	void (*const *get)(void) = arg;

	/* A thread that has never left its host would prove nothing. */
	CHECK_EQ(becomes_carried(), preloaded());
	(*get)();
	for (int i = 0; i < 3; i++) {
		wait_somewhere();
		CHECK(is_home());
	}
	return arg;
}

TEST(a_thread_stays_where_its_state_is)
{
	for (unsigned int i = 0; i < sizeof(states) / sizeof(*states); i++) {
		test_note("%s", states[i].name);
		join(start(stay, (void *)&states[i].get));
	}
}

static void *leave(void *arg)
{
	CHECK_EQ(becomes_carried(), preloaded());
	return arg;
}

/* A thread doesn't inherit this state, so it isn't bound to its host. */
TEST(a_ring_is_not_inherited)
{
	makes_a_ring_for_itself();
	join(start(leave, NULL));
}

/* A counter of another thread. */

static atomic_int tid;
static atomic_bool counted, seen;

static void *be_counted(void *arg)
{
	wait_somewhere();
	tid = gettid();
	while (!counted)
		wait_somewhere();
	wait_somewhere();
	CHECK(is_home());
	seen = true;
	return arg;
}

TEST(a_thread_that_is_counted_by_another_stays_at_home)
{
	pthread_t thread = start(be_counted, NULL);
	int fd;

	while (!tid)
		usleep(1000);
	fd = counter_of(tid, false);
	if (fd < 0) {
		pthread_cancel(thread);
		join(thread);
		SKIP("perf_event_open: %s", strerror(errno));
	}
	counted = true;
	join(thread);
	CHECK(seen);
	close(fd);
}

/* A descriptor table that a thread doesn't share. */

static void *close_all_alone(void *arg)
{
	int p[2];
	char c;

	CHECK_EQ(becomes_carried(), preloaded());
	CHECK_EQ(syscall(SYS_close_range, 3, ~0U, CLOSE_RANGE_UNSHARE), 0);
	CHECK_EQ(pipe(p), 0);
	CHECK(p[0] >= 3);
	for (int i = 0; i < 10; i++) {
		CHECK_EQ(write(p[1], "x", 1), 1);
		wait_somewhere();
		CHECK_EQ(read(p[0], &c, 1), 1);
	}
	return arg;
}

/* Other threads keep their descriptors, and the runtime keeps its rings. */
TEST(a_thread_closes_descriptors_that_others_keep)
{
	int p[2];
	char c;

	CHECK_EQ(pipe2(p, O_CLOEXEC), 0);
	join(start(close_all_alone, NULL));
	CHECK_EQ(write(p[1], "y", 1), 1);
	CHECK_EQ(read(p[0], &c, 1), 1);
	join(start(leave, NULL));
	close(p[0]);
	close(p[1]);
}

/* One ring per thread. */

#define USERS		6
#define TURNS		20

struct use {
	unsigned int flags;
	bool registered;
};

static void *use_ring(void *arg)
{
	const struct use *use = arg;
	struct io_uring_params params = { .flags = use->flags };
	struct io_uring ring;
	char c = 0;
	int p[2];

	wait_somewhere();
	CHECK_EQ(io_uring_queue_init_params(8, &ring, &params), 0);
	if (use->registered)
		CHECK_EQ(io_uring_register_ring_fd(&ring), 1);
	CHECK_EQ(pipe2(p, O_CLOEXEC), 0);
	for (uint64_t turn = 0; turn < TURNS; turn++) {
		struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);
		struct io_uring_cqe *cqe;

		wait_somewhere();
		io_uring_prep_read(sqe, p[0], &c, 1, 0);
		io_uring_sqe_set_data64(sqe, turn);
		CHECK_EQ(io_uring_submit(&ring), 1);
		wait_somewhere();
		CHECK_EQ(write(p[1], &(char){ (char)turn }, 1), 1);
		CHECK_EQ(io_uring_wait_cqe(&ring, &cqe), 0);
		CHECK_EQ(cqe->user_data, turn);
		CHECK_EQ(cqe->res, 1);
		CHECK_EQ(c, (char)turn);
		io_uring_cqe_seen(&ring, cqe);
	}
	io_uring_queue_exit(&ring);
	close(p[0]);
	close(p[1]);
	return arg;
}

static void each_uses_a_ring(struct use use)
{
	struct io_uring_params params = { .flags = use.flags };
	struct io_uring ring;
	int err = io_uring_queue_init_params(8, &ring, &params);

	if (err)
		SKIP("io_uring_setup: %s", strerror(-err));
	io_uring_queue_exit(&ring);
	run_all(USERS, use_ring, &use);
}

TEST(rings_are_used_by_many_threads)
{
	each_uses_a_ring((struct use){ 0 });
}

TEST(rings_have_one_issuer)
{
	each_uses_a_ring((struct use){
		.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
	});
}

TEST(rings_are_registered_with_their_threads)
{
	each_uses_a_ring((struct use){ .registered = true });
}

/* A ring that threads share binds none of them to its host. */

static struct shared_ring {
	struct io_uring ring;
	pthread_mutex_t lock;
	int pipe[2];
	char byte;
	atomic_bool submitted, end;
} shared = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void submit_read(void)
{
	struct io_uring_sqe *sqe;

	pthread_mutex_lock(&shared.lock);
	sqe = io_uring_get_sqe(&shared.ring);
	io_uring_prep_read(sqe, shared.pipe[0], &shared.byte, 1, 0);
	CHECK_EQ(io_uring_submit(&shared.ring), 1);
	pthread_mutex_unlock(&shared.lock);
}

static void complete_read(void)
{
	struct io_uring_cqe *cqe;

	CHECK_EQ(write(shared.pipe[1], "x", 1), 1);
	CHECK_EQ(io_uring_wait_cqe(&shared.ring, &cqe), 0);
	CHECK_EQ(cqe->res, 1);
	io_uring_cqe_seen(&shared.ring, cqe);
}

static void begin_sharing(void)
{
	int err = io_uring_queue_init(8, &shared.ring, 0);

	if (err)
		SKIP("io_uring_setup: %s", strerror(-err));
	CHECK_EQ(pipe2(shared.pipe, O_CLOEXEC), 0);
}

static void end_sharing(void)
{
	io_uring_queue_exit(&shared.ring);
	close(shared.pipe[0]);
	close(shared.pipe[1]);
}

/* After the submission the thread leaves its host at its next wait. */
static void *submit_and_leave(void *arg)
{
	enum { TIMES = 5, WAITS = 40 };
	int home = 0;

	CHECK_EQ(becomes_carried(), preloaded());
	for (int i = 0; i < TIMES; i++) {
		submit_read();
		complete_read();
		for (int j = 0; j < WAITS; j++) {
			usleep(100);
			home += is_home();
		}
	}
	if (preloaded())
		CHECK(home <= TIMES);
	return arg;
}

TEST(a_shared_ring_keeps_no_thread)
{
	begin_sharing();
	join(start(submit_and_leave, NULL));
	end_sharing();
}

static void *submit_and_wait(void *arg)
{
	wait_somewhere();
	submit_read();
	shared.submitted = true;
	while (!shared.end)
		wait_somewhere();
	return arg;
}

/*
 * A fork may end kernel threads of the runtime. When a thread ends, the kernel
 * cancels the requests that it has submitted; those of the program must survive.
 */
TEST(a_request_of_a_shared_ring_outlives_a_fork)
{
	pthread_t thread;
	int pid;

	begin_sharing();
	thread = start(submit_and_wait, NULL);
	while (!shared.submitted)
		usleep(1000);
	pid = test_fork();
	if (!pid)
		test_leave();
	test_reap(pid);
	complete_read();
	shared.end = true;
	join(thread);
	end_sharing();
}
