/* SPDX-License-Identifier: MIT */
#ifndef FLEXSC_RUN_H
#define FLEXSC_RUN_H

struct flexsc_loop;

/* The loop ends: run it until nothing is posted any more. Owner only. */
void flexsc__drain(struct flexsc_loop *loop);

#endif /* FLEXSC_RUN_H */
