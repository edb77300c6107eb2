/* SPDX-License-Identifier: MIT */
#include "own_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/io_uring.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "lib/base/sigaction.h"
#include "lib/base/syscall.h"
#include "lib/base/trial.h"

/* an invalid id: of a descriptor, process, clock or signal */
#define NO_ID	((uint64_t)-2)

struct own_call {
	unsigned int groups;	/* one of them makes the call; 0: each process */
	bool has_older;		/* If the call is missing, libc makes an older one. */
	const char *name;
	long nr;
	uint64_t args[6];
};

static const struct own_call own_calls[] = {
#define OWN_CALL(name, ...)	{ 0, false, #name, SYS_##name, { __VA_ARGS__ } },
#define NEW_CALL(name, ...)	{ 0, true, #name, SYS_##name, { __VA_ARGS__ } },
#define CALL_OF(groups, name, ...) \
	{ groups, false, #name, SYS_##name, { __VA_ARGS__ } },
#include "own_calls.def"
#undef OWN_CALL
#undef NEW_CALL
#undef CALL_OF
};

enum { OWN_CALLS = sizeof(own_calls) / sizeof(own_calls[0]) };

struct attempt {
	unsigned int groups;
	const struct filter *filter;
	/* The call that the child makes. Shared; read after the child has ended. */
	_Atomic unsigned int *at;
};

/* Calls that have no number in the list. */
enum { AT_SIGRETURN = OWN_CALLS, AT_BEGINNING };

static const char *name_of(unsigned int at)
{
	switch (at) {
	case AT_SIGRETURN:
		return "rt_sigreturn";
	case AT_BEGINNING:
		return "wait4 or prctl";	/* lib/base/trial.c */
	default:
		return own_calls[at].name;
	}
}

static bool is_needed(const struct own_call *call, unsigned int groups)
{
	return !call->groups || call->groups & groups;
}

static long make(const struct own_call *call)
{
	const uint64_t *a = call->args;

	return raw_syscall(call->nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/*
 * Is this the kernel's own result? The arguments are invalid or have no effect, so the
 * kernel returns no other error. Filters usually return EPERM, EACCES or ENOSYS.
 */
static bool is_kernels(const struct own_call *call, long ret)
{
	switch (ret) {
	case -EBADF:
	case -ECHILD:
	case -EFAULT:
	case -EINTR:
	case -EINVAL:
	case -ESRCH:
		return true;
	case -ENOSYS:
		return call->has_older;
	default:
		return ret >= 0;
	}
}

static void ignore(int signo)
{
	(void)signo;
}

/*
 * Try rt_sigreturn(2). The call needs the frame of a signal, so send a signal whose
 * handler ends by rt_sigreturn(2). If the filter forbids the call, the child dies.
 */
static void signal_itself(void)
{
	extern void flexsc__cancel_restorer(void);
	const struct kernel_sigaction action = {
		.handler = (uintptr_t)ignore,
		.flags = SA_RESTORER,
		.restorer = (uintptr_t)flexsc__cancel_restorer,
	};
	const uint64_t others = ~(1ULL << (SIGUSR1 - 1));

	kernel_sigaction(SIGUSR1, &action, NULL);
	raw_syscall(SYS_rt_sigprocmask, SIG_SETMASK, PTR(&others), 0,
		    sizeof(others), 0, 0);
	raw_syscall(SYS_tgkill,
		    (uint64_t)raw_syscall(SYS_getpid, 0, 0, 0, 0, 0, 0),
		    (uint64_t)raw_syscall(SYS_gettid, 0, 0, 0, 0, 0, 0), SIGUSR1,
		    0, 0, 0);
}

/*
 * The filter is installed without SECCOMP_FILTER_FLAG_NEW_LISTENER. So calls that the
 * filter would pass to a listener fail, and count as forbidden.
 */
static bool install(const struct filter *filter)
{
	const uint64_t kept = SECCOMP_FILTER_FLAG_SPEC_ALLOW |
			      SECCOMP_FILTER_FLAG_LOG;

	return !raw_syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
			    filter->flags & kept, filter->program, 0, 0, 0);
}

/* Runs in the child. */
static int attempt(const void *arg)
{
	const struct attempt *attempt = arg;

	if (attempt->filter && !install(attempt->filter))
		return IS_REFUSED;
	for (unsigned int i = 0; i < OWN_CALLS; i++) {
		const struct own_call *call = &own_calls[i];

		if (!is_needed(call, attempt->groups))
			continue;
		*attempt->at = i;
		if (!is_kernels(call, make(call)))
			return FORBIDS;
	}
	*attempt->at = AT_SIGRETURN;
	signal_itself();
	return PERMITS;
}

enum verdict flexsc__own_calls_try(unsigned int groups, const struct filter *filter,
				   const char **which)
{
	_Atomic unsigned int *at = mmap(NULL, sizeof(*at), PROT_READ | PROT_WRITE,
					MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	const struct attempt one = { groups, filter, at };
	int ret;

	if (at == MAP_FAILED)
		return NOT_TRIED;
	*at = AT_BEGINNING;
	ret = flexsc__trial(attempt, &one);
	*which = name_of(*at);
	munmap(at, sizeof(*at));
	if (ret == TRIAL_NOT_MADE)
		return NOT_TRIED;
	return ret == TRIAL_KILLED ? FORBIDS : (enum verdict)ret;
}

bool flexsc__own_calls_forbidden(unsigned int groups, const char *kernel_cores, char *why,
				 size_t size)
{
	const char *which;

	if (kernel_cores && *kernel_cores)
		groups |= OWN_CORES;
	if (flexsc__own_calls_try(groups, NULL, &which) != FORBIDS)
		return false;
	snprintf(why, size, "a seccomp filter forbids %s, which flexsc run calls", which);
	return true;
}
