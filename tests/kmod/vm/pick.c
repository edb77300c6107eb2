// SPDX-License-Identifier: GPL-2.0-only
/*
 * Linked into the module for a kernel with KCSAN, so that KCSAN checks many of the
 * module's accesses. KCSAN picks one of many accesses of the whole kernel, and few
 * of these are the module's. The linker redirects the module's plain accesses to
 * this file (--wrap). SKIPS is the address of each processor's "kcsan_skip", the
 * number of accesses until the kernel picks the next one. Accesses of other code are
 * picked rarely.
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
