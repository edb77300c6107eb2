/* SPDX-License-Identifier: MIT */
/*
 * flexsc check: the engines and SEND's backends that work here, and why the
 * others don't.
 */
#include <errno.h>
#include <flexsc/flexsc.h>
#include <flexsc/send.h>
#include <stdio.h>
#include <string.h>

#include "command.h"

static const char usage[] =
	"usage: flexsc check [ENGINE]\n\n"
	"Says for each engine, or for one, whether it works on this machine\n"
	"for this user, and if not why. Programs get uring, or threads where\n"
	"that doesn't work, unless FLEXSC_ENGINE or an option says otherwise.\n"
	"Then the same of the backends of SEND: programs get kmod, or uring\n"
	"where that doesn't work, unless FLEXSC_SEND or an option says otherwise.\n"
	"Exits with 0 if all but kmod (or the one named) work, else with 1.\n";

static void check_print(const char *what, const char *name, int err,
			const char *why)
{
	if (!err)
		printf("%s%-8s works%s%s\n", what, name, why[0] ? ", but " : "",
		       why);
	else
		printf("%s%-8s doesn't work: %s\n", what, name,
		       why[0] ? why : strerror(-err));
}

static int check(const char *engine)
{
	char why[256] = "";
	int err = flexsc_engine_probe(engine, why, sizeof(why));

	check_print("", engine, err, why);
	return err;
}

static int check_send(const char *backend)
{
	char why[256] = "";
	int err = flexsc_ecb_probe(backend, why, sizeof(why));

	check_print("send: ", backend, err, why);
	return err;
}

int command_check(int argc, char **argv)
{
	const char *engine;
	int failed = 0;

	if (argc > 1 && (!strcmp(argv[1], "--help") ||
			 !strcmp(argv[1], "-h"))) {
		fputs(usage, stdout);
		return 0;
	}
	if (argc > 2) {
		fputs(usage, stderr);
		return 2;
	}
	if (argc == 2) {
		failed = check(argv[1]);
		return failed == -EINVAL ? 2 : failed != 0;
	}
	/* The kernel module needn't be on every machine. */
	for (unsigned int i = 0; (engine = flexsc_engine_name(i)); i++)
		failed |= check(engine) && strcmp(engine, "kmod") != 0;
	check_send("kmod");
	failed |= check_send("uring");
	return failed;
}
