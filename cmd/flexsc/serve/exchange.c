/* SPDX-License-Identifier: MIT */
/*
 * From a request to the end of its answer; runs on the worker's thread.
 *
 *	stage		pending			then
 *	OPEN		openat2			LOOK; or a message
 *	OPEN_INDEX	openat2			LOOK; OPEN_FOLDER if the folder
 *						has no index.html
 *	LOOK		statx, read		SEND if all that is wanted was
 *						read, else LOAD; OPEN_FOLDER if
 *						index.html is a folder
 *	LOAD		read			SEND, when the first part is
 *						complete
 *	OPEN_FOLDER	openat2			LIST
 *	LIST		getdents64		SEND, when there are no more
 *	SEND		sendto, read; sendfile	the connection goes on
 *
 * Any stage but SEND may go to SEND with a message (404 ...) instead. A file
 * that the cache keeps begins at LOAD.
 *
 * The size is unknown before statx, but most files are small: the first part
 * is read at the same time, on the guess that the whole file is wanted. A
 * file of more parts is loaded and sent by transfer.c.
 */
#include <errno.h>
#include <stdlib.h>

#include <sys/stat.h>

#include <flexsc/flexsc.h>

#include "condition.h"
#include "connection.h"
#include "directory.h"
#include "listing.h"
#include "message.h"
#include "transfer.h"
#include "worker.h"

/* The kernel asks to try again when the tree changed under a lookup. */
#define RETRIES		8

void exchange_release(struct connection *c)
{
	struct exchange *x = &c->exchange;

	if (x->file && x->file->cached)
		cache_release(&c->worker->cache, x->file);
	else if (x->own.fd >= 0)
		flexsc_loop_close(c->worker->loop, NULL, x->own.fd);
	x->own.fd = -1;
	x->file = NULL;
}

/*
 * Files
 */

/* The file has become shorter since statx. */
static void cut_short(struct connection *c)
{
	struct exchange *x = &c->exchange;

	if (x->response.status != 200) {
		message_send(c, 500);
		return;
	}
	x->want = x->have;
	x->left = 0;
	if (x->want)
		transfer_file(c);
	else
		transfer_head(c, 0);
}

static void answer_file(struct connection *c)
{
	struct exchange *x = &c->exchange;
	uint64_t first = 0, length = 0;

	x->response.status = condition_decide(&c->request, connection_head(c),
					      x->file, &first, &length);
	if (x->response.status == 416) {
		struct response_detail detail = { .size = x->file->size };

		message_send_with(c, 416, &detail);
		return;
	}
	/* The guess was wrong? */
	if (x->offset != first)
		x->have = 0;
	x->offset = first;
	if (x->response.head_only || length == 0) {
		transfer_head(c, length);
		return;
	}
	x->chunk = x->buffer->body;
	x->want = length < TRANSFER_FIRST ? length : TRANSFER_FIRST;
	x->left = length - x->want;
	x->stage = EXCHANGE_LOAD;
	if (x->have < x->want)
		transfer_load(c);
	else
		transfer_file(c);
}

/* Read what will probably be wanted, before the size is known. */
static void guess(struct connection *c)
{
	const struct request *r = &c->request;
	struct exchange *x = &c->exchange;
	struct range range = { .kind = RANGE_NONE };
	const char *value;
	size_t length;

	if (x->response.head_only || condition_any(r))
		return;
	value = request_header(r, connection_head(c), HEADER_RANGE, &length);
	if (value)
		range = range_parse(value, length);
	if (range.kind == RANGE_SUFFIX || range.first > INT64_MAX)
		return;
	x->want = TRANSFER_FIRST;
	if (range.kind == RANGE_BYTES) {
		x->offset = range.first;
		if (range.last - range.first < TRANSFER_FIRST)
			x->want = range.last - range.first + 1;
	}
	x->chunk = x->buffer->body;
	transfer_load(c);
}

static void look(struct connection *c)
{
	struct exchange *x = &c->exchange;
	int rc;

	x->stage = EXCHANGE_LOOK;
	x->file = &x->own;
	rc = file_stat(c->worker->loop, &x->stat, x->own.fd, &x->stx);
	if (connection_posted(c, OP_STAT, rc))
		guess(c);
}

