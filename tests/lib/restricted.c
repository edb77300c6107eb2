/* SPDX-License-Identifier: MIT */
/*
 * Restrictions and shortages: no io_uring, no threads, no memory, no descriptors.
 * The library falls back to another engine or returns an error. No call is lost.
 */
#include "tests/harness/harness.h"
#include "tests/lib/counted.h"

#include <grp.h>
#include <linux/seccomp.h>
#include <sys/file.h>
#include <sys/mount.h>

static void forbid_call(int nr, int error)
{
	forbid(&nr, 1, error);
}

static void forbid_threads(void)
{
	static const int calls[] = { SYS_clone, SYS_clone3 };

	forbid(calls, 2, EAGAIN);
}

/* Makes fast calls, slow ones, and two of which one wakes the other. */
static void works(struct flexsc_loop *loop)
{
	static const struct timespec brief = { 0, 1000000 };
	struct call reader = CALL_INIT;
	char c = 0;
	int p[2];

	CHECK_EQ(DO(loop, SYS_getppid), getppid());
	CHECK_EQ(DO(loop, SYS_nanosleep, &brief, NULL), 0);
	CHECK_EQ(pipe2(p, O_CLOEXEC), 0);
	if (strcmp(flexsc_loop_engine(loop), "sync")) {
		POST(loop, &reader, SYS_read, p[0], &c, 1);
		CHECK_EQ(DO(loop, SYS_write, p[1], "x", 1), 1);
		CHECK_EQ(await_call(loop, &reader), 1);
		CHECK_EQ(c, 'x');
	}
	close(p[0]);
	close(p[1]);
}

/*
 * No io_uring. These tests are about the automatic choice, so FLEXSC_TEST_ENGINE
 * only selects when they run.
 */

#define ONLY_FOR(engine)						\
	do {								\
		if (strcmp(test_engine(), engine))			\
			SKIP("tested with %s: the result is the same", engine); \
	} while (0)

/*
 * Without io_uring, the loop uses the next engine, and flexsc_loop_why() returns one
 * line that contains the reason.
 */
static void falls_back(const char *reason)
{
	struct flexsc_options options = FLEXSC_OPTIONS_INIT;
	struct flexsc_loop *loop;
	char why[256] = "";

	unsetenv("FLEXSC_ENGINE");
	CHECK_EQ(flexsc_loop_create(&loop, &options), 0);
	CHECK_EQ(strcmp(flexsc_loop_engine(loop), "threads"), 0);
	CHECK(flexsc_loop_why(loop));
	test_note("%s", flexsc_loop_why(loop));
	CHECK(strncmp(flexsc_loop_why(loop), "uring: ", 7) == 0);
	CHECK(strstr(flexsc_loop_why(loop), reason));
	CHECK(!strchr(flexsc_loop_why(loop), '\n'));
	works(loop);
	CHECK_EQ(flexsc_loop_destroy(loop), 0);
	options.engine = "uring";
	loop = NULL;
	CHECK_EQ(flexsc_loop_create(&loop, &options), -EOPNOTSUPP);
	CHECK(!loop);
	CHECK_EQ(flexsc_engine_probe("uring", why, sizeof(why)), -EOPNOTSUPP);
	CHECK(strstr(why, reason));
	CHECK_EQ(flexsc_engine_probe("threads", why, sizeof(why)), 0);
	setenv("FLEXSC_ENGINE", "uring", 1);
	CHECK_EQ(flexsc_loop_create(&loop, NULL), -EOPNOTSUPP);
	CHECK_EQ(flexsc_init(), -EOPNOTSUPP);
	CHECK(!flexsc_loop_default());
}

TEST(a_filter_that_forbids_to_register_is_survived)
{
	struct flexsc_loop *loop;
	char why[256] = "";

	ONLY_FOR("uring");
	forbid_call(SYS_io_uring_register, EPERM);
	unsetenv("FLEXSC_ENGINE");
	CHECK_EQ(flexsc_loop_create(&loop, NULL), 0);
	works(loop);
	CHECK_EQ(flexsc_loop_destroy(loop), 0);
	if (flexsc_engine_probe("uring", why, sizeof(why)))
		CHECK(strstr(why, "seccomp"));
}

