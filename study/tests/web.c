/* SPDX-License-Identifier: MIT */
/*
 * The example web servers' core, with a driver that makes no system call:
 * files, clients and descriptors are arrays, and each call may be interrupted,
 * done in part, or fail. Several connections go on by turns, on two threads'
 * counters and clocks.
 *
 * A plain driver's calls are whole and don't fail. Its answers are compared
 * with the table asks[]. The answers of all other drivers must be equal to the
 * plain driver's byte for byte, or a beginning of these where the connection
 * was cut.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "tests/harness/harness.h"
#include "study/servers/webserver/web.h"

#define SOCKET		500	/* the first client's */
#define ROOT		499
#define FIRST_FD	1000
#define FDS		64
#define BIG		200001
#define CLIENTS		4
#define SCRIPT		6	/* requests of a client at most */
#define INPUT		(SCRIPT * 41000)
#define OUTPUT		(SCRIPT * (BIG + 1000))

/* Files. */

static const struct name {
	const char *name;
	unsigned int mode;
	uint64_t size;
} names[] = {
	{ "small", S_IFREG, 100 },
	{ "part", S_IFREG, WEB_FIRST },
	{ "more", S_IFREG, WEB_FIRST + 1 },
	{ "big", S_IFREG, BIG },
	{ "empty", S_IFREG, 0 },
	{ "folder", S_IFDIR, 0 },
	{ "folder/index.html", S_IFREG, 5 },
	{ "pipe", S_IFIFO, 0 },
};

/* The size at which a file ends, though statx() has told another. */
static uint64_t shrunk = UINT64_MAX;

static const struct name *name_find(const char *name)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(names[i].name, name))
			return &names[i];
	return NULL;
}

static char byte_at(const struct name *name, uint64_t at)
{
	return (char)(name->name[0] + at % 251 + at / 4096);
}

/* Descriptors. */

static const struct name *open_files[FDS];
static unsigned int opened;

static const struct name *file_of(uint64_t fd)
{
	CHECK(fd >= FIRST_FD && fd < FIRST_FD + FDS);
	CHECK(open_files[fd - FIRST_FD]);
	return open_files[fd - FIRST_FD];
}

static int64_t open_name(const char *name)
{
	const struct name *found = name_find(name);

	if (!found)
		return !strncmp(name, "small/", 6) ? -ENOTDIR : -ENOENT;
	for (int i = 0; i < FDS; i++) {
		if (open_files[i])
			continue;
		open_files[i] = found;
		opened++;
		return FIRST_FD + i;
	}
	return -EMFILE;
}

/* Requests, and a plain driver's answers. */

#define HOST	" HTTP/1.1\r\nHost: a\r\n"

