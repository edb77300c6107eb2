/* SPDX-License-Identifier: MIT */
/* A thread's own loop, and its default one. Run by that thread. */
#ifndef FLEXSC_DEFAULT_LOOP_H
#define FLEXSC_DEFAULT_LOOP_H

struct flexsc_loop;

/* The loop is about to be destroyed. */
void flexsc__default_loop_forget(const struct flexsc_loop *loop);

/* In a forked child: the thread that lives on has no loop. */
void flexsc__default_loop_forked(void);

#endif /* FLEXSC_DEFAULT_LOOP_H */
