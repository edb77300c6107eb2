/* SPDX-License-Identifier: MIT */
/*
 * Does a call wait? That depends on the call, on its flags, and on the kind and the
 * state of its file. The program makes each call that transfers data on each kind of
 * file that Linux has: a subject. The results of plain threads are the reference.
 * Posted calls, and those of user threads, have to return the same results, and have
 * to wait if the reference waits.
 *
 *	subjects.c	makes the files
 *	transfers.c	lists the calls
 *	waits.c		the program "waits" makes all calls on all subjects
 *	waits_compare.c	the test
 */
#ifndef FLEXSC_TESTS_WAITS_H
#define FLEXSC_TESTS_WAITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ROOM		256U	/* bytes that a call may read */
#define FILES		4U	/* descriptors of one trial */

/* The files of one trial: the first one is the subject, others keep its state. */
struct files {
	int fds[FILES];
	unsigned int count;
};

struct subject {
	const char *name;
	/*
	 * Creates the files. False: this machine lacks the kind, or the caller may
	 * not use it.
	 */
	bool (*make)(struct files *files);
	/*
	 * Checks a state that may change some time after its creation. False: the
	 * state had to be restored.
	 */
	bool (*settles)(const struct files *files);
	bool is_socket;
	bool varies;		/* reads return different data each time */
	bool races;	/* others may write meanwhile, so errors vary, too */
};

extern const struct subject subjects[];

/* The kinds of arguments other than plain numbers. */
enum {
	SUBJECT = -1000,
	REGULAR,	/* a file with bytes in it */
	PIPE_FROM,	/* a pipe with bytes in it */
	PIPE_TO,	/* a pipe with room */
	BYTES,		/* memory: ROOM bytes */
	NOWHERE,	/* an address without memory */
	VECTOR_IN,	/* an array of two for ROOM bytes */
	VECTOR_OUT,	/* an array of two for OUT_BYTES */
	VECTOR_NONE,	/* an array of two for no byte */
	MESSAGE_IN, MESSAGE_OUT,
	MESSAGES_IN, MESSAGES_OUT,	/* arrays of one message */
	NO_ADDRESS,	/* a struct sockaddr of AF_UNSPEC */
	NO_PATH,	/* the address of a local socket that doesn't exist */
};

#define OUT_BYTES	8U

struct transfer {
	const char *name;
	long nr;
	int64_t args[6];
	/* only for sockets: other files ignore the flag */
	bool on_sockets;
	bool in_all_modes;	/* also on subjects with O_NONBLOCK */
};

extern const struct transfer transfers[];

#endif /* FLEXSC_TESTS_WAITS_H */
