/* SPDX-License-Identifier: MIT */
/*
 * Permissions, and the kernel's view of the system, belong to a kernel thread. A
 * user thread has the ones of its host.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#include "threads.h"

enum { TIMES = 20 };

/* libc exports these functions, but has no header that declares them. */
int capget(struct __user_cap_header_struct *, struct __user_cap_data_struct *);
int capset(struct __user_cap_header_struct *,
	   const struct __user_cap_data_struct *);

struct caps {
	struct __user_cap_data_struct data[2];
};

/* The capabilities of this thread; 0 is the caller. */
static struct caps caps_of(pid_t tid)
{
	struct __user_cap_header_struct header = {
		_LINUX_CAPABILITY_VERSION_3, tid,
	};
	struct caps caps, again;

	CHECK_EQ(capget(&header, caps.data), 0);
	CHECK_EQ(syscall(SYS_capget, &header, again.data), 0);
	CHECK(!memcmp(&caps, &again, sizeof(caps)));
	return caps;
}

static bool same_caps(pid_t tid, struct caps wanted)
{
	struct caps caps = caps_of(tid);

	return !memcmp(&caps, &wanted, sizeof(caps));
}

/* Returns these capabilities without the ones that let root read any file. */
static struct caps without_reading(struct caps caps)
{
	caps.data[0].effective &= ~(1U << CAP_DAC_OVERRIDE |
				    1U << CAP_DAC_READ_SEARCH);
	return caps;
}

static void set_caps(struct caps caps, bool by_number)
{
	struct __user_cap_header_struct header = {
		_LINUX_CAPABILITY_VERSION_3, 0,
	};

	if (by_number)
		CHECK_EQ(syscall(SYS_capset, &header, caps.data), 0);
	else
		CHECK_EQ(capset(&header, caps.data), 0);
}

/* A file that can be opened only with a capability. */
static char secret[64];

static void make_secret(void)
{
	int fd;

	enter_scratch();
	snprintf(secret, sizeof(secret), "secret");
	fd = open(secret, O_CREAT | O_RDWR, 0);
	CHECK(fd >= 0);
	close(fd);
}

static bool can_read_secret(void)
{
	int fd = open(secret, O_RDONLY);

	if (fd < 0)
		CHECK_EQ(errno, EACCES);
	else
		close(fd);
	return fd >= 0;
}

struct weak {
	pthread_t thread;
	bool by_number;
	/* set when the thread has given the capabilities up */
	_Atomic pid_t tid;
	atomic_bool ends;
};

static void *inherit_caps(void *arg)
{
	const struct caps *wanted = arg;

	usleep(100);
	CHECK(!can_read_secret());
	CHECK(same_caps(0, *wanted));
	return arg;
}

static void *give_up_caps(void *arg)
{
	struct weak *weak = arg;
	struct caps caps = caps_of(0), less = without_reading(caps);

	usleep(100);
	set_caps(less, weak->by_number);
	weak->tid = gettid();
	for (int i = 0; i < TIMES || !weak->ends; i++) {
		usleep(100);
		CHECK(!can_read_secret());
		usleep(100);
		CHECK(same_caps(0, less));
	}
	join(start(inherit_caps, &less));
	/*
	 * The thread has given them up as effective ones only, so it may take them
	 * back.
	 */
	set_caps(caps, weak->by_number);
	usleep(100);
	CHECK(can_read_secret());
	return arg;
}

static void *keep_caps(void *arg)
{
	struct weak *weak = arg;
	struct caps caps = caps_of(0);

	while (!weak[0].tid || !weak[1].tid)
		usleep(100);
	for (int i = 0; i < TIMES; i++) {
		CHECK(can_read_secret());
		CHECK(same_caps(0, caps));
		CHECK(same_caps(weak[i % 2].tid, without_reading(caps)));
		usleep(100);
	}
	return arg;
}

TEST(capabilities_are_a_thread_s_own)
{
	struct weak weak[2] = { { .by_number = false }, { .by_number = true } };
	pthread_t strong[4];

	if (geteuid())
		SKIP("needs root");
	make_secret();
	start_all(strong, 4, keep_caps, weak);
	for (int i = 0; i < 2; i++)
		weak[i].thread = start(give_up_caps, &weak[i]);
	join_all(strong, 4);
	CHECK(can_read_secret());
	for (int i = 0; i < 2; i++)
		weak[i].ends = true;
	for (int i = 0; i < 2; i++)
		join(weak[i].thread);
}

