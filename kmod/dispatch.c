// SPDX-License-Identifier: GPL-2.0-only
/*
 * A copy of the kernel's system-call table, without the calls that are refused.
 *
 * The table isn't exported, and has an address like every symbol: a kprobe on
 * it can't be registered, as it is data, and comes back with the address in
 * it. To be sure, some of its functions are found the same way and compared.
 */
#define pr_fmt(fmt)	KBUILD_MODNAME ": " fmt

#include <linux/kprobes.h>

#include "registration.h"

#ifdef CONFIG_ARM64
#define PREFIX	"__arm64_"
#else
#define PREFIX	"__x64_"
#endif

/* Where there is an ENDBR or the like a probe is behind it. */
#define LANDING	8

call_fn dispatch_table[DISPATCH_SIZE] __ro_after_init;
call_fn dispatch_restart __ro_after_init;

static const u16 refused_calls[] __initconst = {
#define REFUSED(name)	__NR_##name,
#include "refused.def"
#undef REFUSED
};

asmlinkage long dispatch_unknown(const struct pt_regs *regs)
{
	return -ENOSYS;
}

static asmlinkage long refused(const struct pt_regs *regs)
{
	return -EOPNOTSUPP;
}

/* Where a symbol is, be it code or data; NULL: unknown. */
static void __init *address_of(const char *symbol)
{
	struct kprobe probe = {
		.symbol_name = symbol,
		.flags = KPROBE_FLAG_DISABLED,
	};

	if (!register_kprobe(&probe))
		unregister_kprobe(&probe);
	return probe.addr;
}

static bool __init has(const call_fn *table, unsigned int nr,
		       const char *symbol)
{
	unsigned long function = (unsigned long)address_of(symbol);

	return function - (unsigned long)table[nr] <= LANDING;
}

int __init dispatch_init(void)
{
	const call_fn *table = address_of("sys_call_table");
	unsigned int nr;
	int i;

	if (!table) {
		pr_err("the kernel's sys_call_table isn't found: CONFIG_KALLSYMS_ALL is missing\n");
		return -EOPNOTSUPP;
	}
	if (!has(table, __NR_getppid, PREFIX "sys_getppid") ||
	    !has(table, __NR_read, PREFIX "sys_read") ||
	    !has(table, __NR_close, PREFIX "sys_close") ||
	    !has(table, __NR_openat, PREFIX "sys_openat")) {
		pr_err("what looks like the sys_call_table isn't one: this kernel isn't supported\n");
		return -EOPNOTSUPP;
	}
	BUILD_BUG_ON(NR_syscalls > DISPATCH_SIZE);
	memcpy(dispatch_table, table, NR_syscalls * sizeof(*table));
	for (nr = NR_syscalls; nr < DISPATCH_SIZE; nr++)
		dispatch_table[nr] = dispatch_unknown;
	dispatch_restart = table[__NR_restart_syscall];
	for (i = 0; i < ARRAY_SIZE(refused_calls); i++)
		dispatch_table[refused_calls[i]] = refused;
	return 0;
}

bool dispatch_accepts(unsigned int nr)
{
	return dispatch_of(nr) != refused;
}
