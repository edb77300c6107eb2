/* SPDX-License-Identifier: MIT */
/* Transfers that are partly done when a call begins to hang. They continue. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "hang.h"

enum {
	WRITES, WRITES_VECTORS, WRITES_TO_PIPE, SENDS, SENDS_MESSAGES,
	RECEIVES_ALL, SPLICES, TRANSFERS
};

enum { TRANSFER = 1 << 20, TRANSFERRERS = 2 * TRANSFERS };

static struct transfer {
	int kind, own, other;
	char data[TRANSFER];
} *transfers;

static char byte_at(size_t i)
{
	return (char)(i * 2654435761U >> 24);
}

static bool receives(const struct transfer *t)
{
	return t->kind == RECEIVES_ALL || t->kind == SPLICES;
}

static ssize_t splice_all(int from)
{
	int nobody = open("/dev/null", O_WRONLY | O_CLOEXEC);
	ssize_t n, all = 0;

	CHECK(nobody >= 0);
	for (; all < TRANSFER; all += n) {
		n = splice(from, NULL, nobody, NULL, TRANSFER, 0);
		CHECK(n > 0);
	}
	CHECK_EQ(close(nobody), 0);
	return all;
}

static ssize_t transfer_once(struct transfer *t)
{
	struct iovec parts[3] = {
		{ t->data, TRANSFER / 4 },
		{ t->data + TRANSFER / 4, TRANSFER / 2 },
		{ t->data + TRANSFER / 4 * 3, TRANSFER / 4 },
	};
	const struct msghdr message = { .msg_iov = parts, .msg_iovlen = 3 };

	switch (t->kind) {
	case WRITES:
	case WRITES_TO_PIPE:
		return write(t->own, t->data, TRANSFER);
	case WRITES_VECTORS:
		return writev(t->own, parts, 3);
	case SENDS:
		return send(t->own, t->data, TRANSFER, 0);
	case SENDS_MESSAGES:
		return sendmsg(t->own, &message, 0);
	case RECEIVES_ALL:
		return recv(t->own, t->data, TRANSFER, MSG_WAITALL);
	default:
		return splice_all(t->own);
	}
}

static void *be_transferred(void *arg)
{
	CHECK_EQ(transfer_once(arg), TRANSFER);
	return arg;
}

static void begin_transfer(struct transfer *t, int kind)
{
	int pair[2];

	t->kind = kind;
	for (size_t i = 0; i < TRANSFER; i++)
		t->data[i] = kind == RECEIVES_ALL ? 0 : byte_at(i);
	if (kind == WRITES_TO_PIPE || kind == SPLICES)
		CHECK_EQ(pipe(pair), 0);
	else
		CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	t->own = pair[!receives(t)];
	t->other = pair[receives(t)];
}

/*
 * The other end transfers its part of the bytes, starting at "from", as far as it
 * fits.
 */
static void transfer_part(const struct transfer *t, size_t from, size_t n)
{
	char part[1 << 14];

	for (size_t i = from; i < from + n; i += sizeof(part)) {
		for (size_t j = 0; j < sizeof(part); j++)
			part[j] = receives(t) ? byte_at(i + j) : 0;
		if (receives(t)) {
			CHECK_EQ(write(t->other, part, sizeof(part)),
				 sizeof(part));
			continue;
		}
		for (size_t j = 0; j < sizeof(part);) {
			ssize_t more;

			CHECK(has_byte(t->other));
			more = read(t->other, part + j, sizeof(part) - j);
			CHECK(more > 0);
			j += (size_t)more;
		}
		for (size_t j = 0; j < sizeof(part); j++)
			CHECK_EQ(part[j], byte_at(i + j));
	}
}

TEST_LIMIT(transfers_go_on_while_a_call_hangs, 60)
{
	pthread_t threads[TRANSFERRERS], hanging;

	transfers = calloc(TRANSFERRERS, sizeof(*transfers));
	for (int i = 0; i < TRANSFERRERS; i++) {
		begin_transfer(&transfers[i], i % TRANSFERS);
		threads[i] = start(be_transferred, &transfers[i]);
	}
	await_quiet();
	for (int i = 0; i < TRANSFERRERS; i++)
		transfer_part(&transfers[i], 0, TRANSFER / 16);
	await_quiet();
	begin_to_hang(&hanging, 1);
	for (int i = 0; i < TRANSFERRERS; i++)
		transfer_part(&transfers[i], TRANSFER / 16, TRANSFER / 16 * 15);
	join_all(threads, TRANSFERRERS);
	CHECK(!hangs[0].expired);
	let_go(&hanging, 1);
	for (int i = 0; i < TRANSFERRERS; i++)
		for (size_t j = 0; j < TRANSFER; j++)
			CHECK_EQ(transfers[i].data[j], byte_at(j));
}
