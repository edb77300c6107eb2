// SPDX-License-Identifier: MIT
/*
 * A thread dies while it executes an entry's call, as it may by a bug of the kernel.
 * In these tests it dies by reboot(), which in a pid namespace ends the calling
 * thread. The module refuses that call, so these tests use a modified module
 * (suite.py). Another module has a file whose poll() ends the thread. The module has
 * to release what the dead thread held, and its record must not lead to another
 * task. Runs in a guest, as root, whose kernel detects writes to freed task
 * structures.
 */
#include "raw.h"

#include <linux/reboot.h>

#define ROUNDS	20

static char stack[65536] __attribute__((aligned(16)));

static void post_death(uint32_t index, uint8_t flags)
{
	raw_post(&raw, index, flags, SYS_reboot, LINUX_REBOOT_MAGIC1,
		 LINUX_REBOOT_MAGIC2, LINUX_REBOOT_CMD_POWER_OFF);
}

/* The two ways to execute entries. Neither function returns. */

static int wait_to_death(void *arg)
{
	raw.shared->timeout = 0;
	ioctl(raw.fd, FLEXSC_IOC_WAIT, 0);
	_exit(0);
}

static int serve_to_death(void *arg)
{
	struct flexsc_serve serve = SERVE_FIRST;
	int result;

	/* A new process has its own credentials. They have to become the owner's. */
	ioctl(raw.fd, FLEXSC_IOC_KICK);
	for (;;) {
		result = ioctl(raw.fd, FLEXSC_IOC_SERVE, &serve);
		if (result == FLEXSC_SERVE_MOVE)
			serve.flags = raw_move(serve.core) ? 0 :
							     FLEXSC_SERVE_STAYS;
		else if (result == FLEXSC_SERVE_MORE)
			serve.flags = FLEXSC_SERVE_NO_MORE;
		else
			break;
	}
	_exit(0);
}

/* Shares the test's memory, and is the first process of a pid namespace. */
static pid_t mortal(int (*run)(void *arg))
{
	pid_t pid = clone(run, stack + sizeof(stack),
			  CLONE_VM | CLONE_FILES | CLONE_NEWPID | SIGCHLD, NULL);

	CHECK(pid > 0);
	return pid;
}

static void await_death(pid_t pid)
{
	int status;

	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFSIGNALED(status));
}

static void await_done(uint32_t index)
{
	raw_await(&raw, index, FLEXSC_DONE);
	CHECK_EQ(raw.entries[index].ret, -EINTR);
}

/* An entry is marked as done before its completion is published. */
static void await_published(uint32_t count)
{
	uint32_t done = 0;

	await_done(0);
	while (done < count) {
		usleep(1000);
		done += raw_reap(&raw);
	}
	CHECK_EQ(done, count);
}

RAW_TEST(the_owner_dies_and_another_takes_its_place)
{
	for (int i = 0; i < ROUNDS; i++) {
		raw_post(&raw, 1, 0, SYS_getppid);
		post_death(0, 0);
		await_death(mortal(wait_to_death));
		await_published(2);
		raw_post(&raw, 2, 0, SYS_getppid);
		CHECK_EQ(raw_wait(&raw, 0), FLEXSC_WAIT_LOOK);
		CHECK_EQ(raw_reap(&raw), 1);
	}
}

/* The owner dies before it requests a thread for the entry that it put aside. */
RAW_TEST(an_entry_that_a_dead_owner_put_aside_is_executed)
{
	raw_post(&raw, 1, DEFER, SYS_getppid);
	post_death(0, 0);
	await_death(mortal(wait_to_death));
	await_done(0);
	raw_finish(&raw, 2);
	CHECK_EQ(raw.entries[1].ret, getppid());
}

/* Before the thread makes the call, it polls the file. */
RAW_TEST(an_entry_ends_if_its_thread_dies_in_poll)
{
	int deadly = open("/dev/deadly", O_RDWR);

	CHECK(deadly >= 0);
	for (int i = 0; i < ROUNDS; i++) {
		raw_post(&raw, 0, FLEXSC_IF_READABLE, SYS_read, deadly, 0, 0);
		await_death(mortal(wait_to_death));
		await_published(1);
	}
}

/* A cancellation reads the record of the dead thread. */
RAW_TEST(an_entry_of_a_dead_thread_is_cancelled)
{
	for (int i = 0; i < ROUNDS; i++) {
		post_death(0, 0);
		await_death(mortal(wait_to_death));
		/* The kernel frees the task's memory some time after this. */
		for (int n = 0; n < 50; n++) {
			CHECK_EQ(ioctl(raw.fd, FLEXSC_IOC_CANCEL, 0), 0);
			usleep(1000);
		}
		await_published(1);
	}
}

static void *cancel_always(void *arg)
{
	while (!atomic_load(&raw.ending))
		CHECK_EQ(ioctl(raw.fd, FLEXSC_IOC_CANCEL, 0), 0);
	return NULL;
}

RAW_TEST(a_thread_is_cancelled_while_it_dies)
{
	pthread_t thread = test_thread(cancel_always, NULL);

	for (int i = 0; i < 5 * ROUNDS; i++) {
		post_death(0, 0);
		await_death(mortal(wait_to_death));
		await_published(1);
	}
	atomic_store(&raw.ending, true);
	CHECK_EQ(pthread_join(thread, NULL), 0);
}

TEST(a_syscall_thread_dies_and_another_goes_on)
{
	for (int i = 0; i < ROUNDS; i++) {
		raw_open(&raw, 1, 0);
		post_death(0, 0);
		raw_post(&raw, 1, DEFER, SYS_getppid);
		await_death(mortal(serve_to_death));
		raw_finish(&raw, 2);
		CHECK_EQ(raw.entries[0].ret, -EINTR);
		CHECK_EQ(raw.entries[1].ret, getppid());
		CHECK_EQ(ioctl(raw.fd, FLEXSC_IOC_CANCEL, 0), 0);
		raw_close(&raw);
	}
}

/* The core of a dead thread is free for another registration of the process. */
TEST(a_dead_thread_frees_its_core)
{
	const struct flexsc_policy policy = { .cores = 1, .core = { 1 } };
	static struct raw other;

	raw_open(&raw, 1, 0);
	raw_open(&other, 1, 0);
	CHECK_EQ(ioctl(raw.fd, FLEXSC_IOC_SET_POLICY, &policy), 0);
	CHECK_EQ(ioctl(other.fd, FLEXSC_IOC_SET_POLICY, &policy), 0);
	for (int i = 0; i < ROUNDS; i++) {
		post_death(0, 0);
		await_death(mortal(serve_to_death));
		raw_post(&other, 0, DEFER, SYS_getppid);
		raw_collect(&other, 1);
		raw_collect(&raw, 1);
	}
	raw_close(&other);
	raw_close(&raw);
}

/* Only the deferred cleanup of the dead thread is left to release the registration. */
TEST(the_last_thread_dies_and_nothing_is_left)
{
	for (int i = 0; i < ROUNDS; i++) {
		raw_open(&raw, 1, 0);
		post_death(0, 0);
		await_death(mortal(wait_to_death));
		CHECK_EQ(munmap(raw.shared, raw.args.area), 0);
		CHECK_EQ(close(raw.fd), 0);
	}
	while (raw_shown(NULL, " idle ") != -1)
		usleep(1000);
}
