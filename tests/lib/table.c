/* SPDX-License-Identifier: MIT */
/*
 * Posts every row of the system-call table, and every number without a row. Each
 * call runs in a separate process, first as a plain call and then through a loop.
 * The two results must be the same.
 *
 * No call can do harm, for two reasons, each of which suffices. The arguments are
 * harmless: descriptors are -1 and everything else is 0. For calls that would do
 * something, or wait forever, with zeros, "specials" below lists other arguments.
 * And the processes run as nobody, so reboot, mount, swapoff, acct, sethostname,
 * settimeofday, delete_module and vhangup fail with EPERM.
 */
#include "tests/harness/harness.h"

#include "lib/calls/call_info.h"

#define UNUSED_KEY	0x7fe5c0deU	/* of System V IPC; no object has it */
#define ALL_ONES	UINT64_MAX

/* How the result is compared with the plain call's. */
enum compare {
	SAME = 0,
	DESCRIPTOR,	/* a new descriptor: the loop has some, too */
	OWN,		/* identifies the process: compare within one process */
	VARIES,		/* time or addresses: both calls succeed */
};

struct special {
	const char *name;
	uint64_t args[6];
	enum compare compare;
};

static struct msghdr no_message;

/* Arguments are zero for calls that aren't listed. */
static const struct special specials[] = {
	/* With two invalid arguments, the error would be unspecified. */
	{ "sendmsg", { 0, (uintptr_t)&no_message }, SAME },
	{ "recvmsg", { 0, (uintptr_t)&no_message }, SAME },
	/* With zeros, these would wait forever. */
	{ "select", { ALL_ONES }, SAME },
	{ "pselect6", { ALL_ONES }, SAME },
	{ "ppoll", { 0, 0x7fffffff }, SAME },
	/*
	 * With zeros: IPC_RMID of the object with identifier 0, or a new queue that
	 * remains.
	 */
	{ "shmctl", { ALL_ONES }, SAME },
	{ "semctl", { ALL_ONES }, SAME },
	{ "msgctl", { ALL_ONES }, SAME },
	{ "shmat", { ALL_ONES }, SAME },
	{ "semop", { ALL_ONES }, SAME },
	{ "semtimedop", { ALL_ONES }, SAME },
	{ "msgsnd", { ALL_ONES }, SAME },
	{ "msgrcv", { ALL_ONES }, SAME },
	{ "msgget", { UNUSED_KEY }, SAME },
	/* With zeros: PTRACE_TRACEME, strict mode, and closing descriptor 0. */
	{ "ptrace", { ALL_ONES }, SAME },
	{ "seccomp", { ALL_ONES }, SAME },
	{ "close_range", { 1, 0 }, SAME },
	/* Signal number 0 sends no signal. The process group is the child's. */
	{ "kill", { 0, 0 }, SAME },
	{ "setpgid", { 0, ALL_ONES }, SAME },
	{ "personality", { 0xffffffff }, SAME },
	/* Invalid lengths, so the calls fail before a name changes. */
	{ "sethostname", { 0, ALL_ONES }, SAME },
	{ "setdomainname", { 0, ALL_ONES }, SAME },
	{ "reboot", { 0, 0, ALL_ONES }, SAME },
	{ "syslog", { ALL_ONES }, SAME },
	{ "eventfd", { 0 }, DESCRIPTOR },
	{ "eventfd2", { 0 }, DESCRIPTOR },
	{ "epoll_create1", { 0 }, DESCRIPTOR },
	{ "inotify_init", { 0 }, DESCRIPTOR },
	{ "inotify_init1", { 0 }, DESCRIPTOR },
	{ "timerfd_create", { 0 }, DESCRIPTOR },
	{ "userfaultfd", { 0 }, DESCRIPTOR },
	{ "memfd_secret", { 0 }, DESCRIPTOR },
	/* Identifiers of the process and its groups. */
	{ "getpid", { 0 }, OWN },
	{ "gettid", { 0 }, OWN },
	{ "getpgrp", { 0 }, OWN },
	{ "getpgid", { 0 }, OWN },
	{ "getsid", { 0 }, OWN },
	/* Times, addresses, and the remaining seconds of the process's alarm. */
	{ "alarm", { 0 }, VARIES },
	{ "brk", { 0 }, VARIES },
	{ "time", { 0 }, VARIES },
	{ "times", { 0 }, VARIES },
};