static void falls_back_under(int call, uint32_t action, const char *reason)
{
	int pid = test_fork();

	if (!pid) {
		filter_calls(&call, 1, action);
		falls_back(reason);
		test_leave();
	}
	test_reap(pid);
}

/* By default, systemd's SystemCallFilter= ends the process. */
TEST(a_filter_is_named)
{
	static const int calls[] = {
		SYS_io_uring_setup, SYS_io_uring_register, SYS_io_uring_enter,
	};
	static const uint32_t actions[] = {
		SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_KILL_THREAD,
		SECCOMP_RET_TRAP,
	};

	ONLY_FOR("uring");
	falls_back_under(calls[0], SECCOMP_RET_ERRNO | EPERM, "seccomp");
	falls_back_under(calls[0], SECCOMP_RET_ERRNO | ENOSYS, "seccomp");
	/* The failure is found when the loop opens the ring. */
	falls_back_under(calls[2], SECCOMP_RET_ERRNO | EPERM, "seccomp");
	for (unsigned int call = 0; call < 3; call++)
		for (unsigned int action = 0; action < 3; action++)
			falls_back_under(calls[call], actions[action],
					 "seccomp filter ends");
}

/* In /proc/.../status, the line of the filters follows the line of the groups. */
TEST(a_filter_that_kills_is_found_behind_many_groups)
{
	static const int setup = SYS_io_uring_setup;
	gid_t groups[5000];

	ONLY_FOR("uring");
	for (gid_t i = 0; i < 5000; i++)
		groups[i] = 1000000000 + i;
	if (setgroups(5000, groups))
		SKIP("setgroups: %s", strerror(errno));
	filter_calls(&setup, 1, SECCOMP_RET_KILL_PROCESS);
	falls_back("seccomp filter ends");
}

/* A result under one filter isn't used under the next one. */
TEST(a_filter_that_comes_later_is_tried_again)
{
	static const int harmless = SYS_acct, setup = SYS_io_uring_setup;
	char why[256] = "";

	ONLY_FOR("uring");
	filter_calls(&harmless, 1, SECCOMP_RET_KILL_PROCESS);
	CHECK_EQ(flexsc_engine_probe("uring", why, sizeof(why)), 0);
	CHECK_EQ(flexsc_engine_probe("uring", why, sizeof(why)), 0);
	filter_calls(&setup, 1, SECCOMP_RET_KILL_PROCESS);
	falls_back("seccomp filter ends");
	/* No child is left, not even one that only __WALL reports. */
	CHECK_EQ(waitpid(-1, NULL, __WALL), -1);
	CHECK_EQ(errno, ECHILD);
}

static atomic_bool stop;
static atomic_uint reaped;

static void *reap_all(void *arg)
{
	while (!stop)
		if (waitpid(-1, NULL, __WALL) > 0)
			reaped++;
	return arg;
}

/* Another thread reaps the child that tries the filter, and with it gets its status. */
TEST(a_trial_outlives_a_thread_that_waits_for_all_children)
{
	enum { REAPERS = 3, ENOUGH = 5 };
	static const int harmless = SYS_acct;
	pthread_t reapers[REAPERS];
	char why[256];

	ONLY_FOR("uring");
	for (int i = 0; i < REAPERS; i++)
		reapers[i] = test_thread(reap_all, NULL);
	while (reaped < ENOUGH) {
		filter_calls(&harmless, 1, SECCOMP_RET_KILL_PROCESS);
		CHECK_EQ(flexsc_engine_probe("uring", why, sizeof(why)), 0);
	}
	stop = true;
	for (int i = 0; i < REAPERS; i++)
		CHECK_EQ(pthread_join(reapers[i], NULL), 0);
}

