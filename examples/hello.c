/* SPDX-License-Identifier: MIT */
/* The smallest program: reads a file by a posted call. */
#include <fcntl.h>
#include <flexsc/default.h>
#include <stdio.h>

static char text[4096];

static void was_read(struct flexsc_cb *cb)
{
	if (cb->ret > 0)
		fwrite(text, 1, (size_t)cb->ret, stdout);
	flexsc_close(NULL, *(int *)cb->arg);
}

static void opened(struct flexsc_cb *cb)
{
	int *fd = cb->arg;

	*fd = (int)cb->ret;
	cb->callback = was_read;
	if (*fd >= 0)
		flexsc_read(cb, *fd, text, sizeof(text));
}

int main(int argc, char **argv)
{
	int fd;
	struct flexsc_cb cb = { .callback = opened, .arg = &fd };

	if (argc != 2) {
		fputs("usage: hello FILE\n", stderr);
		return 2;
	}
	if (flexsc_init())
		return 1;
	flexsc_openat(&cb, AT_FDCWD, argv[1], O_RDONLY, 0);
	return flexsc_main_loop();
}
