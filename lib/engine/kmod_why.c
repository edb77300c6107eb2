/* SPDX-License-Identifier: MIT */
#include "kmod_why.h"

#include <errno.h>
#include <stdio.h>

int flexsc__kmod_why(int err, char *why, size_t size)
{
	const char *text;

	switch (err) {
	case -ENOENT:
	case -ENXIO:
	case -ENODEV:
		text = "there is no " KMOD_DEVICE
		       ": load the kernel module flexsc";
		break;
	case -EACCES:
		text = KMOD_DEVICE " is not for this user: join its group, "
		       "flexsc";
		break;
	case -EPERM:
		text = "a seccomp filter is in force, which the module would "
		       "pass by";
		break;
	case -EPROTONOSUPPORT:
	case -E2BIG:
	case -ENOTTY:
	case -ENOTCONN:
		text = "the kernel module is of another version than libflexsc";
		break;
	case -ENOMEM:
		text = "too little memory may be locked: raise RLIMIT_MEMLOCK "
		       "or set fewer entries";
		break;
	default:
		return err;
	}
	snprintf(why, size, "%s", text);
	return -EOPNOTSUPP;
}