static const struct ask {
	const char *text;
	int status;
	uint64_t length;	/* of the body, or of a message if 0 */
	uint64_t first;
	bool last;		/* the connection ends with the answer */
	unsigned int filler;	/* bytes of a header or body, behind the text */
} asks[] = {
	{ "GET /small" HOST "\r\n", .status = 200, .length = 100 },
	{ "HEAD /small" HOST "\r\n", .status = 200 },
	{ "GET /part" HOST "\r\n", .status = 200, .length = WEB_FIRST },
	{ "GET /more" HOST "\r\n", .status = 200, .length = WEB_FIRST + 1 },
	{ "GET /big" HOST "\r\n", .status = 200, .length = BIG },
	{ "HEAD /big" HOST "\r\n", .status = 200 },
	{ "GET /empty" HOST "\r\n", .status = 200 },
	{ "GET /folder/" HOST "\r\n", .status = 200, .length = 5 },
	{ "GET /folder?x=1" HOST "\r\n", .status = 301 },
	{ "GET /big" HOST "Range: bytes=7-150000\r\n\r\n",
	  .status = 206, .length = 149994, .first = 7 },
	{ "GET /big" HOST "Range: bytes=-20\r\n\r\n",
	  .status = 206, .length = 20, .first = BIG - 20 },
	{ "GET /small" HOST "Range: bytes=100-\r\n\r\n", .status = 416 },
	{ "GET /small" HOST "If-None-Match: *\r\n\r\n", .status = 304 },
	{ "GET /none" HOST "\r\n", .status = 404 },
	{ "GET /small/" HOST "\r\n", .status = 404 },
	{ "GET /pipe" HOST "\r\n", .status = 403 },
	{ "GET /../small" HOST "\r\n", .status = 403 },
	{ "GET /%zz" HOST "\r\n", .status = 400 },
	{ "POST /small" HOST "Content-Length: 5\r\n\r\nhello", .status = 405 },
	{ "POST /small" HOST "Content-Length: 40004\r\n\r\n",
	  .status = 405, .filler = 40000 },
	{ "GET /small" HOST "Transfer-Encoding: chunked\r\n\r\n"
	  "3\r\nabc\r\n0\r\n\r\n",
	  .status = 200, .length = 100 },
	{ "GET /small HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
	  .status = 200, .length = 100 },
	{ "\r\nGET /small" HOST "\r\n", .status = 200, .length = 100 },
	{ "GET /small" HOST "X: ",
	  .status = 200, .length = 100, .filler = 15000 },
	{ "GET /small" HOST "X: ",
	  .status = 431, .last = true, .filler = 20000 },
	{ "GET /more HTTP/1.0\r\n\r\n",
	  .status = 200, .length = WEB_FIRST + 1, .last = true },
	{ "GET /small" HOST "Connection: close\r\n\r\n",
	  .status = 200, .length = 100, .last = true },
	{ "GET /small" HOST "Content-Length: 9999999\r\n\r\n",
	  .status = 413, .last = true },
	{ "GET /small HTTP/1.1\r\n\r\n", .status = 400, .last = true },
	{ "\026\003\001\002 rubbish\r\n\r\n", .status = 400, .last = true },
};

#define ASKS	(sizeof(asks) / sizeof(asks[0]))

static size_t ask_write(const struct ask *ask, char *to)
{
	size_t length = strlen(ask->text);

	memcpy(to, ask->text, length);
	if (!ask->filler)
		return length;
	memset(to + length, 'x', ask->filler);
	memcpy(to + length + ask->filler, "\r\n\r\n", 4);
	return length + ask->filler + 4;
}

/* Clients, and the manner in which a client's calls go. */

struct manner {
	bool parts;		/* calls are interrupted, or done in part */
	unsigned int cut;	/* this call on the socket fails; 0: none */
	int error;		/* -errno of that call */
	unsigned int failing;	/* one in so many calls on files fails; or 0 */
};

struct client {
	struct web_connection web;
	struct web_call call;
	bool over;
	bool failed;			/* a call failed, but not by EINTR */
	struct manner manner;
	unsigned int steps;
	unsigned int script[SCRIPT];
	unsigned int requests;
	size_t input, input_end;
	uint64_t answers;		/* so many have begun */
	size_t at[SCRIPT + 1];		/* where answers begin in output */
	size_t output_end;
	char in[INPUT];
	char output[OUTPUT];
};

static struct client room[CLIENTS + 1], *clients[CLIENTS];
static struct client *const plain = &room[CLIENTS];	/* with a plain driver */
static struct web web;
static struct files files;
static struct web_thread threads[2];
static bool seen[WEB_OVER + 1];

static void client_write(struct client *c)
{
	c->input = c->input_end = 0;
	for (unsigned int i = 0; i < c->requests; i++)
		c->input_end += ask_write(&asks[c->script[i]],
					  c->in + c->input_end);
}

static void client_begin(struct client *c, unsigned int number)
{
	memset(&c->web, 0xa5, sizeof(c->web));
	c->over = c->failed = false;
	c->steps = 0;
	c->answers = 0;
	c->output_end = 0;
	client_write(c);
	web_begin(&c->web, &web, &threads[0], SOCKET + (int)number);
}

