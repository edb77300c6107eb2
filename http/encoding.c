/* SPDX-License-Identifier: MIT */
/*
 * Accept-Encoding (RFC 9110, section 12.5.3). Pure functions. A weight only
 * decides whether an encoding is accepted. An encoding with a malformed weight
 * isn't accepted.
 */
#include "encoding.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "request.h"

static const struct {
	const char *name;
	unsigned int bits;
} codings[] = {
	{ "gzip", 1 << ENCODING_GZIP },
	{ "x-gzip", 1 << ENCODING_GZIP },
	{ "br", 1 << ENCODING_BR },
};

#define CODINGS	(sizeof(codings) / sizeof(codings[0]))
#define ALL	(1 << ENCODING_GZIP | 1 << ENCODING_BR)

static const char *skip_blanks(const char *p, const char *end)
{
	while (p < end && (*p == ' ' || *p == '\t'))
		p++;
	return p;
}

static const char *skip_token(const char *p, const char *end)
{
	while (p < end && !strchr(" \t;,", *p))
		p++;
	return p;
}

/* Is the text from p to end empty, or a weight above 0: ";q=0.5"? */
static bool is_weighed(const char *p, const char *end)
{
	bool positive;
	int digits;

	p = skip_blanks(p, end);
	if (p == end)
		return true;
	if (*p != ';')
		return false;
	p = skip_blanks(p + 1, end);
	if (end - p < 3 || strncasecmp(p, "q=", 2) != 0 ||
	    (p[2] != '0' && p[2] != '1'))
		return false;
	positive = p[2] == '1';
	p += 3;
	if (p < end && *p == '.')
		for (p++, digits = 0; p < end && *p >= '0' && *p <= '9' &&
				      digits < 3; p++, digits++)
			positive |= *p != '0';
	return positive && skip_blanks(p, end) == end;
}

static unsigned int bits_of(const char *name, size_t length)
{
	unsigned int i;

	for (i = 0; i < CODINGS; i++)
		if (strlen(codings[i].name) == length &&
		    strncasecmp(codings[i].name, name, length) == 0)
			return codings[i].bits;
	return 0;
}

/* The encodings that a header names, and those of them that it accepts. */
struct answer {
	unsigned int named;
	unsigned int accepted;
	bool others;		/* "*" is accepted */
};

static void read_element(struct answer *answer, const char *p, const char *end)
{
	const char *name = skip_blanks(p, end);
	unsigned int bits;
	bool accepted;

	p = skip_token(name, end);
	bits = bits_of(name, p - name);
	accepted = is_weighed(p, end);
	answer->named |= bits;
	if (accepted)
		answer->accepted |= bits;
	if (p - name == 1 && *name == '*')
		answer->others = accepted;
}

unsigned int encoding_accepted(const struct request *r, const char *head)
{
	struct answer answer = { 0 };
	size_t at = 0, length;
	const char *p;

	while ((p = request_next_header(r, head, HEADER_ACCEPT_ENCODING, &at,
					&length))) {
		const char *end = p + length, *comma;

		for (; (comma = memchr(p, ',', end - p)); p = comma + 1)
			read_element(&answer, p, comma);
		read_element(&answer, p, end);
	}
	if (answer.others)
		answer.accepted |= ALL & ~answer.named;
	return answer.accepted;
}
