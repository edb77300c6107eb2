// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory shared by the kernel and one process, for a registration or an event
 * control block. The memory is allocated once and mapped by the process. Each
 * mapping holds a reference to the file. Dropping the last reference frees the
 * memory.
 *
 * Every page is charged to the memory cgroup and to the user's RLIMIT_MEMLOCK.
 * The limit counts per user, not per process, because a file can outlive its
 * process.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/user.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "base/area.h"
#include "base/compat.h"

static void area_uncharge(struct area *area, unsigned long pages)
{
	atomic_long_sub(pages, &area->owner->user->locked_vm);
	put_cred(area->owner);
}

static int area_charge(struct area *area, unsigned long pages)
{
	unsigned long most = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	unsigned long all;

	area->owner = get_current_cred();
	all = atomic_long_add_return(pages, &area->owner->user->locked_vm);
	if (all <= most || capable(CAP_IPC_LOCK))
		return 0;
	area_uncharge(area, pages);
	return -ENOMEM;
}

static void area_release(struct area *area)
{
	unsigned long i;

	if (area->memory)
		vunmap(area->memory);
	for (i = 0; i < area->page_count; i++)
		put_page(area->pages[i]);
	kvfree(area->pages);
}

static int area_allocate(struct area *area, unsigned long pages)
{
	unsigned long i;

	area->pages = kvcalloc(pages, sizeof(*area->pages), GFP_KERNEL_ACCOUNT);
	if (!area->pages)
		return -ENOMEM;
	for (i = 0; i < pages; i++) {
		area->pages[i] = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
		if (!area->pages[i])
			return -ENOMEM;
		area->page_count = i + 1;
		cond_resched();
	}
	area->memory = vmap(area->pages, pages, VM_MAP, PAGE_KERNEL);
	return area->memory ? 0 : -ENOMEM;
}

/*
 * Allocate whole zeroed pages. The caller passes a zeroed "area"; after an
 * error it is zeroed again.
 */
int area_make(struct area *area, unsigned long bytes)
{
	unsigned long pages = bytes >> PAGE_SHIFT;
	int err = area_charge(area, pages);

	if (err) {
		area->owner = NULL;
		return err;
	}
	err = area_allocate(area, pages);
	if (err) {
		area_uncharge(area, pages);
		area_release(area);
		*area = (struct area){ 0 };
	}
	return err;
}

/* Leaves "area" zeroed, as area_make() expects it. */
void area_free(struct area *area)
{
	area_uncharge(area, area->page_count);
	area_release(area);
	*area = (struct area){ 0 };
}

int area_map(const struct area *area, struct vm_area_struct *vma)
{
	if (!(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	area_flags_set(vma);
	return vm_map_pages(vma, area->pages, area->page_count);
}
