/* SPDX-License-Identifier: MIT */
/*
 * Chains: a journal whose lines are on the disk before they are acknowledged.
 *
 *	journal FILE	appends each line of its input, and says "N saved"
 *
 * The fsync starts only if all of the line was written: a full disk that takes
 * half of it must not be acknowledged. Lines wait for each other here; a server
 * would collect those that come meanwhile, and save them by one fsync.
 */
#include <fcntl.h>
#include <flexsc/default.h>
#include <stdio.h>
#include <string.h>

struct line {
	struct flexsc_cb write, sync;
	char text[4096];
	unsigned int number;
	int fd;
};

static void append(struct line *line);

static void written(struct flexsc_cb *cb)
{
	struct line *line = cb->arg;

	if (cb->ret < (int64_t)strlen(line->text))
		fprintf(stderr, "line %u: %lld of %zu bytes written\n",
			line->number, (long long)cb->ret, strlen(line->text));
}

static void synced(struct flexsc_cb *cb)
{
	struct line *line = cb->arg;

	/* -ECANCELED: the write failed, or was short. */
	if (cb->ret < 0)
		return;
	printf("%u saved\n", line->number);
	append(line);
}

static void append(struct line *line)
{
	if (!fgets(line->text, sizeof(line->text), stdin))
		return;
	line->number++;
	flexsc_write(&line->write, line->fd, line->text, strlen(line->text));
	flexsc_loop_fsync_after(flexsc_loop_default(), &line->sync, &line->write,
				FLEXSC_CHAIN_FULL, line->fd);
}

int main(int argc, char **argv)
{
	static struct line line;

	if (argc != 2 || flexsc_init())
		return 1;
	line.write = (struct flexsc_cb){ .callback = written, .arg = &line };
	line.sync = (struct flexsc_cb){ .callback = synced, .arg = &line };
	line.fd = open(argv[1], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	if (line.fd < 0) {
		perror(argv[1]);
		return 1;
	}
	append(&line);
	return flexsc_main_loop() || line.sync.ret < 0;
}