static void *probe_under_filter(void *arg)
{
	const int *call = arg;
	static char why[256];

	CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	if (filter_install(call, 1, SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_ALLOW,
			   0))
		SKIP("can't install a seccomp filter: %s", strerror(errno));
	return flexsc_engine_probe("uring", why, sizeof(why)) ? why : NULL;
}

static const char *probe_on_thread(const int *call)
{
	pthread_t thread;
	void *why;

	thread = test_thread(probe_under_filter, (void *)(uintptr_t)call);
	CHECK_EQ(pthread_join(thread, &why), 0);
	return why;
}

/* Each of two threads has one filter. A result under one isn't used under the other. */
TEST(threads_with_equally_many_filters_have_their_own_results)
{
	static const int harmless = SYS_acct, setup = SYS_io_uring_setup;
	const char *why;

	ONLY_FOR("uring");
	CHECK(!probe_on_thread(&harmless));
	why = probe_on_thread(&setup);
	CHECK(why && strstr(why, "seccomp filter ends"));
	CHECK(!probe_on_thread(&harmless));
}

/*
 * A process namespace ends with its first process. This first process has to be the
 * program's child, not the process that tries the filter.
 */
TEST(a_filter_is_not_tried_by_the_first_process_of_a_namespace)
{
	static const int harmless = SYS_acct;
	char why[256] = "";
	int pid;

	ONLY_FOR("uring");
	if (unshare(CLONE_NEWPID) && unshare(CLONE_NEWUSER | CLONE_NEWPID))
		SKIP("unshare(CLONE_NEWPID): %s", strerror(errno));
	filter_calls(&harmless, 1, SECCOMP_RET_KILL_PROCESS);
	CHECK_EQ(flexsc_engine_probe("uring", why, sizeof(why)), 0);
	pid = test_fork();
	if (!pid) {
		CHECK_EQ(getpid(), 1);
		test_leave();
	}
	test_reap(pid);
}

