/* SPDX-License-Identifier: GPL-2.0-only */
/* Taking and executing entries: see execute.c. */
#ifndef FLEXSC_KMOD_EXEC_EXECUTE_H
#define FLEXSC_KMOD_EXEC_EXECUTE_H

#include <linux/types.h>

struct registration;
struct thread;

void entries_execute(struct registration *reg, struct thread *thread);
void entries_retrieve(struct registration *reg, struct thread *thread);
void entries_execute_inline(struct registration *reg, struct thread *thread);
void execute_finish_dead(struct thread *thread);

#endif /* FLEXSC_KMOD_EXEC_EXECUTE_H */
