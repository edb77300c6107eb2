/* SPDX-License-Identifier: MIT */
/*
 * Functions that append to text. Each one writes at p and returns the new end;
 * the caller provides the room. For heads and log lines, which are too frequent
 * for printf().
 */
#ifndef HTTP_TEXT_H
#define HTTP_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define TEXT_DECIMAL_MAX	20	/* digits of UINT64_MAX */
#define TEXT_HEX_MAX		16

#define TEXT_PUT(p, literal) text_put(p, literal, sizeof(literal) - 1)

static inline char *text_put(char *p, const char *from, size_t n)
{
	memcpy(p, from, n);
	return p + n;
}

static inline char *text_decimal(char *p, uint64_t value)
{
	char digits[TEXT_DECIMAL_MAX];
	size_t n = 0;

	do {
		digits[sizeof(digits) - ++n] = '0' + value % 10;
		value /= 10;
	} while (value);
	return text_put(p, digits + sizeof(digits) - n, n);
}

/* Append a value below 100 as two digits. */
static inline char *text_two(char *p, unsigned int value)
{
	p[0] = '0' + value / 10;
	p[1] = '0' + value % 10;
	return p + 2;
}

static inline char *text_hex(char *p, uint64_t value)
{
	int shift = value ? (63 - __builtin_clzll(value)) & ~3 : 0;

	for (; shift >= 0; shift -= 4)
		*p++ = "0123456789abcdef"[value >> shift & 15];
	return p;
}

/* Append a byte as three characters, as in a URL. */
static inline char *text_percent(char *p, unsigned char byte)
{
	p[0] = '%';
	p[1] = "0123456789ABCDEF"[byte >> 4];
	p[2] = "0123456789ABCDEF"[byte & 15];
	return p + 3;
}

#endif /* HTTP_TEXT_H */
