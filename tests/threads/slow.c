/* SPDX-License-Identifier: MIT */
/* A library that takes its time to be loaded, and to be unloaded: held.c. */
#include <unistd.h>

int slow_value;

__attribute__((constructor)) static void begin(void)
{
	usleep(30000);
	slow_value = 5;
}

__attribute__((destructor)) static void end(void)
{
	usleep(1000);
}
