/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "http.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#define TOKEN	"!#$%&'*+-.^_`|~0123456789" \
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

struct text {
	const char *s;
	size_t n;
};

/* What a head's lines have said. */
struct head {
	bool http10, host, body;
	bool close, keep_alive;
};

static bool is(struct text text, const char *word)
{
	return text.n == strlen(word) && !memcmp(text.s, word, text.n);
}

static bool is_any_case(struct text text, const char *word)
{
	return text.n == strlen(word) && !strncasecmp(text.s, word, text.n);
}

static struct text trimmed(struct text t)
{
	while (t.n && (*t.s == ' ' || *t.s == '\t'))
		t.s++, t.n--;
	while (t.n && (t.s[t.n - 1] == ' ' || t.s[t.n - 1] == '\t'))
		t.n--;
	return t;
}

/* Take what is before the byte, and that byte, off the front. */
static bool split(struct text *rest, char at, struct text *front)
{
	const char *found = memchr(rest->s, at, rest->n);

	if (!found)
		return false;
	*front = (struct text){ rest->s, (size_t)(found - rest->s) };
	rest->n -= front->n + 1;
	rest->s = found + 1;
	return true;
}

static bool is_token(struct text t)
{
	for (size_t i = 0; i < t.n; i++)
		if (!t.s[i] || !strchr(TOKEN, t.s[i]))
			return false;
	return t.n > 0;
}

/* Of one line, which a bare CR or LF can't be in. */
static bool is_printable(struct text t, bool blanks)
{
	for (size_t i = 0; i < t.n; i++) {
		unsigned char c = (unsigned char)t.s[i];

		if (c == 0x7f || (c < ' ' && c != '\t') ||
		    (!blanks && (c == ' ' || c == '\t')))
			return false;
	}
	return true;
}

/* The size in KiB that a target names: 1 is "/", N is "/Nk"; 0: neither. */
static unsigned int page_of(struct text target)
{
	unsigned int kib = 0;

	if (is(target, "/"))
		return 1;
	if (target.n < 3 || target.n > 7 || target.s[0] != '/' ||
	    target.s[1] == '0' || target.s[target.n - 1] != 'k')
		return 0;
	for (size_t i = 1; i < target.n - 1; i++) {
		if (target.s[i] < '0' || target.s[i] > '9')
			return 0;
		kib = 10 * kib + (unsigned int)(target.s[i] - '0');
	}
	return kib;
}

static bool parse_request_line(struct text line, struct http_request *request,
			       struct head *head)
{
	struct text method, target;

	if (!split(&line, ' ', &method) || !split(&line, ' ', &target) ||
	    !is_token(method) || !target.n || !is_printable(target, false))
		return false;
	head->http10 = is(line, "HTTP/1.0");
	if (!head->http10 && !is(line, "HTTP/1.1"))
		return false;
	request->head = is(method, "HEAD");
	request->kib = page_of(target);
	if (!request->head && !is(method, "GET"))
		request->status = 501;
	else
		request->status = request->kib ? 200 : 404;
	return true;
}

static void parse_connection(struct text value, struct head *head)
{
	struct text word;

	do {
		if (!split(&value, ',', &word)) {
			word = value;
			value.n = 0;
		}
		word = trimmed(word);
		head->close |= is_any_case(word, "close");
		head->keep_alive |= is_any_case(word, "keep-alive");
	} while (value.n);
}

static bool parse_field(struct text line, struct head *head)
{
	struct text name;

	if (!split(&line, ':', &name) || !is_token(name) ||
	    !is_printable(line, true))
		return false;
	line = trimmed(line);
	if (is_any_case(name, "host")) {
		if (head->host)
			return false;
		head->host = true;
	} else if (is_any_case(name, "connection")) {
		parse_connection(line, head);
	} else if (is_any_case(name, "transfer-encoding") ||
		   (is_any_case(name, "content-length") && !is(line, "0"))) {
		head->body = true;
	}
	return true;
}

