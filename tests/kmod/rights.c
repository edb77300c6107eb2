// SPDX-License-Identifier: MIT
/*
 * Entries execute with the credentials of the thread that waits or kicks, whichever
 * thread executes them. In Linux, credentials belong to threads. So one thread
 * changes its own here, and the others keep theirs. Runs in a guest, as root, with
 * Landlock among the security modules.
 */
#include "raw.h"

#include <linux/keyctl.h>
#include <linux/landlock.h>

#define NOBODY	65534
#define SECRET	"/tmp/secret"

static void make_secret(void)
{
	int fd = open(SECRET, O_CREAT | O_RDWR, 0600);

	CHECK(fd >= 0);
	close(fd);
}

/* Changes only the calling thread. */
static void drop_rights(void)
{
	CHECK_EQ(syscall(SYS_setresuid, NOBODY, NOBODY, NOBODY), 0);
	CHECK(open(SECRET, O_RDONLY) == -1 && errno == EACCES);
}

/* One idle thread, which has the credentials it was created with. */
static void open_with_idle_thread(void)
{
	make_secret();
	raw_begin(1, 0);
	raw_thread(&raw);
	while (raw_shown(NULL, " idle ") != 1)
		usleep(1000);
}

/*
 * A thread that is still active may take an entry before its owner waits or kicks, when
 * the module hasn't seen the owner's new credentials yet.
 */
static void await_rest(void)
{
	while (raw_shown(NULL, " active ") >= 0 || raw_shown(NULL, " spins ") >= 0)
		usleep(1000);
}

#define IDLE_TEST(id)							\
	TEST_BETWEEN(id, 20, open_with_idle_thread(), raw_close(&raw))

static void post_open(void)
{
	raw_post(&raw, 0, DEFER, SYS_open, SECRET, O_RDONLY);
}

IDLE_TEST(threads_with_older_rights_execute_nothing_for_a_waiter)
{
	post_open();
	CHECK(raw_result(&raw)->ret >= 0);
	await_rest();
	drop_rights();
	post_open();
	CHECK_EQ(raw_result(&raw)->ret, -EACCES);
	post_open();
	CHECK_EQ(raw_result(&raw)->ret, -EACCES);
}

IDLE_TEST(threads_with_older_rights_execute_nothing_for_a_kicker)
{
	drop_rights();
	post_open();
	for (int i = 0; i < 3000 && raw.entries[0].status != FLEXSC_DONE; i++) {
		raw_kick(&raw);
		usleep(1000);
	}
	CHECK_EQ(raw.entries[0].status, FLEXSC_DONE);
	CHECK_EQ(raw.entries[0].ret, -EACCES);
}

static atomic_int waited;

/* The calling thread has the credentials of a new process. */
static void *wait_as_root(void *arg)
{
	raw.shared->timeout = FOREVER;
	atomic_store(&waited, ioctl(raw.fd, FLEXSC_IOC_WAIT, 0) < 0 ? errno : 0);
	return NULL;
}

/* The owner changes while the former owner sleeps in its wait. */
IDLE_TEST(a_waiter_with_older_rights_executes_nothing)
{
	pthread_t thread;

	thread = test_thread(wait_as_root, NULL);
	while (raw_shown(NULL, " waits ") != 1)
		usleep(1000);
	usleep(50000);
	drop_rights();
	raw_kick(&raw);
	raw_post(&raw, 0, 0, SYS_open, SECRET, O_RDONLY);
	raw_kick(&raw);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK_EQ(atomic_load(&waited), EACCES);
	CHECK_EQ(raw_result(&raw)->ret, -EACCES);
}

/* The owner's waits have a timeout of 0. */
IDLE_TEST(another_thread_is_requested_after_one_was_sent_home)
{
	drop_rights();
	post_open();
	for (int i = 0; i < 3000 && raw.entries[0].status != FLEXSC_DONE; i++) {
		CHECK_EQ(raw_wait(&raw, 0), FLEXSC_WAIT_LOOK);
		usleep(1000);
	}
	CHECK_EQ(raw.entries[0].ret, -EACCES);
}

static void *serve_as_nobody(void *arg)
{
	struct flexsc_serve serve = SERVE_FIRST;

	drop_rights();
	return (void *)(intptr_t)ioctl(raw.fd, FLEXSC_IOC_SERVE, &serve);
}

TEST(a_thread_with_other_rights_is_sent_home)
{
	pthread_t thread;
	void *said;

	make_secret();
	raw_open(&raw, 1, 0);
	thread = test_thread(serve_as_nobody, NULL);
	CHECK_EQ(pthread_join(thread, &said), 0);
	CHECK_EQ((intptr_t)said, FLEXSC_SERVE_END);
	raw_close(&raw);
}

/* A sandbox as in its documentation: it applies to the calling thread. */
static void restrict_self(void)
{
	const struct landlock_ruleset_attr attr = {
		.handled_access_fs = LANDLOCK_ACCESS_FS_READ_FILE,
	};
	int rules = (int)syscall(SYS_landlock_create_ruleset, &attr,
				 sizeof(attr), 0);

	CHECK(rules >= 0);
	CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	CHECK_EQ(syscall(SYS_landlock_restrict_self, rules, 0), 0);
	CHECK(open(SECRET, O_RDONLY) == -1 && errno == EACCES);
	close(rules);
}

