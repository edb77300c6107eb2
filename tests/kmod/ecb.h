/* SPDX-License-Identifier: MIT */
/*
 * An event control block, used without the library: a minimal implementation of the
 * owner's part of the protocol in <linux/flexsc_ecb.h>. For tests.
 */
#ifndef FLEXSC_TESTS_ECB_H
#define FLEXSC_TESTS_ECB_H

#include "raw.h"

#include <linux/flexsc_ecb.h>

#define ALL_GROUPS	UINT32_MAX

struct ecb {
	int fd;
	struct flexsc_ecb_create args;
	struct flexsc_event_control *control;
	struct flexsc_event_slot *slots;
	/* The lists that were taken, oldest event first: index + 1. */
	uint32_t first[FLEXSC_ECB_GROUPS];
	uint32_t *behind;
};

/* The block of most tests. */
extern struct ecb ecb;

/*
 * A test with "ecb", which has this many events. Events of these groups are
 * delivered.
 */
#define ECB_TEST(id, events, groups)	ECB_TEST_LIMIT(id, 20, events, groups)
#define ECB_TEST_LIMIT(id, seconds, events, groups)			\
	ECB_TEST_WITH(id, seconds, events, 0, groups)
#define ECB_TEST_WITH(id, seconds, events, flags, groups)		\
	TEST_BETWEEN(id, seconds, ecb_begin(events, flags, groups), ecb_close(&ecb))

/* Opens "ecb" and "fds". */
void ecb_begin(uint32_t events, uint32_t flags, uint32_t groups);
int ecb_try_open(struct ecb *ecb, uint32_t events, uint32_t flags);
void ecb_open(struct ecb *ecb, uint32_t events, uint32_t flags);
void ecb_close(struct ecb *ecb);
/* Watches a descriptor, with the descriptor as "data". Returns the slot, or -errno. */
int ecb_try_watch(struct ecb *ecb, int fd, uint32_t want, uint16_t group);
uint32_t ecb_watch(struct ecb *ecb, int fd, uint32_t want, uint16_t group);
uint32_t ecb_watch_user(struct ecb *ecb, uint16_t group);
int ecb_try_accept(struct ecb *ecb, int listener, uint16_t group,
		   uint32_t want, uint16_t inherited);
int ecb_forget(struct ecb *ecb, uint32_t event);
/* Returns the oldest event of the lowest of these groups; false: there is no event. */
bool ecb_next(struct ecb *ecb, uint32_t groups, struct flexsc_event_slot *out);
/* Sleeps for at most this time. Returns 0 or -errno. */
int ecb_wait(struct ecb *ecb, uint32_t groups, uint64_t ns);
/* A pair of sockets: a write to [1] is an event of [0]. */
void pair(int fds[2]);
void send_byte(int fd);
void receive_byte(int fd);
/* Has the other end been closed? Data that it should have read may remain. */
bool hung_up(int fd);
/* A non-blocking listener, with a name that the kernel chooses. */
int listen_anywhere(struct sockaddr_un *name, socklen_t *size, int backlog);
/*
 * Pass an open file in a message (SCM_RIGHTS): 0 or -errno. Take the next file: a
 * new descriptor or -errno. Neither waits.
 */
int pass_file(int socket, int fd);
int take_file(int socket);
/* Posts an event as a source does, in any thread: steps S1 and S3. */
void ecb_post(struct ecb *ecb, uint32_t event, uint16_t group, uint32_t bits);

/* Step U3: a store to a word of the owner's, and a full barrier. */
static inline void ecb_store(uint32_t *word, uint32_t value)
{
	__atomic_exchange_n(word, value, __ATOMIC_SEQ_CST);
}

/* Step U4. */
static inline void ecb_deliver(struct ecb *ecb, uint32_t groups)
{
	ecb_store(&ecb->control->deliver, groups);
	if (__atomic_load_n(&ecb->control->held, __ATOMIC_RELAXED))
		CHECK(ioctl(ecb->fd, FLEXSC_ECB_FLUSH) >= 0);
}

#endif /* FLEXSC_TESTS_ECB_H */
