/* SPDX-License-Identifier: MIT */
/*
 * Static files. If the handler posts a call, it runs twice. First it posts the
 * open, and the request is blocked. When the file is open, nginx continues the
 * request at the same place, and the handler answers.
 *
 * 	begun -> [opening ->] [reading ->] ready	the handler answers
 * 		  opening -> declined			nginx' own handler does everything
 *
 * A file of up to "flexsc_whole" bytes is read and sent in one piece with its
 * header. A larger file is left open, and nginx sends it.
 *
 * While a call is pending, the request counts as blocked, so nginx doesn't free
 * it. If nginx finalizes the request meanwhile, nginx sets another write handler,
 * which is called instead of the module's.
 */
#include "module.h"

#include <sys/uio.h>

struct file {
	struct flexsc_cb cb;
	ngx_http_request_t *request;
	ngx_str_t path;
	struct stat st;		/* not set if nginx' own cache opened the file */
	u_char *contents;	/* NULL: not read */
	struct kept *kept;	/* the entry of keep.c's table, if it keeps the file */
	off_t size;
	time_t modified;
	int fd;			/* -1: not owned by this struct */
	/* the descriptor from which nginx reads what isn't in contents */
	int from;
	bool declined;
};

static void file_close(struct file *f)
{
	if (f->fd >= 0 && close(f->fd) < 0)
		ngx_log_error(NGX_LOG_ALERT, ngx_cycle->log, ngx_errno,
			      ngx_close_file_n " \"%V\" failed", &f->path);
	f->fd = -1;
}

static void file_free(void *data)
{
	struct file *f = data;

	file_close(f);
	keep_release(f->kept);
}

/*
 * Post the close: the contents are in memory, and the file isn't needed any
 * more.
 */
static void close_later(struct file *f)
{
	if (f->fd < 0)
		return;
	if (!turn_is_busy() ||
	    flexsc_loop_close(turn.loop, NULL, (unsigned int)f->fd) < 0)
		file_close(f);
	f->fd = -1;
}

/*
 * Only a plain answer, without range or condition, needs the contents in
 * memory.
 */
static bool wants_contents(const struct file *f)
{
	const ngx_http_headers_in_t *in = &f->request->headers_in;
	off_t whole = (off_t)location_of(f->request)->whole;

	return f->size > 0 && f->size <= whole &&
	       f->request->method == NGX_HTTP_GET && !in->range &&
	       !in->if_modified_since && !in->if_none_match;
}

/*
 * The read is complete. A short result means that the file is changing: then
 * nginx reads the file itself.
 */
static void file_read(struct file *f, ssize_t n)
{
	if (n != f->size)
		f->contents = NULL;
}

/*
 * Continue the request: the handler is called once more, if the request isn't
 * over.
 */
static void go_on(struct file *f)
{
	ngx_http_request_t *r = f->request;
	ngx_connection_t *c = r->connection;

	r->main->blocked--;
	r->aio = 0;
	if (r->write_event_handler == ngx_http_request_empty_handler)
		r->write_event_handler = ngx_http_core_run_phases;
	r->write_event_handler(r);
	ngx_http_run_posted_requests(c);
}

static void on_read(struct flexsc_cb *cb)
{
	struct file *f = cb->arg;

	turn_completed();
	file_read(f, cb->ret);
	go_on(f);
}

/*
 * Read the file: at once if its blocks are in memory. Otherwise post the read,
 * which waits for them. True: a call is pending.
 */
static bool file_load(struct file *f)
{
	struct iovec all = { NULL, (size_t)f->size };
	ssize_t n;

	f->contents = ngx_pnalloc(f->request->pool, (size_t)f->size);
	if (!f->contents)
		return false;
	all.iov_base = f->contents;
	n = preadv2(f->from, &all, 1, 0, RWF_NOWAIT);
	if (n < 0 && ngx_errno == EOPNOTSUPP)
		n = pread(f->from, f->contents, (size_t)f->size, 0);
	if (n < 0 && ngx_errno == EAGAIN) {
		flexsc_fd_hint(f->from, FLEXSC_FD_REGULAR | FLEXSC_FD_BLOCKING);
		f->cb.callback = on_read;
		if (!flexsc_loop_pread64(turn.loop, &f->cb,
					 (unsigned int)f->from, f->contents,
					 (size_t)f->size, 0)) {
			turn_posted();
			return true;
		}
	}
	file_read(f, n);
	return false;
}