/* Pretends, in a mount namespace, that the administrator has set the sysctl. */
static void pretend_sysctl(const char *value)
{
	static const char path[] = "/proc/sys/kernel/io_uring_disabled";
	int fd;

	if (access(path, F_OK))
		SKIP("the kernel has no io_uring_disabled");
	if (unshare(CLONE_NEWNS) ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		SKIP("can't create a mount namespace: %s", strerror(errno));
	enter_scratch();
	fd = open("sysctl", O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
	CHECK_EQ(write(fd, value, strlen(value)), (int64_t)strlen(value));
	close(fd);
	if (mount("sysctl", path, NULL, MS_BIND, NULL))
		SKIP("bind mounts are not permitted: %s", strerror(errno));
}

static void falls_back_if_disabled(const char *value, const char *reason)
{
	ONLY_FOR("uring");
	pretend_sysctl(value);
	forbid_call(SYS_io_uring_setup, EPERM);
	falls_back(reason);
	CHECK_EQ(umount("/proc/sys/kernel/io_uring_disabled"), 0);
	leave_scratch();
}

TEST(io_uring_disabled_for_all_is_named)
{
	falls_back_if_disabled("2\n", "io_uring_disabled is 2");
}

TEST(io_uring_disabled_for_most_is_named)
{
	falls_back_if_disabled("1\n", "io_uring_disabled is 1");
}

static void set_limit(int what, rlim_t value)
{
	CHECK_EQ(setrlimit(what, &(struct rlimit){ value, value }), 0);
}

/*
 * Some kernels count rings against the limit. If the engine doesn't work, the reason
 * has to name the limit.
 */
TEST(no_memory_may_be_locked)
{
	char why[256] = "";

	become_nobody();
	set_limit(RLIMIT_MEMLOCK, 0);
	if (flexsc_engine_probe(test_engine(), why, sizeof(why))) {
		CHECK(strstr(why, "RLIMIT_MEMLOCK"));
		unsetenv("FLEXSC_ENGINE");
	}
	loop = test_loop();
	works(loop);
}

TEST(no_thread_can_be_made_from_the_start)
{
	char why[256] = "";

	forbid_threads();
	if (!strcmp(test_engine(), "kmod")) {
		/* The kernel module refuses processes under a filter. */
		CHECK_EQ(flexsc_loop_create(&loop, NULL), -EOPNOTSUPP);
		CHECK_EQ(flexsc_engine_probe("kmod", why, sizeof(why)),
			 -EOPNOTSUPP);
		CHECK(strstr(why, "seccomp"));
		return;
	}
	if (strcmp(test_engine(), "threads")) {
		loop = test_loop();
		CHECK_EQ(DO(loop, SYS_getppid), getppid());
		test_end_loop();
		return;
	}
	CHECK_EQ(flexsc_loop_create(&loop, NULL), -EOPNOTSUPP);
	CHECK(!loop);
	CHECK_EQ(flexsc_engine_probe("threads", why, sizeof(why)), -EOPNOTSUPP);
	CHECK(strstr(why, "thread"));
}

TEST(a_call_without_the_thread_that_it_needs_fails)
{
	int event = eventfd(3, EFD_CLOEXEC), fd;
	uint64_t value;

	ONLY_FOR("uring");
	loop = test_loop();
	forbid_threads();
	enter_scratch();
	fd = open("f", O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	CHECK_EQ(DO(loop, SYS_flock, fd, LOCK_EX), -EAGAIN);
	CHECK_EQ(DO(loop, SYS_read, event, &value, 8), 8);
	CHECK_EQ(DO(loop, SYS_getppid), getppid());
}

static void post_blocked(struct flexsc_loop *loop, struct call *calls,
			 unsigned int n, int event)
{
	static uint64_t value;

	for (unsigned int i = 0; i < n; i++) {
		calls[i] = (struct call){ .cb = { .callback = count_call } };
		POST(loop, &calls[i], SYS_read, event, &value, 8);
	}
}

/* poll() can't report the end of this call. It runs, or returns why it can't. */
static int64_t sleeps(struct flexsc_loop *loop)
{
	static const struct timespec brief = { 0, 1000000 };

	return DO(loop, SYS_nanosleep, &brief, NULL);
}

/*
 * The existing threads make all calls: reads that wait leave them to calls that
 * don't wait. "also": an error with which calls may end, or 0.
 */
static void few_threads(struct flexsc_loop *loop, int64_t also)
{
	int event = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
	static struct call calls[50];
	uint64_t n = 50;
	int64_t ret;

	post_blocked(loop, calls, 50, event);
	run_for(loop, 50);
	CHECK(done == 0 || also);
	CHECK_EQ(DO(loop, SYS_getppid), getppid());
	ret = sleeps(loop);
	CHECK(ret == 0 || ret == also);
	CHECK_EQ(DO(loop, SYS_write, event, &n, 8), 8);
	CHECK(run_until(loop, &done, 50, 10000));
	for (unsigned int i = 0; i < 50; i++)
		CHECK(calls[i].runs == 1 && (calls[i].cb.ret == 8 ||
					     (also && calls[i].cb.ret == also)));
}

WAITING_TEST(no_more_threads_can_be_made)
{
	int64_t ret;

	forbid_threads();
	ret = sleeps(loop);
	CHECK(ret == 0 || ret == -EAGAIN);
	few_threads(loop, -EAGAIN);
	ret = sleeps(loop);
	CHECK(ret == 0 || ret == -EAGAIN);
}

/* The same, but the lack of threads shows before the loop waits. */
LOOP_TEST(no_thread_can_be_made_when_submitting)
{
	static const struct timespec brief = { 0, 1000000 };
	struct call call = CALL_INIT;
	int64_t ret;

	forbid_threads();
	POST(loop, &call, SYS_nanosleep, &brief, NULL);
	CHECK_EQ(flexsc_loop_submit(loop), 0);
	ret = await_call(loop, &call);
	CHECK(ret == 0 || ret == -EAGAIN);
	CHECK_EQ(DO(loop, SYS_getppid), getppid());
}

/*
 * Programs call the kernel module by ioctl() or lseek(). The filter forbids these to
 * the existing threads and to later ones.
 */
static void forbid_ioctl(bool lseek)
{
	static const int calls[] = { SYS_ioctl, SYS_lseek };

	forbid(calls, lseek ? 2 : 1, EPERM);
}

/* Posts a call in which a thread waits, while other threads are idle. */
static void post_reader(struct flexsc_loop *loop, struct call *reader, int fd)
{
	static uint64_t value;

	*reader = (struct call)CALL_INIT;
	POST(loop, reader, SYS_read, fd, &value, 8);
	works(loop);
	run_for(loop, 50);
	CHECK_EQ(reader->runs, 0);
}

WAITING_TEST(ioctl_is_forbidden_later)
{
	int event = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
	struct call reader;
	uint64_t one = 1;

	post_reader(loop, &reader, event);
	forbid_ioctl(false);
	for (int i = 0; i < 10; i++)
		works(loop);
	CHECK_EQ(DO(loop, SYS_write, event, &one, 8), 8);
	CHECK_EQ(await_call(loop, &reader), 8);
	post_reader(loop, &reader, event);
	test_end_loop();
	CHECK_EQ(reader.runs, 1);
	CHECK(reader.cb.ret == -ECANCELED || reader.cb.ret == -EINTR);
}

/*
 * All calls end, and the loop can be destroyed, although no thread can enter the
 * module.
 */
WAITING_TEST(ioctl_and_lseek_are_forbidden_later)
{
	static const struct timespec brief = { 0, 1000000 };
	int event = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
	struct call reader, sleeper = CALL_INIT, other = CALL_INIT;
	int err;

	post_reader(loop, &reader, event);
	forbid_ioctl(true);
	POST(loop, &sleeper, SYS_nanosleep, &brief, NULL);
	POST(loop, &other, SYS_getppid);
	err = flexsc_loop_wait(loop, FLEXSC_FOREVER);
	CHECK(err == 1 || err == -EPERM);
	test_end_loop();
	CHECK_EQ(reader.runs, 1);
	CHECK_EQ(sleeper.runs, 1);
	CHECK_EQ(other.runs, 1);
	CHECK(reader.cb.ret == -ECANCELED || reader.cb.ret == -EINTR);
}

static void with_threads(uint32_t max)
{
	struct flexsc_loop *loop = NEW_LOOP(.max_threads = max);

	CHECK_EQ(sleeps(loop), 0);
	few_threads(loop, 0);
	CHECK_EQ(sleeps(loop), 0);
	CHECK_EQ(flexsc_loop_destroy(loop), 0);
}

TEST(one_thread_is_enough)
{
	NEEDS_WAITING_ENGINE();
	with_threads(1);
}

TEST(two_threads_are_enough)
{
	NEEDS_WAITING_ENGINE();
	with_threads(2);
}

TEST(eight_threads_are_enough)
{
	NEEDS_WAITING_ENGINE();
	with_threads(8);
}

/* No descriptors. */

TEST(descriptors_are_short)
{
	unsigned int before = count_fds();
	unsigned int made = 0;

	for (rlim_t limit = 64; limit-- > 3;) {
		struct flexsc_loop *loop = NULL;
		int err;

		CHECK_EQ(setrlimit(RLIMIT_NOFILE,
				   &(struct rlimit){ limit, 64 }), 0);
		err = flexsc_loop_create(&loop, NULL);
		if (err) {
			CHECK(err == -EMFILE || err == -EOPNOTSUPP);
			CHECK(!loop);
			continue;
		}
		made++;
		CHECK_EQ(DO(loop, SYS_getppid), getppid());
		CHECK_EQ(flexsc_loop_destroy(loop), 0);
		for (int fd = 3; fd < 64; fd++)
			close(fd);
	}
	CHECK(made >= 50);
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 64, 64 }), 0);
	CHECK(count_fds() <= before);
}

