/* SPDX-License-Identifier: MIT */
/* Calls that transfer data in parts: lib/calls/partial.h. */
#include "tests/harness/harness.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "lib/base/syscall.h"
#include "lib/calls/partial.h"

#define GIGABYTE	(1ULL << 30)

/* The addresses are never accessed. */
static struct iovec vector[] = {
	{ NULL, GIGABYTE }, { NULL, 0 }, { NULL, 3 * GIGABYTE }, { NULL, GIGABYTE },
};
static struct msghdr message = { .msg_iov = vector, .msg_iovlen = 4 };

static const struct flexsc_entry calls[] = {
	{ .nr = SYS_write, .args = { 1, 0, 3 * GIGABYTE } },
	{ .nr = SYS_sendto, .args = { 1, 0, -1ULL } },
	{ .nr = SYS_writev, .args = { 1, PTR(vector), 4 } },
	{ .nr = SYS_pwritev2, .args = { 1, PTR(vector), 4, -1ULL } },
	{ .nr = SYS_sendmsg, .args = { 1, PTR(&message), MSG_NOSIGNAL } },
	{ .nr = SYS_sendfile, .args = { 1, 2, 0, 3 * GIGABYTE } },
};

TEST(parts_end_where_the_plain_call_ends)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		struct flexsc_entry entry = calls[i];
		struct partial *partial = NULL;

		CHECK(!flexsc__partial_rest(&entry, &partial, RW_MAX));
		for (int part = 0; part < 2; part++)
			CHECK(flexsc__partial_rest(&entry, &partial, GIGABYTE - 4096));
		CHECK_EQ(flexsc__requested_length(&entry), 4096);
		CHECK(!flexsc__partial_rest(&entry, &partial, 4096));
		CHECK_EQ(flexsc__partial_result(&entry, &partial, 4096), RW_MAX);
		CHECK_EQ(memcmp(&entry, &calls[i], sizeof(entry)), 0);
	}
}