/* Servers do this to open a low port, or to get real-time priority, as another user. */
static void *keep_one_capability(void *arg)
{
	struct caps caps;

	usleep(100);
	CHECK_EQ(prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0), 0);
	CHECK_EQ(setuid(65534), 0);
	usleep(100);
	caps = caps_of(0);
	CHECK(caps.data[0].permitted & 1U << CAP_DAC_READ_SEARCH);
	CHECK_EQ(caps.data[0].effective, 0);
	CHECK(!can_read_secret());
	caps = (struct caps){ 0 };
	caps.data[0].permitted = 1U << CAP_DAC_READ_SEARCH;
	caps.data[0].effective = 1U << CAP_DAC_READ_SEARCH;
	set_caps(caps, false);
	for (int i = 0; i < TIMES; i++) {
		usleep(100);
		CHECK(can_read_secret());
		CHECK(same_caps(0, caps));
	}
	return arg;
}

static void *lose_all(void *arg)
{
	while (getuid() == 0)
		usleep(100);
	for (int i = 0; i < TIMES; i++) {
		usleep(100);
		CHECK(!can_read_secret());
		CHECK(same_caps(0, (struct caps){ 0 }));
	}
	return arg;
}

TEST(a_capability_can_be_kept_beyond_a_change_of_user)
{
	pthread_t other;

	if (geteuid())
		SKIP("needs root");
	make_secret();
	other = start(lose_all, NULL);
	usleep(100);
	join(start(keep_one_capability, NULL));
	join(other);
	CHECK(!can_read_secret());
}

/* Threads that are created later lack these capabilities, too. */
static void *has_less(void *arg)
{
	usleep(100);
	CHECK_EQ(prctl(PR_CAPBSET_READ, CAP_SYS_BOOT, 0, 0, 0), 0);
	CHECK_EQ(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), 1);
	CHECK_EQ(prctl(PR_GET_SECUREBITS, 0, 0, 0, 0), SECBIT_NOROOT);
	return arg;
}

static void *has_all(void *arg)
{
	atomic_bool *dropped = arg;

	while (!*dropped)
		usleep(100);
	CHECK_EQ(prctl(PR_CAPBSET_READ, CAP_SYS_BOOT, 0, 0, 0), 1);
	CHECK_EQ(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), 0);
	CHECK_EQ(prctl(PR_GET_SECUREBITS, 0, 0, 0, 0), 0);
	return arg;
}

static void *drop(void *arg)
{
	atomic_bool *dropped = arg;

	usleep(100);
	CHECK_EQ(prctl(PR_CAPBSET_DROP, CAP_SYS_BOOT, 0, 0, 0), 0);
	CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	CHECK_EQ(prctl(PR_SET_SECUREBITS, SECBIT_NOROOT, 0, 0, 0), 0);
	*dropped = true;
	for (int i = 0; i < TIMES; i++) {
		usleep(100);
		join(start(has_less, NULL));
	}
	return arg;
}

TEST(new_threads_lack_what_their_creator_has_given_up)
{
	atomic_bool dropped = false;
	pthread_t other;

	if (geteuid() || prctl(PR_CAPBSET_READ, CAP_SYS_BOOT, 0, 0, 0) != 1 ||
	    prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0))
		SKIP("needs root with all capabilities");
	other = start(has_all, &dropped);
	join(start(drop, &dropped));
	join(other);
}

/* The personality changes what the kernel shows a program. */
static bool is_old(void)
{
	struct utsname name;

	CHECK_EQ(uname(&name), 0);
	return !strncmp(name.release, "2.6.", 4);
}

static void *see_old_system(void *arg)
{
	usleep(100);
	CHECK(is_old());
	CHECK_EQ(personality(0xffffffff), UNAME26);
	return arg;
}

