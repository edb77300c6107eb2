/* SPDX-License-Identifier: MIT */
/*
 * Creating processes without libc's fork(). In a child that has a copy of the memory,
 * flexsc__runtime.forked() reinitialises the runtime. A child that shares the memory,
 * as after vfork(), makes its calls plainly (calls/hook.c). The functions run on the
 * program's threads, also in signal handlers.
 */
#include "libc.h"

#include <sched.h>
#include <sys/types.h>

#include "lib/files/private_fd.h"
#include "runtime/base/peek.h"
#include "runtime/sched/state.h"
#include "runtime/sched/uthread.h"
#include "host_stub.h"
#include "libc_call.h"

/* aarch64 has no fork(2). */
#ifdef SYS_fork
#define FORK	SYS_fork
#else
#define FORK	(-1)
#endif

/* Return to the host, because a child is going to be created. */
static void go_to_host(void)
{
	static const struct stub stub = { REAL_fork, SYS_clone, true };

	flexsc__go_to_host(&stub, NULL);
}

/* In a child with memory of its own: reset the runtime and close the parent's rings. */
static void forked(bool shares_files)
{
	if (!flexsc__runtime.forked)
		return;
	flexsc__runtime.forked();
	if (!shares_files)
		flexsc__private_fd_close_all();
}

bool flexsc__forks_makes_child(long nr)
{
	return nr == FORK || nr == SYS_clone || nr == SYS_clone3;
}

/* The flags of a call that makes a process; CLONE_VM if they can't be read. */
static uint64_t flags_of(long nr, const uint64_t args[6])
{
	if (nr == FORK)
		return 0;
	if (nr == SYS_clone)
		return args[0];
	return args[0] && peek_can_read(args[0], sizeof(uint64_t)) ?
		       *(const uint64_t *)(uintptr_t)args[0] : CLONE_VM;
}

long flexsc__forks_plainly(long nr, const uint64_t args[6])
{
	uint64_t flags = flags_of(nr, args);
	long ret;

	if (flags & CLONE_VM)
		return flexsc__libc_call(false, nr, args);
	go_to_host();
	ret = raw_syscall(nr, args[0], args[1], args[2], args[3], args[4],
			  args[5]);
	if (!ret)
		forked(flags & CLONE_FILES);
	return libc_result(ret);
}

/* fork() for signal handlers. */
EXPORT pid_t _Fork(void);
EXPORT pid_t _Fork(void)
{
	pid_t pid;

	go_to_host();
	pid = REAL(_Fork)();
	if (!pid)
		forked(false);
	return pid;
}

/* The function of a clone() child, which reads this in its copy of the stack. */
struct clone {
	int (*function)(void *);
	void *arg;
	bool shares_files;
};

static int clone_main(void *arg)
{
	const struct clone *clone = arg;

	forked(clone->shares_files);
	return clone->function(clone->arg);
}

typedef int clone_function(int (*)(void *), void *, int, void *, void *, void *,
			   void *);

/*
 * Declared without "...": libc reads those of the last three arguments that the flags
 * require. If the child shares the memory while its parent continues, the child may
 * make calls at any time, so "forks" stays set.
 */
EXPORT int own_clone(int (*function)(void *), void *stack, int flags, void *arg,
		     void *parent, void *tls, void *child) __asm__("clone");
EXPORT int own_clone(int (*function)(void *), void *stack, int flags, void *arg,
		     void *parent, void *tls, void *child)
{
	clone_function *real = (clone_function *)flexsc__real(REAL_clone);
	struct clone clone = { function, arg, flags & CLONE_FILES };

	go_to_host();
	if (function && stack && !(flags & CLONE_VM))
		return real(clone_main, stack, flags, &clone, parent, tls, child);
	if (flags & CLONE_VM && !(flags & CLONE_VFORK))
		flexsc__self.forks = FORKS_ALWAYS;
	return real(function, stack, flags, arg, parent, tls, child);
}

EXPORT int own___clone(int (*function)(void *), void *stack, int flags, void *arg,
		       void *parent, void *tls, void *child)
	__asm__("__clone") __attribute__((alias("clone")));
