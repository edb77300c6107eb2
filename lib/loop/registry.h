/* SPDX-License-Identifier: MIT */
/*
 * All loops of the process, from the end of their making to the beginning of
 * their end. Any thread.
 */
#ifndef FLEXSC_REGISTRY_H
#define FLEXSC_REGISTRY_H

struct flexsc_loop;

void flexsc__all_add(struct flexsc_loop *loop);
void flexsc__all_remove(struct flexsc_loop *loop);

/* Around a fork(); the child has no loops here afterwards. */
void flexsc__all_lock(void);
void flexsc__all_unlock(void);
void flexsc__all_forked(void (*each)(struct flexsc_loop *loop));

#endif /* FLEXSC_REGISTRY_H */
