/* SPDX-License-Identifier: MIT */
/* Queries of the machine: times, and counts of a process's threads and descriptors. */
#include "harness.h"

#include <dirent.h>
#include <inttypes.h>

/* A process is idle if it uses at most this share of a core for this time. */
#define IDLE_MS		50U
#define IDLE_PERCENT	3U
/* more than one, because threads may be about to end */
#define IDLE_LOOKS	20

uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

void sleep_ms(unsigned int ms)
{
	struct timespec t = { ms / 1000, (long)(ms % 1000 * MS) };

	while (nanosleep(&t, &t) < 0)
		;
}

bool turns_left(unsigned int turns, unsigned int most)
{
	static uint64_t end;

	if (!turns)
		end = now_ns() + 10 * SECOND;
	return turns < most && now_ns() < end;
}

static unsigned int count_entries(const char *path)
{
	DIR *dir = opendir(path);
	unsigned int n = 0;

	CHECK(dir);
	for (struct dirent *entry; (entry = readdir(dir));)
		n += entry->d_name[0] != '.';
	closedir(dir);
	return n;
}

int first_core(void)
{
	cpu_set_t set;
	int core = 0;

	CHECK_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
	while (!CPU_ISSET(core, &set))
		core++;
	return core;
}

unsigned int count_fds(void)
{
	return count_entries("/proc/self/fd") - 1;
}

int find_fd(const char *text)
{
	for (int fd = 3; fd < 1000; fd++) {
		char path[40], name[64] = "";

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		if (readlink(path, name, sizeof(name) - 1) > 0 && strstr(name, text))
			return fd;
	}
	return -1;
}

unsigned int count_tasks(void)
{
	return count_entries("/proc/self/task");
}

unsigned int count_maps(void)
{
	FILE *file = fopen("/proc/self/maps", "re");
	unsigned int n = 0;

	CHECK(file);
	for (int c; (c = getc(file)) != EOF;)
		n += c == '\n';
	fclose(file);
	return n;
}

uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

bool raise_fd_limit(unsigned int n)
{
	struct rlimit limit;

	CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
	if (limit.rlim_cur >= n)
		return true;
	limit.rlim_cur = n;
	if (limit.rlim_max < n)
		limit.rlim_max = n;
	return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

void shuffle(uint32_t *order, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		uint32_t j = (uint32_t)(test_random() % (i + 1));

		order[i] = order[j];
		order[j] = i;
	}
}

bool falls_to(unsigned int (*count)(void), unsigned int n)
{
	for (unsigned int i = 0; i < 500; i++) {
		if (count() <= n)
			return true;
		sleep_ms(10);
	}
	return false;
}

/* Is this the kernel thread that runs the caller? */
static bool is_own(const char *tid)
{
	char path[64];
	ssize_t n = readlink("/proc/thread-self", path, sizeof(path) - 1);

	if (n < 0)
		return false;
	path[n] = '\0';
	return strrchr(path, '/') && !strcmp(strrchr(path, '/') + 1, tid);
}

/* The test is over, and may have used up its descriptors or its memory. */
static DIR *open_without_limits(const char *name)
{
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };

	if (setrlimit(RLIMIT_AS, &limit) && !getrlimit(RLIMIT_AS, &limit)) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_AS, &limit);
	}
	close(0);
	close(1);
	return opendir(name);
}

static DIR *open_tasks(void)
{
	DIR *dir = opendir("/proc/self/task");

	if (!dir)
		dir = open_without_limits("/proc/self/task");
	CHECK(dir);
	return dir;
}

/* Read a line of a thread's file in /proc. False: the thread has ended. */
static bool task_line(const char *tid, const char *name, char *line, size_t size)
{
	char path[300];
	FILE *file;
	bool got;

	snprintf(path, sizeof(path), "/proc/self/task/%s/%s", tid, name);
	file = fopen(path, "re");
	got = file && fgets(line, (int)size, file);
	if (file)
		fclose(file);
	return got;
}

