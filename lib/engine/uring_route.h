/* SPDX-License-Identifier: MIT */
/* The uring engine's routes. Owner only. */
#ifndef FLEXSC_URING_ROUTE_H
#define FLEXSC_URING_ROUTE_H

#include <stdbool.h>

struct flexsc_loop;

/* What was submitted becomes requests, or goes where it is executed. */
void flexsc__uring_route(struct flexsc_loop *loop);

#endif /* FLEXSC_URING_ROUTE_H */
