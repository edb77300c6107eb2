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

/* Bytes of a text. False: it isn't pairs of hexadecimal digits, or no memory. */
static bool bytes_of(struct bench_bytes *bytes, const char *hex)
{
	size_t size = hex ? strlen(hex) / 2 : 0;

	if (!size || strlen(hex) % 2)
		return false;
	bytes->data = malloc(size);
	if (!bytes->data)
		return false;
	for (; bytes->size < size; bytes->size++, hex += 2) {
		if (digit(hex[0]) < 0 || digit(hex[1]) < 0)
			return false;
		bytes->data[bytes->size] =
			(unsigned char)(digit(hex[0]) << 4 | digit(hex[1]));
	}
	return true;
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
		return "udp=1: not over UDP";
	if (question->mode == BENCH_EXACT &&
	    (!bytes_of(&question->request, settings->request) ||
	     !bytes_of(&question->answer, settings->answer)))
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
	free(question->request.data);
	free(question->answer.data);
}
