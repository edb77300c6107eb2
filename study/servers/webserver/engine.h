/* SPDX-License-Identifier: MIT */
/* The engine of web-loops' loops, as the options say. See engine.c. */
#ifndef WEB_ENGINE_H
#define WEB_ENGINE_H

struct flexsc_loop;

/* The arguments of --engine and --cores; NULL: the library chooses. */
extern const char *engine_name, *engine_cores;

/* Make a loop. Returns 0 or -errno, as flexsc_loop_create() does. */
int engine_start(struct flexsc_loop **loop);

/* Make a loop on trial: an option that doesn't work ends the program here. */
void engine_try(void);

#endif
