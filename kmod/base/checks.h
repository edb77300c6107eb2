/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Checks of rules that the module keeps whatever user mode does. On slow paths
 * they are WARN_ON_ONCE(), lockdep_assert_held() and the like. On fast paths
 * they are RULE()s, which are compiled only for a self-checking kernel
 * (tests/kmod/vm/sanitize.py builds one).
 */
#ifndef FLEXSC_KMOD_CHECKS_H
#define FLEXSC_KMOD_CHECKS_H

#include <linux/bug.h>
#include <linux/kconfig.h>
#include <linux/kernel.h>

#define CHECKED	(IS_ENABLED(CONFIG_DEBUG_ATOMIC_SLEEP) || \
		 IS_ENABLED(CONFIG_PROVE_LOCKING))

#define RULE(condition)	((void)(CHECKED && WARN_ON_ONCE(!(condition))))

/* Like might_sleep(), but without rescheduling. */
#define RULE_MAY_SLEEP()	__might_sleep(__FILE__, __LINE__)

#endif /* FLEXSC_KMOD_CHECKS_H */
