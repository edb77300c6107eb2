/* SPDX-License-Identifier: MIT */
/* The life of threads: start, end, stacks, identity, and thread-local state. */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "threads.h"

static void *look_at_stack(void *arg)
{
	pthread_attr_t attr;
	size_t size;
	void *low;
	char here;

	usleep(100);
	CHECK_EQ(pthread_getattr_np(pthread_self(), &attr), 0);
	CHECK_EQ(pthread_attr_getstack(&attr, &low, &size), 0);
	CHECK(&here > (char *)low && &here < (char *)low + size);
	CHECK(size >= (size_t)arg);
	pthread_attr_destroy(&attr);
	return NULL;
}

static int use_stack(size_t bytes)
{
	volatile char array[4096];

	array[0] = (char)bytes;
	if (bytes > 8192)
		return use_stack(bytes - 4096 - 64) + array[0];
	return array[0];
}

static void *use_most_of_stack(void *arg)
{
	look_at_stack(arg);
	use_stack((size_t)arg - 24576);
	usleep(100);
	return NULL;
}

TEST(a_stack_is_as_large_as_asked_for)
{
	const size_t sizes[] = { (size_t)PTHREAD_STACK_MIN + 49152, 1 << 20, 64 << 20 };

	for (size_t i = 0; i < 3; i++) {
		pthread_attr_t attr;
		pthread_t thread;

		pthread_attr_init(&attr);
		CHECK_EQ(pthread_attr_setstacksize(&attr, sizes[i]), 0);
		CHECK_EQ(pthread_create(&thread, &attr, use_most_of_stack,
					(void *)sizes[i]), 0);
		join(thread);
	}
}

TEST(a_program_can_provide_a_stack)
{
	size_t size = 256 << 10;
	char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_attr_t attr;
	pthread_t thread;

	CHECK(memory != MAP_FAILED);
	pthread_attr_init(&attr);
	CHECK_EQ(pthread_attr_setstack(&attr, memory, size), 0);
	CHECK_EQ(pthread_create(&thread, &attr, use_most_of_stack,
				(void *)size), 0);
	join(thread);
	munmap(memory, size);
}

/* The exit(2) system call ends one thread, without libc. */

static int report[2];

static void *end_by_call(void *arg)
{
	usleep(1000);
	syscall(SYS_exit, 0);
	return arg;
}

/* Main's kernel thread stays a zombie while other threads run. */
static void await_end_of_main(void)
{
	char path[64], line[64] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", getpid());
	while (!strstr(line, ") Z")) {
		usleep(100);
		file = fopen(path, "re");
		CHECK(file && fgets(line, sizeof(line), file));
		fclose(file);
	}
}

static void *go_on(void *way)
{
	await_end_of_main();
	CHECK_EQ(write(report[1], "x", 1), 1);
	if (way)
		syscall(SYS_exit, 7);
	return NULL;
}

static void main_ends_by_call(void *(*thread)(void *), void *way, int status)
{
	int pid, got;
	char c;

	CHECK_EQ(pipe(report), 0);
	pid = fork();
	if (!pid) {
		start(thread, way);
		syscall(SYS_exit, 3);
	}
	CHECK_EQ(read(report[0], &c, 1), 1);
	CHECK_EQ(waitpid(pid, &got, 0), pid);
	CHECK(WIFEXITED(got));
	CHECK_EQ(WEXITSTATUS(got), status);
	close(report[0]);
	close(report[1]);
}

TEST(main_ends_by_system_call_and_a_thread_goes_on)
{
	main_ends_by_call(go_on, NULL, 0);
}

TEST(all_threads_end_by_system_call)
{
	main_ends_by_call(go_on, report, 7);
}

static void end_with(void *value)
{
	syscall(SYS_exit, *(int *)value);
}

static void *end_by_destructor(void *arg)
{
	static int status = 7;
	pthread_key_t key;

	CHECK_EQ(pthread_key_create(&key, end_with), 0);
	CHECK_EQ(pthread_setspecific(key, &status), 0);
	return go_on(NULL);
}

TEST(a_destructor_ends_the_last_thread_by_system_call)
{
	main_ends_by_call(end_by_destructor, NULL, 7);
}

TEST(threads_end_by_system_call)
{
	for (int i = 0; i < 50; i++) {
		pthread_t threads[2] = { start(end_by_call, NULL),
					 start(end_by_call, NULL) };

		join(threads[0]);
		join(threads[1]);
	}
}

static pthread_key_t key;
static __thread int local = 5;
static atomic_int destroyed;

static void destroy(void *arg)
{
	usleep(100);
	destroyed += arg == &key;
}

static void *use_locals(void *arg)
{
	pthread_setspecific(key, &key);
	for (int i = 0; i < 50; i++) {
		CHECK_EQ(local, 5 + i);
		local++;
		errno = i;
		usleep(10);
		CHECK_EQ(errno, i);
		CHECK(pthread_getspecific(key) == &key);
	}
	return arg;
}

TEST(locals_stay_with_their_thread)
{
	pthread_key_create(&key, destroy);
	run_all(16, use_locals, NULL);
	CHECK_EQ(destroyed, 16);
	CHECK_EQ(local, 5);
}

#if defined(__aarch64__)

static unsigned long rounding(void)
{
	unsigned long fpcr;

	__asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
	return fpcr;
}

static void *round_as_told(void *arg)
{
	const unsigned long mode = ((unsigned long)arg & 3) << 22;

	__asm__ volatile("msr fpcr, %0" : : "r"(mode));
	for (int i = 0; i < 200; i++) {
		CHECK_EQ(rounding(), mode);
		usleep(10);
	}
	return NULL;
}

#else

static unsigned int rounding(void)
{
	unsigned int mxcsr;
	unsigned short control;

	__asm__ volatile("stmxcsr %0" : "=m"(mxcsr));
	__asm__ volatile("fnstcw %0" : "=m"(control));
	return (mxcsr & 0x6000) | (control & 0xc00);
}

static void *round_as_told(void *arg)
{
	unsigned int mode = (unsigned int)(long)arg & 3;
	unsigned int mxcsr = 0x1f80 | mode << 13;
	unsigned short control = (unsigned short)(0x37f | mode << 10);

	__asm__ volatile("ldmxcsr %0" : : "m"(mxcsr));
	__asm__ volatile("fldcw %0" : : "m"(control));
	for (int i = 0; i < 200; i++) {
		CHECK_EQ(rounding(), mode << 13 | mode << 10);
		usleep(10);
	}
	return NULL;
}

#endif

TEST(floating_point_modes_stay_with_their_thread)
{
	run_numbered(8, round_as_told);
}
