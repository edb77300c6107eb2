// SPDX-License-Identifier: GPL-2.0-only
/*
 * The functions that execute entries' calls: those of the kernel's system-call
 * table that may run on any thread of the process. calls.def lists them. A
 * number that isn't listed, such as that of a newer kernel's call, is unknown
 * here, because the effect of that call on its thread hasn't been reviewed.
 *
 * The table isn't exported. A kprobe on its symbol fails, because the symbol is
 * data, but the attempt yields the symbol's address. As a check, kprobes also
 * find the addresses of some functions in the table, which are then compared.
 */
#define pr_fmt(fmt)	KBUILD_MODNAME ": " fmt

#include <linux/kprobes.h>
#include <uapi/linux/futex.h>

#include "base/compat.h"
#include "base/dispatch.h"

#ifdef CONFIG_ARM64
#define PREFIX	"__arm64_"
#else
#define PREFIX	"__x64_"
#endif

/*
 * The maximum distance of a kprobe from its function's start: an ENDBR may come
 * first.
 */
#define LANDING	8

call_fn dispatch_table[DISPATCH_SIZE] __ro_after_init;
call_fn dispatch_restart __ro_after_init;

struct dispatch_known {
	u16 nr;
	bool allowed;
};

static const struct dispatch_known dispatch_known_calls[] __initconst = {
#define ALLOWED(name)	{ __NR_##name, true },
#define REFUSED(name)	{ __NR_##name, false },
#include "base/calls.def"
#undef ALLOWED
#undef REFUSED
};

/* The kernel's futex(). Entries call dispatch_futex_unowned() instead. */
static call_fn dispatch_futex __ro_after_init;

asmlinkage long dispatch_unknown(const struct pt_regs *regs)
{
	return -ENOSYS;
}

static asmlinkage long dispatch_refused(const struct pt_regs *regs)
{
	return -EOPNOTSUPP;
}

/*
 * Refuse priority-inheriting futex operations: the futex would be owned by the
 * thread that executes the entry, not by the one that posted it. If the program
 * uses the library, lib/calls/call_info.c has refused them already.
 */
static asmlinkage long dispatch_futex_unowned(const struct pt_regs *regs)
{
	switch ((int)regs_second(regs) & FUTEX_CMD_MASK) {
	case FUTEX_LOCK_PI:
	case FUTEX_LOCK_PI2:
	case FUTEX_UNLOCK_PI:
	case FUTEX_TRYLOCK_PI:
	case FUTEX_WAIT_REQUEUE_PI:
	case FUTEX_CMP_REQUEUE_PI:
		return -EOPNOTSUPP;
	default:
		return dispatch_futex(regs);
	}
}

/* Returns the address of a symbol, function or data; NULL: unknown. */
void *__init dispatch_address(const char *symbol)
{
	struct kprobe probe = {
		.symbol_name = symbol,
		.flags = KPROBE_FLAG_DISABLED,
	};

	if (!register_kprobe(&probe))
		unregister_kprobe(&probe);
	return probe.addr;
}

static bool __init dispatch_has(const call_fn *table, unsigned int nr,
				const char *symbol)
{
	unsigned long function = (unsigned long)dispatch_address(symbol);

	return function - (unsigned long)table[nr] <= LANDING;
}

int __init dispatch_init(void)
{
	const call_fn *table = dispatch_address("sys_call_table");
	int i;

	if (!table) {
		pr_err("no sys_call_table: the kernel needs CONFIG_KALLSYMS_ALL\n");
		return -EOPNOTSUPP;
	}
	if (!dispatch_has(table, __NR_getppid, PREFIX "sys_getppid") ||
	    !dispatch_has(table, __NR_read, PREFIX "sys_read") ||
	    !dispatch_has(table, __NR_close, PREFIX "sys_close") ||
	    !dispatch_has(table, __NR_openat, PREFIX "sys_openat")) {
		pr_err("unknown sys_call_table: this kernel isn't supported\n");
		return -EOPNOTSUPP;
	}
	BUILD_BUG_ON(NR_syscalls > DISPATCH_SIZE);
	for (i = 0; i < DISPATCH_SIZE; i++)
		dispatch_table[i] = dispatch_unknown;
	for (i = 0; i < ARRAY_SIZE(dispatch_known_calls); i++)
		if (dispatch_known_calls[i].nr < NR_syscalls)
			dispatch_table[dispatch_known_calls[i].nr] =
				dispatch_known_calls[i].allowed ?
					table[dispatch_known_calls[i].nr] :
					dispatch_refused;
	dispatch_futex = table[__NR_futex];
	dispatch_table[__NR_futex] = dispatch_futex_unowned;
	dispatch_restart = table[__NR_restart_syscall];
	return 0;
}

long dispatch_refusal(unsigned int nr)
{
	call_fn function = dispatch_of(nr);

	if (function == dispatch_unknown)
		return -ENOSYS;
	return function == dispatch_refused ? -EOPNOTSUPP : 0;
}
