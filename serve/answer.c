/* SPDX-License-Identifier: MIT */
/*
 * From a request to the end of its answer; runs on the worker's thread.
 *
 *	stage		pending			then
 *	OPEN		openat2, or a walk	LOOK; or a message
 *	OPEN_INDEX	openat2			LOOK; OPEN_FOLDER if the folder
 *						has no index.html
 *	LOOK		statx			LOAD; OPEN_FOLDER if index.html
 *						is a folder
 *	LOAD		pread			SEND, when the first part is
 *						complete
 *	OPEN_FOLDER	openat2			LIST
 *	LIST		getdents64		SEND, when all names are read
 *	SEND		sendto, pread; sendfile	SENT
 *
 * Any stage but SEND may go to SEND with a message (404 ...) instead, and any
 * to CUT. A file that the cache keeps begins at LOAD. With --precompressed, OPEN
 * and OPEN_INDEX are repeated for each encoding that the client accepts, until
 * a file exists.
 *
 * A file that is sent in several parts is handled by transfer.c.
 */
#define _GNU_SOURCE
#include "answer.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include <sys/stat.h>

#include <flexsc/flexsc.h>
#include <flexsc/work.h>

#include "exchange.h"
#include "listing.h"
#include "loading.h"
#include "message.h"
#include "transfer.h"
#include "http/beneath.h"
#include "http/condition.h"
#include "http/encoding.h"
#include "http/request.h"

/*
 * How often openat2() is tried: it returns EAGAIN when the tree changes during
 * a lookup.
 */
#define RETRIES		8

/*
 * Files
 */

static void answer_file(struct exchange *x)
{
	uint64_t first = 0, length = 0;

	x->response.status = condition_decide(x->request, x->request_head,
					      x->file, &x->env->clock, &first,
					      &length);
	if (x->response.status == 416) {
		struct response_detail detail = { .size = x->file->size };

		message_send_with(x, 416, &detail);
		return;
	}
	if (x->response.status == 412) {
		message_send(x, 412);
		return;
	}
	x->offset = first;
	if (x->response.head_only || length == 0) {
		transfer_head(x, length);
		return;
	}
	if (x->file->contents) {
		transfer_mapped(x, length);
		return;
	}
	x->needed = length <= TRANSFER_WHOLE ? length : TRANSFER_FIRST;
	x->left = length - x->needed;
	x->stage = EXCHANGE_LOAD;
	transfer_load(x);
}

static void look(struct exchange *x)
{
	int rc;

	x->stage = EXCHANGE_LOOK;
	x->file = &x->own;
	rc = flexsc_loop_statx(x->env->loop, &x->stat, x->own.fd, "",
			       AT_EMPTY_PATH, FILE_STATX, &x->stx);
	exchange_posted(x, OP_STAT, rc);
}

/* Runs on a syscall thread, while the exchange waits for the result. */
static int64_t walk(void *arg)
{
	const struct exchange *x = arg;

	return beneath_open(x->env->settings->root_fd, x->path.name,
			    x->walk_flags);
}

static int post_open(struct exchange *x, bool folder)
{
	struct environment *env = x->env;
	struct open_how *how = &env->how[env->links][folder];

	x->links = env->links;
	if (!env->no_openat2)
		return flexsc_loop_openat2(env->loop, &x->open,
					   env->settings->root_fd,
					   x->path.name, how, sizeof(*how));
	x->links = true;
	x->walk_flags = (int)how->flags;
	return flexsc_loop_work(env->loop, &x->open, walk, x);
}

static void open_file(struct exchange *x, enum exchange_stage stage)
{
	struct environment *env = x->env;
	int rc = post_open(x, stage == EXCHANGE_OPEN_FOLDER);

	x->stage = stage;
	/*
	 * Limit the time of the open: opening a pipe may wait for ever for
	 * another process.
	 */
	if (exchange_posted(x, OP_OPEN, rc))
		flexsc_loop_deadline(env->loop, &x->open,
				     env->settings->timeout);
}

/*
 * Compressed files
 *
 * The compressed file's name is the plain one with a suffix. path.length
 * excludes the suffix, so the type, a redirection and the cache's key follow
 * from the plain name.
 */

#define SUFFIX_MAX	sizeof(".gz")

static void put_suffix(struct exchange *x)
{
	static const char suffixes[ENCODINGS][SUFFIX_MAX] = {
		[ENCODING_GZIP] = ".gz",
		[ENCODING_BR] = ".br",
	};

	memcpy(x->path.name + x->path.length, suffixes[x->encoding],
	       SUFFIX_MAX);
}

/* Choose the next encoding that the client accepts, the best one first. */
static void next_encoding(struct exchange *x)
{
	do
		x->encoding--;
	while (x->encoding && !(x->accepts & 1 << x->encoding));
}

static void begin_encodings(struct exchange *x)
{
	x->accepts = encoding_accepted(x->request, x->request_head);
	x->encoding = ENCODINGS;
	next_encoding(x);
}

/* The compressed file can't be served: open another one, or the plain file. */
static void open_next_encoding(struct exchange *x)
{
	exchange_release(x);
	next_encoding(x);
	put_suffix(x);
	open_file(x, x->path.directory ? EXCHANGE_OPEN_INDEX : EXCHANGE_OPEN);
}

