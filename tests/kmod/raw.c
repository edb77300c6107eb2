// SPDX-License-Identifier: MIT
#include "raw.h"

#include <dirent.h>

#include "chance.h"

struct raw raw;
int fds[2];
__thread uint64_t chance_state = 1;

/* Makes a plain system call; returns -errno for an error. */
static long plain(const struct flexsc_entry *entry)
{
	long ret = syscall(entry->nr, entry->args[0], entry->args[1],
			   entry->args[2], entry->args[3], entry->args[4],
			   entry->args[5]);

	return ret < 0 ? -errno : ret;
}

bool raw_move(int core)
{
	/* A guest has few processors. */
	uint64_t set = core < 0 ? ~0ULL : 1ULL << core;

	return !syscall(SYS_sched_setaffinity, 0, sizeof(set), &set);
}

static void *syscall_thread(void *arg)
{
	struct raw *raw = arg;
	struct flexsc_serve serve = SERVE_FIRST;

	for (;;) {
		int result = ioctl(raw->fd, FLEXSC_IOC_SERVE, &serve);

		serve.flags = 0;
		if (result < 0 && errno == EINTR) {
			serve.flags = FLEXSC_SERVE_HANDLED;
			continue;
		}
		switch (result) {
		case FLEXSC_SERVE_AGAIN:
			break;
		case FLEXSC_SERVE_BOUNCE:
			serve.ret = plain(&raw->entries[serve.index]);
			break;
		case FLEXSC_SERVE_TAKEOVER:
			raw->taken_over(raw);
			break;
		case FLEXSC_SERVE_MORE:
			raw_thread(raw);
			break;
		case FLEXSC_SERVE_MOVE:
			if (!raw_move(serve.core))
				serve.flags = FLEXSC_SERVE_STAYS;
			break;
		default:
			atomic_fetch_sub(&raw->threads, 1);
			return NULL;
		}
	}
}

void raw_thread(struct raw *raw)
{
	sigset_t all, old;
	pthread_attr_t attr;
	pthread_t thread;
	int err;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, 65536);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	/* EAGAIN: another thread is in exec(). */
	while ((err = pthread_create(&thread, &attr, syscall_thread, raw)))
		CHECK_EQ(err, EAGAIN);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	atomic_fetch_add(&raw->threads, 1);
	pthread_attr_destroy(&attr);
}

void raw_open(struct raw *raw, uint32_t pages, uint32_t flags)
{
	char *area;

	memset(raw, 0, sizeof(*raw));
	raw->fd = open("/dev/flexsc", O_RDWR | O_CLOEXEC);
	CHECK(raw->fd >= 0);
	raw->args.size = sizeof(raw->args);
	raw->args.abi = FLEXSC_ABI_VERSION;
	raw->args.pages = pages;
	raw->args.flags = flags;
	CHECK_EQ(ioctl(raw->fd, FLEXSC_IOC_REGISTER, &raw->args), 0);
	area = mmap(NULL, raw->args.area, PROT_READ | PROT_WRITE, MAP_SHARED,
		    raw->fd, 0);
	CHECK(area != MAP_FAILED);
	raw->shared = (void *)area;
	raw->ring = (void *)(area + raw->args.ring_offset);
	raw->entries = (void *)(area + raw->args.entries_offset);
}

void raw_begin(uint32_t pages, uint32_t flags)
{
	raw_open(&raw, pages, flags);
	CHECK_EQ(pipe(fds), 0);
}

void raw_close(struct raw *raw)
{
	CHECK_EQ(ioctl(raw->fd, FLEXSC_IOC_END), 0);
	while (atomic_load(&raw->threads))
		usleep(1000);
	CHECK_EQ(munmap(raw->shared, raw->args.area), 0);
	CHECK_EQ(close(raw->fd), 0);
}

/* /proc shows "running", or the call's number and its arguments. */
static bool sleeps_in(pid_t tid, long nr)
{
	char path[64], text[128];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/syscall", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		CHECK_EQ(errno, ENOENT);
		return true;
	}
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	/* The file of a thread that has just ended can't be read. */
	if (n <= 0)
		return n < 0 && errno == ESRCH;
	text[n] = 0;
	return text[0] != 'r' && atoi(text) == nr;
}

void await_sleep(pid_t tid, long nr)
{
	while (!sleeps_in(tid, nr))
		usleep(1000);
}

