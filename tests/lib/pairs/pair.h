/* SPDX-License-Identifier: MIT */
/*
 * A pair is a call that waits, and an event that happens meanwhile: its descriptor
 * is closed, its process forks, the call is cancelled ... The behaviour of a plain
 * thread's call is the oracle. A posted call, and the call of a user thread, have to
 * behave the same.
 *
 * The program "pair" carries out one pair and prints the result. Calls and events
 * are tables: calls.c lists calls and what each waits for, events.c lists events.
 * files.c creates the files. compare.c runs all pairs, natively and otherwise, and
 * compares.
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
/* bytes of a writer: more than any buffer holds */
#define MANY_BYTES	(1U << 20)

/* What a call waits for. */
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
	CONTENT,			/* a file of MANY_BYTES: no wait */
	LOCKED,	/* a file that another descriptor has locked */
	NAMED_IN,			/* a FIFO without a writer */
	BACKLOG,			/* a socket to connect to a full listener */
	QUEUE_IN, QUEUE_OUT,		/* POSIX message queues */
	MESSAGES, SEMAPHORE,		/* System V */
	CHILD, WORD,
};

/* The kinds of arguments other than plain numbers. */
enum argument {
	FD = -1000,
	SECOND,		/* another descriptor */
	BUF,	/* a buffer with room for FEW bytes, or MANY_BYTES to write */
	VECTOR,		/* an array of two vectors for the buffer */
	MESSAGE,	/* a struct msghdr with the vectors */
	MESSAGES_OF,	/* an array of one such message */
	POLL_SET, FD_SET, MAX_FD, EVENTS,
	ADDRESS, ADDRESS_SIZE,
	PATH, LOCK, ID, OPERATION, TEXT, PID, THE_WORD, SHORT_TIME, PLACE, ONE,
};

struct call {
	const char *name;
	enum kind kind;
	enum kind second;	/* the kind of SECOND */
	long nr;
	int64_t args[6];
	size_t length;		/* what a complete call transfers; or 0 */
};

struct file {
	enum kind kind;
	int fd;
	int peer;		/* its other end, or -1 */
	bool writes;		/* whether the call writes */
	size_t sent;		/* bytes that arrived at the peer */
	bool wrong;		/* other bytes arrived */
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
	/* The file that replaces a closed descriptor, and its other end. */
	int other[2];
	atomic_bool done;
	atomic_int tid;
	int64_t ret;
	pthread_t caller;
	bool joined;
};

/* An event records an effect on the call that the results don't show. */
struct event {
	const char *name;
	unsigned int needs;
	void (*happen)(struct pair *pair);
};

/*
 * Conditions that a call, or the way to make it, has to meet for an event to make
 * sense.
 */
#define ON_FD		1U	/* a descriptor to close */
#define ON_SECOND	2U	/* two descriptors */
#define ON_SOCKET	4U
#define ON_PEER		8U
#define ON_ID		16U
#define ON_PLAIN	32U	/* made by a thread, not posted */
#define ON_POSTED	64U
#define ENDS_PROCESS	128U

extern const struct call calls[];
unsigned int call_has(const struct call *call);
extern const struct event events[];

/* files.c */
void file_make(struct pair *pair, struct file *file, enum kind kind);
/* Lets the call continue: provides what it waits for, or takes what it writes. */
void file_satisfy(struct pair *pair, struct file *file);
/* Has everything been closed that belonged to the call? Then the peer sees an end. */
void file_end(struct file *file);
bool file_has_end(const struct file *file);
extern char pair_bytes[MANY_BYTES];

/* The limit for becoming quiet. Beyond it, some thread never sleeps. */
#define AWAKE_MS	3000

/* pair.c */
extern unsigned int pair_slower;
void pair_pause(unsigned int ms);
bool pair_wait(struct pair *pair, unsigned int ms);
/* Posts a call beside the one that waits, and waits for its result. */
int64_t pair_post_here(long nr, uint64_t a, uint64_t b, uint64_t c);
int64_t pair_post_elsewhere(long nr, uint64_t a, uint64_t b, uint64_t c);
void pair_cancel(struct pair *pair);
void pair_limit(void);	/* gives the posted call a deadline */
bool pair_posts(void);
__attribute__((noreturn)) void pair_broken(const char *what);
#define MUST(condition)	((condition) ? (void)0 : pair_broken(#condition))

#endif /* FLEXSC_TESTS_PAIR_H */
