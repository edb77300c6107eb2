/* SPDX-License-Identifier: MIT */
/* A library whose constructor and destructor wait: held.c. */
#include <stdlib.h>
#include <unistd.h>

int slow_value;

/* Waits for a byte. */
static void wait_at(int fd)
{
	char byte = 'b';

	if (write(fd, &byte, 1) == 1 && read(fd, &byte, 1) == 1)
		slow_value = byte;
}

__attribute__((constructor)) static void begin(void)
{
	const char *fd = getenv("SLOW_SOCKET");

	if (fd)
		wait_at((int)strtol(fd, NULL, 10));
}

__attribute__((destructor)) static void end(void)
{
	usleep(1000);
}