/* The child's results, in memory that it shares with the test. */
struct outcome {
	int posted;	/* the result of posting; 1 before that */
	int ran;	/* how often the callback ran */
	int64_t ret;
	int64_t own;	/* the plain call's result in the same process */
};

static struct outcome *outcome;

static const struct special *special_of(const char *name)
{
	static const struct special none;

	for (size_t i = 0; i < sizeof(specials) / sizeof(*specials); i++)
		if (strcmp(specials[i].name, name) == 0)
			return &specials[i];
	return &none;
}

static void harmless_args(const struct call_info *row, uint64_t args[6])
{
	memcpy(args, special_of(row->name)->args, 6 * sizeof(*args));
	for (unsigned int i = 0; i < 6; i++)
		if (row->fds & (1u << i))
			args[i] = ALL_ONES;
}

/*
 * Makes the process unprivileged, and alone in its group: setsid and setpgid fail,
 * and kill(0, 0) addresses the process itself. It ends with the test.
 */
static void be_harmless(void)
{
	setpgid(0, 0);
	become_nobody();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGALRM, SIG_DFL);
	alarm((SANITIZED ? 120 : 30) * test_slower());
}

static int64_t plain(unsigned int nr, const uint64_t a[6])
{
	return plain_call(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static void run_plainly(unsigned int nr, const uint64_t args[6],
			enum compare compare)
{
	(void)compare;
	outcome->ret = plain(nr, args);
}

/*
 * The kernel counts rings against the user's RLIMIT_MEMLOCK. It frees those of ended
 * processes only a moment later, so the creation may have to be repeated.
 */
static struct flexsc_loop *unprivileged_loop(void)
{
	struct flexsc_loop *loop = NULL;
	int ret;

	for (unsigned int i = 0; i < 300; i++) {
		ret = flexsc_loop_create(&loop, NULL);
		if (ret == 0)
			break;
		sleep_ms(10);
	}
	CHECK_EQ(ret, 0);
	return loop;
}

static void run_on_loop(unsigned int nr, const uint64_t a[6],
			enum compare compare)
{
	struct flexsc_loop *loop = unprivileged_loop();
	struct call call = CALL_INIT;

	outcome->posted = flexsc_loop_call(loop, &call.cb, nr, a[0], a[1],
					   a[2], a[3], a[4], a[5]);
	if (outcome->posted)
		run_for(loop, 20);
	else
		run_until(loop, &call.runs, 1, 25000);
	outcome->ran = (int)call.runs;
	outcome->ret = call.cb.ret;
	if (compare == OWN)
		outcome->own = plain(nr, a);
	flexsc_loop_destroy(loop);
}

/* Returns the results of one call, made in a separate process. */
static struct outcome
observe(void (*run)(unsigned int, const uint64_t *, enum compare),
	const char *name, unsigned int nr, const uint64_t args[6],
	enum compare compare)
{
	siginfo_t info;
	int pid, status;

	*outcome = (struct outcome){ .posted = 1 };
	pid = test_fork();
	if (pid == 0) {
		be_harmless();
		run(nr, args, compare);
		test_leave();
	}
	/* Until it is reaped, the child keeps its number for its group. */
	CHECK_EQ(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	kill(-pid, SIGKILL);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	if (status)
		test_fail(__FILE__, __LINE__, "%s (%u): wait status %#x", name,
			  nr, (unsigned int)status);
	return *outcome;
}

static bool agree(const struct outcome *got, const struct outcome *expected,
		  enum compare compare)
{
	switch (compare) {
	case DESCRIPTOR:
		return got->ret == expected->ret ||
		       (got->ret >= 0 && expected->ret >= 0);
	case VARIES:
		return (got->ret >= 0) == (expected->ret >= 0);
	case OWN:
		return got->ret == got->own;
	case SAME:
		break;
	}
	return got->ret == expected->ret;
}

/* Prints one line per row that differs, so that a run shows all of them. */
static unsigned int try_row(unsigned int nr, const struct call_info *row)
{
	enum compare compare = special_of(row->name)->compare;
	struct outcome expected, got;
	uint64_t args[6];

	harmless_args(row, args);
	expected = observe(run_plainly, row->name, nr, args, compare);
	got = observe(run_on_loop, row->name, nr, args, compare);
	if (got.posted == 0 && got.ran == 1 && agree(&got, &expected, compare))
		return 0;
	test_note("%s (%u): posted %d, ran %d times, ret %lld, expected %lld",
		  row->name, nr, got.posted, got.ran, (long long)got.ret,
		  (long long)expected.ret);
	return 1;
}

static void share_outcome(void)
{
	outcome = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(outcome != MAP_FAILED);
}

static bool is_refused(const struct call_info *row)
{
	return row->class == CLASS_NEVER;
}

TEST_LIMIT(every_row_gives_the_plain_calls_result, 120)
{
	unsigned int tried = 0, wrong = 0;

	share_outcome();
	for (unsigned int nr = 0; nr < NR_WORK; nr++) {
		const struct call_info *row = flexsc__call_info(nr);

		if (row->class == CLASS_NONE || is_refused(row))
			continue;
		wrong += try_row(nr, row);
		tried++;
	}
	CHECK_EQ(wrong, 0);
	CHECK(tried > 250);
}

LOOP_TEST(every_refused_row_is_eopnotsupp_and_runs_nothing)
{
	struct call call = CALL_INIT;
	unsigned int tried = 0;

	for (unsigned int nr = 0; nr < flexsc__call_count; nr++) {
		const struct call_info *row = flexsc__call_info(nr);

		if (!is_refused(row))
			continue;
		if (flexsc_loop_call(loop, &call.cb, nr, 0, 0, 0, 0, 0, 0) !=
		    -EOPNOTSUPP)
			test_fail(__FILE__, __LINE__, "%s was posted, and has to be refused", row->name);
		tried++;
	}
	run_for(loop, 20);
	CHECK_EQ(call.runs, 0);
	CHECK_EQ(stats_of(loop).posted, 0);
	CHECK(tried >= 8);
}

/* Calls that can't be asynchronous by nature must be refused. */
TEST(calls_that_replace_the_caller_are_refused)
{
	static const unsigned int never[] = {
		SYS_clone, SYS_clone3, SYS_execve, SYS_execveat, SYS_exit,
		SYS_exit_group, SYS_rt_sigreturn, SYS_sigaltstack,
		SYS_set_robust_list,
#ifdef SYS_fork
		SYS_fork, SYS_vfork, SYS_arch_prctl,
#endif
	};

	for (size_t i = 0; i < sizeof(never) / sizeof(*never); i++) {
		CHECK(is_refused(flexsc__call_info(never[i])));
		CHECK_EQ(flexsc__call_info(never[i])->op, 0);
	}
}

LOOP_TEST(numbers_without_a_row_are_enosys)
{
	static const unsigned int beyond[] = { 5000, 65535, 65536, 0x40000000,
					       0x7fffffff, 0xffffffff };
	struct call call = CALL_INIT;

	CHECK(flexsc__call_count <= CALLS_ROOM);
	for (unsigned int nr = 0; nr < flexsc__call_count + 100; nr++)
		if (flexsc__call_info(nr)->class == CLASS_NONE || nr >= NR_WORK)
			CHECK_EQ(flexsc_loop_call(loop, &call.cb, nr, 0, 0, 0,
						  0, 0, 0), -ENOSYS);
	for (size_t i = 0; i < sizeof(beyond) / sizeof(*beyond); i++)
		CHECK_EQ(flexsc_loop_call(loop, &call.cb, beyond[i], 0, 0, 0,
					  0, 0, 0), -ENOSYS);
	run_for(loop, 20);
	CHECK_EQ(call.runs, 0);
}