/*
 * The length of the cache's key, which begins at path.name. Clients that accept
 * different encodings may get different files. So the accepted encodings follow
 * the name in the key, after a zero byte, which no name contains.
 */
static size_t key_length(struct exchange *x)
{
	struct path *path = &x->path;

	if (!x->accepts)
		return path->length;
	path->name[path->length] = '\0';
	path->name[path->length + 1] = (char)x->accepts;
	return path->length + 2;
}

static void open_folder(struct exchange *x)
{
	exchange_release(x);
	path_pop_index(&x->path);
	open_file(x, EXCHANGE_OPEN_FOLDER);
}

static void looked(struct exchange *x)
{
	struct cache *cache = &x->env->cache;
	const struct path *path = &x->path;
	struct file *kept = NULL;

	if (x->encoding && (x->stat.ret < 0 || !S_ISREG(x->stx.stx_mode))) {
		open_next_encoding(x);
		return;
	}
	if (x->stat.ret < 0) {
		message_send_error(x, -x->stat.ret);
		return;
	}
	if (S_ISDIR(x->stx.stx_mode)) {
		if (path->directory)
			open_folder(x);
		else
			message_redirect(x);
		return;
	}
	if (!S_ISREG(x->stx.stx_mode)) {
		message_send(x, 403);
		return;
	}
	file_describe(&x->own, &x->stx, mime_find(path->name, path->length),
		      &x->env->settings->more[x->encoding]);
	if (cache->limit)
		kept = cache_insert(cache, path->name, key_length(x), &x->own);
	if (kept)
		x->file = kept;
	answer_file(x);
}

/*
 * Callbacks
 */

static void not_opened(struct exchange *x, int error)
{
	struct cache *cache = &x->env->cache;
	bool again = error == EAGAIN || (error == ELOOP && !x->links);

	x->env->links |= error == ELOOP;
	if ((error == ENOSYS || error == EPERM) && !x->env->no_openat2) {
		x->env->no_openat2 = beneath_needed(x->env->settings->root_fd);
		again = x->env->no_openat2;
	}
	if (again && ++x->retries < RETRIES) {
		open_file(x, x->stage);
		return;
	}
	if (x->encoding) {
		open_next_encoding(x);
		return;
	}
	if (cache->limit)
		cache_forget(cache, x->path.name, key_length(x));
	if (error == ENOENT && x->stage == EXCHANGE_OPEN_INDEX)
		open_folder(x);
	else
		message_send_error(x, error);
}

static void on_open(struct flexsc_cb *cb)
{
	struct exchange *x = cb->arg;
	bool going = exchange_completed(x, OP_OPEN);

	if (cb->ret >= 0)
		x->own.fd = cb->ret;
	if (going) {
		if (cb->ret < 0)
			not_opened(x, -cb->ret);
		else if (x->stage == EXCHANGE_OPEN_FOLDER)
			listing_start(x);
		else
			look(x);
	}
	exchange_settle(x);
}

static void on_stat(struct flexsc_cb *cb)
{
	struct exchange *x = cb->arg;
	bool going = exchange_completed(x, OP_STAT);

	if (going)
		looked(x);
	exchange_settle(x);
}

/* Begin and end */

/* Open the file that the path names, or take it from the cache. */
static void find(struct exchange *x)
{
	struct cache *cache = &x->env->cache;
	struct path *path = &x->path;

	if (path->directory)
		path_push_index(path);
	if (x->env->settings->precompressed)
		begin_encodings(x);
	if (cache->limit)
		x->file = cache_find(cache, path->name, key_length(x));
	if (x->file) {
		answer_file(x);
		return;
	}
	if (x->accepts)
		put_suffix(x);
	open_file(x, path->directory ? EXCHANGE_OPEN_INDEX : EXCHANGE_OPEN);
}

static void answer_find(struct exchange *x)
{
	const struct request *r = x->request;
	int status;

	if (r->method != HTTP_GET && r->method != HTTP_HEAD) {
		message_send(x, 405);
		return;
	}
	status = path_resolve(&x->path, x->request_head + r->target.at,
			      r->target.length, x->buffer->path,
			      sizeof(x->buffer->path) - SUFFIX_MAX,
			      x->env->settings->all);
	if (status)
		message_send(x, status);
	else
		find(x);
}

bool answer_request(struct exchange *x, const char *head, bool keep_alive)
{
	if (exchange_begin(x, head, keep_alive))
		answer_find(x);
	else
		message_send_busy(x);
	return exchange_begun(x);
}

bool answer_refuse(struct exchange *x, const char *head, int status)
{
	if (exchange_begin(x, head, false))
		message_send(x, status);
	else
		message_send_busy(x);
	return exchange_begun(x);
}

void answer_init(struct exchange *x)
{
	x->open = (struct flexsc_cb){ .callback = on_open, .arg = x };
	x->stat = (struct flexsc_cb){ .callback = on_stat, .arg = x };
	x->load = (struct flexsc_cb){ .callback = loading_on_load, .arg = x };
	x->send = (struct flexsc_cb){ .callback = transfer_on_send, .arg = x };
	x->own.fd = -1;
}
