/* SPDX-License-Identifier: GPL-2.0-only */
/* Accepting connections when they are delivered: see accept.c. */
#ifndef FLEXSC_KMOD_ACCEPT_H
#define FLEXSC_KMOD_ACCEPT_H

struct ecb;
struct file;
struct flexsc_ecb_watch;
struct inherit;

int accept_check(const struct flexsc_ecb_watch *args);
int accept_check_file(const struct file *file);
struct inherit *accept_inherit(const struct flexsc_ecb_watch *args);
void accept_run(struct ecb *ecb);

#endif /* FLEXSC_KMOD_ACCEPT_H */
