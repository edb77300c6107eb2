/* SPDX-License-Identifier: MIT */
/*
 * A pair is a call that waits and what happens to it meanwhile: its descriptor
 * is closed, its process forks, it is cancelled ... What a plain thread's call
 * does then is the oracle; a posted call, or that of a user thread, has to do
 * the same.
 *
 * The program "pair" carries out one pair and prints what was seen. Both sides
 * of a pair are tables: calls.c says what waits for what, events.c what happens.
 * files.c makes what is waited for. compare.c runs all pairs, natively and
 * otherwise, and compares.
 */
#ifndef FLEXSC_TESTS_PAIR_H
#define FLEXSC_TESTS_PAIR_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define FEW		16U		/* bytes that a reader gets */
#define MANY_BYTES	(1U << 20)	/* a writer's: more than any buffer */

/* What is waited for. */
enum kind {
	NOTHING,
	PIPE_IN, PIPE_OUT,		/* an empty pipe; a full one */
	UNIX_IN, UNIX_OUT,		/* a stream socket, a full one */
	TCP_IN, TCP_OUT,
	DATAGRAM_IN,
	LISTENER,
	EVENT_IN, EVENT_OUT,		/* an eventfd: zero, at its maximum */
	TIMER, SIGNALS, CHANGES,	/* timerfd, signalfd, inotify */
	TERMINAL,
	MASTER,				/* a terminal's other end */
	POLLED,				/* an epoll set with a pipe */
	CONTENT,			/* nothing: a file of MANY_BYTES */
	LOCKED,				/* a file, locked by another one */
	NAMED_IN,			/* a FIFO that nobody writes to */
	BACKLOG,			/* a socket to connect to a full listener */
	QUEUE_IN, QUEUE_OUT,		/* POSIX message queues */
	MESSAGES, SEMAPHORE,		/* System V */
	CHILD, WORD,
};

/* What a call's argument is, if it isn't a plain number. */
enum argument {
	FD = -1000,
	SECOND,		/* another descriptor */
	BUF,		/* room for FEW bytes, or MANY_BYTES to write */
	VECTOR,		/* an array of two that describe it */
	MESSAGE,	/* a struct msghdr with that */
	MESSAGES_OF,	/* an array of one such message */
	POLL_SET, FD_SET, MAX_FD, EVENTS,
	ADDRESS, ADDRESS_SIZE,
	PATH, LOCK, ID, OPERATION, TEXT, PID, THE_WORD, SHORT_TIME, PLACE, ONE,
};

struct call {
	const char *name;
	enum kind kind;
	enum kind second;	/* of SECOND */
	long nr;
	int64_t args[6];
	size_t length;		/* what the call transfers if it is whole; or 0 */
};

struct file {
	enum kind kind;
	int fd;
	int peer;		/* its other end, or -1 */
	bool writes;		/* the call does */
	size_t sent;		/* that arrived at the peer */
	bool wrong;		/* something else did */
	bool ended;		/* the peer has seen the end */
};

struct pair {
	const struct call *call;
	uint64_t args[6];
	struct file file, second;
	char path[64];
	int id;			/* System V */
	pid_t pid;
	uint32_t word;
	/* What came to be instead of a closed descriptor, and its other end. */
	int other[2];
	atomic_bool done;
	atomic_int tid;
	int64_t ret;
	pthread_t caller;
	bool joined;
};

/* An event says what it did to the call, beyond what is seen of it. */
struct event {
	const char *name;
	unsigned int needs;
	void (*happen)(struct pair *pair);
};

/* Of the call, or of how it is made, for an event to make sense. */
#define ON_FD		1U	/* a descriptor to be closed */
#define ON_SECOND	2U	/* two of them */
#define ON_SOCKET	4U
#define ON_PEER		8U
#define ON_ID		16U
#define ON_PLAIN	32U	/* by a thread, not posted */
#define ON_POSTED	64U
#define ENDS_PROCESS	128U

extern const struct call calls[];
unsigned int call_has(const struct call *call);
extern const struct event events[];

/* files.c */
void file_make(struct pair *pair, struct file *file, enum kind kind);
/* Let the call go on: give it what it waits for, take what it writes. */
void file_satisfy(struct pair *pair, struct file *file);
/* Is everything gone that belonged to the call? Then the peer sees an end. */
void file_end(struct file *file);
bool file_has_end(const struct file *file);
extern char pair_bytes[MANY_BYTES];

/* To become quiet: else something never sleeps. */
#define AWAKE_MS	3000

/* pair.c */
extern unsigned int pair_slower;
void pair_pause(unsigned int ms);
bool pair_wait(struct pair *pair, unsigned int ms);
/* Post a call beside the one that waits, and await it. */
int64_t pair_post_here(long nr, uint64_t a, uint64_t b, uint64_t c);
int64_t pair_post_elsewhere(long nr, uint64_t a, uint64_t b, uint64_t c);
void pair_cancel(struct pair *pair);
void pair_limit(void);	/* a posted call gets a deadline */
bool pair_posts(void);
__attribute__((noreturn)) void pair_broken(const char *what);
#define MUST(condition)	((condition) ? (void)0 : pair_broken(#condition))

#endif /* FLEXSC_TESTS_PAIR_H */