/* The head without the empty line; each of its lines ends in CR LF. */
static bool parse(struct text rest, struct http_request *request)
{
	struct head head = { };
	struct text line;
	bool first = true;

	while (split(&rest, '\n', &line)) {
		if (!line.n || line.s[--line.n] != '\r')
			return false;
		if (!(first ? parse_request_line(line, request, &head) :
			      parse_field(line, &head)))
			return false;
		first = false;
	}
	if (first || (!head.http10 && !head.host))
		return false;
	request->keep = request->status != 501 && !head.body && !head.close &&
			(!head.http10 || head.keep_alive);
	return true;
}

size_t http_room(struct http_in *in)
{
	if (in->begin) {
		memmove(in->buf, in->buf + in->begin, in->end - in->begin);
		in->end -= in->begin;
		in->seen -= in->begin;
		in->begin = 0;
	}
	return sizeof(in->buf) - in->end;
}

/* An empty line before a request is none of it. */
static void skip_empty(struct http_in *in)
{
	while (in->end - in->begin >= 2 &&
	       !memcmp(in->buf + in->begin, "\r\n", 2))
		in->begin += 2;
	if (in->seen < in->begin)
		in->seen = in->begin;
}

bool http_next(struct http_in *in, struct http_request *request)
{
	const char *begin, *found;
	struct text head;

	skip_empty(in);
	begin = in->buf + in->begin;
	found = memmem(in->buf + in->seen, in->end - in->seen, "\r\n\r\n", 4);
	if (!found && in->end - in->begin < sizeof(in->buf)) {
		/* Its first three bytes may have arrived. */
		if (in->end > in->seen + 3)
			in->seen = in->end - 3;
		return false;
	}
	*request = (struct http_request){ .status = 400 };
	if (!found)
		return true;
	head = (struct text){ begin, (size_t)(found + 2 - begin) };
	if (!parse(head, request))
		*request = (struct http_request){ .status = 400 };
	in->begin = in->seen = (size_t)(found + 4 - in->buf);
	return true;
}

static const char *reason(int status)
{
	switch (status) {
	case 200:
		return "OK";
	case 400:
		return "Bad Request";
	case 404:
		return "Not Found";
	default:
		return "Not Implemented";
	}
}

/* A line of text again and again, and the last one cut. */
void http_page(char *out, size_t size)
{
	static const char line[] = "A page that was in memory all the time.\n";

	for (size_t i = 0; i < size; i += sizeof(line) - 1) {
		size_t left = size - i;

		memcpy(out + i, line,
		       left < sizeof(line) - 1 ? left : sizeof(line) - 1);
	}
}

size_t http_head(const struct http_request *request, size_t page, char *out)
{
	return (size_t)sprintf(out,
		"HTTP/1.1 %d %s\r\nServer: example\r\n"
		"Content-Type: text/plain\r\nContent-Length: %zu\r\n"
		"Connection: %s\r\n\r\n", request->status,
		reason(request->status), page,
		request->keep ? "keep-alive" : "close");
}

size_t http_answer(const struct http_request *request, char *out)
{
	struct http_request mine = *request;
	size_t body, n;

	if (mine.status == 200 && mine.kib > 1)
		mine.status = 404;
	body = mine.status == 200 ? HTTP_PAGE : 0;
	n = http_head(&mine, body, out);
	if (!body || mine.head)
		return n;
	http_page(out + n, body);
	return n + body;
}

int http_listen(const char *program, const char *address, uint16_t port,
		int backlog)
{
	struct sockaddr_in addr = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
	};
	socklen_t length = sizeof(addr);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

	if (!inet_aton(address, &addr.sin_addr)) {
		fprintf(stderr, "%s: %s isn't an address\n", program, address);
		exit(1);
	}
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&addr, length) || listen(fd, backlog) ||
	    getsockname(fd, (struct sockaddr *)&addr, &length)) {
		perror(program);
		exit(1);
	}
	printf("%u\n", ntohs(addr.sin_port));
	fflush(stdout);
	return fd;
}
