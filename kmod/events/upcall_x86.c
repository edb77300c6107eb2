// SPDX-License-Identifier: GPL-2.0-only
/*
 * The upcall on x86-64. The owner's registers are changed on its way to user
 * mode, so that the owner enters its handler. The handler returns without the
 * kernel. The contract is "The upcall" in <linux/flexsc_ecb.h>.
 *
 * Everything here runs in the owner's task work, just before a signal's frame
 * would be made. Only the kernel's signal code can end an interrupted system
 * call or abort a restartable sequence. If one of these is needed, the owner
 * gets a signal instead.
 *
 * Task work isn't always run on the way to user mode: io_uring_enter(), KVM_RUN
 * and tracing run it in the middle of a system call. The call's result, which
 * the frame has to contain, isn't known then.
 */
#include <linux/errno.h>
#include <linux/sched.h>
#include <linux/stddef.h>
#include <linux/uaccess.h>
#include <asm/pkru.h>
#include <asm/processor-flags.h>
#include <asm/segment.h>
#include <asm/syscall.h>

#include "base/compat.h"
#include "events/ecb.h"
#include "events/upcall.h"

#define RED_ZONE	128
#define SYSCALL_SIZE	2	/* length of a system-call instruction */
#define SYSCALL_CODE	0x050f	/* "syscall", as loaded from memory */
#define INT80_CODE	0x80cd
/*
 * Distances of the tail's last two instructions from its end. "The upcall" in
 * <linux/flexsc_ecb.h> describes the tail.
 */
#define RET_LEFT	3
#define POPF_LEFT	4

/*
 * Returns the current task's protection-key rights. If they differ from those
 * at the ECB's creation, no upcall is made: a handler must not run with the
 * rights of the code that it interrupts. A signal's handler doesn't run with
 * them, either: the kernel resets the rights for it.
 */
u32 upcall_rights(void)
{
	return read_pkru();
}

static bool upcall_possible(const struct ecb *ecb, const struct pt_regs *regs)
{
	return regs->cs == __USER_CS && !(regs->flags & X86_EFLAGS_TF) &&
	       !READ_ONCE(current->ptrace) && !task_shadowed() &&
	       upcall_rights() == ecb->pkru && !task_in_sequence();
}

/*
 * Has the kernel's signal code turned the call into one that restart_syscall()
 * continues? Then the owner gets a signal instead of an upcall, because its
 * handler may make a call that replaces the restart block. If the call's result
 * equals the number of restart_syscall() by chance, a signal is sent
 * needlessly.
 */
static bool upcall_restarts(const struct pt_regs *regs)
{
	u16 code;

	if (get_user(code, (u16 __user *)regs->ip))
		return true;
	/* With int $0x80, restart_syscall() has the 32-bit number 0. */
	return code == INT80_CODE ? !regs->ax :
	       code == SYSCALL_CODE && (regs->ax & ~__X32_SYSCALL_BIT) ==
					       __NR_restart_syscall;
}

/*
 * If a system call was interrupted, complete it as its caller expects. False:
 * the result isn't known, or depends on a signal's handler.
 */
static bool upcall_end_call(struct pt_regs *regs, u32 flags)
{
	if (syscall_get_nr(current, regs) == -1)
		return true;
	if (upcall_restarts(regs))
		return false;
	switch ((long)regs->ax) {
	case -ENOSYS:		/* set by the kernel's entry code: no result yet */
		return false;
	case -ERESTARTSYS:
	case -ERESTARTNOHAND:
	case -ERESTART_RESTARTBLOCK:
		if (!(flags & FLEXSC_ECB_INTERRUPTS_CALLS))
			return false;
		regs->ax = -EINTR;
		break;
	case -ERESTARTNOINTR:
		regs->ax = regs->orig_ax;
		regs->ip -= SYSCALL_SIZE;
		break;
	}
	regs->orig_ax = -1;
	return true;
}

/* Is the owner leaving its handler, whose frame is then still in use? */
static bool upcall_find_frame(const struct flexsc_event_control *control,
			      const struct pt_regs *regs, u64 *frame)
{
	u64 begin = READ_ONCE(control->tail_begin);
	u64 end = READ_ONCE(control->tail_end);

	if (regs->ip < begin || regs->ip >= end)
		return false;
	*frame = regs->sp;
	if (end - regs->ip == POPF_LEFT)
		*frame -= offsetof(struct flexsc_upcall_frame, flags);
	else if (end - regs->ip == RET_LEFT)
		*frame -= offsetof(struct flexsc_upcall_frame, ip);
	return true;
}

static bool upcall_make_frame(const struct pt_regs *regs, u64 *address)
{
	struct flexsc_upcall_frame __user *frame;

	frame = (void __user *)(regs->sp - RED_ZONE - sizeof(*frame));
	if (!user_access_begin(frame, sizeof(*frame)))
		return false;
	unsafe_put_user(regs->r11, &frame->r11, fault);
	unsafe_put_user(regs->r10, &frame->r10, fault);
	unsafe_put_user(regs->r9, &frame->r9, fault);
	unsafe_put_user(regs->r8, &frame->r8, fault);
	unsafe_put_user(regs->di, &frame->di, fault);
	unsafe_put_user(regs->si, &frame->si, fault);
	unsafe_put_user(regs->dx, &frame->dx, fault);
	unsafe_put_user(regs->cx, &frame->cx, fault);
	unsafe_put_user(regs->ax, &frame->ax, fault);
	unsafe_put_user(regs->flags, &frame->flags, fault);
	unsafe_put_user(regs->ip, &frame->ip, fault);
	user_access_end();
	*address = (__force u64)frame;
	return true;
fault:
	user_access_end();
	return false;
}

bool upcall_enter(struct ecb *ecb)
{
	struct flexsc_event_control *control = ecb->control;
	struct pt_regs *regs = current_pt_regs();
	u64 entry = READ_ONCE(control->entry);
	u64 frame;

	if (!entry || entry >= TASK_SIZE_MAX || !upcall_possible(ecb, regs) ||
	    !upcall_end_call(regs, ecb->flags))
		return false;
	if (!upcall_find_frame(control, regs, &frame) &&
	    !upcall_make_frame(regs, &frame))
		return false;
	WRITE_ONCE(control->critical, 1);
	WRITE_ONCE(control->regs, frame);
	regs->sp = frame;
	regs->di = READ_ONCE(control->arg);
	regs->ip = entry;
	regs->flags &= ~(X86_EFLAGS_DF | X86_EFLAGS_TF | X86_EFLAGS_RF);
	return true;
}