static size_t some(const struct client *c, size_t n)
{
	if (!c->manner.parts || n < 2)
		return n;
	if (test_random() % 4)
		return 1 + test_random() % n;
	return 1 + test_random() % (n < 16 ? n : 16);
}

/* Memory that a call of the core names: it has to be the connection's own. */
static char *own(struct client *c, uint64_t address, size_t length)
{
	char *p = (char *)(uintptr_t)address;

	CHECK(p >= (char *)&c->web && length <= sizeof(c->web));
	CHECK(p + length <= (char *)(&c->web + 1));
	return p;
}

/* The answer that these bytes belong to has begun. */
static void output(struct client *c, const char *bytes, size_t length)
{
	CHECK(c->output_end + length <= sizeof(c->output));
	memcpy(c->output + c->output_end, bytes, length);
	c->output_end += length;
}

static int64_t make_receive(struct client *c)
{
	size_t n = c->call.args[2], left = c->input_end - c->input;
	char *to = own(c, c->call.args[1], n);

	CHECK(n > 0);
	if (!left)
		return 0;
	n = some(c, n < left ? n : left);
	memcpy(to, c->in + c->input, n);
	c->input += n;
	return (int64_t)n;
}

static int64_t make_send(struct client *c)
{
	size_t n = some(c, c->call.args[2]);

	CHECK(n > 0);
	output(c, own(c, c->call.args[1], n), n);
	return (int64_t)n;
}

static int64_t make_sendfile(struct client *c)
{
	const struct name *name = file_of(c->call.args[1]);
	uint64_t *place = (void *)own(c, c->call.args[2], sizeof(*place));
	uint64_t end = name->size < shrunk ? name->size : shrunk;
	size_t n = some(c, c->call.args[3]);

	CHECK(n > 0);
	for (size_t i = 0; i < n; i++, ++*place) {
		char byte = byte_at(name, *place);

		if (*place >= end)
			return (int64_t)i;
		output(c, &byte, 1);
	}
	return (int64_t)n;
}

static int64_t make_statx(struct client *c)
{
	const struct name *name = file_of(c->call.args[0]);
	struct statx *stx = (void *)own(c, c->call.args[4], sizeof(*stx));

	*stx = (struct statx){
		.stx_mode = (uint16_t)(name->mode | 0644),
		.stx_size = name->size,
		.stx_ino = (uint64_t)(name - names) + 1,
	};
	return 0;
}

static int64_t make_pread(struct client *c)
{
	const struct name *name = file_of(c->call.args[0]);
	uint64_t at = c->call.args[3];
	uint64_t end = name->size < shrunk ? name->size : shrunk;
	size_t n = some(c, c->call.args[2]), i;
	char *to = own(c, c->call.args[1], n);

	CHECK(n > 0);
	for (i = 0; i < n && at + i < end; i++)
		to[i] = byte_at(name, at + i);
	return (int64_t)i;
}

static int64_t make_close(uint64_t fd)
{
	if (fd >= SOCKET && fd < SOCKET + CLIENTS)
		return 0;
	file_of(fd);
	open_files[fd - FIRST_FD] = NULL;
	opened--;
	return 0;
}

static int64_t make(struct client *c)
{
	const uint64_t *a = c->call.args;

	switch (c->call.nr) {
	case SYS_recvfrom:
		return make_receive(c);
	case SYS_sendto:
		return make_send(c);
	case SYS_sendfile:
		return make_sendfile(c);
	case SYS_openat2:
		CHECK_EQ(a[0], ROOT);
		return open_name(own(c, a[1], 1));
	case SYS_statx:
		return make_statx(c);
	case SYS_pread64:
		return make_pread(c);
	case SYS_shutdown:
		return 0;
	case SYS_close:
		return make_close(a[0]);
	default:
		test_fail(__FILE__, __LINE__, "call %u", c->call.nr);
	}
}

static const int file_errors[] = {
	-ENOENT, -EACCES, -EMFILE, -ENOMEM, -EIO, -EAGAIN, -ELOOP, -ENOSYS,
};

