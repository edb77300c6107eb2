/* SPDX-License-Identifier: MIT */
/*
 * Fuzzes the server's handling of a client's bytes before it makes any system call
 * for them: the request, the path, ranges and conditions, and the head of the
 * response. One thread, no files.
 *
 * An input is one byte that selects how it is split into reads, and the bytes of a
 * connection. The whole input and the split one must have the same meaning.
 * Sanitizers detect invalid accesses. check() verifies the other invariants.
 *
 * Built with -fsanitize=fuzzer. libFuzzer replays the files that it is given.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/condition.h"
#include "http/encoding.h"
#include "http/path.h"
#include "http/request.h"
#include "http/response.h"

#define HEAD_MAX	2048	/* small, so that limits are reached often */
#define BODY_MAX	512
#define NAME_MAX_SIZE	512
#define RECORD_MAX	65536

#define check(what)							\
	do {								\
		if (!(what)) {						\
			fprintf(stderr, "%s:%d: violated: %s\n", __FILE__, \
				__LINE__, #what);			\
			abort();					\
		}							\
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct clock now;

/* The meaning of an input, as text to compare. */
struct record {
	size_t length;
	char text[RECORD_MAX];
};

static void note(struct record *record, const char *text, size_t length)
{
	if (length > sizeof(record->text) - record->length)
		return;
	memcpy(record->text + record->length, text, length);
	record->length += length;
}

static void note_number(struct record *record, uint64_t n)
{
	char digits[TEXT_DECIMAL_MAX + 1], *p = text_decimal(digits, n);

	*p++ = '\n';
	note(record, digits, p - digits);
}

static void check_path(const struct path *path)
{
	const char *p = path->name, *end = p + path->length;

	check(path->length > 0 && *end == '\0' && *p != '/');
	check(!memchr(p, '\0', path->length));
	for (; p < end; p += strcspn(p, "/") + 1) {
		size_t n = strcspn(p, "/");

		check(n > 0);
		check(n != 2 || memcmp(p, "..", 2) != 0);
	}
	check(end[-1] != '/');
}

static void try_path(const struct request *r, const char *head,
		     struct record *record)
{
	char name[NAME_MAX_SIZE], url[3 * NAME_MAX_SIZE], again[NAME_MAX_SIZE];
	struct path path, second;
	int status = path_resolve(&path, head + r->target.at,
				  r->target.length, name, sizeof(name), true);

	note_number(record, status);
	check(status == 0 || status == 400 || status == 403 || status == 414);
	if (status)
		return;
	check_path(&path);
	note(record, path.name, path.length);
	if (path.directory) {
		path_push_index(&path);
		check_path(&path);
		path_pop_index(&path);
		check(path.directory);
	}
	/* The path in a Location header leads to the same file. */
	url[0] = '/';
	status = path_resolve(&second, url,
			      path_encode(url + 1, path.name, path.length) -
				      url, again, sizeof(again), true);
	check(status == 0 || status == 414);
	check(status || strcmp(again, path.name) == 0);
}

static void try_file(const struct request *r, const char *head,
		     uint64_t size, struct record *record)
{
	char answer[RESPONSE_HEAD_MAX + 1], *body = answer + sizeof(answer) - 1;
	struct file file = { .fd = -1, .size = size, .modified = 784111777 };
	struct response response = {
		.clock = &now,
		.keep_alive = r->keep_alive,
		.minor = r->minor,
	};
	uint64_t first = 0, length = 0;
	char *begin, *p = file.headers;

	file.date_at = TEXT_PUT(p, "Last-Modified: ") - p;
	p = clock_date(p + file.date_at, file.modified);
	p = TEXT_PUT(p, "\r\nETag: ");
	file.etag_at = p - file.headers;
	p = TEXT_PUT(p, "\"1-2-3\"");
	file.etag_length = p - file_etag(&file);
	p = TEXT_PUT(p, "\r\n");
	file.headers_length = p - file.headers;

	response.status = condition_decide(r, head, &file, &now, &first,
					   &length);
	note_number(record, response.status);
	if (response.status == 200 || response.status == 206) {
		check(length <= size && first <= size - length);
		check(response.status == 200 || length > 0);
	} else {
		check(response.status == 304 || response.status == 412 ||
		      response.status == 416);
	}
	if (response.status == 412 || response.status == 416)
		return;
	begin = response_file(&response, body, &file, first, length);
	check(begin > answer && memcmp(begin, "HTTP/1.1 ", 9) == 0);
	check(memcmp(body - 4, "\r\n\r\n", 4) == 0);
	note(record, begin, body - begin);
}

static void try_message(const struct request *r, int status,
			struct record *record)
{
	char text[2 * RESPONSE_MESSAGE_MAX];
	const struct response_detail detail = { .size = 5 };
	struct response response = {
		.clock = &now,
		.status = status,
		.head_only = r->method == HTTP_HEAD,
	};
	char *end = response_message(&response, text, &detail);

	check(end <= text + RESPONSE_MESSAGE_MAX);
	/* The reads determine whether a limit or an error is reached first. */
	note(record, "refused", 7);
}

static void try_request(const struct request *r, const char *head,
			struct record *record)
{
	size_t empty = 0;

	while (head[empty] == '\r' || head[empty] == '\n')
		empty++;
	check(r->length - empty <= HEAD_MAX);
	check(r->target.at + r->target.length <= r->length);
	note_number(record, r->keep_alive);
	note_number(record, r->method);
	note_number(record, encoding_accepted(r, head));
	try_path(r, head, record);
	try_file(r, head, 0, record);
	try_file(r, head, 1024, record);
}

/*
 * A connection: requests one after the other, in reads of at most "step" bytes. Like
 * connection.c, it moves an incomplete request, and keeps nothing of a body.
 */
static void try_connection(const char *data, size_t size, size_t step,
			   struct record *record)
{
	const struct limits limits = { .head = HEAD_MAX, .body = BODY_MAX };
	struct request r;
	char *input = NULL;
	size_t kept = 0, at = 0;
	int rc = REQUEST_IDLE;

	request_init(&r, &limits);
	while (at < size && rc < 400) {
		size_t n = size - at < step ? size - at : step;
		/*
		 * Exactly as large as needed, so that reads beyond the end are
		 * detected.
		 */
		char *moved = malloc(kept + n);
		size_t used;

		check(moved);
		memcpy(moved, input ? input : "", input ? kept : 0);
		memcpy(moved + kept, data + at, n);
		free(input);
		input = moved;
		rc = request_parse(&r, input, kept, kept + n, &used);
		check(used >= kept && used <= kept + n);
		at += used - kept;
		kept = r.state == REQUEST_BODY ? r.length : used;
		if (rc == REQUEST_IDLE)
			kept = 0;
		if (rc == REQUEST_READY) {
			try_request(&r, input, record);
			if (r.unread || !r.keep_alive)
				break;
			request_init(&r, &limits);
			kept = 0;
		}
	}
	if (rc >= 400)
		try_message(&r, rc, record);
	free(input);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct record whole, split;
	const char *text = (const char *)data + 1;

	if (size < 2)
		return 0;
	clock_update(&now);
	whole.length = 0;
	split.length = 0;
	try_connection(text, size - 1, SIZE_MAX, &whole);
	try_connection(text, size - 1, 1 + data[0] % 64, &split);
	check(whole.length == split.length);
	check(memcmp(whole.text, split.text, whole.length) == 0);
	return 0;
}

/* The parts of requests: methods, targets, versions, headers, ends. */
static const char *const pieces[] = {
	"GET ", "HEAD ", "POST ", "OPTIONS ", "GET http://h", "BREW ", "get ",
	"/", "a", "b.txt", ".", "..", "%2e", "%2E%2e", "%2f", "%00", "%",
	"%zz", "%41", "?q=1", "#f", "*", "\\", ":", "\xc3\xa9",
	"aaaaaaaaaaaaaaaa",
	" HTTP/1.1\r\nHost: a\r\n",
	" HTTP/1.1\r\n", " HTTP/1.0\r\n", " HTTP/2.0\r\n", "\r\n",
	"Host: b\r\n", "Host : a\r\n", "Connection: close\r\n",
	"Connection: keep-alive\r\n", "Range: bytes=0-1\r\n",
	"Range: bytes=-5\r\n", "Range: bytes=1023-1024\r\n",
	"Range: bytes=1024-\r\n", "Range: bytes=-99999999999999999999\r\n",
	"Range: bytes=1-2,3-4\r\n", "Range: bytes= 0 - 1 \r\n",
	"If-Range: \"1-2-3\"\r\n", "If-None-Match: \"x\", W/\"1-2-3\"\r\n",
	"If-None-Match: *\r\n", "If-None-Match: \"\r\n",
	"If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n",
	"If-Modified-Since: Sunday, 06-Nov-94 08:49:36 GMT\r\n",
	"If-Modified-Since: Sun Nov  6 08:49:37 1994\r\n",
	"Accept-Encoding: br;q=0, gzip\r\n", "accept-encoding:*;q=0.",
	"Accept-Encoding: ,", ";q=1", ", br",
	"Expect: 100-continue\r\n", "Upgrade: h2c\r\n", "X: y\r\n z\r\n",
	"X:\r\n", ":\r\n", "\t\r\n",
	"X: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n",
	"\n", "\r\n\r\n",
	"Content-Length: 5\r\n\r\nhello",
	"Content-Length: 600\r\n\r\nhello", "Content-Length: -1\r\n\r\n",
	"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
	"Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nTrailer: t\r\n\r\n",
	"Transfer-Encoding: gzip\r\n\r\n",
};

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max,
			       unsigned int seed);

/*
 * Inserts one of these parts in half of the mutations, because random bytes seldom
 * form HTTP.
 */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max,
			       unsigned int seed)
{
	const size_t count = sizeof(pieces) / sizeof(*pieces);
	const char *piece = pieces[seed / 2 % count];
	size_t n = strlen(piece), at;

	if (seed % 2 || size + n > max || size == 0)
		return LLVMFuzzerMutate(data, size, max);
	at = 1 + seed / 1024 % size;
	memmove(data + at + n, data + at, size - at);
	memcpy(data + at, piece, n);
	return size + n;
}
