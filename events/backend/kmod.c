/* SPDX-License-Identifier: MIT */
/*
 * Delivery by the kernel module. Sources write into memory that the module shares with
 * the process. The module makes the owner enter its handler without a signal. The
 * close() of a watched descriptor ends its watch before it returns. Owner only, except
 * for kick.
 */
#include <errno.h>
#include <fcntl.h>
#include <flexsc/ecb.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/syscall.h"
#include "lib/files/private_fd.h"
#include "lib/engine/why.h"
#include "events/event/backend.h"
#include "events/event/critical.h"
#include "events/event/ecb.h"
#include "events/upcall/upcall.h"
#include "backends.h"
#include "notifier.h"

#define SECTIONS_OF_CHILD	(1U << 30)
#define AGAIN		100000000U	/* ns until a starved listening socket is
					 * retried */

struct kecb {
	struct flexsc__upcall upcall;
	struct flexsc_ecb *ecb;
	int fd;
	bool accepts;		/* a listening socket is or was being watched */
	bool starved;		/* no slot or descriptor was free for a connection */
	uint32_t overflows;	/* control->overflows at the last flush */
};

static int kecb_ioctl(const struct flexsc_ecb *ecb, unsigned long command,
		      uint64_t arg)
{
	const struct kecb *kecb = ecb->own;

	return (int)raw_syscall(SYS_ioctl, (uint32_t)kecb->fd, command, arg, 0,
				0, 0);
}

#ifdef __x86_64__

/* Runs the handler, in the critical section that the kernel began. */
static void kecb_run(struct flexsc__upcall *upcall)
{
	struct flexsc_ecb *ecb = ((struct kecb *)upcall)->ecb;
	int err = errno;

	if (!ecb->handler)
		/*
		 * The program has set "notify", although it has no handler. Clear
		 * "notify", so that the kernel makes no further upcalls.
		 */
		__atomic_store_n(&ecb->control->notify, 0, __ATOMIC_RELAXED);
	else if (control_due(ecb->control))
		flexsc__critical_handle(ecb);
	errno = err;
}

/*
 * Store the addresses that the kernel needs for an upcall. Without them, the kernel
 * sends SIGURG instead.
 */
static int kecb_prepare(struct flexsc_ecb *ecb)
{
	struct kecb *kecb = ecb->own;
	struct flexsc__upcall *upcall = &kecb->upcall;
	size_t size = flexsc__upcall_probe(upcall);

	upcall->control = ecb->control;
	upcall->run = kecb_run;
	upcall->stack = PTR(ecb->stack);
	upcall->stack_size = ecb->stack_size;
	if (!(ecb->flags & FLEXSC_ECB_INTEGER_ONLY)) {
		if (!size)
			return 0;
		upcall->room = size;
	}
	ecb->control->arg = PTR(upcall);
	ecb->control->tail_begin = PTR(flexsc__upcall_tail);
	ecb->control->tail_end = PTR(flexsc__upcall_tail_end);
	ecb->control->entry = PTR(flexsc__upcall_entry);
	return 0;
}

#else

/* Store nothing: the kernel has no upcalls on this architecture, and sends SIGURG. */
static int kecb_prepare(struct flexsc_ecb *ecb)
{
	return 0;
}

#endif

static int kecb_watch(struct flexsc_ecb *ecb,
		      const struct flexsc_ecb_watch *watch)
{
	struct flexsc_ecb_watch own = *watch;
	struct kecb *kecb = ecb->own;
	int index;

	/*
	 * Pass on only the flags that the kernel knows; the others are the
	 * library's.
	 */
	own.flags &= FLEXSC_WATCH_ACCEPT;
	index = kecb_ioctl(ecb, FLEXSC_ECB_WATCH, PTR(&own));
	if (index < 0)
		return index;
	ecb->sources[index] = (struct source){ 0 };
	if (watch->flags & FLEXSC_WATCH_ACCEPT) {
		ecb->sources[index].flags = SOURCE_ACCEPTS;
		kecb->accepts = true;
	}
	return index;
}

