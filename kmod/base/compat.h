/* SPDX-License-Identifier: GPL-2.0-only */
/* All differences between architectures and between kernel versions. */
#ifndef FLEXSC_KMOD_COMPAT_H
#define FLEXSC_KMOD_COMPAT_H

#include <linux/flexsc.h>
#include <linux/fs.h>
#include <linux/hrtimer.h>
#include <linux/mm.h>
#include <linux/nospec.h>
#include <linux/ptrace.h>
#include <linux/rseq.h>
#include <linux/sched.h>
#include <linux/thread_info.h>
#include <linux/uaccess.h>
#include <linux/version.h>
#ifdef CONFIG_GENERIC_ENTRY
#include <linux/entry-common.h>
#endif
#ifdef CONFIG_X86_USER_SHADOW_STACK
#include <asm/prctl.h>
#endif

/*
 * The kernel options that debian/flexsc-dkms.dkms requires, except
 * CONFIG_KALLSYMS_ALL.
 */
#if !IS_ENABLED(CONFIG_PREEMPT_NOTIFIERS)
#error "FlexSC needs CONFIG_PREEMPT_NOTIFIERS, which KVM selects"
#endif
#if !IS_ENABLED(CONFIG_IRQ_WORK) || !IS_ENABLED(CONFIG_KPROBES)
#error "FlexSC needs CONFIG_IRQ_WORK and CONFIG_KPROBES"
#endif
/*
 * Without ftrace a kprobe is a breakpoint: its handler runs like an NMI and may
 * not take locks.
 */
#if IS_ENABLED(CONFIG_X86) && !IS_ENABLED(CONFIG_KPROBES_ON_FTRACE)
#error "FlexSC needs CONFIG_KPROBES_ON_FTRACE"
#endif
/*
 * With PREEMPT_RT a spinlock may sleep, but wait-queue callbacks and probes
 * take spinlocks in atomic context.
 */
#if IS_ENABLED(CONFIG_PREEMPT_RT)
#error "FlexSC doesn't run with CONFIG_PREEMPT_RT"
#endif

/*
 * Has the task left the run queue, rather than been preempted? Called from
 * block_sched_out().
 */
static inline bool task_sleeps(struct task_struct *task)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0)
	return !task_is_runnable(task);
#else
	return !READ_ONCE(task->on_rq);
#endif
}

static inline void area_flags_set(struct vm_area_struct *vma)
{
	const vm_flags_t flags = VM_DONTCOPY | VM_DONTEXPAND | VM_DONTDUMP;

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
	vm_flags_set(vma, flags);
#else
	vma->vm_flags |= flags;
#endif
}

static inline void timer_setup_hr(struct hrtimer *timer,
				  enum hrtimer_restart (*function)(struct hrtimer *))
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
	hrtimer_setup(timer, function, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
#else
	hrtimer_init(timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
	timer->function = function;
#endif
}

/*
 * Would a tracer, a filter or an audit rule see or change a system call of the
 * current task?
 */
static inline bool syscall_traced(void)
{
#ifdef CONFIG_GENERIC_ENTRY
	return READ_ONCE(current_thread_info()->syscall_work) &
	       SYSCALL_WORK_ENTER;
#else
	return READ_ONCE(current_thread_info()->flags) & _TIF_SYSCALL_WORK;
#endif
}

/* Is the current task under a seccomp filter, or in seccomp's strict mode? */
static inline bool task_filtered(void)
{
#ifdef CONFIG_SECCOMP
	/*
	 * data_race(): another thread may install a filter for this one at any
	 * time.
	 */
	return data_race(current->seccomp.mode);
#else
	return false;
#endif
}

static inline struct rseq __user *task_rseq(void)
{
#if !defined(CONFIG_RSEQ)
	return NULL;
#elif LINUX_VERSION_CODE >= KERNEL_VERSION(6, 19, 0)
	return current->rseq.usrptr;
#else
	return current->rseq;
#endif
}

/*
 * May the current task be in a restartable sequence? True if its rseq area
 * points to a sequence. Some programs don't clear that pointer when they leave
 * the sequence, so true may be wrong.
 */
static inline bool task_in_sequence(void)
{
	struct rseq __user *rseq = task_rseq();
	u64 sequence;

	return rseq && (get_user(sequence, &rseq->rseq_cs) || sequence);
}

/*
 * Does the current task have a shadow stack, which restricts where "ret" may
 * go?
 */
static inline bool task_shadowed(void)
{
#ifdef CONFIG_X86_USER_SHADOW_STACK
	return current->thread.features & ARCH_SHSTK_SHSTK;
#else
	return false;
#endif
}

/*
 * Clear the branch history before an indirect call whose target user mode
 * chooses (Branch History Injection). The kernel clears it on each entry from
 * user mode, but here a single entry executes a whole batch of calls. This does
 * nothing on processors that clear the history themselves or aren't affected,
 * nor on kernels from 6.13 on, which export the clearing function to KVM only.
 */
static __always_inline void history_clear(void)
{
#if defined(CONFIG_X86_64) && defined(X86_FEATURE_CLEAR_BHB_LOOP) && \
	LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
	asm volatile(ALTERNATIVE("", "call clear_bhb_loop",
				 X86_FEATURE_CLEAR_BHB_LOOP)
		     : ASM_CALL_CONSTRAINT : : "rax", "rcx", "cc", "memory");
#endif
}

/* Store the call's number and arguments as the kernel's entry code would. */
static inline void regs_load(struct pt_regs *regs,
			     const struct flexsc_entry *entry, unsigned int nr)
{
#if defined(CONFIG_X86_64)
	regs->di = READ_ONCE(entry->args[0]);
	regs->si = READ_ONCE(entry->args[1]);
	regs->dx = READ_ONCE(entry->args[2]);
	regs->r10 = READ_ONCE(entry->args[3]);
	regs->r8 = READ_ONCE(entry->args[4]);
	regs->r9 = READ_ONCE(entry->args[5]);
	regs->orig_ax = nr;
#elif defined(CONFIG_ARM64)
	int i;

	for (i = 0; i < FLEXSC_ARGS_MAX; i++)
		regs->regs[i] = READ_ONCE(entry->args[i]);
	regs->orig_x0 = regs->regs[0];
	regs->regs[8] = nr;
	regs->syscallno = nr;
#else
#error "FlexSC supports only x86-64 and arm64"
#endif
}

/* Returns the call's second argument, which regs_load() stored. */
static inline unsigned long regs_second(const struct pt_regs *regs)
{
#if defined(CONFIG_X86_64)
	return regs->si;
#else
	return regs->regs[1];
#endif
}

#endif /* FLEXSC_KMOD_COMPAT_H */
