/* SPDX-License-Identifier: MIT */
/* Formats responses. Pure functions. */
#include <errno.h>
#include <stdlib.h>

#include "path.h"
#include "response.h"
#include "text.h"

static const struct status {
	int code;
	const char *line;	/* follows "HTTP/1.1 " */
	const char *advice;
} statuses[] = {
	{ 200, "200 OK", "" },
	{ 206, "206 Partial Content", "" },
	{ 301, "301 Moved Permanently", "A folder's name ends in a slash." },
	{ 304, "304 Not Modified", "" },
	{ 400, "400 Bad Request", "This is not a valid request." },
	{ 403, "403 Forbidden", "This file is not served." },
	{ 404, "404 Not Found", "There is no such file here." },
	{ 405, "405 Method Not Allowed", "Only GET and HEAD work here." },
	{ 408, "408 Request Timeout", "The request took too long to arrive." },
	{ 412, "412 Precondition Failed", "The file has changed." },
	{ 413, "413 Content Too Large", "The request's body is too large." },
	{ 414, "414 URI Too Long", "The name is too long." },
	{ 416, "416 Range Not Satisfiable", "The file has no such part." },
	{ 431, "431 Request Header Fields Too Large",
	  "The request's head is too large." },
	{ 500, "500 Internal Server Error", "The file can't be read." },
	{ 501, "501 Not Implemented", "The request can't be understood." },
	{ 503, "503 Service Unavailable", "Too busy; try again in a moment." },
	{ 505, "505 HTTP Version Not Supported", "Use HTTP/1.1." },
};

static const struct status *find_status(int code)
{
	const struct status *status = statuses;

	while (status->code != code)
		status++;
	return status;
}

static char *put_line(char *p, const struct response *r)
{
	const char *line = find_status(r->status)->line;

	p = TEXT_PUT(p, "HTTP/1.1 ");
	p = text_put(p, line, strlen(line));
	p = TEXT_PUT(p, "\r\nServer: flexsc\r\nDate: ");
	p = text_put(p, r->clock->date, CLOCK_DATE_LEN);
	return TEXT_PUT(p, "\r\n");
}

static char *put_length(char *p, uint64_t length)
{
	p = TEXT_PUT(p, "Content-Length: ");
	p = text_decimal(p, length);
	return TEXT_PUT(p, "\r\n");
}

/* Append the last header and the empty line. */
static char *put_end(char *p, const struct response *r)
{
	if (!r->keep_alive)
		p = TEXT_PUT(p, "Connection: close\r\n");
	else if (r->minor == 0)
		p = TEXT_PUT(p, "Connection: keep-alive\r\n");
	return TEXT_PUT(p, "\r\n");
}

/*
 * Copy the head, which begins at "scratch" and ends at "p", to in front of
 * "body". Returns its new beginning.
 */
static char *place(char *body, const char *scratch, const char *p)
{
	size_t length = p - scratch;

	return memcpy(body - length, scratch, length);
}

char *response_file(const struct response *r, char *body,
		    const struct file *file, uint64_t first, uint64_t length)
{
	char scratch[RESPONSE_HEAD_MAX], *p = put_line(scratch, r);

	p = text_put(p, file->headers, file->headers_length);
	if (r->status == 206) {
		p = TEXT_PUT(p, "Content-Range: bytes ");
		p = text_decimal(p, first);
		*p++ = '-';
		p = text_decimal(p, first + length - 1);
		*p++ = '/';
		p = text_decimal(p, file->size);
		p = TEXT_PUT(p, "\r\n");
	}
	if (r->status != 304)
		p = put_length(p, length);
	return place(body, scratch, put_end(p, r));
}

char *response_html(const struct response *r, char *body, uint64_t length)
{
	char scratch[RESPONSE_HEAD_MAX], *p = put_line(scratch, r);

	p = TEXT_PUT(p, "Content-Type: text/html; charset=utf-8\r\n");
	if (r->status != 304)
		p = put_length(p, length);
	return place(body, scratch, put_end(p, r));
}

static char *put_detail(char *p, const struct response *r,
			const struct response_detail *detail)
{
	switch (r->status) {
	case 301:
		p = TEXT_PUT(p, "Location: ");
		p = text_put(p, detail->location, detail->location_length);
		return TEXT_PUT(p, "\r\n");
	case 405:
		return TEXT_PUT(p, "Allow: GET, HEAD\r\n");
	case 416:
		p = TEXT_PUT(p, "Content-Range: bytes */");
		p = text_decimal(p, detail->size);
		return TEXT_PUT(p, "\r\n");
	case 503:
		return TEXT_PUT(p, "Retry-After: 1\r\n");
	default:
		return p;
	}
}

/* Append "404 Not Found" and a sentence, as HTML. */
static char *put_page(char *p, const struct status *status)
{
	p = TEXT_PUT(p, "<!DOCTYPE html>\n<title>");
	p = text_put(p, status->line, strlen(status->line));
	p = TEXT_PUT(p, "</title>\n<h1>");
	p = text_put(p, status->line, strlen(status->line));
	p = TEXT_PUT(p, "</h1>\n<p>");
	p = text_put(p, status->advice, strlen(status->advice));
	return TEXT_PUT(p, "</p>\n");
}

char *response_message(const struct response *r, char *p,
		       const struct response_detail *detail)
{
	char page[RESPONSE_MESSAGE_MAX / 2];
	size_t length = put_page(page, find_status(r->status)) - page;

	p = put_line(p, r);
	p = TEXT_PUT(p, "Content-Type: text/html; charset=utf-8\r\n");
	p = put_detail(p, r, detail);
	p = put_length(p, length);
	p = put_end(p, r);
	return r->head_only ? p : text_put(p, page, length);
}

int response_status_of(int error)
{
	switch (error) {
	case ENOENT:
	case ENOTDIR:
	case ENAMETOOLONG:
		return 404;
	case EACCES:
	case EPERM:
	case EXDEV:
	case ELOOP:
	case ENXIO:
	case ENODEV:
		return 403;
	case EMFILE:
	case ENFILE:
	case EAGAIN:
	case ECANCELED:
	case EINTR:
	case ENOBUFS:
	case ENOMEM:
	case ETIME:
		return 503;
	default:
		return 500;
	}
}

char *response_location(char *p, const struct path *path)
{
	*p++ = '/';
	p = path_encode(p, path->name, path->length);
	*p++ = '/';
	if (path->query_length <= RESPONSE_QUERY_MAX)
		p = text_put(p, path->query, path->query_length);
	return p;
}

const char *response_busy(size_t *length)
{
	static const char text[] =
		"HTTP/1.1 503 Service Unavailable\r\nServer: flexsc\r\n"
		"Retry-After: 1\r\nContent-Length: 0\r\n"
		"Connection: close\r\n\r\n";

	*length = sizeof(text) - 1;
	return text;
}