/* The -errno that the client's manner lets its call fail with; 0: none. */
static int fault(struct client *c)
{
	struct manner *m = &c->manner;
	bool on_socket = c->call.kind <= WEB_SEND;

	if (m->parts && c->call.kind != WEB_CLOSE && test_random() % 8 == 0)
		return -EINTR;
	if (m->parts && c->call.kind == WEB_CLOSE && test_random() % 8 == 0)
		return c->call.nr == SYS_close ? -EINTR : -ENOTCONN;
	if (m->parts && c->call.nr == SYS_openat2 && test_random() % 8 == 0)
		return -EAGAIN;
	if (on_socket && m->cut && !--m->cut) {
		/* A socket that was reset fails again, a late one doesn't. */
		m->cut = m->error != -ETIME;
		c->failed = true;
		return m->error;
	}
	if (c->call.kind == WEB_FILE && m->failing &&
	    test_random() % m->failing == 0) {
		c->failed = true;
		return file_errors[test_random() % (sizeof(file_errors) /
						    sizeof(int))];
	}
	return 0;
}

static void check_repeats(struct client *c)
{
	struct web_call again;

	memset(&again, 0x5a, sizeof(again));
	CHECK(web_next(&c->web, &again));
	CHECK_EQ(again.kind, c->call.kind);
	CHECK_EQ(again.nr, c->call.nr);
	CHECK(!memcmp(again.args, c->call.args, sizeof(again.args)));
}

/* If a request has been counted, its answer begins with the next output. */
static void mark_answer(struct client *c, uint64_t requests)
{
	if (threads[0].counts.requests + threads[1].counts.requests == requests)
		return;
	CHECK(c->answers < SCRIPT);
	c->at[c->answers++] = c->output_end;
}

/* A request's time begins with its first byte. */
static void check_time(const struct web_connection *web)
{
	CHECK(web->state != WEB_READING || web->request.state != REQUEST_IDLE ||
	      !web->begun);
}

/* Make one call of the client's connection, or none. False: it is over. */
static bool step(struct client *c)
{
	uint64_t requests;
	int64_t ret;

	c->web.thread = &threads[test_random() % 2];
	seen[c->web.state] = true;
	CHECK(++c->steps < 1000000);
	if (!web_next(&c->web, &c->call)) {
		seen[WEB_OVER] = c->over = true;
		return false;
	}
	if (c->manner.parts && test_random() % 4 == 0) {
		check_repeats(c);
		return true;
	}
	CHECK_EQ(c->call.patience > 0,
		 c->call.kind <= WEB_SEND || c->call.nr == SYS_openat2);
	/* The web servers map no file; the cache would make munmap(). */
	CHECK(!c->web.file || !c->web.file->contents);
	ret = fault(c);
	/* A descriptor is closed whatever result close() has. */
	if (!ret || c->call.nr == SYS_close)
		ret = ret ? (make(c), ret) : make(c);
	requests = threads[0].counts.requests + threads[1].counts.requests;
	web_done(&c->web, ret);
	mark_answer(c, requests);
	check_time(&c->web);
	return true;
}

/* All clients by turns, until all are over. */
static void run_all(unsigned int n)
{
	unsigned int left = n;

	while (left) {
		struct client *c = clients[test_random() % n];

		if (!c->over && !step(c))
			left--;
	}
}

static void run_plain(struct client *c)
{
	c->manner = (struct manner){ 0 };
	client_begin(c, 0);
	while (step(c))
		;
}

/* Make the output independent of the time when it was written. */
static void hide_dates(struct client *c)
{
	static const char word[] = "\r\nDate: ";
	char *p = c->output, *end = p + c->output_end;

	while ((p = memmem(p, (size_t)(end - p), word, strlen(word)))) {
		p += strlen(word);
		for (int i = 0; i < CLOCK_DATE_LEN && p < end; i++)
			*p++ = '-';
	}
}

