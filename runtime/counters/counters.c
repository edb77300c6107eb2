/* SPDX-License-Identifier: MIT */
#include "counters.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/plain.h"
#include "lib/base/syscall.h"
#include "lib/files/private_fd.h"
#include "report.h"

/* Lowest number for the copy of standard error: programs seldom touch such numbers. */
#define COPY_FLOOR	500

struct run_page *flexsc__run_page;

static size_t page_bytes;
static int page_fd = -1;
/* Copy of the original standard error, for flexsc run --stats. */
static int copy = -1;
static struct stat copied;
static long program_pid;	/* process id of the program that flexsc run started */

/* The page. */

static int own_pid(void)
{
	return (int)raw_syscall(SYS_getpid, 0, 0, 0, 0, 0, 0);
}

/*
 * A forked child keeps its parent's page mapped until flexsc__counters_forked(). Until
 * then, what the child counts on its host is added to the parent's counters.
 */
int flexsc__counters_start(unsigned int n)
{
	size_t size = sizeof(struct run_page) +
		      (n + RUN_PAGE_HOSTS) * sizeof(struct counters);
	struct run_page *page = MAP_FAILED;

	page_fd = flexsc__private_memfd(RUN_PAGE_NAME, size);
	if (page_fd >= 0)
		page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED,
			    page_fd, 0);
	if (page == MAP_FAILED)
		page = mmap(NULL, size, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return -ENOMEM;
	page->block = sizeof(struct counters);
	page->room = n;
	page->pid = own_pid();
	page->begin = time_monotonic();
	strncpy(page->program, program_invocation_short_name,
		sizeof(page->program) - 1);
	flexsc__run_page = page;
	page_bytes = size;
	/* Move the copy to the descriptors that are hidden from the program. */
	if (!fds_is_own((uint32_t)copy))
		copy = flexsc__private_fd(copy);
	return 0;
}

void flexsc__counters_publish(const char *engine, unsigned int carriers)
{
	struct run_page *page = flexsc__run_page;

	page->carriers = carriers;
	strncpy(page->engine, engine, sizeof(page->engine) - 1);
	__atomic_store_n(&page->magic, RUN_PAGE_MAGIC, __ATOMIC_RELEASE);
}

void flexsc__counters_stuck(uint32_t n)
{
	__atomic_store_n(&flexsc__run_page->stuck, n, __ATOMIC_RELAXED);
}

void flexsc__counters_spares(uint32_t n)
{
	__atomic_store_n(&flexsc__run_page->spares, n, __ATOMIC_RELAXED);
}

void flexsc__counters_forked(void)
{
	if (page_fd >= 0)
		flexsc__private_fd_close(page_fd);
	munmap(flexsc__run_page, page_bytes);
	page_fd = -1;
	flexsc__run_page = NULL;
}

/* Showing the page. */

static bool is_copied(int fd)
{
	struct stat file;

	return fd >= 0 && !fstat(fd, &file) && file.st_dev == copied.st_dev &&
	       file.st_ino == copied.st_ino;
}

/*
 * Print to the original standard error: through the runtime's copy, or through
 * descriptor 2. Print nothing if the program has replaced both.
 */
static void print(const char *text, size_t length)
{
	int fd = is_copied(copy) ? copy : is_copied(2) ? 2 : -1;

	while (fd >= 0 && length) {
		long n = raw_syscall(SYS_write, (uint64_t)fd, PTR(text), length,
				     0, 0, 0);

		if (n == -EINTR)
			continue;
		if (n <= 0)
			return;
		text += n;
		length -= (size_t)n;
	}
}

static void show_nothing(void)
{
	char text[128];
	int n = snprintf(text, sizeof(text), "flexsc run: %s, process %d: made "
			 "no threads, so nothing was counted\n",
			 program_invocation_short_name, own_pid());

	if (n > 0 && n < (int)sizeof(text))
		print(text, (size_t)n);
}

/*
 * Print from a copy of the page, because carriers continue to count. If memory is
 * short, print from the page itself.
 */
static const struct run_page *at_this_moment(void)
{
	struct run_page *page = mmap(NULL, page_bytes, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return flexsc__run_page;
	return memcpy(page, flexsc__run_page, page_bytes);
}

void flexsc__counters_show(uint64_t calls)
{
	static char text[REPORT_BYTES];
	static atomic_bool shown;
	const struct run_page *page = flexsc__run_page;

	if (copy < 0)
		return;
	if (!page) {
		if (program_pid == own_pid() && !atomic_exchange(&shown, true))
			show_nothing();
		return;
	}
	/* A vfork() child shares this memory, but has another process id. */
	if (page->magic && page->pid == own_pid() &&
	    !atomic_exchange(&shown, true))
		print(text, flexsc__report(text, sizeof(text), at_this_moment(),
					   calls, time_monotonic()));
}

/*
 * Runs at quick_exit(), for a program that has started no thread. If the runtime has
 * started, its own handler has run before and shown the counters.
 */
static void quick_exit_follows(void)
{
	flexsc__counters_show(0);
}

/* Copy standard error before the program runs, because the program may close it. */
__attribute__((constructor)) static void keep_stderr(void)
{
	const char *pid = getenv("FLEXSC_STATS");

	if (!pid || fstat(2, &copied))
		return;
	program_pid = strtol(pid, NULL, 10);
	copy = plain_copy(2, COPY_FLOOR);
	if (copy < 0)
		copy = plain_copy(2, 3);
	at_quick_exit(quick_exit_follows);
}
