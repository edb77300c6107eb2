/* SPDX-License-Identifier: MIT */
/*
 * The command line of "flexsc serve".
 */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "settings.h"

static const char help[] =
"usage: flexsc serve [OPTION]... DIR\n"
"Serve the files below DIR over HTTP.\n"
"\n"
"  -p, --port PORT          TCP port, 0 for any free one (8080)\n"
"  -b, --bind ADDRESS       address to listen on; 0.0.0.0: all (127.0.0.1)\n"
"  -j, --loops N            loops, each with a thread and a core of its own (1)\n"
"  -l, --log FILE           access log, \"-\" for standard output (none)\n"
"  -a, --all                serve names that begin with a dot, too\n"
"      --precompressed      send FILE.br or FILE.gz to clients that accept it\n"
"      --cache-control TEXT the header's value for files (no header)\n"
"      --metrics [ADDR:]PORT  serve counters for Prometheus at /metrics\n"
"      --cache N            keep up to N files open between requests (0)\n"
"      --engine NAME        uring, threads (tried in this order) or kmod\n"
"      --kernel-cores LIST  execute system calls on these cores, such as 2,4-6,\n"
"                           and the loops on others\n"
"      --timeout SECONDS    limit for a request, an idle or a stuck client (30)\n"
"      --grace SECONDS      limit for pending transfers when stopping (10)\n"
"      --max-connections N  most clients at the same time (4096)\n"
"      --max-header BYTES   longest head of a request (16384)\n"
"      --max-body BYTES     longest request body, which is discarded (1048576)\n"
"  -h, --help               show this\n"
"\n"
"SIGTERM and SIGINT stop it gracefully, a second one at once; SIGHUP and SIGUSR1\n"
"reopen the log.\n";

enum {
	OPT_CACHE = 256,
	OPT_ENGINE,
	OPT_KERNEL_CORES,
	OPT_TIMEOUT,
	OPT_GRACE,
	OPT_MAX_CONNECTIONS,
	OPT_MAX_HEADER,
	OPT_MAX_BODY,
	OPT_METRICS,
	OPT_PRECOMPRESSED,
	OPT_CACHE_CONTROL,
};

static const struct option options[] = {
	{ "port",		required_argument,	NULL, 'p' },
	{ "bind",		required_argument,	NULL, 'b' },
	{ "loops",		required_argument,	NULL, 'j' },
	{ "log",		required_argument,	NULL, 'l' },
	{ "all",		no_argument,		NULL, 'a' },
	{ "help",		no_argument,		NULL, 'h' },
	{ "cache",		required_argument,	NULL, OPT_CACHE },
	{ "engine",		required_argument,	NULL, OPT_ENGINE },
	{ "kernel-cores",	required_argument,	NULL, OPT_KERNEL_CORES },
	{ "timeout",		required_argument,	NULL, OPT_TIMEOUT },
	{ "grace",		required_argument,	NULL, OPT_GRACE },
	{ "max-connections",	required_argument, NULL, OPT_MAX_CONNECTIONS },
	{ "max-header",		required_argument,	NULL, OPT_MAX_HEADER },
	{ "max-body",		required_argument,	NULL, OPT_MAX_BODY },
	{ "metrics",		required_argument,	NULL, OPT_METRICS },
	{ "precompressed",	no_argument,		NULL, OPT_PRECOMPRESSED },
	{ "cache-control",	required_argument,	NULL, OPT_CACHE_CONTROL },
	{ }
};

/*
 * Parse a number from "min" to "max". "name" is the option's name, for
 * messages.
 */
static bool number(const char *name, const char *text, uint64_t min,
		   uint64_t max, uint64_t *value)
{
	unsigned long long n;
	char *end;

	errno = 0;
	n = strtoull(text, &end, 10);
	if (errno || end == text || *end || *text == '-' || n < min ||
	    n > max) {
		fprintf(stderr, "flexsc: serve: %s %s: give a number from %llu "
			"to %llu\n", name, text, (unsigned long long)min,
			(unsigned long long)max);
		return false;
	}
	*value = n;
	return true;
}

static bool small(const char *name, const char *text, uint64_t min,
		  uint64_t max, unsigned int *value)
{
	uint64_t n;

	if (!number(name, text, min, max, &n))
		return false;
	*value = n;
	return true;
}

static bool seconds(const char *name, const char *text, uint64_t *value)
{
	if (!number(name, text, 1, 86400, value))
		return false;
	*value *= CLOCK_SECOND;
	return true;
}

/*
 * Is the engine usable? sync isn't: it would wait for one client while others
 * send requests.
 */
