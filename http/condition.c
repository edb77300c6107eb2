/* SPDX-License-Identifier: MIT */
/*
 * Ranges and conditions of requests (RFC 9110, sections 13 and 14). Pure
 * functions.
 */
#include <strings.h>
#include <string.h>

#include "condition.h"

/* A number at *p, which moves behind it; one that is too big is the biggest. */
static bool number(const char **p, const char *end, uint64_t *value)
{
	const char *from = *p;
	uint64_t n = 0;

	for (; *p < end && **p >= '0' && **p <= '9'; (*p)++) {
		unsigned int digit = **p - '0';

		n = n > (UINT64_MAX - digit) / 10 ? UINT64_MAX : n * 10 + digit;
	}
	*value = n;
	return *p > from;
}

static const char *skip_blanks(const char *p, const char *end)
{
	while (p < end && (*p == ' ' || *p == '\t'))
		p++;
	return p;
}

struct range range_parse(const char *value, size_t length)
{
	const struct range none = { .kind = RANGE_NONE };
	const char *p = value, *end = value + length;
	struct range range = { .kind = RANGE_BYTES, .last = UINT64_MAX };
	bool first, last;

	if (length < 6 || strncasecmp(p, "bytes=", 6) != 0)
		return none;
	p = skip_blanks(p + 6, end);
	first = number(&p, end, &range.first);
	if (p == end || *p++ != '-')
		return none;
	last = number(&p, end, &range.last);
	if (skip_blanks(p, end) != end || !(first || last))
		return none;
	if (!last)
		range.last = UINT64_MAX;
	else if (!first)
		range.kind = RANGE_SUFFIX;
	return range.first > range.last ? none : range;
}

bool range_resolve(const struct range *range, uint64_t size, uint64_t *first,
		   uint64_t *length)
{
	uint64_t n = size;

	*first = 0;
	switch (range->kind) {
	case RANGE_NONE:
		break;
	case RANGE_SUFFIX:
		if (range->last == 0 || size == 0)
			return false;
		n = range->last < size ? range->last : size;
		*first = size - n;
		break;
	case RANGE_BYTES:
		if (range->first >= size)
			return false;
		*first = range->first;
		n = range->last < size ? range->last - *first + 1 :
					 size - *first;
		break;
	}
	*length = n;
	return true;
}

/* Is etag, or "*", in a list of them? Weak ones count. */
static bool listed(const char *p, const char *end, const char *etag,
		   size_t length)
{
	while (p < end) {
		const char *close;

		if (*p == '*')
			return true;
		if (*p != '"') {
			p++;
			continue;
		}
		close = memchr(p + 1, '"', end - p - 1);
		if (!close)
			return false;
		if ((size_t)(close + 1 - p) == length &&
		    memcmp(p, etag, length) == 0)
			return true;
		p = close + 1;
	}
	return false;
}

static bool not_modified(const struct request *r, const char *head,
			 const struct file *file)
{
	const char *value;
	size_t length;
	time_t since;

	/* The more exact one counts, if it is there at all. */
	if (r->count[HEADER_IF_NONE_MATCH]) {
		value = request_header(r, head, HEADER_IF_NONE_MATCH, &length);
		return value && listed(value, value + length, file_etag(file),
				       file->etag_length);
	}
	value = request_header(r, head, HEADER_IF_MODIFIED_SINCE, &length);
	if (!value)
		return false;
	if (length == CLOCK_DATE_LEN &&
	    memcmp(value, file_date(file), length) == 0)
		return true;
	return clock_parse(value, length, &since) && file->modified <= since;
}

/* Is the client's part of the same file? */
static bool range_applies(const struct request *r, const char *head,
			  const struct file *file)
{
	const char *value;
	size_t length;

	if (!r->count[HEADER_IF_RANGE])
		return true;
	value = request_header(r, head, HEADER_IF_RANGE, &length);
	if (!value)
		return false;
	if (length == file->etag_length &&
	    memcmp(value, file_etag(file), length) == 0)
		return true;
	return length == CLOCK_DATE_LEN &&
	       memcmp(value, file_date(file), length) == 0;
}

int condition_decide(const struct request *r, const char *head,
		     const struct file *file, uint64_t *first,
		     uint64_t *length)
{
	struct range range = { .kind = RANGE_NONE };
	const char *value;
	size_t n;

	if (not_modified(r, head, file))
		return 304;
	value = request_header(r, head, HEADER_RANGE, &n);
	if (value && r->method == HTTP_GET && range_applies(r, head, file))
		range = range_parse(value, n);
	if (!range_resolve(&range, file->size, first, length))
		return 416;
	return range.kind == RANGE_NONE ? 200 : 206;
}
