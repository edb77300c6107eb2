/* SPDX-License-Identifier: MIT */
/*
 * A loop inside another one: an epoll loop that copies its input line by line,
 * with a timer and file calls of FlexSC beside it. In libuv the three marked
 * places are a uv_prepare_t, a uv_timer_t and a uv_poll_t; in GLib a GSource's
 * prepare(), its time-out and dispatch().
 *
 *	embed FILE	says each second how large FILE is
 */
#include <fcntl.h>
#include <flexsc/default.h>
#include <linux/stat.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>

#define SECOND	1000000000ULL

static const char *name;
static struct statx st;
static struct flexsc_cb size_cb, timer_cb;

static void size_told(struct flexsc_cb *cb)
{
	if (cb->ret < 0)
		fprintf(stderr, "%s: error %d\n", name, (int)-cb->ret);
	else
		printf("%s: %llu bytes\n", name, (unsigned long long)st.stx_size);
	fflush(stdout);
	flexsc_timer(&timer_cb, SECOND);
}

static void second_passed(struct flexsc_cb *cb)
{
	(void)cb;
	flexsc_statx(&size_cb, AT_FDCWD, name, 0, STATX_SIZE, &st);
}

/* The outer loop's own work. */
static int copy_input(void)
{
	char line[4096];
	ssize_t n = read(0, line, sizeof(line));

	return n > 0 && write(1, line, (size_t)n) == n;
}

/* For epoll: whole milliseconds, rounded up, and -1 for ever. */
static int milliseconds(uint64_t ns)
{
	return ns == FLEXSC_FOREVER	  ? -1 :
	       ns / 1000000 >= 1000 * 3600 ? 1000 * 3600 :
					     (int)((ns + 999999) / 1000000);
}

static int watch(int set, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	return epoll_ctl(set, EPOLL_CTL_ADD, fd, &event);
}

int main(int argc, char **argv)
{
	int set = epoll_create1(EPOLL_CLOEXEC), going = 1, n;
	struct flexsc_loop *loop;
	struct epoll_event event;
	uint64_t ns;

	if (argc != 2 || set < 0 || flexsc_init())
		return 1;
	loop = flexsc_loop_default();
	name = argv[1];
	size_cb.callback = size_told;
	timer_cb.callback = second_passed;
	second_passed(&timer_cb);
	if (watch(set, 0) || watch(set, flexsc_loop_fd(loop)))
		return 1;
	while (going) {
		/* 1: before the outer loop sleeps */
		if (flexsc_loop_prepare(loop, &ns))
			break;
		/* 2: not longer than that */
		n = epoll_wait(set, &event, 1, milliseconds(ns));
		if (n == 1 && event.data.fd == 0)
			going = copy_input();
		/* 3: it is readable, or the time is over; or in any case */
		if (flexsc_loop_dispatch(loop) < 0)
			break;
	}
	return flexsc_fini();
}