static void file_describe(struct file *f)
{
	f->size = f->st.st_size;
	f->modified = f->st.st_mtime;
}

static bool file_look(struct file *f)
{
	if (fstat(f->fd, &f->st) < 0 || !S_ISREG(f->st.st_mode))
		return false;
	file_describe(f);
	f->from = f->fd;
	return true;
}

static void file_keep(struct file *f)
{
	f->kept = keep_add(&f->path, &f->st, f->fd,
			   f->request->connection->log);
	if (f->kept)
		f->fd = -1;
}

/* The open is complete or has failed. True: a call is pending. */
static bool file_opened(struct file *f)
{
	if (f->fd < 0 || !file_look(f)) {
		f->declined = true;
		file_close(f);
		return false;
	}
	if (!wants_contents(f))
		return false;
	file_keep(f);
	return file_load(f);
}

static void on_open(struct flexsc_cb *cb)
{
	struct file *f = cb->arg;

	turn_completed();
	f->fd = (int)cb->ret;
	if (!file_opened(f))
		go_on(f);
}

/*
 * Block the request on the pending call, so that only the callback continues
 * it.
 */
static ngx_int_t file_wait(struct file *f)
{
	ngx_http_request_t *r = f->request;

	r->main->blocked++;
	r->main->count++;
	r->aio = 1;
	r->write_event_handler = ngx_http_request_empty_handler;
	return NGX_DONE;
}

static bool file_find(struct file *f)
{
	f->kept = keep_find(&f->path, &f->st);
	if (!f->kept)
		return false;
	file_describe(f);
	f->from = keep_fd(f->kept);
	return true;
}

/* Open the file. True: a call is pending. */
static bool file_open(struct file *f)
{
	const char *path = (const char *)f->path.data;
	const int how = O_RDONLY | O_NONBLOCK | O_CLOEXEC;

	if (file_find(f))
		return wants_contents(f) && file_load(f);
	if (turn_is_busy()) {
		f->cb.callback = on_open;
		if (!flexsc_loop_openat(turn.loop, &f->cb, AT_FDCWD, path, how,
					0)) {
			turn_posted();
			return true;
		}
	}
	f->fd = open(path, how);
	return file_opened(f);
}

/*
 * Open the file through nginx' cache of open files (open_file_cache). True: a
 * call is pending.
 */
static bool file_open_cached(struct file *f, ngx_http_core_loc_conf_t *core)
{
	ngx_open_file_info_t found = {
		.directio = core->directio,
		.valid = core->open_file_cache_valid,
		.min_uses = core->open_file_cache_min_uses,
		.errors = core->open_file_cache_errors,
		.events = core->open_file_cache_events,
	};

	if (ngx_open_cached_file(core->open_file_cache, &f->path, &found,
				 f->request->pool) != NGX_OK ||
	    !found.is_file) {
		f->declined = true;
		return false;
	}
	f->from = found.fd;
	f->size = found.size;
	f->modified = found.mtime;
	return wants_contents(f) && file_load(f);
}

/*
 * Does a filter read the contents? Such a filter sets a flag when it sees the
 * header. nginx then reads the contents for it, and sends its output in the
 * usual pieces.
 *
 * With TLS, nginx sets this flag for each request, and reads every file into
 * memory in front of the filters. So the contents serve all of them there, and
 * the file isn't read twice.
 */
static bool is_filtered(const ngx_http_request_t *r)
{
	if (r->connection->ssl)
		return false;
	return r->main_filter_need_in_memory || r->filter_need_in_memory;
}

