/* SPDX-License-Identifier: MIT */
/*
 * The request that llhttp finds in a client's bytes. Pure functions on the
 * caller's memory.
 *
 * The head stays in one piece while it is parsed, so its parts are stored as
 * offsets and not copied. Bytes of the body are counted and discarded. llhttp
 * pauses behind each request, so pipelined requests are answered one after the
 * other.
 *
 *	IDLE -> HEAD	the first byte that isn't an empty line
 *	HEAD -> BODY	the head is complete, and announces a body
 *	HEAD, BODY -> READY	the request is complete
 *	any -> status	it breaks the rules or a limit; nothing more is read
 */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "request.h"

static const struct {
	const char *name;
	size_t length;
} names[HEADER_NAMES] = {
#define NAME(text) { text, sizeof(text) - 1 }
	[HEADER_HOST]			= NAME("Host"),
	[HEADER_RANGE]			= NAME("Range"),
	[HEADER_IF_RANGE]		= NAME("If-Range"),
	[HEADER_IF_MATCH]		= NAME("If-Match"),
	[HEADER_IF_NONE_MATCH]		= NAME("If-None-Match"),
	[HEADER_IF_MODIFIED_SINCE]	= NAME("If-Modified-Since"),
	[HEADER_IF_UNMODIFIED_SINCE]	= NAME("If-Unmodified-Since"),
	[HEADER_EXPECT]			= NAME("Expect"),
	[HEADER_TRANSFER_ENCODING]	= NAME("Transfer-Encoding"),
	[HEADER_ACCEPT_ENCODING]	= NAME("Accept-Encoding"),
#undef NAME
};

static int refuse(struct request *r, int status)
{
	r->status = status;
	return HPE_USER;
}

/*
 * Extend "span", which may have begun in an earlier call, by "length" bytes at
 * "at".
 */
static void extend(const struct request *r, struct span *span, const char *at,
		   size_t length)
{
	if (span->at == 0)
		span->at = at - r->head;
	span->length = at + length - r->head - span->at;
}

static int on_begin(llhttp_t *parser)
{
	struct request *r = parser->data;

	r->state = REQUEST_HEAD;
	return 0;
}

static int on_target(llhttp_t *parser, const char *at, size_t length)
{
	struct request *r = parser->data;

	extend(r, &r->target, at, length);
	return 0;
}

/* Skip trailers, which follow the body: their bytes aren't kept. */
static int on_name(llhttp_t *parser, const char *at, size_t length)
{
	struct request *r = parser->data;

	if (r->state == REQUEST_HEAD)
		extend(r, &r->name, at, length);
	return 0;
}

static int on_name_complete(llhttp_t *parser)
{
	struct request *r = parser->data;
	const char *name = r->head + r->name.at;
	size_t length = r->name.length;
	unsigned int i;

	if (r->state != REQUEST_HEAD)
		return 0;
	/*
	 * Refuse "Content-Length :", by which requests are smuggled past
	 * proxies.
	 */
	if (length == 0 || name[length - 1] == ' ')
		return refuse(r, 400);
	for (i = 0; i < HEADERS; i++)
		if (length == names[i].length &&
		    strncasecmp(name, names[i].name, length) == 0)
			break;
	r->name = (struct span){ 0 };
	r->current = i;
	if (i < HEADERS) {
		r->header[i] = (struct span){ 0 };
		r->count[i] += r->count[i] < 2;
	}
	return 0;
}