/* Begin a test: settings of all connections, a cache of files or none. */
static void begin(bool reads, unsigned int cache)
{
	files_init(&files, cache);
	web = (struct web){
		.root = ROOT,
		.reads = reads,
		.timeout = 1000 * CLOCK_SECOND,
		.limits = { .head = WEB_HEAD_MAX, .body = 1 << 20 },
		.files = &files,
	};
	mime_load();
	for (int i = 0; i < CLIENTS; i++) {
		clients[i] = &room[i];
		room[i].over = false;
	}
}

/* End a test: no file is open but those that the cache keeps. */
static void end(void)
{
	CHECK_EQ(opened, files.cache.count);
}

static void random_script(struct client *c)
{
	c->requests = 1 + test_random() % SCRIPT;
	for (unsigned int i = 0; i < c->requests; i++)
		c->script[i] = test_random() % ASKS;
}

/* Answers. */

static size_t answer_end(const struct client *c, uint64_t i)
{
	return i + 1 < c->answers ? c->at[i + 1] : c->output_end;
}

static uint64_t number_behind(const char *text, const char *word)
{
	const char *found = strstr(text, word);

	return found ? strtoull(found + strlen(word), NULL, 10) : UINT64_MAX;
}

static void check_body(const struct ask *ask, const char *body)
{
	const char *slash = strchr(ask->text, '/') + 1;
	size_t length = strcspn(slash, " ?");
	char name[64] = "";

	memcpy(name, slash, length);
	if (length && name[length - 1] == '/')
		strcat(name, "index.html");
	for (uint64_t i = 0; i < ask->length; i++)
		CHECK(body[i] == byte_at(name_find(name), ask->first + i));
}

/* Is an answer what the table says? */
static void check_answer(struct client *c, uint64_t i)
{
	const struct ask *ask = &asks[c->script[i]];
	char *text = c->output + c->at[i], *end = c->output + answer_end(c, i);
	char *body = memmem(text, (size_t)(end - text), "\r\n\r\n", 4);

	CHECK(body);
	*body = '\0';
	CHECK_EQ(number_behind(text, "HTTP/1.1 "), ask->status);
	CHECK_EQ(!!strstr(text, "Connection: close"), ask->last);
	if (ask->length) {
		CHECK_EQ(number_behind(text, "Content-Length: "), ask->length);
		CHECK_EQ(end - body - 4, ask->length);
		check_body(ask, body + 4);
	}
	*body = '\r';
}

/* There is one answer for each request, up to the connection's last. */
static void check_plain(void)
{
	uint64_t n = 0;

	while (n < plain->requests && !asks[plain->script[n++]].last)
		;
	CHECK_EQ(plain->answers, n);
	for (uint64_t i = 0; i < n; i++)
		check_answer(plain, i);
}

static const int told[] = { 403, 404, 408, 500, 503 };

/* Is the text an error's message; or, if it is cut, a message's beginning? */
static bool is_message(const char *text, size_t length, bool cut)
{
	char copy[1024] = "";
	const char *body;
	bool known = false;

	if (length >= sizeof(copy))
		return false;
	memcpy(copy, text, length);
	for (size_t i = 0; i < sizeof(told) / sizeof(int); i++)
		known |= number_behind(copy, "HTTP/1.1 ") == (uint64_t)told[i];
	body = strstr(copy, "\r\n\r\n");
	if (!known || !body)
		return cut && (known || length < strlen("HTTP/1.1 nnn"));
	return cut || !body[4] ||
	       strlen(body + 4) == number_behind(copy, "Content-Length: ");
}

static void check_same(const struct client *c)
{
	CHECK_EQ(c->answers, plain->answers);
	CHECK_EQ(c->output_end, plain->output_end);
	CHECK(!memcmp(c->output, plain->output, c->output_end));
}

/* Is answer i the plain driver's, or, if it is cut, a beginning of that? */
static bool is_plain(const struct client *c, uint64_t i, size_t length, bool cut)
{
	size_t right = i < plain->answers ? answer_end(plain, i) - plain->at[i] : 0;

	return (cut ? length <= right : length == right) &&
	       !memcmp(c->output + c->at[i], plain->output + plain->at[i], length);
}

