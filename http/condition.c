/* SPDX-License-Identifier: MIT */
/*
 * Ranges and conditions of requests (RFC 9110, sections 13 and 14). Pure
 * functions.
 *
 * The conditions' order is that of section 13.2.2, for GET and HEAD:
 *
 *	If-Match, or without it If-Unmodified-Since	false: 412
 *	If-None-Match, or without it If-Modified-Since	false: 304
 *	If-Range					false: the whole file
 */
#include <strings.h>
#include <string.h>

#include "condition.h"

enum range_kind {
	RANGE_NONE,	/* the whole file */
	RANGE_BYTES,	/* from "first" to "last", inclusive */
	RANGE_SUFFIX,	/* the last "last" bytes */
};

struct range {
	enum range_kind kind;
	uint64_t first;
	uint64_t last;
};

/*
 * Parse a number at *p, and advance *p; a number that is too big becomes
 * UINT64_MAX.
 */
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

/*
 * Parse the value of a Range header. RANGE_NONE: the header isn't a single
 * range of bytes, and the answer is the whole file.
 */
static struct range range_parse(const char *value, size_t length)
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

/* Find the bytes that the range selects of a file of that size. False: none. */
static bool range_resolve(const struct range *range, uint64_t size,
			  uint64_t *first, uint64_t *length)
{
	uint64_t n = size;

	*first = 0;
	switch (range->kind) {
	case RANGE_NONE:
		break;
	case RANGE_SUFFIX:
		if (range->last == 0)
			return false;
		n = range->last < size ? range->last : size;
		*first = size - n;
		break;
	case RANGE_BYTES:
		if (range->first && range->first >= size)
			return false;
		*first = range->first;
		n = range->last < size ? range->last - *first + 1 :
					 size - *first;
		break;
	}
	*length = n;
	return true;
}

enum comparison {
	COMPARE_WEAKLY,		/* W/"a" is "a" */
	COMPARE_STRONGLY,	/* by strong comparison, a weak tag (W/"a") doesn't
				 * even equal itself */
};

/* Does the list contain the file's tag, which is a strong one? */
static bool listed(const char *p, const char *end, const struct file *file,
		   enum comparison how)
{
	for (;;) {
		const char *close = NULL;
		bool weak;

		while (p < end && (*p == ',' || *p == ' ' || *p == '\t'))
			p++;
		weak = end - p > 2 && memcmp(p, "W/", 2) == 0;
		if (weak)
			p += 2;
		if (p < end && *p == '"')
			close = memchr(p + 1, '"', end - p - 1);
		if (close && !(weak && how == COMPARE_STRONGLY) &&
		    (size_t)(close + 1 - p) == file->etag_length &&
		    memcmp(p, file_etag(file), file->etag_length) == 0)
			return true;
		/* Skip anything that isn't a tag. */
		p = close ? close + 1 : p;
		p = memchr(p, ',', end - p);
		if (!p)
			return false;
	}
}

/* Does the header contain the file's tag, or "*", which matches any file? */
static bool matches(const struct request *r, const char *head,
		    enum header header, const struct file *file,
		    enum comparison how)
{
	const char *value;
	size_t length, at = 0;

	while ((value = request_next_header(r, head, header, &at, &length))) {
		if (length == 1 && *value == '*')
			return true;
		if (file && listed(value, value + length, file, how))
			return true;
	}
	return false;
}

/*
 * Is the file newer than the header's date? Returns "otherwise" if the header or the
 * file is missing, or the date is malformed.
 */
static bool is_newer(const struct request *r, const char *head,
		     enum header header, const struct file *file,
		     bool otherwise)
{
	const char *value;
	size_t length;
	time_t since;

	value = request_header(r, head, header, &length);
	if (!value || !file)
		return otherwise;
	if (length == CLOCK_DATE_LEN &&
	    memcmp(value, file_date(file), length) == 0)
		return false;
	return clock_parse(value, length, &since) ? file->modified > since :
						    otherwise;
}

static bool is_wanted(const struct request *r, const char *head,
		      const struct file *file)
{
	if (r->count[HEADER_IF_MATCH])
		return matches(r, head, HEADER_IF_MATCH, file,
			       COMPARE_STRONGLY);
	return !is_newer(r, head, HEADER_IF_UNMODIFIED_SINCE, file, false);
}

static bool is_news(const struct request *r, const char *head,
		    const struct file *file)
{
	if (r->count[HEADER_IF_NONE_MATCH])
		return !matches(r, head, HEADER_IF_NONE_MATCH, file,
				COMPARE_WEAKLY);
	return is_newer(r, head, HEADER_IF_MODIFIED_SINCE, file, true);
}

int condition_check(const struct request *r, const char *head,
		    const struct file *file)
{
	if (!is_wanted(r, head, file))
		return 412;
	return is_news(r, head, file) ? 200 : 304;
}

/*
 * For If-Range: does the part that the client already has belong to the file's
 * current contents? A date proves that only after the second that it denotes:
 * during that second the file may change again and keep its date (RFC 9110,
 * section 8.8.2.2).
 */
static bool range_applies(const struct request *r, const char *head,
			  const struct file *file, const struct clock *clock)
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
	return length == CLOCK_DATE_LEN && file->modified < clock->now &&
	       memcmp(value, file_date(file), length) == 0;
}

/*
 * A request for the first or last bytes of an empty file gets the whole file
 * with status 200, because no Content-Range can describe an empty part.
 */
int condition_decide(const struct request *r, const char *head,
		     const struct file *file, const struct clock *clock,
		     uint64_t *first, uint64_t *length)
{
	struct range range = { .kind = RANGE_NONE };
	int status = condition_check(r, head, file);
	const char *value;
	size_t n;

	if (status != 200)
		return status;
	value = request_header(r, head, HEADER_RANGE, &n);
	if (value && r->method == HTTP_GET &&
	    range_applies(r, head, file, clock))
		range = range_parse(value, n);
	if (!range_resolve(&range, file->size, first, length))
		return 416;
	return range.kind == RANGE_NONE || !*length ? 200 : 206;
}
