/* SPDX-License-Identifier: MIT */
/*
 * Appending to text. Each function writes at p and returns the new end; room
 * is the caller's business. For heads and log lines, which are too frequent
 * for printf.
 */
#ifndef HTTP_TEXT_H
#define HTTP_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define TEXT_DECIMAL_MAX	20	/* digits of UINT64_MAX */
#define TEXT_HEX_MAX		16

/* A string literal. */
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

/* value < 100, always two digits. */
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

/* Three characters for a byte, as in a URL. */
static inline char *text_percent(char *p, unsigned char byte)
{
	p[0] = '%';
	p[1] = "0123456789ABCDEF"[byte >> 4];
	p[2] = "0123456789ABCDEF"[byte & 15];
	return p + 3;
}

#endif /* HTTP_TEXT_H */
