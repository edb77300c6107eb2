/* SPDX-License-Identifier: MIT */
#include "why.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "uring_kills.h"

int flexsc__kmod_why(int err, char *why, size_t size)
{
	const char *text;

	switch (err) {
	case -ENOENT:
	case -ENXIO:
	case -ENODEV:
		text = KMOD_DEVICE
			" doesn't exist: load the kernel module flexsc";
		break;
	case -EACCES:
		text = KMOD_DEVICE ": permission denied; join its group, "
		       "flexsc";
		break;
	case -EPERM:
		text = "a seccomp filter is active, so the module would leave "
		       "each call to the program";
		break;
	case -EPROTONOSUPPORT:
	case -E2BIG:
	case -ENOTTY:
	case -ENOTCONN:
		text = "the kernel module and libflexsc have different versions";
		break;
	case -ENOMEM:
		text = "not enough memory may be locked: raise RLIMIT_MEMLOCK "
		       "or set fewer entries";
		break;
	default:
		return err;
	}
	snprintf(why, size, "%s", text);
	return -EOPNOTSUPP;
}

static int sysctl_disabled(void)
{
	FILE *file = fopen("/proc/sys/kernel/io_uring_disabled", "re");
	int value = 0;

	if (!file)
		return 0;
	if (fscanf(file, "%d", &value) != 1)
		value = 0;
	fclose(file);
	return value;
}

static bool limited(int resource)
{
	struct rlimit limit;

	return !getrlimit(resource, &limit) && limit.rlim_cur != RLIM_INFINITY;
}

/*
 * Names all limits that may have been reached, because the kernel reports only -ENOMEM.
 */
static const char *no_memory(void)
{
	if (limited(RLIMIT_AS))
		return "no memory for the rings; RLIMIT_AS may be too low, or "
		       "RLIMIT_MEMLOCK, which counts them before Linux 5.12 "
		       "and from 6.14 on";
	return "no memory for the rings; before Linux 5.12, and from 6.14 on, a "
	       "user's rings count against RLIMIT_MEMLOCK, which is too low";
}

void flexsc__uring_why(int err, char *why, size_t size)
{
	const char *text;

	if (err == -EPERM && flexsc__uring_kills())
		text = "a seccomp filter ends a process that uses io_uring, as "
		       "systemd's SystemCallFilter= without @aio does";
	else if (err == -EPERM && sysctl_disabled() == 2)
		text = "the sysctl kernel.io_uring_disabled is 2";
	else if (err == -EPERM && sysctl_disabled() == 1)
		text = "the sysctl kernel.io_uring_disabled is 1, and this "
		       "process has neither CAP_SYS_ADMIN nor the group of "
		       "kernel.io_uring_group";
	else if ((err == -EPERM || err == -EACCES || err == -ENOSYS) &&
		 flexsc__is_filtered())
		text = "a seccomp filter forbids io_uring, as containers' "
		       "default profiles do";
	else if (err == -ENOSYS)
		text = "the kernel has no io_uring: older than 5.1, or built "
		       "without";
	else if (err == -ENOMEM)
		text = no_memory();
	else if (err == -EPERM || err == -EACCES)
		text = "a security module forbids io_uring_setup";
	else
		text = NULL;
	if (text)
		snprintf(why, size, "%s", text);
	else
		snprintf(why, size, "io_uring_setup: %s", strerror(-err));
}

void flexsc__unpolled_why(int err, char *why, size_t size)
{
	const char *text;

	switch (err) {
	case -ENODEV:
		text = "the list has no other core than the one where the loop "
		       "runs";
		break;
	case -EPERM:
	case -EACCES:
		text = "a security module forbids SQPOLL, or the kernel is "
		       "older than 5.13 and CAP_SYS_NICE is missing";
		break;
	case -EAGAIN:
		text = "no thread can be created: RLIMIT_NPROC or the cgroup's "
		       "pids.max is reached";
		break;
	default:
		text = strerror(-err);
		break;
	}
	snprintf(why, size,
		 "no kernel thread polls on kernel_cores: %s", text);
}

bool flexsc__uring_passes(int err)
{
	switch (err) {
	case -ETIME:
	case -EINTR:
	case -EAGAIN:
	case -EBUSY:
	case -ENOMEM:
	case -EBADR:
		return true;
	default:
		return false;
	}
}