static bool known_engine(const char *option, const char *name)
{
	if (strcmp(name, "uring") == 0 || strcmp(name, "kmod") == 0 ||
	    strcmp(name, "threads") == 0)
		return true;
	fprintf(stderr, "flexsc: serve: %s%s: use uring, kmod or threads (sync "
			"could serve only one client at a time)\n",
		option, name);
	return false;
}

/* Longer values don't fit in struct file_more. */
#define CACHE_CONTROL_MAX	127

/*
 * Is the text a valid value of a header? A line break in it would begin another
 * header.
 */
static bool is_value(const char *text)
{
	size_t i, length = strlen(text);

	for (i = 0; i < length; i++)
		if (text[i] < ' ' || text[i] > '~')
			break;
	if (length && i == length && length <= CACHE_CONTROL_MAX)
		return true;
	fprintf(stderr, "flexsc: serve: --cache-control: give 1 to %d printable "
			"ASCII characters, such as max-age=3600\n",
		CACHE_CONTROL_MAX);
	return false;
}

/* Format the headers that files get in addition to their own. */
static void set_more(struct settings *s)
{
	static const char *const encodings[ENCODINGS] = {
		[ENCODING_NONE] = "",
		[ENCODING_GZIP] = "Content-Encoding: gzip\r\n",
		[ENCODING_BR] = "Content-Encoding: br\r\n",
	};
	const char *control = s->cache_control;
	unsigned int i;

	for (i = 0; i < ENCODINGS; i++)
		s->more[i].length = (size_t)snprintf(s->more[i].text,
			sizeof(s->more[i].text), "%s%s%s%s%s", encodings[i],
			s->precompressed ? "Vary: Accept-Encoding\r\n" : "",
			control ? "Cache-Control: " : "", control ?: "",
			control ? "\r\n" : "");
}

/* Are the values of the library's environment variables valid? */
static bool known_environment(void)
{
	const char *name = secure_getenv("FLEXSC_ENGINE");

	return !name || !*name || known_engine("FLEXSC_ENGINE=", name);
}

static bool set(struct settings *s, int option, const char *value)
{
	uint64_t n;

	switch (option) {
	case 'p':
		s->port = value;
		return number("--port", value, 0, 65535, &n);
	case 'b':
		s->address = value;
		return true;
	case 'j':
		return small("--loops", value, 1, 1024, &s->loops);
	case 'l':
		s->log = value;
		return true;
	case 'a':
		s->all = true;
		return true;
	case OPT_CACHE:
		return small("--cache", value, 0, 1000000, &s->cache);
	case OPT_ENGINE:
		s->engine = value;
		return known_engine("--engine ", value);
	case OPT_KERNEL_CORES:
		s->kernel_cores = value;
		return true;
	case OPT_TIMEOUT:
		return seconds("--timeout", value, &s->timeout);
	case OPT_GRACE:
		return seconds("--grace", value, &s->grace);
	case OPT_MAX_CONNECTIONS:
		return small("--max-connections", value, 1, 1000000,
			     &s->max_connections);
	case OPT_MAX_HEADER:
		if (!number("--max-header", value, 256,
			    REQUEST_HEAD_MAX, &n))
			return false;
		s->limits.head = n;
		return true;
	case OPT_METRICS:
		s->metrics = value;
		return true;
	case OPT_PRECOMPRESSED:
		s->precompressed = true;
		return true;
	case OPT_CACHE_CONTROL:
		s->cache_control = value;
		return is_value(value);
	case OPT_MAX_BODY:
		return number("--max-body", value, 0, UINT32_MAX,
			      &s->limits.body);
	default:
		/* getopt_long() has printed the message. */
		return false;
	}
}

int settings_parse(struct settings *s, int argc, char **argv)
{
	int option;

	*s = (struct settings){
		.address = "127.0.0.1",
		.port = "8080",
		.loops = 1,
		.max_connections = 4096,
		.timeout = 30 * CLOCK_SECOND,
		.grace = 10 * CLOCK_SECOND,
		.limits = { .head = 16384, .body = 1048576 },
		.root_fd = -1,
	};
	optind = 1;
	while ((option = getopt_long(argc, argv, "p:b:j:l:ah", options,
				     NULL)) != -1) {
		if (option == 'h') {
			fputs(help, stdout);
			return 0;
		}
		if (!set(s, option, optarg))
			return 2;
	}
	if (optind != argc - 1) {
		fprintf(stderr, optind == argc ?
			"flexsc: serve: missing folder; try flexsc serve .\n" :
			"flexsc: serve: expected one folder, but got %d\n",
			argc - optind);
		return 2;
	}
	s->root = argv[optind];
	set_more(s);
	return s->engine || known_environment() ? -1 : 2;
}
