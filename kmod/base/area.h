/* SPDX-License-Identifier: GPL-2.0-only */
/* Memory shared by the kernel and one process: see area.c. */
#ifndef FLEXSC_KMOD_AREA_H
#define FLEXSC_KMOD_AREA_H

struct cred;
struct page;
struct vm_area_struct;

struct area {
	void *memory;		/* kernel address; NULL: not allocated */
	struct page **pages;
	unsigned long page_count;
	/*
	 * The charged user's credentials. They hold the reference to the user,
	 * because not all kernels export free_uid() to drop one.
	 */
	const struct cred *owner;
};

int area_make(struct area *area, unsigned long bytes);
void area_free(struct area *area);
int area_map(const struct area *area, struct vm_area_struct *vma);

#endif /* FLEXSC_KMOD_AREA_H */
