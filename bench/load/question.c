/* SPDX-License-Identifier: MIT */
#include "question.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/*
 * Decode hexadecimal digits. NULL: they aren't pairs of digits, or no memory.
 */
static unsigned char *bytes_of(const char *hex, size_t *size)
{
	unsigned char *bytes;

	*size = hex ? strlen(hex) / 2 : 0;
	bytes = *size && strlen(hex) % 2 == 0 ? malloc(*size) : NULL;
	for (size_t i = 0; bytes && i < *size; i++, hex += 2) {
		if (digit(hex[0]) < 0 || digit(hex[1]) < 0) {
			free(bytes);
			return NULL;
		}
		bytes[i] = (unsigned char)(digit(hex[0]) << 4 | digit(hex[1]));
	}
	return bytes;
}

static bool fill_exact(struct bench_page *page,
		       const struct bench_settings *settings)
{
	*page = (struct bench_page){ .bare = true, .learned = true };
	page->request = bytes_of(settings->request, &page->request_size);
	page->body = bytes_of(settings->answer, &page->size);
	return page->request && page->body;
}

static const char *fill(struct bench_question *question,
			const struct bench_settings *settings)
{
	if (bench_is(settings->mode, "echo"))
		question->mode = BENCH_ECHO;
	else if (bench_is(settings->mode, "http"))
		question->mode = BENCH_HTTP;
	else if (bench_is(settings->mode, "exact"))
		question->mode = BENCH_EXACT;
	else
		return "give echo, http or exact";
	if (question->udp && question->mode == BENCH_HTTP)
		return "udp=1: http needs TCP";
	if (question->mode == BENCH_HTTP)
		bench_page_init(&question->page, 0, true);
	if (question->mode == BENCH_EXACT &&
	    !fill_exact(&question->page, settings))
		return "give request=HEX and answer=HEX";
	return NULL;
}

int bench_question_init(struct bench_question *question, const char *name,
			const struct bench_settings *settings)
{
	const char *wrong;

	*question = (struct bench_question){
		.udp = settings->udp,
		.bytes = (size_t)settings->bytes,
	};
	wrong = fill(question, settings);
	if (wrong)
		fprintf(stderr, "flexsc: bench: %s: mode=%s: %s\n", name,
			settings->mode, wrong);
	return wrong ? 1 : bench_route_init(&question->route, name, settings,
					    NULL);
}

void bench_question_fini(struct bench_question *question)
{
	free((void *)question->page.request);
	bench_page_fini(&question->page);
}