/* Compare a client's answers with the plain driver's. */
static void check_answers(const struct client *c)
{
	bool whole = true;

	if (!c->failed) {
		check_same(c);
		return;
	}
	for (uint64_t i = 0; i < c->answers; i++) {
		size_t length = answer_end(c, i) - c->at[i];

		CHECK(whole);
		whole = is_plain(c, i, length, false) ||
			is_message(c->output + c->at[i], length, false);
		CHECK(whole || is_plain(c, i, length, true) ||
		      is_message(c->output + c->at[i], length, true));
	}
	/* Only a cut answer ends a connection before the last request. */
	if (c->manner.failing && whole)
		CHECK_EQ(c->answers, plain->answers);
}

/* Let the plain driver answer the client's requests. */
static void plain_answers(const struct client *c)
{
	plain->requests = c->requests;
	memcpy(plain->script, c->script, sizeof(c->script));
	run_plain(plain);
	check_plain();
	hide_dates(plain);
}

TEST(each_request_has_its_answer)
{
	for (unsigned int cache = 0; cache < 2; cache++) {
		begin(cache, cache);
		for (unsigned int i = 0; i < ASKS; i++) {
			plain->requests = 1;
			plain->script[0] = i;
			run_plain(plain);
			check_plain();
		}
		end();
		/* Forget the files that the cache has kept open. */
		memset(open_files, 0, sizeof(open_files));
		opened = 0;
	}
}

static void run_round(const struct manner *manner)
{
	unsigned int n = 1 + test_random() % CLIENTS;

	for (unsigned int i = 0; i < n; i++) {
		struct client *c = clients[i];

		random_script(c);
		c->manner = *manner;
		if (c->manner.error)
			c->manner.cut = 1 + test_random() % 40;
		client_begin(c, i);
	}
	run_all(n);
	for (unsigned int i = 0; i < n; i++)
		hide_dates(clients[i]);
}

static void run_rounds(const struct manner *manner,
		       void (*check)(const struct client *))
{
	const unsigned long rounds = MANY(test_parameter("rounds", 2000));

	for (unsigned long round = 0; round < rounds; round++) {
		run_round(manner);
		for (int i = 0; i < CLIENTS; i++) {
			if (!clients[i]->over)
				continue;
			plain_answers(clients[i]);
			check(clients[i]);
			clients[i]->over = false;
		}
		CHECK_EQ(opened, files.cache.count);
	}
	end();
}

TEST_LIMIT(parts_and_interruptions_change_nothing, 60)
{
	begin(false, 0);
	run_rounds(&(struct manner){ .parts = true }, check_same);
}

TEST_LIMIT(nor_where_files_are_read, 60)
{
	begin(true, 0);
	run_rounds(&(struct manner){ .parts = true }, check_same);
}

TEST_LIMIT(nor_with_a_cache, 60)
{
	begin(false, 2);
	run_rounds(&(struct manner){ .parts = true }, check_same);
}

TEST_LIMIT(a_reset_cuts_an_answer, 60)
{
	begin(false, 3);
	run_rounds(&(struct manner){ .parts = true, .error = -ECONNRESET },
		   check_answers);
}

TEST_LIMIT(patience_that_ends_cuts_or_says_so, 60)
{
	begin(true, 0);
	run_rounds(&(struct manner){ .parts = true, .error = -ETIME },
		   check_answers);
}

TEST_LIMIT(a_file_that_fails_is_told_or_cuts, 60)
{
	begin(true, 2);
	run_rounds(&(struct manner){ .parts = true, .failing = 5 },
		   check_answers);
}

static void plain_script(const char *text, unsigned int requests)
{
	plain->requests = requests;
	for (unsigned int i = 0; i < ASKS; i++)
		for (unsigned int j = 0; j < requests; j++)
			if (!strcmp(asks[i].text, text))
				plain->script[j] = i;
}

