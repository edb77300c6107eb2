/* SPDX-License-Identifier: MIT */
#include "why.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "uring_kills.h"

#define VERSIONS	"the kernel module and libflexsc have different versions: install " \
			"the same of both"

static const char *unopened_device(int err)
{
	switch (err) {
	case -ENOENT:
		return KMOD_DEVICE " doesn't exist: load the kernel module flexsc";
	case -ENXIO:
	case -ENODEV:
		return KMOD_DEVICE " belongs to no module: load the kernel module flexsc";
	case -EACCES:
		return KMOD_DEVICE ": permission denied; join its group, flexsc";
	case -EPERM:
		return KMOD_DEVICE " is forbidden to this cgroup, as in a container: allow "
				   "the device there";
	default:
		return NULL;
	}
}

static const char *refused_registration(int err)
{
	switch (err) {
	case -EPERM:
		return "a seccomp filter is active, so the module would leave each call to "
		       "the program: use another engine";
	/* The library has checked the program's options. */
	case -EINVAL:
	case -E2BIG:
	case -ENOTCONN:
	case -ENOTTY:
	case -EPROTONOSUPPORT:
		return VERSIONS;
	case -ENOMEM:
		return "not enough memory may be locked: raise RLIMIT_MEMLOCK or set fewer "
		       "entries";
	default:
		return NULL;
	}
}

static const char *refused_policy(int err)
{
	switch (err) {
	case -ENODEV:
		return "a core of kernel_cores is offline: bring it online or remove it from "
		       "the list";
	case -EINVAL:
	case -ENOTTY:
		return VERSIONS;
	default:
		return NULL;
	}
}

int flexsc__kmod_why(enum kmod_step step, int err, char *why, size_t size)
{
	const char *text = step == KMOD_OPEN	   ? unopened_device(err) :
			   step == KMOD_REGISTER ? refused_registration(err) :
						   refused_policy(err);

	if (!text)
		return err;
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