static int kecb_forget(struct flexsc_ecb *ecb, uint32_t index, bool close)
{
	int fd = ecb->slots[index].fd;
	int err;

	/*
	 * Forget the source before closing its descriptor: after close() the
	 * slot may belong to another descriptor.
	 */
	err = kecb_ioctl(ecb, FLEXSC_ECB_FORGET, index);
	ecb->sources[index].flags = 0;
	if (close)
		err = (int)raw_syscall(SYS_close, (uint32_t)fd, 0, 0, 0, 0, 0);
	return err;
}

static int kecb_deliver_held(struct flexsc_ecb *ecb)
{
	struct kecb *kecb = ecb->own;
	int ret;

	kecb->overflows = __atomic_load_n(&ecb->control->overflows,
					  __ATOMIC_RELAXED);
	ret = kecb_ioctl(ecb, FLEXSC_ECB_FLUSH, 0);
	kecb->starved = ret > 0;
	return ret < 0 ? ret : 0;
}

/*
 * The owner has freed a slot, which the kernel doesn't notice by itself. If a
 * connection may be waiting for a slot, flush, so that the kernel accepts it.
 */
static void kecb_dropped(struct flexsc_ecb *ecb, uint32_t index)
{
	const struct kecb *kecb = ecb->own;

	if (kecb->accepts)
		kecb_deliver_held(ecb);
}

/* Flush if events are held, or if a connection waits for a descriptor. */
static int kecb_flush(struct flexsc_ecb *ecb)
{
	const struct flexsc_event_control *control = ecb->control;
	const struct kecb *kecb = ecb->own;

	if (!__atomic_load_n(&control->held, __ATOMIC_SEQ_CST) &&
	    __atomic_load_n(&control->overflows, __ATOMIC_RELAXED) ==
		    kecb->overflows && !kecb->starved)
		return 0;
	return kecb_deliver_held(ecb);
}

static int kecb_sleep(const struct flexsc_ecb *ecb, uint32_t groups)
{
	const struct kecb *kecb = ecb->own;

	return (int)raw_syscall(SYS_lseek, (uint32_t)kecb->fd,
				groups, FLEXSC_ECB_WAIT_SEEK, 0, 0, 0);
}

/*
 * Sleep while a listening socket is starved, but only for AGAIN: then retry, because no
 * event reports that a descriptor is free again.
 */
static int kecb_sleep_starved(struct flexsc_ecb *ecb, uint32_t groups)
{
	struct flexsc_event_control *control = ecb->control;
	uint64_t deadline = control->deadline;
	uint64_t again = time_monotonic() + AGAIN;
	int ret;

	if (again < deadline)
		control->deadline = again;
	ret = kecb_sleep(ecb, groups);
	control->deadline = deadline;
	return ret;
}

static int kecb_wait(struct flexsc_ecb *ecb, uint32_t groups)
{
	const struct kecb *kecb = ecb->own;

	if (kecb->starved)
		kecb_deliver_held(ecb);
	return kecb->starved ? kecb_sleep_starved(ecb, groups) :
			       kecb_sleep(ecb, groups);
}

static void kecb_kick(struct flexsc_ecb *ecb, uint32_t groups)
{
	if (control_waits(ecb->control, groups) ||
	    control_notifies(ecb->control, groups))
		kecb_ioctl(ecb, FLEXSC_ECB_KICK, groups);
}

static int kecb_map(struct flexsc_ecb *ecb, struct kecb *kecb, int device)
{
	struct flexsc_ecb_create args = {
		.size = sizeof(args),
		.abi = FLEXSC_ECB_ABI_VERSION,
		.events = ecb->events,
		.flags = ecb->flags & (FLEXSC_ECB_INTERRUPTS_CALLS |
				       FLEXSC_ECB_TIMES),
	};
	void *area;

	kecb->fd = flexsc__private_fd(ioctl(device, FLEXSC_IOC_ECB, &args));
	if (kecb->fd < 0)
		return -errno;
	area = mmap(NULL, args.area, PROT_READ | PROT_WRITE, MAP_SHARED,
		    kecb->fd, 0);
	if (area == MAP_FAILED)
		return -errno;
	ecb->area = args.area;
	ecb->control = area;
	ecb->slots = (void *)((char *)area + FLEXSC_ECB_SLOTS_OFFSET);
	return 0;
}

