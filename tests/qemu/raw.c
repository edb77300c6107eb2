// SPDX-License-Identifier: MIT
#include "raw.h"

/* A plain system call; -errno. */
static long plain(const struct flexsc_entry *entry)
{
	long ret = syscall(entry->nr, entry->args[0], entry->args[1],
			   entry->args[2], entry->args[3], entry->args[4],
			   entry->args[5]);

	return ret < 0 ? -errno : ret;
}

static void *syscall_thread(void *arg)
{
	struct raw *raw = arg;
	struct flexsc_serve serve = {
		.index = FLEXSC_NO_ENTRY,
		.flags = FLEXSC_SERVE_FIRST,
	};

	for (;;) {
		int result = ioctl(raw->fd, FLEXSC_IOC_SERVE, &serve);

		serve.flags = 0;
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
	/* EAGAIN: another thread is in exec. */
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

void raw_close(struct raw *raw)
{
	CHECK_EQ(ioctl(raw->fd, FLEXSC_IOC_END), 0);
	while (atomic_load(&raw->threads))
		usleep(1000);
	CHECK_EQ(munmap(raw->shared, raw->args.area), 0);
	CHECK_EQ(close(raw->fd), 0);
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

void raw_kick(struct raw *raw)
{
	if (ioctl(raw->fd, FLEXSC_IOC_KICK) == FLEXSC_WAIT_MORE)
		raw_thread(raw);
}