/* A file that has become shorter than statx() said. */
static void run_shrunk(bool reads, const char *text, uint64_t size)
{
	begin(reads, 0);
	shrunk = size;
	plain_script(text, 1);
	run_plain(plain);
	plain->output[plain->output_end] = '\0';
	CHECK_EQ(opened, 0);
}

TEST(a_file_that_shrinks_early_is_shorter)
{
	run_shrunk(false, "GET /small" HOST "\r\n", 30);
	CHECK_EQ(number_behind(plain->output, "HTTP/1.1 "), 200);
	CHECK_EQ(number_behind(plain->output, "Content-Length: "), 30);
	run_shrunk(true, "GET /big" HOST "\r\n", 0);
	CHECK_EQ(number_behind(plain->output, "HTTP/1.1 "), 200);
	CHECK_EQ(number_behind(plain->output, "Content-Length: "), 0);
	run_shrunk(true, "GET /big" HOST "Range: bytes=7-150000\r\n\r\n", 9);
	CHECK_EQ(number_behind(plain->output, "HTTP/1.1 "), 500);
}

TEST(a_file_that_shrinks_later_cuts_the_answer)
{
	for (int reads = 0; reads < 2; reads++) {
		size_t head;

		run_shrunk(reads, "GET /big" HOST "\r\n", 100000);
		CHECK_EQ(number_behind(plain->output, "Content-Length: "), BIG);
		head = (size_t)(strstr(plain->output, "\r\n\r\n") + 4 -
				plain->output);
		CHECK(plain->output_end > head + WEB_FIRST);
		CHECK(plain->output_end <= head + 100000);
	}
}

TEST(a_request_that_takes_too_long_is_told)
{
	begin(false, 0);
	plain_script("GET /small" HOST "\r\n", 1);
	plain->manner = (struct manner){ .cut = 2, .error = -ETIME };
	client_begin(plain, 0);
	plain->input_end -= 2;
	while (step(plain))
		;
	plain->output[plain->output_end] = '\0';
	CHECK_EQ(number_behind(plain->output, "HTTP/1.1 "), 408);
	CHECK(strstr(plain->output, "Connection: close"));
	end();
}

/*
 * A client that still sends would lose the answer, were its connection closed.
 */
TEST(the_rest_of_a_refused_request_is_awaited)
{
	begin(false, 0);
	plain_script("GET /small HTTP/1.1\r\n\r\n", 1);
	run_plain(plain);
	CHECK(seen[WEB_SHUTTING] && seen[WEB_LINGERING]);
	end();
}

/* The tree changes so many times under the lookup of each of two requests. */
static void run_changing(unsigned int times)
{
	unsigned int left = 0;
	int64_t ret;

	begin(false, 0);
	plain_script("GET /small" HOST "\r\n", 2);
	client_begin(plain, 0);
	while (web_next(&plain->web, &plain->call)) {
		uint64_t requests = threads[0].counts.requests;

		if (plain->call.nr == SYS_openat2 && left && left--)
			ret = -EAGAIN;
		else
			ret = make(plain);
		web_done(&plain->web, ret);
		if (threads[0].counts.requests != requests)
			left = times;
		mark_answer(plain, requests);
	}
	plain->output[plain->output_end] = '\0';
}

TEST(a_tree_that_changes_is_asked_again)
{
	run_changing(7);
	check_plain();
	end();
	run_changing(8);
	CHECK_EQ(plain->answers, 2);
	CHECK_EQ(number_behind(plain->output, "HTTP/1.1 "), 503);
	CHECK_EQ(number_behind(plain->output + plain->at[1], "HTTP/1.1 "), 503);
	end();
}

TEST(every_state_is_reached)
{
	begin(false, 1);
	for (unsigned int round = 0; round < 200; round++)
		run_round(&(struct manner){ .parts = true });
	for (int state = 0; state <= WEB_OVER; state++) {
		if (!seen[state])
			test_note("state %d", state);
		CHECK(seen[state]);
	}
	end();
}
