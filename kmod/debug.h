/* SPDX-License-Identifier: GPL-2.0-only */
/* A registration's part of debugfs. */
#ifndef FLEXSC_KMOD_DEBUG_H
#define FLEXSC_KMOD_DEBUG_H

struct registration;

void debug_add(struct registration *reg);
void debug_remove(struct registration *reg);
void debug_init(void);
void debug_exit(void);

#endif /* FLEXSC_KMOD_DEBUG_H */