/*
 * Is this a poller (option kernel_cores)? It polls for milliseconds after each call, and
 * a loop that falls asleep makes one.
 */
static bool is_poller(const char *tid)
{
	char name[32];

	return task_line(tid, "comm", name, sizeof(name)) &&
	       !strncmp(name, "iou-sqp-", 8);
}

/* Processor time of all pollers. */
static uint64_t pollers_ns(void)
{
	DIR *dir = open_tasks();
	uint64_t sum = 0, ns;
	char line[100];

	for (struct dirent *entry; (entry = readdir(dir));)
		if (entry->d_name[0] != '.' && is_poller(entry->d_name) &&
		    task_line(entry->d_name, "schedstat", line, sizeof(line)) &&
		    sscanf(line, "%" SCNu64, &ns) == 1)
			sum += ns;
	closedir(dir);
	return sum;
}

/*
 * Processor time that the process uses in IDLE_MS, without its pollers'. The queries of
 * the pollers enclose the others, because they read files of all threads, and this work
 * doesn't count. The result may be negative: a poller ran between two queries.
 */
static int64_t used_ns(void)
{
	const uint64_t pollers = pollers_ns(), all = cpu_ns();
	uint64_t used;

	sleep_ms(IDLE_MS);
	used = cpu_ns() - all;
	return (int64_t)(used - (pollers_ns() - pollers));
}

static bool is_running(const char *tid)
{
	char line[300], state;

	return task_line(tid, "stat", line, sizeof(line)) &&
	       sscanf(line, "%*d (%*[^)]) %c", &state) == 1 && state == 'R';
}

/* Is another thread runnable, or a poller? */
static bool runs(bool poller)
{
	DIR *dir = open_tasks();
	bool found = false;

	for (struct dirent *entry; (entry = readdir(dir));)
		if (entry->d_name[0] != '.' && is_running(entry->d_name) &&
		    !is_own(entry->d_name) && is_poller(entry->d_name) == poller)
			found = true;
	closedir(dir);
	return found;
}

bool pollers_run(void)
{
	return runs(true);
}

/* The end of the sleep may have woken other threads, too. They sleep again at once. */
bool others_keep_running(void)
{
	const uint64_t end = now_ns() + IDLE_MS * MS / 2;

	while (runs(false)) {
		if (now_ns() >= end)
			return true;
		sched_yield();
	}
	return false;
}

/* Has the process a single thread? The directory also holds "." and "..". */
static bool is_alone(void)
{
	DIR *dir = open_tasks();
	unsigned int n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n == 3;
}

/* On a busy machine a computing thread may get no processor for a while. */
bool is_idle(void)
{
	const int64_t most = IDLE_MS * MS / 100 * IDLE_PERCENT;
	unsigned int busy = 0;
	int64_t used;

	if (is_alone())
		return true;
	for (unsigned int i = 0; i < IDLE_LOOKS; i++) {
		used = used_ns();
		if (used < most && !others_keep_running())
			return true;
		busy += used >= most;
	}
	/* Threads that are about to end may be busy in some looks, but not in most. */
	return busy < IDLE_LOOKS / 2;
}

static int bound_socket(struct sockaddr_in *address, int type)
{
	socklen_t size = sizeof(*address);
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);

	*address = (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	CHECK(fd >= 0);
	CHECK_EQ(bind(fd, (struct sockaddr *)address, size), 0);
	CHECK_EQ(getsockname(fd, (struct sockaddr *)address, &size), 0);
	return fd;
}

int datagram_socket(struct sockaddr_in *address)
{
	return bound_socket(address, SOCK_DGRAM);
}

int listening_socket(struct sockaddr_in *address, int flags, int backlog)
{
	int fd = bound_socket(address, SOCK_STREAM | flags);

	CHECK_EQ(listen(fd, backlog), 0);
	return fd;
}
