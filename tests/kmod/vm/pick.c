// SPDX-License-Identifier: GPL-2.0-only
/*
 * Linked into the module for a kernel with KCSAN, to have many of the module's
 * accesses picked: the kernel picks one of so many of all, and few of those are
 * the module's. The linker has the module's plain accesses come here first
 * (--wrap). SKIPS is where each processor's "kcsan_skip" is, the kernel's count
 * until the next that it picks; of other code it picks one now and then only.
 */
#include <linux/percpu.h>
#include <linux/smp.h>

#define EVERY	251

static __always_inline void pick(void)
{
	static unsigned int count;

	if (count++ % EVERY)
		return;
	WRITE_ONCE(*per_cpu_ptr((long __percpu *)SKIPS, raw_smp_processor_id()),
		   0);
}

#define ACCESS(kind, size)						\
	void __real___tsan_##kind##size(void *at);			\
	void __wrap___tsan_##kind##size(void *at);			\
	void __wrap___tsan_##kind##size(void *at)			\
	{								\
		pick();							\
		__real___tsan_##kind##size(at);				\
	}

#define ACCESSES(kind)							\
	ACCESS(kind, 1) ACCESS(kind, 2) ACCESS(kind, 4) ACCESS(kind, 8)

ACCESSES(read)
ACCESSES(write)
ACCESSES(read_write)
