/* SPDX-License-Identifier: MIT */
/* What a thread has besides what it does: stacks, policy, registers. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/wait.h>

#include "threads.h"

/* Stacks. */

#define GUARD	(1UL << 16)

static void get_stack(pthread_t thread, char **low, size_t *size, size_t *guard)
{
	pthread_attr_t attr;

	CHECK_EQ(pthread_getattr_np(thread, &attr), 0);
	CHECK_EQ(pthread_attr_getstack(&attr, (void **)low, size), 0);
	CHECK_EQ(pthread_attr_getguardsize(&attr, guard), 0);
	CHECK_EQ(pthread_attr_destroy(&attr), 0);
}

static void *touch_guard(void *arg)
{
	size_t size, guard;
	char *low;

	usleep(100);
	get_stack(pthread_self(), &low, &size, &guard);
	CHECK_EQ(guard, GUARD);
	*(volatile char *)low = 1;
	*(volatile char *)(low - (size_t)arg) = 1;
	return NULL;
}

TEST(a_guard_is_as_large_as_asked_for)
{
	static const size_t below[] = { 1, GUARD / 2, GUARD };

	for (int i = 0; i < 3; i++) {
		int pid = test_fork(), status;
		pthread_attr_t attr;
		pthread_t thread;

		if (!pid) {
			pthread_attr_init(&attr);
			CHECK_EQ(pthread_attr_setguardsize(&attr, GUARD), 0);
			CHECK_EQ(pthread_create(&thread, &attr, touch_guard,
						(void *)below[i]), 0);
			join(thread);
			_exit(1);
		}
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK(WIFSIGNALED(status));
		CHECK_EQ(WTERMSIG(status), SIGSEGV);
	}
}

static void has(pthread_t thread, const void *address)
{
	size_t size, guard;
	char *low;

	get_stack(thread, &low, &size, &guard);
	CHECK((const char *)address > low);
	CHECK((const char *)address < low + size);
}

struct whose {
	pthread_t thread;
	char *local;
};

static void *look_at(void *arg)
{
	struct whose *whose = arg;
	char mine;

	usleep(100);
	has(whose->thread, whose->local);
	has(pthread_self(), &mine);
	return arg;
}

TEST(main_s_stack_is_where_it_is)
{
	char local = 0;
	struct whose whose = { pthread_self(), &local };

	join(start(look_at, &whose));
	usleep(100);
	has(pthread_self(), &local);
}

/* Forking. */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_int prepared, in_child;

static void prepare(void)
{
	CHECK_EQ(pthread_mutex_lock(&mutex), 0);
	prepared++;
}

static void parent(void)
{
	CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
}

static void child(void)
{
	int fds[2];
	char byte;

	CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
	CHECK_EQ(pipe(fds), 0);
	CHECK_EQ(write(fds[1], "x", 1), 1);
	CHECK_EQ(read(fds[0], &byte, 1), 1);
	usleep(100);
	in_child++;
}

static void *nothing(void *arg)
{
	return arg;
}

static void *fork_here(void *arg)
{
	int pid, status;

	usleep(100);
	pid = fork();
	if (!pid) {
		join(start(nothing, NULL));
		_exit(in_child);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(WEXITSTATUS(status), 2);
	return arg;
}

/* One is registered before the runtime's, one after. */
TEST(a_child_s_handlers_run_in_it)
{
	pthread_t threads[4];

	CHECK_EQ(pthread_atfork(prepare, parent, child), 0);
	join(start(nothing, NULL));
	CHECK_EQ(pthread_atfork(NULL, NULL, child), 0);
	for (int i = 0; i < 4; i++)
		threads[i] = start(fork_here, NULL);
	for (int i = 0; i < 4; i++)
		join(threads[i]);
	CHECK_EQ(prepared, 4);
	CHECK_EQ(in_child, 0);
}

/* Scheduling. */

static void *be_batch(void *arg)
{
	const struct sched_param zero = { 0 };

	usleep(100);
	CHECK_EQ(sched_setscheduler(0, SCHED_BATCH, &zero), 0);
	usleep(100);
	CHECK_EQ(sched_getscheduler(0), SCHED_BATCH);
	CHECK_EQ(sched_getscheduler(gettid()), SCHED_BATCH);
	return arg;
}

static void *be_usual(void *arg)
{
	for (int i = 0; i < 20; i++) {
		CHECK_EQ(sched_getscheduler(0), SCHED_OTHER);
		usleep(1000);
	}
	return arg;
}

TEST(a_policy_is_a_thread_s_own)
{
	pthread_t usual = start(be_usual, NULL);

	join(start(be_batch, NULL));
	join(usual);
	CHECK_EQ(sched_getscheduler(0), SCHED_OTHER);
}

/* Registers. */

#ifdef __x86_64__
#define VECTORS	(16 * 32)

static sem_t sem;
static atomic_int over;

#define EACH(what) \
	".irp i,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n" what ".endr\n"

/* Call it with all of them full: what is in them then? */
__attribute__((target("avx"))) static long
call_full(void *function, void *arg, const uint8_t *in, uint8_t *out)
{
	register void *f __asm__("rbx") = function;
	register const uint8_t *from __asm__("r12") = in;
	register uint8_t *to __asm__("r13") = out;
	register void *first __asm__("rdi") = arg;
	long ret;

	__asm__ volatile("mov %%rsp, %%r14\n"
			 "sub $256, %%rsp\n"
			 "and $-16, %%rsp\n"
			 EACH("vmovdqu \\i*32(%[from]), %%ymm\\i\n")
			 "call *%[f]\n"
			 EACH("vmovdqu %%ymm\\i, \\i*32(%[to])\n")
			 "vzeroupper\n"
			 "mov %%r14, %%rsp\n"
			 : "=a"(ret), "+r"(first)
			 : [f] "r"(f), [from] "r"(from), [to] "r"(to)
			 : "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "r14",
			   "cc", "memory", "xmm0", "xmm1", "xmm2", "xmm3",
			   "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
			   "xmm10", "xmm11", "xmm12", "xmm13", "xmm14",
			   "xmm15");
	return ret;
}

/* libc's has only a few instructions around the system call that waits. */
static void *wait_with_full_ones(void *seed)
{
	void *wait = dlsym(RTLD_DEFAULT, "sem_wait");
	uint8_t in[VECTORS], out[VECTORS];

	for (int i = 0; i < 200; i++) {
		for (int j = 0; j < VECTORS; j++)
			in[j] = (uint8_t)(i + j * 7 + (long)seed * 31);
		CHECK_EQ(call_full(wait, &sem, in, out), 0);
		CHECK(!memcmp(in, out, VECTORS));
	}
	return NULL;
}

static void *use_them(void *arg)
{
	uint8_t text[512];

	while (!over) {
		memset(text, 0xa5, sizeof(text));
		sched_yield();
	}
	return arg;
}

TEST(vector_registers_survive_a_wait_in_libc)
{
	pthread_t threads[4], other;

	if (getenv("FLEXSC_PATCH"))
		SKIP("libc isn't patched: a function is in front of it");
	if (!__builtin_cpu_supports("avx"))
		SKIP("the processor has no AVX");
	CHECK_EQ(sem_init(&sem, 0, 0), 0);
	other = start(use_them, NULL);
	for (long i = 0; i < 4; i++)
		threads[i] = start(wait_with_full_ones, (void *)i);
	for (int i = 0; i < 800; i++) {
		CHECK_EQ(sem_post(&sem), 0);
		if (i % 8 == 0)
			usleep(50);
	}
	for (int i = 0; i < 4; i++)
		join(threads[i]);
	over = 1;
	join(other);
}
#endif
