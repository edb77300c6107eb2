/* SPDX-License-Identifier: MIT */
/*
 * Results and errors of calls on memory, time, identity and processes, compared with
 * the plain calls. See trial.h.
 */
#include "trial.h"

#include <linux/futex.h>
#include <sys/utsname.h>

TRIAL(identity_is_the_callers_own)
{
	struct utsname name;
	int id[3];

	trial_note(t, __LINE__, "getpid", SYS(SYS_getpid) == getpid());
	trial_note(t, __LINE__, "getppid", SYS(SYS_getppid) == getppid());
	RET(SYS_getuid);
	RET(SYS_geteuid);
	RET(SYS_getgid);
	RET(SYS_getresuid, &id[0], &id[1], &id[2]);
	DATA(id, sizeof(id));
	RET(SYS_getpgid, getppid());
	RET(SYS_getsid, 0);
	RET(SYS_getgroups, 0, NULL);
	RET(SYS_uname, &name);
	DATA(&name, strlen(name.sysname));
	RET(SYS_uname, NULL);
	RET(SYS_umask, 027);
	RET(SYS_umask, 022);
}

/* A call about the calling thread applies to the thread that owns the loop. */
TRIAL(thread_state_is_the_owners)
{
	char name[16] = "";
	sigset_t set;

	trial_note(t, __LINE__, "gettid", SYS(SYS_gettid) == gettid());
	RET(SYS_prctl, PR_SET_NAME, "owner");
	prctl(PR_GET_NAME, name);
	DATA(name, sizeof(name));
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	RET(SYS_rt_sigprocmask, SIG_BLOCK, &set, NULL, 8);
	sigemptyset(&set);
	sigprocmask(SIG_BLOCK, NULL, &set);
	trial_note(t, __LINE__, "blocked", sigismember(&set, SIGUSR2));
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	RET(SYS_getpriority, PRIO_PROCESS, 0);
	RET(SYS_sched_getscheduler, 0);
}

