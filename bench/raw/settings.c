/* SPDX-License-Identifier: MIT */
#include "settings.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *bench_who = "flexsc: bench";

/*
 * Characters allowed in values; none of them needs escaping in a JSON string.
 */
#define HARMLESS	"abcdefghijklmnopqrstuvwxyz0123456789,.-"

enum kind { WORD, PATH, NUMBER };

static const struct key {
	const char *name;
	size_t offset;
	enum kind kind;
	long min, max;
} keys[] = {
#define KEY_WORD(field) \
	{ #field, offsetof(struct bench_settings, field), WORD, 0, 0 }
#define KEY_PATH(field) \
	{ #field, offsetof(struct bench_settings, field), PATH, 0, 0 }
#define KEY_NUMBER(field, min, max) \
	{ #field, offsetof(struct bench_settings, field), NUMBER, min, max }
	KEY_WORD(variant),
	KEY_WORD(call),
	KEY_WORD(scenario),
	KEY_WORD(kernel_cores),
	KEY_WORD(cores),
	KEY_NUMBER(core, -1, 4095),
	KEY_NUMBER(poll_us, 0, 1000000),
	KEY_NUMBER(spin_us, 0, 1000000),
	KEY_NUMBER(batch, 1, BENCH_BATCH_MAX),
	KEY_NUMBER(calls, 1, 100000000),
	KEY_NUMBER(reps, 1, 10000),
	KEY_NUMBER(outstanding, 1, 10000000),
	KEY_NUMBER(active, 1, 10000000),
	KEY_WORD(work),
	KEY_NUMBER(every, 1, 4096),
	KEY_NUMBER(mib, 1, 65536),
	KEY_WORD(level),
	KEY_WORD(mode),
	KEY_WORD(request),
	KEY_WORD(answer),
	KEY_NUMBER(udp, 0, 1),
	KEY_NUMBER(port, 1, 65535),
	KEY_NUMBER(pid, 1, 4194304),
	KEY_NUMBER(connections, 1, 60000),
	KEY_NUMBER(bytes, 1, 4194304),
	KEY_NUMBER(seconds, 1, 3600),
	KEY_NUMBER(threads, 1, 256),
	KEY_NUMBER(greet, 0, 1),
	KEY_NUMBER(rate, 1, 1000000),
	KEY_WORD(arrivals),
	KEY_NUMBER(seed, 1, 1000000000),
	KEY_NUMBER(count, 1, 100000000),
	KEY_NUMBER(warm_ms, 0, 3600000),
	KEY_NUMBER(timeout_ms, 0, 3600000),
	KEY_WORD(conns),
	KEY_WORD(sizes),
	KEY_WORD(address),
	KEY_WORD(source),
	KEY_NUMBER(sources, 1, 200),
	KEY_NUMBER(order, 0, 1),
	KEY_PATH(trace),
	KEY_NUMBER(think, 0, 10000),
	KEY_NUMBER(cut, 0, 1),
	KEY_NUMBER(passes, 0, 10000),
	KEY_NUMBER(client, -1, 4095),
};

#define KEYS	(sizeof(keys) / sizeof(keys[0]))

static const struct key *find(const char *arg, size_t length)
{
	for (size_t i = 0; i < KEYS; i++)
		if (strlen(keys[i].name) == length &&
		    !memcmp(keys[i].name, arg, length))
			return &keys[i];
	return NULL;
}

static bool unknown(const char *arg)
{
	fprintf(stderr, "%s: unknown setting \"%s\": give KEY=VALUE; the keys are", bench_who,
		arg);
	for (size_t i = 0; i < KEYS; i++)
		fprintf(stderr, " %s", keys[i].name);
	fputc('\n', stderr);
	return false;
}

static bool set_number(const struct key *key, const char *value, void *where)
{
	char *end;
	long n;

	errno = 0;
	n = strtol(value, &end, 10);
	if (errno || end == value || *end || n < key->min || n > key->max) {
		fprintf(stderr, "%s: %s=%s: give a number from %ld "
			"to %ld\n", bench_who, key->name, value, key->min,
			key->max);
		return false;
	}
	memcpy(where, &n, sizeof(n));
	return true;
}

static bool set_word(const struct key *key, const char *value, void *where)
{
	if (!*value || value[strspn(value, HARMLESS)]) {
		fprintf(stderr, "%s: %s=%s: give a word, or a list such as "
				"2,4-6\n", bench_who, key->name, value);
		return false;
	}
	memcpy(where, &value, sizeof(value));
	return true;
}

/* A path is printed without escaping. */
static bool set_path(const struct key *key, const char *value, void *where)
{
	bool harmless = *value;

	for (const char *at = value; *at; at++)
		harmless &= *at >= ' ' && *at < 0x7f && *at != '"' &&
			    *at != '\\';
	if (!harmless) {
		fprintf(stderr, "%s: %s=%s: give a path of ASCII "
			"characters, without \" and \\\n", bench_who, key->name, value);
		return false;
	}
	memcpy(where, &value, sizeof(value));
	return true;
}

static bool set_value(const struct key *key, const char *value, void *where)
{
	switch (key->kind) {
	case WORD:
		return set_word(key, value, where);
	case PATH:
		return set_path(key, value, where);
	case NUMBER:
		return set_number(key, value, where);
	}
	return false;
}

bool bench_settings_parse(struct bench_settings *settings, int argc,
			  char **argv)
{
	*settings = (struct bench_settings){
		.variant = "uring", .call = "close", .scenario = "dormant",
		.core = -1, .batch = 64, .calls = 65536, .reps = 11,
		.outstanding = 1000,
		.active = 1000,
		.work = "tree", .every = 8, .mib = 256, .level = "l1d",
		.mode = "echo", .connections = 128, .bytes = 64, .seconds = 5,
		.threads = 1, .greet = 1,
		.arrivals = "even", .seed = 1,
		.address = "127.0.0.1", .sources = 64, .think = 100, .client = -1,
	};
	for (int i = 0; i < argc; i++) {
		size_t length = strcspn(argv[i], "=");
		const struct key *key = find(argv[i], length);
		const char *value = argv[i] + length + 1;

		if (!key || !argv[i][length])
			return unknown(argv[i]);
		if (!set_value(key, value, (char *)settings + key->offset))
			return false;
	}
	return true;
}

void bench_settings_print(const struct bench_settings *settings)
{
	for (size_t i = 0; i < KEYS; i++) {
		const char *where = (const char *)settings + keys[i].offset;
		const char *word;
		long number;

		printf("%s\"%s\": ", i ? ", " : "", keys[i].name);
		if (keys[i].kind == NUMBER) {
			memcpy(&number, where, sizeof(number));
			printf("%ld", number);
			continue;
		}
		memcpy(&word, where, sizeof(word));
		if (word)
			printf("\"%s\"", word);
		else
			printf("null");
	}
}
