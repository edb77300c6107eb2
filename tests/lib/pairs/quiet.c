/* SPDX-License-Identifier: MIT */
/*
 * Threads wake each other, so one look at each of them isn't enough. The process is
 * quiet if all threads slept at two looks, and none ran in between, as the numbers
 * of their context switches show. This file makes raw system calls, so that a
 * runtime which runs the program doesn't wake its own threads for them.
 */
#define _GNU_SOURCE
#include "quiet.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>

#include "lib/base/syscall.h"

/* Shared by the two processes. */
static struct {
	_Atomic uint32_t turn;	/* odd: it is the observer's turn */
	long pid, tid;		/* the caller, which sleeps until the answer */
	unsigned int ms;
	bool quiet;
} *shared;

static long raw(long nr, uint64_t a, uint64_t b, uint64_t c)
{
	return raw_syscall(nr, a, b, c, 0, 0, 0);
}

/* Gives the turn to the other process. */
static void hand_over(void)
{
	atomic_fetch_add(&shared->turn, 1);
	raw(SYS_futex, PTR(&shared->turn), FUTEX_WAKE, 1);
}

static void await_turn(uint32_t odd)
{
	uint32_t turn;

	while (((turn = atomic_load(&shared->turn)) & 1) != odd)
		raw(SYS_futex, PTR(&shared->turn), FUTEX_WAIT, turn);
}

/* Returns the number behind a word at the start of a line. */
static uint64_t number_of(const char *text, const char *word)
{
	const char *at = strstr(text, word);

	return at ? strtoull(at + strlen(word), NULL, 10) : 0;
}

/* Adds the switches of a thread. False: it isn't sleeping, or has just ended. */
static bool add_switches(int tasks, const char *tid, uint64_t *switches)
{
	char path[32], text[4096];
	const char *state;
	long n, fd;

	snprintf(path, sizeof(path), "%.16s/status", tid);
	fd = raw(SYS_openat, (uint64_t)tasks, PTR(path), O_RDONLY);
	if (fd < 0)
		return false;
	n = raw(SYS_read, (uint64_t)fd, PTR(text), sizeof(text) - 1);
	raw(SYS_close, (uint64_t)fd, 0, 0);
	text[n > 0 ? n : 0] = 0;
	*switches += number_of(text, "\nvoluntary_ctxt_switches:") +
		     number_of(text, "\nnonvoluntary_ctxt_switches:");
	state = strstr(text, "\nState:\t");
	return state && state[8] == 'S';
}

/* Returns a sum of all threads' switches and of their number; 0: a thread is awake. */
static uint64_t look(int tasks)
{
	_Alignas(struct dirent) char names[4096];
	uint64_t sum = 1;
	long n;

	raw(SYS_lseek, (uint64_t)tasks, 0, SEEK_SET);
	while ((n = raw(SYS_getdents64, (uint64_t)tasks, PTR(names),
			sizeof(names))) > 0)
		for (long at = 0; at < n;) {
			const struct dirent *d = (const void *)(names + at);

			at += d->d_reclen;
			if (d->d_name[0] == '.' || atol(d->d_name) == shared->tid)
				continue;
			if (!add_switches(tasks, d->d_name, &sum))
				return 0;
			sum += 1ULL << 40;
		}
	return sum;
}

static bool becomes_quiet(void)
{
	static const struct timespec nap = { 0, 1000000 };
	unsigned int ms = shared->ms;
	uint64_t before = 0, now;
	char path[32];
	long tasks;

	snprintf(path, sizeof(path), "/proc/%ld/task", shared->pid);
	tasks = raw(SYS_openat, (uint64_t)AT_FDCWD, PTR(path),
		    O_RDONLY | O_DIRECTORY);
	now = look((int)tasks);
	for (; ms && (!now || now != before); ms--) {
		raw(SYS_nanosleep, PTR(&nap), 0, 0);
		before = now;
		now = look((int)tasks);
	}
	raw(SYS_close, (uint64_t)tasks, 0, 0);
	return ms;
}

static void observe(void)
{
	raw(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0);
	for (;;) {
		await_turn(1);
		shared->quiet = becomes_quiet();
		hand_over();
	}
}

bool quiet_begin(void)
{
	long pid;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return false;
	/* Like fork(), but the end of the child sends no signal. */
	pid = raw(SYS_clone, 0, 0, 0);
	if (!pid) {
		raw(SYS_close, 1, 0, 0);
		observe();
	}
	return pid > 0;
}

bool quiet_await(unsigned int ms)
{
	shared->pid = raw(SYS_getpid, 0, 0, 0);
	shared->tid = raw(SYS_gettid, 0, 0, 0);
	shared->ms = ms;
	hand_over();
	await_turn(0);
	return shared->quiet;
}