TRIAL(memory_is_mapped)
{
	size_t size = 8 * (size_t)getpagesize();
	int64_t p = SYS(SYS_mmap, NULL, size, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p > 0);
	*(char *)p = 1;
	RET(SYS_mprotect, p, size, PROT_READ);
	RET(SYS_mprotect, p + 1, size, PROT_READ);
	RET(SYS_madvise, p, size, MADV_DONTNEED);
	RET(SYS_madvise, p, size, 9999);
	RET(SYS_msync, p, size, MS_ASYNC);
	RET(SYS_mlock, p, getpagesize());
	RET(SYS_munlock, p, getpagesize());
	RET(SYS_munmap, p, size);
	RET(SYS_msync, p, size, MS_ASYNC);
	RET(SYS_munmap, p + 1, size);
	RET(SYS_mmap, NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	RET(SYS_mmap, NULL, size, PROT_READ, MAP_PRIVATE, -1, 0);
	RET(SYS_mmap, NULL, size, PROT_READ, MAP_PRIVATE, 0, 1);
}

TRIAL(memfds_are_files)
{
	int fd = FD(SYS_memfd_create, "name", 1);
	char buf[8] = "";

	RET(SYS_ftruncate, fd, 100);
	RET(SYS_write, fd, "abc", 3);
	RET(SYS_pread64, fd, buf, sizeof(buf), 0);
	DATA(buf, sizeof(buf));
	RET(SYS_lseek, fd, 0, SEEK_END);
	RET(SYS_close, fd);
	FD(SYS_memfd_create, NULL, 0);
	FD(SYS_memfd_create, "x", 0x40000000);
}

TRIAL(sleeping_sleeps)
{
	static const struct timespec odd[4] = {
		{ 0, -1 }, { 0, 2000000000 }, { -1, 0 }, { 0, 0 },
	};
	struct timespec soon = { 0, 20000000 }, left = { 7, 7 }, now;
	uint64_t before = now_ns();

	RET(SYS_nanosleep, &soon, &left);
	trial_note(t, __LINE__, "slept", now_ns() - before >= 20000000);
	/*
	 * Without an interruption the contents of "left" are undefined, so the trial
	 * doesn't note them.
	 */
	before = now_ns();
	RET(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &soon, NULL);
	trial_note(t, __LINE__, "slept", now_ns() - before >= 20000000);
	clock_gettime(CLOCK_REALTIME, &now);
	RET(SYS_clock_nanosleep, CLOCK_REALTIME, TIMER_ABSTIME, &now, NULL);
	RET(SYS_clock_nanosleep, 99, 0, &soon, NULL);
	for (unsigned int i = 0; i < 4; i++)
		RET(SYS_nanosleep, &odd[i], NULL);
	RET(SYS_nanosleep, NULL, NULL);
	RET(SYS_nanosleep, (void *)8, NULL);
}

TRIAL(clocks_are_read)
{
	struct timespec now = { 0, 0 };
	uint64_t before = now_ns();

	RET(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
	trial_note(t, __LINE__, "after",
		   (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec >= before);
	RET(SYS_clock_gettime, 99, &now);
	RET(SYS_clock_getres, CLOCK_MONOTONIC, &now);
	DATA(&now, sizeof(now));
	RET(SYS_clock_gettime, CLOCK_MONOTONIC, NULL);
}

TRIAL(futexes_compare_wait_and_wake)
{
	struct timespec soon = { 0, 5000000 };
	static uint32_t word;

	word = 1;
	RET(SYS_futex, &word, FUTEX_WAIT, 2, NULL);
	RET(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 1, &soon);
	RET(SYS_futex, &word, FUTEX_WAIT, 1, &soon);
	RET(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL);
	RET(SYS_futex, &word, 99, 1, NULL);
	RET(SYS_futex, NULL, FUTEX_WAIT, 1, NULL);
	RET(SYS_futex, (char *)&word + 1, FUTEX_WAIT, 1, &soon);
	RET(SYS_futex, &word, FUTEX_WAIT_BITSET, 1, NULL, NULL, 0);
}

static int64_t exiting_child(int status)
{
	int pid = fork();

	if (pid == 0)
		_exit(status);
	return pid;
}

TRIAL(children_are_waited_for)
{
	int status = 0, pid = (int)exiting_child(3);
	siginfo_t info;

	trial_note(t, __LINE__, "wait4", SYS(SYS_wait4, pid, &status, 0, NULL) == pid);
	trial_note(t, __LINE__, "status", status);
	RET(SYS_wait4, pid, &status, 0, NULL);
	RET(SYS_wait4, -1, &status, 0, NULL);
	RET(SYS_wait4, -1, &status, 0x10000000, NULL);
	pid = (int)exiting_child(4);
	memset(&info, 0, sizeof(info));
	RET(SYS_waitid, P_PID, pid, &info, WEXITED, NULL);
	trial_note(t, __LINE__, "pid", info.si_pid == pid);
	trial_note(t, __LINE__, "status", info.si_status);
	RET(SYS_waitid, P_ALL, 0, &info, WEXITED, NULL);
	RET(SYS_waitid, 99, 0, &info, WEXITED, NULL);
	RET(SYS_waitid, P_ALL, 0, &info, 0, NULL);
}

TRIAL(kill_signals_processes)
{
	int pid = fork(), status = 0;

	/* kill(-1) would signal all processes. */
	CHECK(pid >= 0);
	if (pid == 0)
		for (;;)
			pause();
	RET(SYS_kill, pid, 0);
	RET(SYS_kill, pid, SIGTERM);
	SYS(SYS_wait4, pid, &status, 0, NULL);
	trial_note(t, __LINE__, "status", status);
	RET(SYS_kill, pid, 0);
	RET(SYS_kill, getpid(), 99);
	RET(SYS_pidfd_open, getpid(), 0x7f000000);
	RET(SYS_tgkill, getpid(), gettid(), 99);
}

TRIAL(random_bytes_are_random)
{
	uint64_t a[2] = { 0, 0 };

	RET(SYS_getrandom, a, sizeof(a), 0);
	trial_note(t, __LINE__, "filled", a[0] != a[1] && a[0] && a[1]);
	RET(SYS_getrandom, a, sizeof(a), 0x40000000);
	RET(SYS_getrandom, (void *)8, sizeof(a), 0);
	RET(SYS_getrandom, NULL, 0, 0);
}

TRIAL(limits_and_affinity_are_read)
{
	struct rlimit limit;
	cpu_set_t set;
	char path[256] = "";

	RET(SYS_prlimit64, 0, RLIMIT_NOFILE, NULL, &limit);
	DATA(&limit, sizeof(limit));
	RET(SYS_prlimit64, 0, 99, NULL, &limit);
	RET(SYS_prlimit64, 0, RLIMIT_NOFILE, (void *)8, NULL);
	CPU_ZERO(&set);
	RET(SYS_sched_getaffinity, 0, sizeof(set), &set);
	DATA(&set, sizeof(set));
	RET(SYS_sched_getaffinity, 0, 1, &set);
	RET(SYS_sched_yield);
	RET(SYS_chdir, "/proc");
	RET(SYS_getcwd, path, sizeof(path));
	DATA(path, sizeof(path));
	RET(SYS_getcwd, path, 1);
	RET(SYS_chdir, "/none");
	RET(SYS_chdir, "/proc/version");
}
