/* SPDX-License-Identifier: MIT */
/* Page faults of other threads as events, and changed pages. */
#include "events.h"

#include <dirent.h>
#include <setjmp.h>
#include <sys/mman.h>

#define PAGES	8

static size_t page;

static char *map_pages(size_t n)
{
	char *area;

	page = (size_t)sysconf(_SC_PAGESIZE);
	area = mmap(NULL, n * page, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(area != MAP_FAILED);
	return area;
}

static void need(uint32_t what)
{
	char why[192];

	if (flexsc_ecb_memory_probe(what, why, sizeof(why)))
		SKIP("%s", why);
}

static unsigned int watch_memory(char *area, size_t n, uint32_t what, int group)
{
	int index = flexsc_ecb_memory(ecb, area, n * page, what, group, area);

	CHECK(index >= 0);
	return (unsigned int)index;
}

/* Returns a page that is filled with this byte. The next call changes it. */
static const char *page_of(char byte)
{
	static char bytes[65536];

	memset(bytes, byte, page);
	return bytes;
}

static void fill(unsigned int index, char *at, char byte)
{
	CHECK_EQ(flexsc_ecb_memory_fill(ecb, index, at, page, page_of(byte)), 0);
}

/* Threads that fault. */

static void *read_byte(void *arg)
{
	return (void *)(intptr_t)*(volatile char *)arg;
}

static void *write_byte(void *arg)
{
	__atomic_store_n((char *)arg, 'w', __ATOMIC_RELAXED);
	return NULL;
}

static char result_of(pthread_t thread)
{
	void *result;

	CHECK_EQ(pthread_join(thread, &result), 0);
	return (char)(intptr_t)result;
}

static unsigned int pending_of(const char *fd)
{
	char path[300], line[100];
	unsigned int pending = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%s", fd);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "pending: %u", &pending) == 1)
			break;
	if (file)
		fclose(file);
	return pending;
}

/* Returns the number of faults that no userfaultfd was read for. */
static unsigned int pending_faults(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned int faults = 0;
	const struct dirent *entry;

	CHECK(dir);
	while ((entry = readdir(dir))) {
		char target[100] = "";

		if (readlinkat(dirfd(dir), entry->d_name, target,
			       sizeof(target) - 1) > 0 &&
		    strstr(target, "userfaultfd"))
			faults += pending_of(entry->d_name);
	}
	closedir(dir);
	return faults;
}

static void await_faults(unsigned int n)
{
	while (pending_faults() < n)
		sleep_ms(1);
}

ECB_TEST(a_missing_page_is_an_event)
{
	struct flexsc_ecb_event event;
	unsigned int index;
	pthread_t thread;
	char *area;

	need(FLEXSC_MEMORY_MISSING);
	area = map_pages(PAGES);
	index = watch_memory(area, PAGES, FLEXSC_MEMORY_MISSING, 3);
	thread = test_thread(read_byte, area + 2 * page + 5);
	event = test_next(ecb, ALL);
	CHECK_EQ(event.event, index);
	CHECK_EQ(event.type, FLEXSC_EVT_MEMORY);
	CHECK_EQ(event.group, 3);
	CHECK(event.data == area);
	CHECK_EQ(event.payload[0], (uintptr_t)area + 2 * page);
	CHECK_EQ(event.payload[1], FLEXSC_MEMORY_MISSING);
	CHECK(event.payload[2] != (uint64_t)gettid());
	fill(index, area + 2 * page, 'x');
	CHECK_EQ(result_of(thread), 'x');
	thread = test_thread(write_byte, area);
	event = test_next(ecb, ALL);
	CHECK_EQ(event.payload[1], FLEXSC_MEMORY_MISSING | FLEXSC_MEMORY_WRITE);
	CHECK_EQ(flexsc_ecb_memory_fill(ecb, index, area, page, NULL), 0);
	result_of(thread);
	CHECK_EQ(area[0], 'w');
	CHECK_EQ(area[1], 0);
	/* A page that exists stays unchanged. */
	fill(index, area, 'z');
	CHECK_EQ(area[0], 'w');
	test_none(ecb, ALL);
}

ECB_TEST(pages_of_several_mappings_are_filled)
{
	unsigned int index;
	char *area;

	need(FLEXSC_MEMORY_MISSING);
	area = map_pages(PAGES);
	index = watch_memory(area, PAGES, FLEXSC_MEMORY_MISSING, 0);
	CHECK_EQ(madvise(area + page, page, MADV_DONTDUMP), 0);
	CHECK_EQ(flexsc_ecb_memory_fill(ecb, index, area, PAGES * page, NULL), 0);
	for (size_t i = 0; i < PAGES; i++)
		CHECK_EQ(area[i * page], 0);
}

#define HUGE	(2UL << 20)
#define SMALL	4096	/* no page is smaller */

ECB_TEST(huge_pages_are_filled)
{
	struct flexsc_ecb_event event;
	char *area, *pages;
	pthread_t thread;
	int index;

	need(FLEXSC_MEMORY_MISSING);
	pages = map_pages(4 * HUGE / SMALL);
	area = mmap(NULL, 4 * HUGE, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | 21 << MAP_HUGE_SHIFT,
		    -1, 0);
	if (area == MAP_FAILED)
		SKIP("needs four free huge pages: %s", strerror(errno));
	index = flexsc_ecb_memory(ecb, area, 4 * HUGE, FLEXSC_MEMORY_MISSING, 0, NULL);
	CHECK(index >= 0);
	thread = test_thread(read_byte, area + HUGE + 5 * page);
	event = test_next(ecb, ALL);
	CHECK_EQ(event.payload[0], (uintptr_t)area + HUGE);
	memset(pages, 'h', 4 * HUGE);
	CHECK_EQ(flexsc_ecb_memory_fill(ecb, (unsigned int)index, area + HUGE, HUGE,
					pages), 0);
	CHECK_EQ(result_of(thread), 'h');
	CHECK_EQ(flexsc_ecb_memory_fill(ecb, (unsigned int)index, area, 3 * HUGE,
					NULL), 0);
	CHECK_EQ(flexsc_ecb_memory_fill(ecb, (unsigned int)index, area, 4 * HUGE,
					pages), 0);
	for (size_t i = 0; i < 4 * HUGE; i += page)
		CHECK_EQ(area[i], i / HUGE % 2 ? 'h' : 0);
}

ECB_TEST(faults_of_several_threads_are_events)
{
	struct flexsc_ecb_event event;
	pthread_t threads[PAGES];
	unsigned int index, seen = 0;
	char *area;

	need(FLEXSC_MEMORY_MISSING);
	area = map_pages(PAGES);
	index = watch_memory(area, PAGES, FLEXSC_MEMORY_MISSING, 0);
	for (size_t i = 0; i < PAGES; i++)
		threads[i] = test_thread(read_byte, area + i * page);
	await_faults(PAGES);
	for (int i = 0; i < PAGES; i++) {
		event = test_next(ecb, ALL);
		seen |= 1U << (event.payload[0] - (uintptr_t)area) / page;
	}
	CHECK_EQ(seen, (1U << PAGES) - 1);
	test_none(ecb, ALL);
	/* One call for all of them. The page in the middle exists. */
	fill(index, area + 3 * page, 'm');
	CHECK_EQ(flexsc_ecb_memory_fill(ecb, index, area, PAGES * page, NULL), 0);
	for (int i = 0; i < PAGES; i++)
		CHECK_EQ(result_of(threads[i]), i == 3 ? 'm' : 0);
}

/* A fault that happens while faults of one read are still handed out. */
ECB_TEST(a_fault_beside_read_ones_is_an_event)
{
	pthread_t threads[4];
	unsigned int index;
	char *area;

	need(FLEXSC_MEMORY_MISSING);
	area = map_pages(4);
	for (size_t last = 1; last < 3; last++) {
		index = watch_memory(area, 4, FLEXSC_MEMORY_MISSING, 0);
		for (size_t i = 0; i < 3; i++)
			threads[i] = test_thread(read_byte, area + i * page);
		await_faults(3);
		for (size_t i = 0; i < last; i++)
			test_next(ecb, ALL);
		threads[3] = test_thread(read_byte, area + 3 * page);
		await_faults(1);
		for (size_t i = last; i < 4; i++)
			test_next(ecb, ALL);
		test_none(ecb, ALL);
		fill(index, area, 'x');
		CHECK_EQ(flexsc_ecb_memory_fill(ecb, index, area, 4 * page, NULL), 0);
		for (size_t i = 0; i < 4; i++)
			CHECK_EQ(result_of(threads[i]), i ? 0 : 'x');
		CHECK_EQ(flexsc_ecb_forget(ecb, index), 0);
		CHECK_EQ(madvise(area, 4 * page, MADV_DONTNEED), 0);
	}
}

/* More faults than one read returns. */
ECB_TEST(no_fault_is_lost)
{
	enum { MANY_PAGES = 300 };
	pthread_t threads[MANY_PAGES];
	unsigned int index;
	char *area;

	need(FLEXSC_MEMORY_MISSING);
	area = map_pages(MANY_PAGES);
	index = watch_memory(area, MANY_PAGES, FLEXSC_MEMORY_MISSING, 0);
	for (size_t i = 0; i < MANY_PAGES; i++)
		threads[i] = test_thread(read_byte, area + i * page);
	await_faults(MANY_PAGES);
	for (int i = 0; i < MANY_PAGES; i++) {
		char *at = (char *)(uintptr_t)test_next(ecb, ALL).payload[0];

		fill(index, at, (char)((size_t)(at - area) / page));
	}
	for (int i = 0; i < MANY_PAGES; i++)
		CHECK_EQ(result_of(threads[i]), (char)i);
	test_none(ecb, ALL);
}

ECB_TEST(faults_of_the_lower_group_come_first)
{
	pthread_t threads[2];
	unsigned int low, high;
	char *area;

	need(FLEXSC_MEMORY_MISSING);
	area = map_pages(2);
	high = watch_memory(area, 1, FLEXSC_MEMORY_MISSING, 7);
	low = watch_memory(area + page, 1, FLEXSC_MEMORY_MISSING, 2);
	threads[0] = test_thread(read_byte, area);
	await_faults(1);
	threads[1] = test_thread(read_byte, area + page);
	await_faults(2);
	CHECK_EQ(test_next(ecb, ALL).event, low);
	CHECK_EQ(test_next(ecb, ALL).event, high);
	fill(low, area + page, 'l');
	fill(high, area, 'h');
	CHECK_EQ(result_of(threads[0]), 'h');
	CHECK_EQ(result_of(threads[1]), 'l');
}

/* The handler serves all faults while the owner computes. */

static volatile unsigned int served;

static void serve_faults(struct flexsc_ecb *ecb, void *arg)
{
	struct flexsc_ecb_event event;

	while (flexsc_ecb_next(ecb, ALL, &event)) {
		char *at = (char *)(uintptr_t)event.payload[0];

		CHECK_EQ(event.type, FLEXSC_EVT_MEMORY);
		if (event.payload[1] & FLEXSC_MEMORY_PROTECTED)
			CHECK_EQ(flexsc_ecb_memory_allow(ecb, event.event, at, page,
							 1), 0);
		else
			fill(event.event, at, 's');
		served++;
	}
}

static void *read_pages(void *arg)
{
	for (size_t i = 0; i < PAGES; i++)
		CHECK_EQ(((volatile char *)arg)[i * page], 's');
	return NULL;
}

QUIET_ECB_TEST(a_fault_interrupts_a_computing_owner)
{
	pthread_t threads[2];
	char *area[2];

	need(FLEXSC_MEMORY_MISSING);
	served = 0;
	CHECK_EQ(flexsc_ecb_handler(ecb, serve_faults, NULL), 0);
	for (int i = 0; i < 2; i++) {
		area[i] = map_pages(PAGES);
		watch_memory(area[i], PAGES, FLEXSC_MEMORY_MISSING, i);
	}
	CHECK_EQ(flexsc_ecb_notify(ecb, ALL), 0);
	for (int i = 0; i < 2; i++)
		threads[i] = test_thread(read_pages, area[i]);
	/* Each fault needs the previous one to be served. */
	compute_until(&served, 2 * PAGES);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	CHECK_EQ(served, 2 * PAGES);
}

ECB_TEST(a_write_to_a_protected_page_is_an_event)
{
	struct flexsc_ecb_event event;
	unsigned int index;
	pthread_t thread;
	char *area;

	need(FLEXSC_MEMORY_PROTECTED);
	area = map_pages(PAGES);
	area[0] = 'a';
	index = watch_memory(area, PAGES, FLEXSC_MEMORY_PROTECTED, 0);
	/* Reading is no event, nor a page that doesn't exist yet. */
	CHECK_EQ(area[0], 'a');
	CHECK_EQ(area[page], 0);
	test_none(ecb, ALL);
	for (size_t i = 0; i < 3; i++) {
		thread = test_thread(write_byte, area + i * page);
		event = test_next(ecb, ALL);
		CHECK_EQ(event.payload[0], (uintptr_t)area + i * page);
		CHECK_EQ(event.payload[1] & ~(uint64_t)FLEXSC_MEMORY_WRITE,
			 FLEXSC_MEMORY_PROTECTED);
		CHECK_EQ(__atomic_load_n(area + i * page, __ATOMIC_RELAXED),
			 i ? 0 : 'a');
		CHECK_EQ(flexsc_ecb_memory_allow(ecb, index, area + i * page, page,
						 1), 0);
		result_of(thread);
		CHECK_EQ(area[i * page], 'w');
	}
	/* Allowed until it is protected again. */
	result_of(test_thread(write_byte, area));
	CHECK_EQ(flexsc_ecb_memory_allow(ecb, index, area, page, 0), 0);
	thread = test_thread(write_byte, area);
	CHECK_EQ(test_next(ecb, ALL).payload[0], (uintptr_t)area);
	CHECK_EQ(flexsc_ecb_memory_allow(ecb, index, area, page, 1), 0);
	result_of(thread);
}

/* Ends: no thread may be left asleep. */

static pthread_t waiting_reader(char *area, unsigned int *index)
{
	pthread_t thread;

	*index = watch_memory(area, 1, FLEXSC_MEMORY_MISSING, 0);
	thread = test_thread(read_byte, area);
	await_faults(1);
	return thread;
}

ECB_TEST(forgetting_wakes_threads)
{
	unsigned int index;
	pthread_t thread;
	char *area;

	need(FLEXSC_MEMORY_MISSING);
	area = map_pages(1);
	thread = waiting_reader(area, &index);
	CHECK_EQ(flexsc_ecb_forget(ecb, index), 0);
	CHECK_EQ(result_of(thread), 0);
	test_none(ecb, ALL);
	CHECK_EQ(flexsc_ecb_memory_fill(ecb, index, area, page, NULL), -ENOENT);
	/* The same after the event was taken; the memory can be watched again. */
	area = map_pages(1);
	thread = waiting_reader(area, &index);
	test_next(ecb, ALL);
	CHECK_EQ(flexsc_ecb_close(ecb, index), 0);
	CHECK_EQ(result_of(thread), 0);
	need(FLEXSC_MEMORY_PROTECTED);
	index = watch_memory(area, 1, FLEXSC_MEMORY_PROTECTED, 0);
	thread = test_thread(write_byte, area);
	await_faults(1);
	CHECK_EQ(flexsc_ecb_forget(ecb, index), 0);
	result_of(thread);
	CHECK_EQ(area[0], 'w');
}

TEST(destroying_wakes_threads)
{
	unsigned int index, fds;
	pthread_t thread;

	need(FLEXSC_MEMORY_MISSING);
	fds = count_fds();
	ecb = test_ecb();
	thread = waiting_reader(map_pages(1), &index);
	CHECK_EQ(flexsc_ecb_destroy(ecb), 0);
	CHECK_EQ(result_of(thread), 0);
	CHECK(falls_to(count_fds, fds));
}

/* A child without fork handlers keeps the userfaultfd open. */
ECB_TEST(a_child_keeps_no_thread_asleep)
{
	unsigned int index;
	pthread_t thread;
	int pid, fds[2];
	char byte;

	need(FLEXSC_MEMORY_MISSING);
	thread = waiting_reader(map_pages(1), &index);
	CHECK_EQ(pipe2(fds, O_CLOEXEC), 0);
	pid = (int)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (!pid) {
		close(fds[1]);
		_exit(read(fds[0], &byte, 1) != 0);
	}
	CHECK(pid > 0);
	CHECK_EQ(flexsc_ecb_forget(ecb, index), 0);
	CHECK_EQ(result_of(thread), 0);
	close(fds[1]);
	test_reap(pid);
}

static sigjmp_buf landing;

static void on_segv(int signo)
{
	siglongjmp(landing, 1);
}

/* Returns true if reading the byte ends with SIGSEGV. */
static bool faults_at(const volatile char *at)
{
	volatile bool fault = true;

	signal(SIGSEGV, on_segv);
	if (!sigsetjmp(landing, 1)) {
		(void)*at;
		fault = false;
	}
	signal(SIGSEGV, SIG_DFL);
	return fault;
}

ECB_TEST(a_child_has_no_missing_pages)
{
	unsigned int index;
	pthread_t thread;
	char *area;

	need(FLEXSC_MEMORY_MISSING);
	area = map_pages(2);
	index = watch_memory(area, 2, FLEXSC_MEMORY_MISSING, 0);
	fill(index, area, 'p');
	IN_CHILD {
		/* An error instead of a zero that the owner never filled in. */
		CHECK(faults_at(area + page));
		CHECK_EQ(flexsc_ecb_memory_fill(ecb, index, area, page, NULL),
			 -ESTALE);
		CHECK_EQ(flexsc_ecb_destroy(ecb), 0);
		CHECK_EQ(pending_faults(), 0);
	}
	thread = test_thread(read_byte, area + page);
	test_next(ecb, ALL);
	fill(index, area + page, 'q');
	CHECK_EQ(result_of(thread), 'q');
	CHECK_EQ(flexsc_ecb_forget(ecb, index), 0);
	IN_CHILD
		CHECK_EQ(area[0], 'p');
}

static void *fault_at(void *arg)
{
	return (void *)(intptr_t)faults_at(arg);
}

/* Starts a thread that waits for a page, which is unmapped then. */
static pthread_t reader_of_unmapped(char **area, unsigned int *index)
{
	pthread_t thread;

	*area = map_pages(1);
	*index = watch_memory(*area, 1, FLEXSC_MEMORY_MISSING, 0);
	thread = test_thread(fault_at, *area);
	test_next(ecb, ALL);
	CHECK_EQ(munmap(*area, page), 0);
	return thread;
}

ECB_TEST(unmapping_leaves_no_thread_asleep)
{
	unsigned int index;
	pthread_t thread;
	char *area;

	need(FLEXSC_MEMORY_MISSING);
	thread = reader_of_unmapped(&area, &index);
	CHECK_EQ(flexsc_ecb_memory_fill(ecb, index, area, page, NULL), -ENOENT);
	CHECK_EQ(result_of(thread), true);
	/* The same if the source ends instead. */
	thread = reader_of_unmapped(&area, &index);
	CHECK_EQ(flexsc_ecb_forget(ecb, index), 0);
	CHECK_EQ(result_of(thread), true);
}

/* Rights. */

static void *read_zero(void *arg)
{
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	int err = read(fd, arg, 1) == 1 ? 0 : errno;

	close(fd);
	return (void *)(intptr_t)err;
}

ECB_TEST(a_system_call_does_not_wait_for_the_owner)
{
	char *area;

	need(FLEXSC_MEMORY_MISSING);
	area = map_pages(1);
	watch_memory(area, 1, FLEXSC_MEMORY_MISSING, 0);
	CHECK_EQ(result_of(test_thread(read_zero, area)), EFAULT);
	test_none(ecb, ALL);
}

ECB_TEST(a_fault_of_a_system_call_is_an_event_on_request)
{
	unsigned int index;
	pthread_t thread;
	char *area;

	need(FLEXSC_MEMORY_MISSING | FLEXSC_MEMORY_CALLS);
	area = map_pages(1);
	index = watch_memory(area, 1, FLEXSC_MEMORY_MISSING | FLEXSC_MEMORY_CALLS, 0);
	thread = test_thread(read_zero, area);
	CHECK_EQ(test_next(ecb, ALL).payload[0], (uintptr_t)area);
	fill(index, area, 'x');
	CHECK_EQ(result_of(thread), 0);
	CHECK_EQ(area[0], 0);
	CHECK_EQ(area[1], 'x');
}

static bool unprivileged_may_all(void)
{
	FILE *file = fopen("/proc/sys/vm/unprivileged_userfaultfd", "re");
	int value = 1;

	if (file && fscanf(file, "%d", &value) != 1)
		value = 1;
	if (file)
		fclose(file);
	return value || !access("/dev/userfaultfd", R_OK | W_OK);
}

ECB_TEST(an_unprivileged_program_gets_faults)
{
	const uint32_t calls = FLEXSC_MEMORY_MISSING | FLEXSC_MEMORY_CALLS;
	char why[192];
	unsigned int index;
	pthread_t thread;
	char *area;

	need(FLEXSC_MEMORY_MISSING);
	become_nobody();
	area = map_pages(1);
	index = watch_memory(area, 1, FLEXSC_MEMORY_MISSING, 0);
	thread = test_thread(read_byte, area);
	test_next(ecb, ALL);
	fill(index, area, 'n');
	CHECK_EQ(result_of(thread), 'n');
	if (unprivileged_may_all())
		return;
	CHECK_EQ(flexsc_ecb_memory(ecb, area, page, calls, 0, NULL), -EOPNOTSUPP);
	CHECK_EQ(flexsc_ecb_memory_probe(calls, why, sizeof(why)), -EOPNOTSUPP);
	CHECK(strstr(why, "CAP_SYS_PTRACE"));
}

static void forbidden_with(int error)
{
	const int call = SYS_userfaultfd;
	char why[192];

	become_nobody();
	if (!access("/dev/userfaultfd", R_OK | W_OK))
		SKIP("/dev/userfaultfd is open to everybody");
	forbid(&call, 1, error);
	page = (size_t)sysconf(_SC_PAGESIZE);
	CHECK_EQ(flexsc_ecb_memory(ecb, map_pages(1), page, FLEXSC_MEMORY_MISSING, 0,
				   NULL), -EOPNOTSUPP);
	CHECK_EQ(flexsc_ecb_memory_probe(FLEXSC_MEMORY_MISSING, why, sizeof(why)),
		 -EOPNOTSUPP);
	CHECK(strstr(why, "filter"));
}

ECB_TEST(a_filter_is_reported)
{
	forbidden_with(EPERM);
}

ECB_TEST(a_filter_that_hides_the_call_is_reported)
{
	forbidden_with(ENOSYS);
}

ECB_TEST(invalid_memory_is_refused)
{
	pthread_t thread;
	char *area;

	need(FLEXSC_MEMORY_MISSING);
	area = map_pages(2);
	CHECK_EQ(flexsc_ecb_memory(ecb, area, page, 0, 0, NULL), -EINVAL);
	CHECK_EQ(flexsc_ecb_memory(ecb, area, page, 0x100, 0, NULL), -EINVAL);
	CHECK_EQ(flexsc_ecb_memory(ecb, area, page, FLEXSC_MEMORY_CALLS, 0, NULL),
		 -EINVAL);
	CHECK_EQ(flexsc_ecb_memory(ecb, area, page,
				   FLEXSC_MEMORY_PROTECTED | FLEXSC_MEMORY_CHANGES, 0,
				   NULL), -EINVAL);
	CHECK_EQ(flexsc_ecb_memory(ecb, area + 1, page, FLEXSC_MEMORY_MISSING, 0,
				   NULL), -EINVAL);
	CHECK_EQ(flexsc_ecb_memory(ecb, area, page, FLEXSC_MEMORY_MISSING, 32, NULL),
		 -EINVAL);
	CHECK_EQ(flexsc_ecb_memory_fill(ecb, 5, area, page, NULL), -ENOENT);
	CHECK_EQ(watch_memory(area, 1, FLEXSC_MEMORY_MISSING, 0), 0);
	CHECK_EQ(flexsc_ecb_memory_fill(ecb, 0, area, 2 * page, NULL), -EINVAL);
	CHECK_EQ(flexsc_ecb_memory_fill(ecb, 0, area - page, page, NULL), -EINVAL);
	CHECK_EQ(flexsc_ecb_memory_allow(ecb, 0, area, page, 1), -EINVAL);
	CHECK_EQ(flexsc_ecb_memory(ecb, area, page, FLEXSC_MEMORY_MISSING, 0, NULL),
		 -EBUSY);
	/* The first source still has the memory. */
	thread = test_thread(read_byte, area);
	CHECK_EQ(test_next(ecb, ALL).event, 0);
	fill(0, area, 'x');
	CHECK_EQ(result_of(thread), 'x');
}

/* Changed pages. */

static unsigned int changed(unsigned int index, struct flexsc_ecb_range *ranges,
			    unsigned int n)
{
	int got = flexsc_ecb_memory_changed(ecb, index, ranges, n);

	CHECK(got >= 0);
	return (unsigned int)got;
}

static void check_range(struct flexsc_ecb_range range, const char *area, size_t from,
			size_t to)
{
	CHECK_EQ(range.begin, (uintptr_t)area + from * page);
	CHECK_EQ(range.end, (uintptr_t)area + to * page);
}

ECB_TEST(changed_pages_are_taken_once)
{
	struct flexsc_ecb_range ranges[PAGES];
	unsigned int index;
	char *area;

	need(FLEXSC_MEMORY_CHANGES);
	area = map_pages(PAGES);
	area[0] = 'a';
	index = watch_memory(area, PAGES, FLEXSC_MEMORY_CHANGES, 0);
	CHECK_EQ(changed(index, ranges, PAGES), 0);
	area[page] = 'b';
	CHECK_EQ(area[2 * page], 0);
	result_of(test_thread(write_byte, area + 3 * page));
	area[4 * page] = 'c';
	CHECK_EQ(changed(index, ranges, PAGES), 2);
	check_range(ranges[0], area, 1, 2);
	check_range(ranges[1], area, 3, 5);
	CHECK_EQ(changed(index, ranges, PAGES), 0);
	/* What doesn't fit is taken later. */
	for (size_t i = 0; i < PAGES; i += 2)
		area[i * page] = 'd';
	CHECK_EQ(changed(index, ranges, 3), 3);
	check_range(ranges[2], area, 4, 5);
	CHECK_EQ(changed(index, ranges, 3), 1);
	check_range(ranges[0], area, 6, 7);
	test_none(ecb, ALL);
	/* A dropped page has changed. */
	CHECK_EQ(madvise(area, page, MADV_DONTNEED), 0);
	CHECK_EQ(changed(index, ranges, PAGES), 1);
	check_range(ranges[0], area, 0, 1);
	CHECK_EQ(flexsc_ecb_memory_changed(ecb, index, ranges, 0), -EINVAL);
}

/* More ranges than the library takes in one call of the kernel. */
ECB_TEST(many_changed_pages_are_taken)
{
	enum { MANY_PAGES = 401, RANGES = 201 };
	struct flexsc_ecb_range ranges[RANGES];
	unsigned int index;
	char *area;

	need(FLEXSC_MEMORY_CHANGES);
	area = map_pages(MANY_PAGES);
	index = watch_memory(area, MANY_PAGES, FLEXSC_MEMORY_CHANGES, 0);
	for (size_t i = 0; i < MANY_PAGES; i += 2)
		area[i * page] = 'd';
	CHECK_EQ(changed(index, ranges, RANGES), RANGES);
	for (size_t i = 0; i < RANGES; i++)
		check_range(ranges[i], area, 2 * i, 2 * i + 1);
	CHECK_EQ(changed(index, ranges, RANGES), 0);
}

ECB_TEST(a_filled_page_is_unchanged)
{
	struct flexsc_ecb_range ranges[PAGES];
	unsigned int index;
	pthread_t thread;
	char *area;

	need(FLEXSC_MEMORY_MISSING | FLEXSC_MEMORY_CHANGES);
	area = map_pages(PAGES);
	index = watch_memory(area, PAGES,
			     FLEXSC_MEMORY_MISSING | FLEXSC_MEMORY_CHANGES, 0);
	CHECK_EQ(changed(index, ranges, PAGES), 0);
	fill(index, area, 'f');
	fill(index, area + page, 'g');
	CHECK_EQ(changed(index, ranges, PAGES), 0);
	thread = test_thread(write_byte, area + 2 * page);
	test_next(ecb, ALL);
	fill(index, area + 2 * page, 'h');
	result_of(thread);
	area[page] = 'x';
	CHECK_EQ(changed(index, ranges, PAGES), 1);
	check_range(ranges[0], area, 1, 3);
	/* A dropped page is missing, not changed. */
	area[page] = 'y';
	CHECK_EQ(madvise(area, 2 * page, MADV_DONTNEED), 0);
	CHECK_EQ(changed(index, ranges, PAGES), 0);
	thread = test_thread(read_byte, area + page);
	test_next(ecb, ALL);
	fill(index, area + page, 'z');
	CHECK_EQ(result_of(thread), 'z');
	CHECK_EQ(changed(index, ranges, PAGES), 0);
}

ECB_TEST(memory_that_was_mapped_anew_is_not_tracked)
{
	struct flexsc_ecb_range range;
	unsigned int index;
	char *area;

	need(FLEXSC_MEMORY_CHANGES);
	area = map_pages(2);
	index = watch_memory(area, 2, FLEXSC_MEMORY_CHANGES, 0);
	CHECK(mmap(area, page, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == area);
	CHECK_EQ(flexsc_ecb_memory_changed(ecb, index, &range, 1), -ENOENT);
	IN_CHILD
		CHECK_EQ(flexsc_ecb_memory_changed(ecb, index, &range, 1), -ESTALE);
}