/* Without any spare descriptor a loop still works, if it can be created. */
TEST(another_engine_is_chosen_without_descriptors)
{
	struct flexsc_loop *loop = NULL;

	ONLY_FOR("uring");
	unsetenv("FLEXSC_ENGINE");
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 3, 64 }), 0);
	CHECK_EQ(flexsc_loop_create(&loop, NULL), 0);
	CHECK_EQ(strcmp(flexsc_loop_engine(loop), "threads"), 0);
	CHECK(strstr(flexsc_loop_why(loop), strerror(EMFILE)));
	CHECK_EQ(DO(loop, SYS_getppid), getppid());
	CHECK_EQ(flexsc_loop_destroy(loop), 0);
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 64, 64 }), 0);
}

/* No memory. */

/* Posts until memory is exhausted. All accepted calls complete. */
static void exhaust(struct flexsc_loop *loop, unsigned int max)
{
	int event = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
	/* Not from the heap, which may be exhausted. */
	static struct call calls[100000];
	static uint64_t value;
	uint64_t accepted = 0, before = stats_of(loop).completed;
	int err = 0;

	CHECK(max <= sizeof(calls) / sizeof(calls[0]));
	memset(calls, 0, max * sizeof(calls[0]));
	while (accepted < max && !err) {
		calls[accepted].cb.callback = count_call;
		err = flexsc_loop_call(loop, &calls[accepted].cb,
				       ARGS(SYS_read, event, &value, 8));
		accepted += !err;
	}
	CHECK(err == 0 || err == -ENOMEM);
	test_note("%u of %u calls, then %d", (unsigned int)accepted, max, err);
	CHECK(accepted >= 60);
	run_for(loop, 50);
	/* If there is no memory for a thread, calls may end with this error. */
	for (uint64_t i = 0; i < accepted; i++)
		CHECK(!calls[i].runs || calls[i].cb.ret == -EAGAIN);
	/* A plain call, because a posted one might wait for an entry. */
	CHECK_EQ(write(event, &accepted, 8), 8);
	CHECK(run_until(loop, &done, (unsigned int)accepted, 20000));
	for (uint64_t i = 0; i < accepted; i++)
		CHECK(calls[i].runs == 1 && (calls[i].cb.ret == 8 ||
					     calls[i].cb.ret == -EAGAIN));
	CHECK_EQ(DO(loop, SYS_getppid), getppid());
	CHECK_EQ(stats_of(loop).completed, before + accepted + 1);
}