static void *want_old_system(void *arg)
{
	usleep(100);
	CHECK(personality(UNAME26) >= 0);
	for (int i = 0; i < TIMES; i++) {
		usleep(100);
		CHECK(is_old());
		CHECK_EQ(personality(0xffffffff), UNAME26);
	}
	join(start(see_old_system, NULL));
	return arg;
}

static void *see_new_system(void *arg)
{
	for (int i = 0; i < TIMES; i++) {
		usleep(100);
		CHECK(!is_old());
		CHECK(!(personality(0xffffffff) & UNAME26));
	}
	return arg;
}

TEST(a_personality_is_a_thread_s_own)
{
	pthread_t others[4];

	start_all(others, 4, see_new_system, NULL);
	join(start(want_old_system, NULL));
	join_all(others, 4);
	join(start(see_new_system, NULL));
}

/* Change the user of all threads. */

static void *wait_for_end(void *arg)
{
	char byte;

	CHECK_EQ(read(*(int *)arg, &byte, 1), 0);
	return arg;
}

static long switches(void)
{
	struct rusage usage;

	CHECK_EQ(getrusage(RUSAGE_SELF, &usage), 0);
	return usage.ru_nvcsw;
}

/*
 * libc changes each thread by a signal, which wakes the thread once. Under the
 * runtime, a thread also sleeps once until the carriers have made the change. In the
 * kernel module, the signal also ends each read, which its carrier posts again.
 */
TEST(a_change_of_user_wakes_each_thread_few_times)
{
	enum { THREADS = 30, CALLS = 100 };
	const int most = uses_module() ? 8 : 4;
	pthread_t threads[THREADS];
	long before, after;
	int p[2];

	CHECK_EQ(pipe(p), 0);
	start_all(threads, THREADS, wait_for_end, &p[0]);
	await_quiet();
	before = switches();
	for (int i = 0; i < CALLS; i++)
		CHECK_EQ(seteuid(geteuid()), 0);
	after = switches();
	test_note("%ld voluntary context switches", after - before);
	CHECK(after - before <= most * THREADS * CALLS);
	CHECK_EQ(close(p[1]), 0);
	join_all(threads, THREADS);
}

/* Another thread changes the groups at the same time, as long as root may do so. */
static void *change_groups(void *arg)
{
	gid_t group = 1;

	while (!setgroups(1, &group))
		group++;
	CHECK_EQ(errno, EPERM);
	return arg;
}

static void change_both(void)
{
	pthread_t others[3];

	start_all(others, 2, lose_all, NULL);
	others[2] = start(change_groups, NULL);
	usleep(100);
	CHECK_EQ(setuid(65534), 0);
	CHECK(!can_read_secret());
	join_all(others, 3);
	_exit(0);
}

TEST(users_and_groups_change_at_the_same_time)
{
	pid_t child;
	int status;

	if (geteuid())
		SKIP("needs root");
	make_secret();
	for (int i = 0; i < TIMES; i++) {
		child = fork();
		if (!child)
			change_both();
		CHECK_EQ(waitpid(child, &status, 0), child);
		CHECK_EQ(status, 0);
	}
}

/*
 * If libc can change the user in some threads only, it ends the process by abort(). The
 * program's handler for SIGABRT runs first.
 */
#define HANDLED		7

static void end_by_handler(int signo)
{
	(void)signo;
	_exit(HANDLED);
}

static void *has_another_user(void *arg)
{
	CHECK_EQ(syscall(SYS_setresuid, 2001, 2002, 2003), 0);
	*(atomic_bool *)arg = true;
	pause();
	return arg;
}

static void change_user_in_part(void)
{
	atomic_bool differs = false;

	start(has_another_user, &differs);
	while (!differs)
		usleep(100);
	CHECK_EQ(setresuid(1001, 1002, 1003), 0);
	_exit(0);
}

static int status_of_change(void)
{
	pid_t child = fork();
	int status;

	if (!child)
		change_user_in_part();
	CHECK_EQ(waitpid(child, &status, 0), child);
	return status;
}

TEST(a_change_of_user_in_part_ends_the_process)
{
	if (geteuid())
		SKIP("needs root");
	CHECK_EQ(WTERMSIG(status_of_change()), SIGABRT);
	signal(SIGABRT, end_by_handler);
	CHECK_EQ(WEXITSTATUS(status_of_change()), HANDLED);
}
