/* SPDX-License-Identifier: MIT */
#ifndef FLEXSC_EVENTS_BACKENDS_H
#define FLEXSC_EVENTS_BACKENDS_H

struct backend;

extern const struct backend flexsc__backend_kmod;
extern const struct backend flexsc__backend_uring;

#endif /* FLEXSC_EVENTS_BACKENDS_H */
