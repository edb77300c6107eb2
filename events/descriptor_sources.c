/* SPDX-License-Identifier: MIT */
/*
 * Sources with descriptors of the library's own: signals, timers, children, files. When
 * an event is taken, event/payload.c reads the data from the descriptor. Owner only.
 */
#include <errno.h>
#include <flexsc/loop.h>
#include <flexsc/ecb.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "events/event/ecb.h"
#include "owner.h"
#include "watch.h"

/*
 * Watch a new descriptor. If fd is -1, return -errno of the call that failed to create
 * it.
 */
static int descriptor_watch(struct flexsc_ecb *ecb, int fd,
			    enum flexsc_event_type type, int group, void *data)
{
	int index;

	if (fd < 0)
		return -errno;
	index = flexsc__watch(ecb, fd, type, POLLIN, group, SOURCE_OWN, data);
	if (index < 0)
		close(fd);
	return index;
}

static sigset_t signals_without(const sigset_t *set, const sigset_t *others)
{
	sigset_t left = *set;

	for (int signo = 1; signo <= SIGRTMAX; signo++)
		if (sigismember(others, signo) == 1)
			sigdelset(&left, signo);
	return left;
}

int flexsc_ecb_signal(struct flexsc_ecb *ecb, const sigset_t *set, int group,
		      void *data)
{
	int err = flexsc__ecb_check(ecb), index;
	sigset_t before, fresh;

	if (err)
		return err;
	/* Refuse SIGURG, which the library needs for notification. */
	if (!set || sigismember(set, SIGURG))
		return -EINVAL;
	err = -pthread_sigmask(SIG_BLOCK, set, &before);
	if (err)
		return err;
	index = descriptor_watch(ecb,
				 signalfd(-1, set, SFD_NONBLOCK | SFD_CLOEXEC),
				 FLEXSC_EVT_SIGNAL, group, data);
	if (index < 0) {
		fresh = signals_without(set, &before);
		pthread_sigmask(SIG_UNBLOCK, &fresh, NULL);
	}
	return index;
}

static struct timespec duration(uint64_t ns)
{
	return (struct timespec){
		.tv_sec = (time_t)(ns / SECOND),
		.tv_nsec = (long)(ns % SECOND),
	};
}

int flexsc_ecb_timer(struct flexsc_ecb *ecb, uint64_t first, uint64_t period,
		     int group, void *data)
{
	/* At least 1 ns: a time of zero would disarm the timerfd. */
	const struct itimerspec time = {
		.it_value = duration(first ? first : 1),
		.it_interval = duration(period),
	};
	int err = flexsc__ecb_check(ecb);
	int fd;

	if (err)
		return err;
	fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (fd >= 0 && timerfd_settime(fd, 0, &time, NULL)) {
		err = -errno;
		close(fd);
		return err;
	}
	return descriptor_watch(ecb, fd, FLEXSC_EVT_TIMER, group, data);
}

int flexsc_ecb_child(struct flexsc_ecb *ecb, pid_t pid, int group, void *data)
{
	int err = flexsc__ecb_check(ecb);

	if (err)
		return err;
	return descriptor_watch(ecb, (int)syscall(SYS_pidfd_open, pid, 0),
				FLEXSC_EVT_CHILD, group, data);
}

int flexsc_ecb_file(struct flexsc_ecb *ecb, const char *path, uint32_t mask,
		    int group, void *data)
{
	int err = flexsc__ecb_check(ecb);
	int fd;

	if (err)
		return err;
	if (!path)
		return -EINVAL;
	fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (fd >= 0 && inotify_add_watch(fd, path, mask) < 0) {
		err = -errno;
		close(fd);
		return err;
	}
	return descriptor_watch(ecb, fd, FLEXSC_EVT_FILE, group, data);
}

int flexsc_ecb_loop(struct flexsc_ecb *ecb, struct flexsc_loop *loop, int group,
		    void *data)
{
	int fd = flexsc_loop_fd(loop);

	if (fd < 0)
		return fd;
	return flexsc_ecb_watch_as(ecb, fd, FLEXSC_EVT_DONE, POLLIN, group, 0,
				   data);
}
