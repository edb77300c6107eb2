/* SPDX-License-Identifier: MIT */
/* Why the kernel module can't be used: one line per cause, with a remedy. */
#include "tests/harness/harness.h"

#include <errno.h>

#include "lib/engine/why.h"

#define ROOM	160	/* of flexsc_loop.why */

/* The error of this step is explained by a line that contains both texts. */
static void check(enum kmod_step step, int err, const char *what, const char *remedy)
{
	char why[256] = "";

	CHECK_EQ(flexsc__kmod_why(step, err, why, sizeof(why)), -EOPNOTSUPP);
	if (!strstr(why, what) || !strstr(why, remedy))
		test_fail(__FILE__, __LINE__, "step %d, error %d: \"%s\"", step, err, why);
	/* The line has room, and is one. */
	CHECK(strlen(why) < ROOM);
	CHECK(!strchr(why, '\n'));
}

TEST(the_device_can_t_be_opened)
{
	check(KMOD_OPEN, -ENOENT, "/dev/flexsc doesn't exist", "load the kernel module");
	check(KMOD_OPEN, -ENXIO, "/dev/flexsc belongs to no module", "load the kernel module");
	check(KMOD_OPEN, -ENODEV, "/dev/flexsc belongs to no module", "load the kernel module");
	check(KMOD_OPEN, -EACCES, "permission denied", "join its group");
	check(KMOD_OPEN, -EPERM, "cgroup", "allow the device");
}

TEST(the_module_refuses_the_registration)
{
	static const int versions[] = { EINVAL, E2BIG, ENOTCONN, ENOTTY, EPROTONOSUPPORT };

	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++)
		check(KMOD_REGISTER, -versions[i], "different versions",
		      "install the same of both");
	check(KMOD_REGISTER, -EPERM, "seccomp filter", "use another engine");
	check(KMOD_REGISTER, -ENOMEM, "not enough memory may be locked", "RLIMIT_MEMLOCK");
}

TEST(the_module_refuses_the_policy)
{
	check(KMOD_POLICY, -ENODEV, "a core of kernel_cores is offline", "bring it online");
	check(KMOD_POLICY, -EINVAL, "different versions", "install the same of both");
	check(KMOD_POLICY, -ENOTTY, "different versions", "install the same of both");
}

TEST(other_errors_stay)
{
	static const enum kmod_step steps[] = { KMOD_OPEN, KMOD_REGISTER, KMOD_POLICY };
	char why[8] = "";

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		CHECK_EQ(flexsc__kmod_why(steps[i], -EMFILE, why, sizeof(why)), -EMFILE);
	CHECK(!why[0]);
}