WAITING_TEST(pages_can_not_grow)
{
	DO(loop, SYS_getppid);
	forbid_call(SYS_mprotect, ENOMEM);
	exhaust(loop, 100000);
}

static rlim_t address_space(void)
{
	unsigned long pages;
	FILE *file = fopen("/proc/self/statm", "re");

	CHECK(file);
	CHECK_EQ(fscanf(file, "%lu", &pages), 1);
	fclose(file);
	return pages * (rlim_t)getpagesize();
}

TEST_LIMIT(address_space_is_short, 40)
{
	rlim_t now = address_space();
	unsigned int made = 0;

	if (SANITIZED)
		SKIP("a sanitizer reserves the address space");
	for (rlim_t room = 64 << 20; room >= 1 << 16; room = room * 2 / 3) {
		struct flexsc_loop *loop = NULL;
		int err;

		CHECK_EQ(setrlimit(RLIMIT_AS, &(struct rlimit){
			now + room, RLIM_INFINITY }), 0);
		err = flexsc_loop_create(&loop, NULL);
		if (err) {
			CHECK(err == -ENOMEM || err == -EOPNOTSUPP ||
			      err == -EAGAIN);
			CHECK(!loop);
			continue;
		}
		made++;
		CHECK_EQ(DO(loop, SYS_getppid), getppid());
		if (strcmp(test_engine(), "sync")) {
			done = 0;
			exhaust(loop, 2000);
		}
		CHECK_EQ(flexsc_loop_destroy(loop), 0);
	}
	CHECK(made > 0);
}