static ngx_int_t send_body(struct file *f)
{
	ngx_http_request_t *r = f->request;
	ngx_buf_t *b = ngx_calloc_buf(r->pool);
	ngx_chain_t out = { .buf = b };

	if (!b)
		return NGX_ERROR;
	b->last_buf = 1;
	b->last_in_chain = 1;
	if (f->contents && !is_filtered(r)) {
		close_later(f);
		b->temporary = 1;
		b->pos = b->start = f->contents;
		b->last = b->end = f->contents + f->size;
	} else if (f->size) {
		b->file = ngx_pcalloc(r->pool, sizeof(*b->file));
		if (!b->file)
			return NGX_ERROR;
		b->in_file = 1;
		b->file_last = f->size;
		b->file->fd = f->from;
		b->file->name = f->path;
		b->file->log = r->connection->log;
	}
	return ngx_http_output_filter(r, &out);
}

static ngx_int_t file_answer(struct file *f)
{
	ngx_http_request_t *r = f->request;
	ngx_int_t rc;

	if (f->declined)
		return NGX_DECLINED;
	rc = ngx_http_discard_request_body(r);
	if (rc != NGX_OK)
		return rc;
	r->connection->log->action = "sending response to client";
	r->headers_out.status = NGX_HTTP_OK;
	r->headers_out.content_length_n = f->size;
	r->headers_out.last_modified_time = f->modified;
	if (ngx_http_set_etag(r) != NGX_OK ||
	    ngx_http_set_content_type(r) != NGX_OK)
		return NGX_HTTP_INTERNAL_SERVER_ERROR;
	r->allow_ranges = 1;
	if (location_of(r)->send)
		send_allow(r);
	rc = ngx_http_send_header(r);
	if (rc == NGX_ERROR || rc > NGX_OK || r->header_only)
		return rc;
	return send_body(f);
}

/*
 * Would nginx answer the request with a file's bytes, and may the answer wait
 * for the turn's end? An answer that replaces one already begun may not wait,
 * because it would inherit the end of that one. A request that limit_conn
 * counts may not wait, because all such requests of a turn would exist at once.
 */
static bool is_ordinary(ngx_http_request_t *r, ngx_http_core_loc_conf_t *core)
{
	return turn.loop && location_of(r)->on && r == r->main &&
	       r->http_version < NGX_HTTP_VERSION_20 &&
	       !r->filter_finalize && !r->limit_conn_status &&
	       r->method & (NGX_HTTP_GET | NGX_HTTP_HEAD) &&
	       r->uri.data[r->uri.len - 1] != '/' &&
	       core->disable_symlinks == NGX_DISABLE_SYMLINKS_OFF &&
	       core->directio == NGX_OPEN_FILE_DIRECTIO_OFF &&
	       core->aio == NGX_HTTP_AIO_OFF && !core->read_ahead;
}

static struct file *file_create(ngx_http_request_t *r)
{
	ngx_pool_cleanup_t *cleanup =
		ngx_pool_cleanup_add(r->pool, sizeof(struct file));
	struct file *f;
	u_char *last;
	size_t root;

	if (!cleanup)
		return NULL;
	f = cleanup->data;
	ngx_memzero(f, sizeof(*f));
	f->cb.arg = f;
	f->request = r;
	f->fd = -1;
	cleanup->handler = file_free;
	last = ngx_http_map_uri_to_path(r, &f->path, &root, 0);
	if (!last)
		return NULL;
	f->path.len = (size_t)(last - f->path.data);
	ngx_http_set_ctx(r, f, ngx_http_flexsc_module);
	return f;
}

ngx_int_t file_handler(ngx_http_request_t *r)
{
	struct file *f = ngx_http_get_module_ctx(r, ngx_http_flexsc_module);
	ngx_http_core_loc_conf_t *core =
		ngx_http_get_module_loc_conf(r, ngx_http_core_module);

	if (f)
		return file_answer(f);
	if (!is_ordinary(r, core))
		return NGX_DECLINED;
	f = file_create(r);
	if (!f)
		return NGX_DECLINED;
	turn.requests++;
	if (core->open_file_cache ? file_open_cached(f, core) : file_open(f))
		return file_wait(f);
	return file_answer(f);
}