static int on_value(llhttp_t *parser, const char *at, size_t length)
{
	struct request *r = parser->data;

	if (r->current < HEADERS)
		extend(r, &r->header[r->current], at, length);
	return 0;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* The value from p to end, without surrounding blanks. */
static const char *trimmed(const char *p, const char *end, size_t *length)
{
	while (p < end && is_blank(*p))
		p++;
	while (p < end && is_blank(end[-1]))
		end--;
	*length = end - p;
	return p;
}

/* Trim the blanks around the complete values. */
static void trim_values(struct request *r)
{
	for (unsigned int i = 0; i < HEADERS; i++) {
		const char *value = r->head + r->header[i].at;
		size_t length = r->header[i].length;

		value = trimmed(value, value + length, &length);
		r->header[i] = (struct span){ value - r->head, length };
	}
}

static bool chunked(const struct request *r)
{
	size_t length;
	const char *value = request_header(r, r->head, HEADER_TRANSFER_ENCODING,
					   &length);

	return value && length == 7 && strncasecmp(value, "chunked", 7) == 0;
}

/* Check the rules of HTTP that llhttp doesn't check, and the limits. */
static int check_head(struct request *r)
{
	const llhttp_t *parser = &r->parser;

	if (parser->http_major != 1)
		return 505;
	if (parser->http_minor >= 1 && r->count[HEADER_HOST] != 1)
		return 400;
	if (r->count[HEADER_TRANSFER_ENCODING] && !chunked(r))
		return 501;
	if (parser->content_length > r->limits->body)
		return 413;
	return 0;
}

static int on_head_complete(llhttp_t *parser)
{
	struct request *r = parser->data;
	int status;

	r->current = HEADERS;
	r->method = parser->method;
	r->minor = parser->http_minor;
	r->keep_alive = llhttp_should_keep_alive(parser);
	trim_values(r);
	status = check_head(r);
	if (status)
		return refuse(r, status);
	/* Never switch to another protocol. */
	parser->upgrade = 0;
	if (!parser->content_length && !(parser->flags & F_CHUNKED))
		return 0;
	r->state = REQUEST_BODY;
	if (r->count[HEADER_EXPECT]) {
		/*
		 * The client waits for "100 Continue" before it sends a body:
		 * answer without the body.
		 */
		r->state = REQUEST_READY;
		r->keep_alive = false;
		r->unread = true;
	}
	/* Pause, to find out where the head ends. */
	return HPE_PAUSED;
}

static int on_complete(llhttp_t *parser)
{
	struct request *r = parser->data;

	r->state = REQUEST_READY;
	return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
	.on_message_begin = on_begin,
	.on_url = on_target,
	.on_header_field = on_name,
	.on_header_field_complete = on_name_complete,
	.on_header_value = on_value,
	.on_headers_complete = on_head_complete,
	.on_message_complete = on_complete,
};

void request_init(struct request *r, const struct limits *limits)
{
	*r = (struct request){ .limits = limits };
	llhttp_init(&r->parser, HTTP_REQUEST, &settings);
	r->parser.data = r;
}

/* The HTTP status for an error of llhttp. */
static int status_of(const struct request *r, llhttp_errno_t error)
{
	/*
	 * A callback that refuses the request sets the status. llhttp's error
	 * then only shows which callback it was.
	 */
	if (r->status)
		return r->status;
	switch (error) {
	case HPE_INVALID_METHOD:
		/*
		 * Distinguish an unknown method from something that isn't HTTP
		 * at all.
		 */
		return isalpha((unsigned char)*r->parser.error_pos) ? 501 : 400;
	case HPE_INVALID_TRANSFER_ENCODING:
		/*
		 * llhttp 9 also reports this error if a Content-Length precedes
		 * the Transfer-Encoding: such a request is malformed.
		 */
		return r->parser.flags & F_CONTENT_LENGTH ? 400 : 501;
	case HPE_INVALID_VERSION:
	case HPE_PAUSED_H2_UPGRADE:
		return 505;
	default:
		return 400;
	}
}

/*
 * Returns how many of the first n bytes are empty lines, which the parser skips
 * in front of a request. If empty lines came alone, the next input begins after
 * them.
 */
static size_t empty_lines(const struct request *r, size_t n)
{
	size_t i = 0;

	while (i < n && (r->head[i] == '\r' || r->head[i] == '\n'))
		i++;
	return i;
}

/* Does the request exceed a limit? n bytes from head on have been received. */
static int check_size(const struct request *r, size_t n)
{
	size_t head = r->length;

	if (r->state == REQUEST_HEAD)
		head = n;
	if (head > r->limits->head && head - empty_lines(r, head) > r->limits->head)
		return r->target.length > r->limits->head / 2 ? 414 : 431;
	return r->body > r->limits->body ? 413 : 0;
}

int request_parse(struct request *r, const char *head, size_t from, size_t to,
		  size_t *used)
{
	llhttp_errno_t error;
	size_t at = from;

	r->head = head;
	for (;;) {
		error = llhttp_execute(&r->parser, head + at, to - at);
		*used = error ? (size_t)(r->parser.error_pos - head) : to;
		if (r->length)
			r->body += *used - at;
		at = *used;
		if (error != HPE_PAUSED)
			break;
		if (!r->length)
			r->length = at;
		if (r->state == REQUEST_READY)
			break;
		llhttp_resume(&r->parser);
	}
	if (error && error != HPE_PAUSED)
		r->status = status_of(r, error);
	else
		r->status = check_size(r, at);
	r->unread |= r->status != 0;
	return r->status ? r->status : (int)r->state;
}

const char *request_next_header(const struct request *r, const char *head,
				enum header header, size_t *at, size_t *length)
{
	const char *end = head + r->length, *line = head + *at, *next;
	size_t name = names[header].length;

	for (; line < end; line = next) {
		next = memchr(line, '\n', end - line);
		if (!next)
			return NULL;
		*at = ++next - head;
		if ((size_t)(next - line) > name && line[name] == ':' &&
		    strncasecmp(line, names[header].name, name) == 0) {
			end = next - 1;
			if (end[-1] == '\r')
				end--;
			return trimmed(line + name + 1, end, length);
		}
	}
	return NULL;
}