static void open_file(struct connection *c, enum exchange_stage stage)
{
	struct exchange *x = &c->exchange;
	struct worker *w = c->worker;
	struct open_how *how = stage == EXCHANGE_OPEN_FOLDER ? &w->how_folder :
							       &w->how_file;
	int rc = flexsc_loop_openat2(w->loop, &x->open, w->settings->root_fd,
				     x->path.name, how, sizeof(*how));

	x->stage = stage;
	/* To open a pipe waits until somebody writes. */
	if (connection_posted(c, OP_OPEN, rc))
		flexsc_loop_deadline(w->loop, &x->open, w->settings->timeout);
}

static void open_folder(struct connection *c)
{
	exchange_release(c);
	path_pop_index(&c->exchange.path);
	open_file(c, EXCHANGE_OPEN_FOLDER);
}

/* Both calls of LOOK are complete. */
static void looked(struct connection *c)
{
	struct exchange *x = &c->exchange;
	struct cache *cache = &c->worker->cache;
	const struct path *path = &x->path;
	struct file *kept = NULL;

	if (x->stat.ret < 0) {
		message_send_error(c, -x->stat.ret);
		return;
	}
	if (S_ISDIR(x->stx.stx_mode)) {
		if (path->directory)
			open_folder(c);
		else
			message_redirect(c);
		return;
	}
	if (!S_ISREG(x->stx.stx_mode)) {
		message_send(c, 403);
		return;
	}
	file_describe(&x->own, &x->stx, mime_find(path->name, path->length));
	if (cache->limit)
		kept = cache_insert(cache, path->name, path->length, &x->own);
	if (kept)
		x->file = kept;
	answer_file(c);
}

/*
 * Callbacks
 */

static void not_opened(struct connection *c, int error)
{
	struct exchange *x = &c->exchange;
	struct cache *cache = &c->worker->cache;

	if (error == EAGAIN && ++x->retries < RETRIES) {
		open_file(c, x->stage);
		return;
	}
	if (cache->limit)
		cache_forget(cache, x->path.name, x->path.length);
	if (error == ENOENT && x->stage == EXCHANGE_OPEN_INDEX)
		open_folder(c);
	else
		message_send_error(c, error);
}

static void on_open(struct flexsc_cb *cb)
{
	struct connection *c = cb->arg;
	struct exchange *x = &c->exchange;

	c->ops &= ~OP_OPEN;
	if (cb->ret >= 0) {
		x->own.fd = cb->ret;
		x->position = 0;
	}
	if (c->state != CONNECTION_CLOSING) {
		if (cb->ret < 0)
			not_opened(c, -cb->ret);
		else if (x->stage == EXCHANGE_OPEN_FOLDER)
			listing_start(c);
		else
			look(c);
	}
	connection_settle(c);
}

static void on_stat(struct flexsc_cb *cb)
{
	struct connection *c = cb->arg;
	struct exchange *x = &c->exchange;

	c->ops &= ~OP_STAT;
	if (c->state != CONNECTION_CLOSING) {
		if (!connection_pending(c, OP_LOAD))
			looked(c);
		else if (cb->ret < 0 || !S_ISREG(x->stx.stx_mode))
			/* To read from a pipe may take for ever. */
			flexsc_loop_cancel(c->worker->loop, &x->load);
	}
	connection_settle(c);
}

static void loaded(struct connection *c, int64_t ret)
{
	struct exchange *x = &c->exchange;

	if (ret > 0) {
		x->have += ret;
		x->position += x->in_order ? ret : 0;
	}
	switch (x->stage) {
	case EXCHANGE_LOOK:
		/* An error comes again, if the part is wanted at all. */
		if (!connection_pending(c, OP_STAT))
			looked(c);
		break;
	case EXCHANGE_LOAD:
		if (ret < 0 && ret != -EINTR)
			message_send_error(c, -ret);
		else if (ret == 0)
			cut_short(c);
		else if (x->have < x->want)
			transfer_load(c);
		else
			transfer_file(c);
		break;
	case EXCHANGE_LIST:
		listing_loaded(c, ret);
		break;
	case EXCHANGE_SEND:
		/* The length was announced: it must be kept, or cut off. */
		if (ret <= 0 && ret != -EINTR)
			connection_drop(c);
		else if (x->have < x->want)
			transfer_load(c);
		else if (!connection_pending(c, OP_SEND))
			transfer_chunk(c, 0);
		break;
	case EXCHANGE_OPEN:
	case EXCHANGE_OPEN_INDEX:
	case EXCHANGE_OPEN_FOLDER:
		break;
	}
}

