// SPDX-License-Identifier: MIT
/*
 * SEND in the kernel module, by its own interface: event control blocks. Runs in
 * a guest, as root.
 */
#include "ecb.h"

#include <sys/wait.h>

static struct ecb ecb;

static atomic_int notified;

static void on_urgent(int signal)
{
	(void)signal;
	atomic_fetch_add(&notified, 1);
}

TEST(the_owner_is_notified_of_a_kick)
{
	ecb_open(&ecb, 8, 0);
	signal(SIGURG, on_urgent);
	ecb_store(&ecb.control->notify, 2);
	__atomic_fetch_or(&ecb.control->pending, 2, __ATOMIC_SEQ_CST);
	CHECK_EQ(ioctl(ecb.fd, FLEXSC_ECB_KICK, 1), 0);
	CHECK_EQ(notified, 0);
	CHECK_EQ(ioctl(ecb.fd, FLEXSC_ECB_KICK, 2), 0);
	CHECK_EQ(notified, 1);
	ecb.control->critical = 1;
	CHECK_EQ(ioctl(ecb.fd, FLEXSC_ECB_KICK, 2), 0);
	CHECK_EQ(notified, 1);
	ecb_close(&ecb);
}