IDLE_TEST(a_sandbox_applies_to_posted_calls)
{
	restrict_self();
	raw_post(&raw, 0, 0, SYS_open, SECRET, O_RDONLY);
	CHECK_EQ(raw_result(&raw)->ret, -EACCES);
	post_open();
	CHECK_EQ(raw_result(&raw)->ret, -EACCES);
}

/* The same as an ioctl(), but security modules don't see it. */
static long kick_by_lseek(void)
{
	return raw_syscall(SYS_lseek, (uint64_t)raw.fd,
			   FLEXSC_CALL(FLEXSC_IOC_KICK, 0), FLEXSC_CALL_SEEK, 0,
			   0, 0);
}

TEST(new_rights_enter_by_ioctl)
{
	make_secret();
	raw_open(&raw, 1, 0);
	raw.shared->timeout = 0;
	CHECK_EQ(raw_enter(&raw), FLEXSC_WAIT_LOOK);
	drop_rights();
	raw_post(&raw, 0, 0, SYS_getppid);
	CHECK_EQ(raw_enter(&raw), -EACCES);
	CHECK_EQ(kick_by_lseek(), -EACCES);
	CHECK_EQ(raw.entries[0].status, FLEXSC_SUBMITTED);
	CHECK_EQ(ioctl(raw.fd, FLEXSC_IOC_WAIT, 0), FLEXSC_WAIT_LOOK);
	CHECK_EQ(raw_reap(&raw), 1);
	CHECK_EQ(raw.entries[0].ret, getppid());
	CHECK_EQ(raw_enter(&raw), FLEXSC_WAIT_LOOK);
	CHECK_EQ(kick_by_lseek(), FLEXSC_WAIT_LOOK);
	raw_close(&raw);
}

/*
 * With a thread keyring, each new thread has its own credentials, so none has the
 * owner's. The module must not request threads forever.
 */
IDLE_TEST(an_owner_with_a_thread_keyring_stays_alone)
{
	CHECK(syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID,
		      KEY_SPEC_THREAD_KEYRING, 1) > 0);
	post_open();
	CHECK_EQ(raw_result(&raw)->ret, -EAGAIN);
	CHECK(raw.entries[0].nargs & FLEXSC_INTERRUPTED);
	raw_post(&raw, 0, 0, SYS_getppid);
	CHECK_EQ(raw_result(&raw)->ret, getppid());
}

/* libc's seteuid() changes all threads of the process, also the library's. */

/* A loop whose calls execute on syscall threads: the owner is on another core. */
static void open_loop(void)
{
	make_secret();
	CHECK(raw_move(0));
	loop = NEW_LOOP(.engine = "kmod", .kernel_cores = "1");
}

/* How many calls syscall threads of the module, and those of the pool, have made. */
static uint64_t by_module(void)
{
	return (uint64_t)raw_shown(NULL, " executed ");
}

static uint64_t by_pool(void)
{
	struct flexsc_stats stats;

	CHECK_EQ(flexsc_loop_stats(loop, &stats, sizeof(stats)), 0);
	return stats.by_thread;
}

static int64_t open_secret(void)
{
	const int64_t fd = DO(loop, SYS_openat, AT_FDCWD, SECRET, O_RDONLY);

	if (fd >= 0)
		close((int)fd);
	return fd < 0 ? fd : 0;
}

TEST_LIMIT(calls_of_a_loop_have_the_user_of_the_process, 60)
{
	enum { CHANGES = 10 };

	open_loop();
	CHECK_EQ(open_secret(), 0);
	for (int i = 0; i < CHANGES; i++) {
		CHECK_EQ(seteuid(NOBODY), 0);
		CHECK_EQ(open_secret(), -EACCES);
		CHECK_EQ(open_secret(), -EACCES);
		CHECK_EQ(seteuid(0), 0);
		CHECK_EQ(open_secret(), 0);
	}
	test_note("%lu by the module, %lu by the pool", by_module(), by_pool());
	CHECK(by_module() >= 3 * CHANGES);
	CHECK_EQ(by_pool(), 0);
}

/* Calls that wait during the change, and later ones. */
TEST_LIMIT(a_loop_gets_threads_with_the_new_user, 60)
{
	enum { READS = 8, CHANGES = 5 };
	static struct call calls[READS];
	static char bytes[READS];
	int64_t before;

	open_loop();
	CHECK_EQ(pipe(fds), 0);
	for (int change = 0; change < CHANGES; change++) {
		before = raw_shown(" executed ", " blocked ");
		for (int i = 0; i < READS; i++) {
			calls[i] = (struct call)CALL_INIT;
			POST(loop, &calls[i], SYS_read, fds[0], &bytes[i], 1);
		}
		while (raw_shown(" executed ", " blocked ") < before + READS)
			run_for(loop, 1);
		CHECK_EQ(seteuid(NOBODY), 0);
		CHECK_EQ(write(fds[1], "12345678", READS), READS);
		for (int i = 0; i < READS; i++)
			CHECK_EQ(await_call(loop, &calls[i]), 1);
		CHECK_EQ(seteuid(0), 0);
	}
	CHECK_EQ(by_pool(), 0);
}
