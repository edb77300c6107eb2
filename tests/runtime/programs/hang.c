/* SPDX-License-Identifier: MIT */
/* Calls that hang. See hang.h. */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

#include "hang.h"

struct hang *hangs;

static void hang_child(struct hang *hang)
{
	const struct timespec moment = { 0, 1000000 };
	struct timespec time = { 0, (long)hang->ns };

	hang->begun = true;
	if (hang->ns)
		raw_syscall(SYS_nanosleep, PTR(&time), 0, 0, 0, 0, 0);
	for (int i = 0; !hang->ns && !hang->let && !hang->expired; i++) {
		raw_syscall(SYS_nanosleep, PTR(&moment), 0, 0, 0, 0, 0);
		if (i == EXPIRES_MS)
			hang->expired = true;
	}
	raw_syscall(SYS_exit, 0, 0, 0, 0, 0, 0);
}

#if defined(__aarch64__)

/* Like vfork(), but at a place that the runtime doesn't intercept. */
long hang_unreaped(struct hang *hang)
{
	register uint64_t nr __asm__("x8") = SYS_clone;
	register uint64_t flags __asm__("x0") = CLONE_VM | CLONE_VFORK | SIGCHLD;
	register void *stack __asm__("x1") = hang->stack + sizeof(hang->stack);
	register uint64_t parent __asm__("x2") = 0, tls __asm__("x3") = 0;
	register uint64_t tid __asm__("x4") = 0;
	register struct hang *kept __asm__("x19") = hang;
	register void (*child)(struct hang *) __asm__("x20") = hang_child;

	__asm__ volatile("svc #0\n\t"
			 "cbnz x0, 1f\n\t"
			 "mov x0, x19\n\t"
			 "blr x20\n"
			 "1:"
			 : "+r"(flags)
			 : "r"(nr), "r"(stack), "r"(parent), "r"(tls), "r"(tid),
			   "r"(kept), "r"(child)
			 : "x30", "memory");
	return (long)flags;
}

#else

/* Like vfork(), but at a place that the runtime doesn't intercept. */
long hang_unreaped(struct hang *hang)
{
	register uint64_t tls __asm__("r8") = 0, tid __asm__("r10") = 0;
	register struct hang *kept __asm__("r12") = hang;
	long ret;

	__asm__ volatile("syscall\n\t"
			 "test %%rax, %%rax\n\t"
			 "jnz 1f\n\t"
			 "mov %%r12, %%rdi\n\t"
			 "call *%[child]\n"
			 "1:"
			 : "=a"(ret)
			 : "a"(SYS_clone), "S"(hang->stack + sizeof(hang->stack)),
			   "d"(0), "r"(tid), "r"(tls), "r"(kept),
			   [child] "b"(hang_child),
			   "D"(CLONE_VM | CLONE_VFORK | SIGCHLD)
			 : "rcx", "r11", "memory");
	return ret;
}

#endif

void hang_here(struct hang *hang)
{
	long pid = hang_unreaped(hang);
	int status;

	CHECK(pid > 0);
	CHECK_EQ(waitpid((pid_t)pid, &status, 0), pid);
	CHECK_EQ(status, 0);
}

void *hang_once(void *arg)
{
	/* A thread that has waited runs on a carrier. */
	usleep(100);
	hang_here(arg);
	return NULL;
}

void await_hang(unsigned int i)
{
	while (!hangs[i].begun)
		usleep(1000);
}

void begin_to_hang(pthread_t *threads, unsigned int n)
{
	hangs = calloc(n, sizeof(*hangs));
	for (unsigned int i = 0; i < n; i++)
		threads[i] = start(hang_once, &hangs[i]);
	for (unsigned int i = 0; i < n; i++)
		await_hang(i);
}

void let_go(const pthread_t *threads, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		hangs[i].let = true;
	join_all(threads, n);
	free(hangs);
}
