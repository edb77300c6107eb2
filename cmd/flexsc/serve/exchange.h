/* SPDX-License-Identifier: MIT */
/*
 * One request and its answer.
 */
#ifndef SERVE_EXCHANGE_H
#define SERVE_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/stat.h>

#include <flexsc/call.h>

#include "file.h"
#include "path.h"
#include "response.h"

struct buffer;
struct connection;
struct directory;

/* What a complete call means depends on it; the arrows are in exchange.c. */
enum exchange_stage {
	EXCHANGE_OPEN,
	EXCHANGE_OPEN_INDEX,
	EXCHANGE_OPEN_FOLDER,
	EXCHANGE_LOOK,
	EXCHANGE_LOAD,
	EXCHANGE_LIST,
	EXCHANGE_SEND,
};

struct exchange {
	enum exchange_stage stage;
	struct flexsc_cb open;
	struct flexsc_cb stat;
	struct flexsc_cb load;
	struct flexsc_cb send;
	struct path path;
	struct response response;
	unsigned int retries;
	struct buffer *buffer;		/* what is sent */
	struct buffer *spare;		/* what is loaded meanwhile */
	struct directory *directory;	/* while its names are read */
	char *page;			/* from malloc(), what is sent instead */
	struct file *file;		/* NULL: none is open */
	struct file own;		/* it, unless the cache keeps it */
	/* The part of the file that is being loaded, or waits to be sent. */
	char *chunk;
	uint64_t offset;		/* in the file */
	size_t want;			/* bytes it shall have; 0: no chunk */
	size_t have;
	uint64_t left;			/* bytes of the answer behind it */
	uint64_t position;		/* of our own descriptor */
	bool in_order;			/* the pending read is at position */
	/* What is being sent: from out, or the rest of the file. */
	bool by_kernel;
	off_t place;			/* the kernel's own offset then */
	const char *out;
	size_t out_left;
	size_t head;			/* of the bytes sent, not body */
	uint64_t sent;
	struct statx stx;
};

/* Answer the connection's request, or refuse it with its status. */
void exchange_start(struct connection *c);

/* Answer status at once. */
void exchange_refuse(struct connection *c, int status);

/* Give back the file: to the cache, or to the kernel. */
void exchange_release(struct connection *c);

/* Give back all that it holds. Nothing of it is pending. */
void exchange_fini(struct connection *c);

/* Cancel what is pending of it. */
void exchange_cancel(struct connection *c);

/* Once, before the first. */
void exchange_init(struct connection *c);

#endif /* SERVE_EXCHANGE_H */