/*
 * Close accepted connections whose events weren't handed out: the program has never
 * received their descriptors, so it can't close them.
 */
static void kecb_disown(struct flexsc_ecb *ecb)
{
	for (uint32_t i = 0; i < ecb->events; i++)
		if (ecb->sources[i].flags & SOURCE_ACCEPTS)
			kecb_ioctl(ecb, FLEXSC_ECB_FORGET, i);
	for (uint32_t i = 0; i < ecb->events; i++) {
		uint32_t state = __atomic_load_n(&ecb->slots[i].state,
						 __ATOMIC_ACQUIRE);

		if (ecb->slots[i].type == FLEXSC_EVT_IPACCEPT &&
		    state & FLEXSC_EVENT_QUEUED &&
		    !(state & FLEXSC_EVENT_REVOKED))
			close(ecb->slots[i].fd);
	}
}

static void kecb_discard(struct flexsc_ecb *ecb)
{
	munmap(ecb->control, ecb->area);
	free(ecb->own);
}

static void kecb_close(struct flexsc_ecb *ecb)
{
	const struct kecb *kecb = ecb->own;

	if (kecb->accepts)
		kecb_disown(ecb);
	flexsc__private_fd_close(kecb->fd);
	kecb_discard(ecb);
}

static int kecb_make(struct flexsc_ecb *ecb, struct kecb *kecb, enum kmod_step *step)
{
	int device = open(KMOD_DEVICE, O_RDWR | O_CLOEXEC);
	int err;

	*step = KMOD_OPEN;
	if (device < 0)
		return -errno;
	*step = KMOD_REGISTER;
	err = kecb_map(ecb, kecb, device);
	close(device);
	return err;
}

static int kecb_open(struct flexsc_ecb *ecb)
{
	enum kmod_step step;
	struct kecb *kecb;
	int err;

	/*
	 * Refuse FLEXSC_ECB_BATCHED: the module would have to withhold events while the
	 * owner computes.
	 */
	if (ecb->flags & FLEXSC_ECB_BATCHED) {
		__builtin_strcpy(ecb->why, "only the backend uring delivers in batches");
		return -EOPNOTSUPP;
	}
	kecb = calloc(1, sizeof(*kecb));
	if (!kecb)
		return -ENOMEM;
	kecb->fd = -1;
	kecb->ecb = ecb;
	ecb->own = kecb;
	err = kecb_make(ecb, kecb, &step);
	if (!err)
		err = kecb_prepare(ecb);
	if (!err)
		return 0;
	if (ecb->control)
		munmap(ecb->control, ecb->area);
	ecb->control = NULL;
	if (kecb->fd >= 0)
		flexsc__private_fd_close(kecb->fd);
	free(kecb);
	return flexsc__kmod_why(step, err, ecb->why, sizeof(ecb->why));
}

/*
 * Map zeroed memory in place of the shared memory, which the child doesn't inherit. The
 * child may be in a critical section or an upcall, whose end accesses that memory. With
 * SECTIONS_OF_CHILD as the number of nested sections, that end never calls the handler.
 */
static void kecb_forked(struct flexsc_ecb *ecb)
{
	const struct kecb *kecb = ecb->own;
	const void *area = mmap(ecb->control, ecb->area,
				PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE |
					MAP_FIXED_NOREPLACE, -1, 0);

	if (area != MAP_FAILED)
		ecb->control->critical = SECTIONS_OF_CHILD;
	flexsc__private_fd_close(kecb->fd);
}

const struct backend flexsc__backend_kmod = {
	.name = "kmod",
	.open = kecb_open,
	.watch = kecb_watch,
	.forget = kecb_forget,
	.dropped = kecb_dropped,
	.flush = kecb_flush,
	.wait = kecb_wait,
	.kick = kecb_kick,
	.unmask = flexsc__notifier_unmask,
	.close = kecb_close,
	.forked = kecb_forked,
	.discard = kecb_discard,
};