static bool others_sleep(void)
{
	DIR *tasks = opendir("/proc/self/task");
	const pid_t own = (pid_t)syscall(SYS_gettid);
	struct dirent *task;
	bool sleep = true;

	CHECK(tasks);
	while (sleep && (task = readdir(tasks)))
		if (task->d_name[0] != '.' && atoi(task->d_name) != own)
			sleep = sleeps_in(atoi(task->d_name), SYS_ioctl);
	closedir(tasks);
	return sleep;
}

void raw_await_sleepers(void)
{
	while (!others_sleep())
		usleep(1000);
}

int raw_wait(struct raw *raw, uint64_t timeout)
{
	int result;

	raw->shared->seen = raw->seen;
	raw->shared->timeout = timeout;
	raw->shared->wait_flags = raw->flags;
	while ((result = ioctl(raw->fd, FLEXSC_IOC_WAIT, 0)) ==
	       FLEXSC_WAIT_MORE)
		raw_thread(raw);
	return result;
}

int64_t raw_shown_of(pid_t pid, const char *part, const char *key)
{
	static char text[1 << 16];
	char *here, *end, name[32];
	int fd = open("/sys/kernel/debug/flexsc/registrations",
		      O_RDONLY | O_CLOEXEC);
	ssize_t size = 0, n;

	CHECK(fd >= 0);
	while ((n = read(fd, text + size, sizeof(text) - 1 - (size_t)size)) > 0)
		size += n;
	close(fd);
	text[size] = 0;
	snprintf(name, sizeof(name), " pid %d ", pid);
	here = strstr(text, name);
	if (!here)
		return -1;
	end = strstr(here, "\nregistration ");
	if (end)
		*end = 0;
	if (part)
		here = strstr(here, part);
	here = here ? strstr(here, key) : NULL;
	return here ? strtoll(here + strlen(key), NULL, 10) : -1;
}

int64_t raw_shown(const char *part, const char *key)
{
	return raw_shown_of(getpid(), part, key);
}

/* Has the entry to be posted again? */
static bool again(const struct flexsc_entry *entry)
{
	return entry->nargs & FLEXSC_INTERRUPTED && entry->ret == -EINTR;
}

struct flexsc_entry *raw_result(struct raw *raw)
{
	struct flexsc_entry *entry;
	uint32_t index;

	while ((index = raw_take(raw)) == FLEXSC_NO_ENTRY)
		CHECK(raw_wait(raw, FOREVER) >= 0);
	entry = &raw->entries[index];
	CHECK_EQ(entry->link, FLEXSC_NO_ENTRY);
	raw->seen++;
	entry->status = FLEXSC_FREE;
	return entry;
}

void raw_collect(struct raw *raw, uint32_t count)
{
	uint32_t done = raw_reap(raw);

	while (done < count) {
		CHECK(raw_wait(raw, UINT64_MAX) >= 0 || errno == EINTR);
		done += raw_reap(raw);
	}
	CHECK_EQ(done, count);
}

void raw_finish(struct raw *raw, uint32_t count)
{
	uint32_t index, next;

	while (count) {
		index = raw_take(raw);
		if (index == FLEXSC_NO_ENTRY)
			CHECK(raw_wait(raw, UINT64_MAX) >= 0 || errno == EINTR);
		for (; index != FLEXSC_NO_ENTRY; index = next) {
			struct flexsc_entry *entry = &raw->entries[index];

			next = entry->link;
			CHECK_EQ(entry->status, FLEXSC_DONE);
			raw->seen++;
			entry->status = FLEXSC_FREE;
			if (again(entry)) {
				entry->nargs &= (uint8_t)~FLEXSC_INTERRUPTED;
				raw_push(raw, index);
			} else {
				count--;
			}
		}
	}
}

void raw_await(struct raw *raw, uint32_t index, uint8_t status)
{
	while (__atomic_load_n(&raw->entries[index].status, __ATOMIC_ACQUIRE) !=
	       status)
		usleep(100);
}

bool raw_cancel(struct raw *raw, uint32_t index, uint8_t from)
{
	if (!__sync_bool_compare_and_swap(&raw->entries[index].status, from,
					  FLEXSC_CANCEL))
		return false;
	if (from == FLEXSC_BUSY)
		CHECK_EQ(ioctl(raw->fd, FLEXSC_IOC_CANCEL, index), 0);
	return true;
}

void raw_kick(struct raw *raw)
{
	if (ioctl(raw->fd, FLEXSC_IOC_KICK) == FLEXSC_WAIT_MORE)
		raw_thread(raw);
}