static void on_load(struct flexsc_cb *cb)
{
	struct connection *c = cb->arg;

	c->ops &= ~OP_LOAD;
	if (c->state != CONNECTION_CLOSING)
		loaded(c, cb->ret);
	connection_settle(c);
}

/*
 * Beginning and end
 */

static void begin(struct connection *c)
{
	const struct request *r = &c->request;
	struct exchange *x = &c->exchange;
	struct worker *w = c->worker;

	clock_update(&w->clock);
	x->response = (struct response){
		.clock = &w->clock,
		.keep_alive = r->keep_alive && !w->stopping,
		.head_only = r->method == HTTP_HEAD,
		.minor = r->minor,
	};
	x->retries = 0;
	x->offset = 0;
	x->want = 0;
	x->have = 0;
	x->left = 0;
	x->sent = 0;
	x->by_kernel = false;
	x->buffer = pool_get(&w->pool);
}

/* Open what the path names, or take it from the cache. */
static void find(struct connection *c)
{
	struct exchange *x = &c->exchange;
	struct cache *cache = &c->worker->cache;
	struct path *path = &x->path;

	if (path->directory)
		path_push_index(path);
	if (cache->limit)
		x->file = cache_find(cache, path->name, path->length);
	if (x->file)
		answer_file(c);
	else
		open_file(c, path->directory ? EXCHANGE_OPEN_INDEX :
					       EXCHANGE_OPEN);
}

void exchange_start(struct connection *c)
{
	const struct request *r = &c->request;
	struct exchange *x = &c->exchange;
	int status;

	begin(c);
	if (!x->buffer) {
		message_send_busy(c);
		return;
	}
	if (r->method != HTTP_GET && r->method != HTTP_HEAD) {
		message_send(c, 405);
		return;
	}
	status = path_resolve(&x->path, connection_head(c) + r->target.at,
			      r->target.length, x->buffer->path,
			      sizeof(x->buffer->path),
			      c->worker->settings->all);
	if (status)
		message_send(c, status);
	else
		find(c);
}

void exchange_refuse(struct connection *c, int status)
{
	begin(c);
	if (c->exchange.buffer)
		message_send(c, status);
	else
		message_send_busy(c);
}

static void write_log(struct connection *c)
{
	const struct request *r = &c->request;
	const struct exchange *x = &c->exchange;
	struct log_line line = {
		.peer = c->peer,
		.minor = r->minor,
		.status = x->response.status,
		.sent = x->sent > x->head ? x->sent - x->head : 0,
	};

	/* A line that broke off isn't quoted. */
	if (r->length) {
		line.method = llhttp_method_name(r->method);
		line.target = connection_head(c) + r->target.at;
		line.target_length = r->target.length;
	}
	log_write(&c->worker->log, &c->worker->clock, &line);
}

void exchange_fini(struct connection *c)
{
	struct exchange *x = &c->exchange;
	struct pool *pool = &c->worker->pool;

	if (x->response.status && log_enabled(&c->worker->log))
		write_log(c);
	x->response.status = 0;
	exchange_release(c);
	directory_destroy(x->directory);
	x->directory = NULL;
	free(x->page);
	x->page = NULL;
	pool_put(pool, x->spare);
	x->spare = NULL;
	pool_put(pool, x->buffer);
	x->buffer = NULL;
}

void exchange_cancel(struct connection *c)
{
	struct flexsc_loop *loop = c->worker->loop;
	struct exchange *x = &c->exchange;

	if (connection_pending(c, OP_OPEN))
		flexsc_loop_cancel(loop, &x->open);
	if (connection_pending(c, OP_STAT))
		flexsc_loop_cancel(loop, &x->stat);
	if (connection_pending(c, OP_LOAD))
		flexsc_loop_cancel(loop, &x->load);
	if (connection_pending(c, OP_SEND))
		flexsc_loop_cancel(loop, &x->send);
}

void exchange_init(struct connection *c)
{
	struct exchange *x = &c->exchange;

	x->open = (struct flexsc_cb){ .callback = on_open, .arg = c };
	x->stat = (struct flexsc_cb){ .callback = on_stat, .arg = c };
	x->load = (struct flexsc_cb){ .callback = on_load, .arg = c };
	x->send = (struct flexsc_cb){ .callback = transfer_on_send, .arg = c };
	x->own.fd = -1;
}
