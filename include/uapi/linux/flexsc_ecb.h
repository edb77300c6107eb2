/* SPDX-License-Identifier: ((GPL-2.0-only WITH Linux-syscall-note) OR MIT) */
/*
 * The contract of an event control block (SEND, section 3.2). Sources of
 * events, which are the kernel on any core and other threads of the process,
 * write into the memory of one thread, the block's owner. Both sides compile
 * this one file.
 *
 * Writing an event into the memory is its DELIVERY. Making the owner's
 * execution aware of it, by a call of its handler, is NOTIFICATION. The owner
 * controls the two apart, by stores to "deliver" and "notify".
 *
 * What an event comes from (a descriptor, another thread) has a SLOT of 64
 * bytes, named by its index. A slot is on at most one list, once, and there is a
 * list for each of 32 GROUPS. So nothing can overflow, an event that isn't
 * taken yet coalesces with the next one of its slot, and memory is in
 * proportion to slots and not to the rate of events.
 *
 *
 * The life of a slot
 *
 *	from	to	by	when
 *	FREE	IDLE	-	it is given to a source
 *	IDLE	QUEUED	source	something happened; the source pushes the slot
 *	QUEUED	QUEUED	source	something more happened
 *	QUEUED	IDLE	owner	the event is taken
 *	IDLE	FREE	-	the source is gone: closed or forgotten
 *	QUEUED	REVOKED	-	the source is gone, and the slot still on its list
 *	REVOKED	FREE	owner	the slot is taken, and no event handed out
 *
 * "state" tells QUEUED and REVOKED by a bit each. FREE and IDLE are both zero:
 * whoever gives slots to sources (the kernel, or the library) knows which slots
 * are free, and gives none whose state isn't zero.
 *
 *
 * What must be seen before what
 *
 *  S1  A source ORs what happened, and QUEUED, into "state" (acquire, release).
 *	If QUEUED was set it has no more to do. Otherwise it stores "type",
 *	"group", "time" and "payload", if they change, then "next", then makes
 *	the slot the list's head by a compare-and-swap (a full barrier), and ORs
 *	the group into "pending" if it isn't there. If it is there, whoever set
 *	it does the rest.
 *  U1  The owner takes a whole list by an acquiring exchange of its head. It
 *	copies a slot's fields and "next", and only then exchanges "state" for
 *	zero (acquire, release): from then on the slot may be pushed again. No
 *	field but "state" changes while the slot is on a list.
 *  U2  A group's bit in "pending" is cleared by the owner when it finds that
 *	list empty. It looks at the list once more afterwards. Pairs with the
 *	end of S1: a slot is on a list only while the bit is set, or about to be.
 *  S3  After S1 a full barrier, then the source loads "waiting", "notify" and
 *	"critical": it wakes an owner that waits for the group, and notifies
 *	one that is to be notified of it and isn't in a critical section.
 *  U3  The owner stores "waiting", or "notify", or leaves a critical section by
 *	storing "critical"; then a full barrier; then loads "pending". Pairs
 *	with S3: either the source sees the owner's word, or the owner the group.
 *  S4  A source in the kernel that finds its group in none of "deliver",
 *	"notify" and "waiting" keeps the event, and adds one to "held"; then a
 *	full barrier; then it loads the three again.
 *  U4  The owner stores "deliver" or "notify"; then a full barrier; then loads
 *	"held", and if that isn't zero calls FLEXSC_ECB_FLUSH. Pairs with S4.
 *
 * The kernel writes to this memory and reads it, but believes nothing of it. An
 * owner that scribbles on it harms nobody else.
 */
#ifndef _UAPI_LINUX_FLEXSC_ECB_H
#define _UAPI_LINUX_FLEXSC_ECB_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define FLEXSC_ECB_ABI_VERSION	1

#define FLEXSC_ECB_GROUPS	32
#define FLEXSC_ECB_EVENTS_MAX	0x100000U
/*
 * The most watches of one open file. All processes that have the file, because they
 * inherited it or received it in a message, share this limit.
 */
#define FLEXSC_ECB_FILE_WATCHES	1024
/* Where the slots begin, in bytes from the event control block. */
#define FLEXSC_ECB_SLOTS_OFFSET	4096

/* What an event is (SEND, sections 3.3 and 3.6). Numbers are only appended. */
enum flexsc_event_type {
	FLEXSC_EVT_IOREADY	= 0,	/* a descriptor's state changed */
	FLEXSC_EVT_IPACCEPT	= 1,	/* a connection was accepted */
	FLEXSC_EVT_SIGNAL	= 2,	/* a signal arrived */
	FLEXSC_EVT_TIMER	= 3,	/* a timer expired */
	FLEXSC_EVT_CHILD	= 4,	/* a child process ended */
	FLEXSC_EVT_FILE		= 5,	/* a file or directory changed */
	FLEXSC_EVT_USER		= 6,	/* another thread posted it */
	FLEXSC_EVT_DONE		= 7,	/* calls of a loop are complete */
	FLEXSC_EVT_OVERFLOW	= 8,	/* no room to accept a connection */
	FLEXSC_EVT_TYPES	= 9,
};

/* flexsc_event_slot.state: bits of poll(2) in the low half, and these. */
#define FLEXSC_EVENT_POLL	0x0000ffffU
/*
 * Something happened to the descriptor, and what wasn't told: it may be
 * readable, writable, hung up, or neither.
 */
#define FLEXSC_EVENT_CHECK	0x00010000U
#define FLEXSC_EVENT_REVOKED	0x40000000U
#define FLEXSC_EVENT_QUEUED	0x80000000U

/* What events come from. All fields but state and next are a source's. */
struct flexsc_event_slot {
	__u32	state;
	__u32	next;		/* next older one of the list, index + 1; 0: none */
	__u32	gen;		/* how often the slot was given to a source */
	__u16	type;		/* enum flexsc_event_type */
	__u16	group;
	__s32	fd;		/* -1: none */
	__s32	error;		/* of an accept, or of uring's poll: -errno */
	__u64	data;		/* the program's own */
	__u64	time;		/* of the event, CLOCK_MONOTONIC in ns, if asked for */
	__u64	payload[3];	/* by type */
};

/*
 * payload of FLEXSC_EVT_IPACCEPT, where the kernel module accepted: the peer. An
 * IPv4 address is in the first four bytes.
 */
struct flexsc_event_peer {
	__u16	family;		/* AF_INET or AF_INET6; 0: not known */
	__u16	port;		/* as on the wire */
	__u32	scope;
	__u8	address[16];
};

/* The event control block (SEND, figure 3.1): a page, before the slots. */
struct flexsc_event_control {
	/*
	 * The owner's words. A bit for each group; notify implies deliver. All
	 * zero at first.
	 */
	__u32	notify;
	__u32	deliver;
	/*
	 * Above zero the handler isn't called. The kernel sets it to one, from
	 * zero, when it makes the owner enter the handler.
	 */
	__u32	critical;
	__u32	waiting;	/* groups for which the owner sleeps */
	/*
	 * How the kernel calls the handler, see "The upcall" below. They change
	 * only while notify is zero.
	 */
	__u64	entry;
	__u64	tail_begin;
	__u64	tail_end;
	__u64	arg;
	__u64	reserved0[2];

	/* Groups whose lists may have slots. Sources OR, the owner ANDs. */
	__u32	pending;
	__u32	held;		/* whoever delivers: events that wait for U4 */
	__u32	overflows;	/* likewise: accepts without a slot, as told */
	__u32	reserved1;
	__u64	regs;		/* the kernel's: the frame of the newest upcall */
	__u64	deadline;	/* of a wait, CLOCK_MONOTONIC in ns; ~0: none */
	__u64	reserved2[4];

	/* The lists, newest first: index + 1; 0: empty. */
	__u32	head[FLEXSC_ECB_GROUPS];
};

/*
 * The upcall (SEND, section 3.4), on x86-64
 *
 * The kernel makes the owner enter the handler where it happens to be in user
 * mode, and the owner goes back by itself. Right below the red zone of the
 * interrupted code, which ends 128 bytes below its stack pointer, the kernel
 * stores struct flexsc_upcall_frame. Then it sets "critical" to one, "regs" and
 * the stack pointer to the frame's address, di to "arg", clears the flags DF, TF
 * and RF, and goes on at "entry". Nothing else is saved: the code at "entry"
 * leaves bx, bp, r12 to r15 and the extended state as it found them.
 *
 * User mode leaves by a TAIL of instructions, in [tail_begin, tail_end), that
 * begins with a store of zero to "critical" and writes no other memory. The
 * stack pointer is the frame's address until the last two instructions: these
 * are "popfq", at the frame's flags, and "ret $128", at its ip. If the handler is
 * to be called while ip is inside of the tail, the kernel doesn't make another
 * frame: it sets the stack pointer back to the one that is there, and does the
 * rest as above. The tail can be run again from wherever it was left, because
 * each word that it loads lies in the red zone of the stack pointer until the
 * last instruction: no frame of a signal's, or of another upcall on top of a
 * signal's handler, is ever on top of one.
 *
 * entry is the owner's: with one that isn't an address of user mode there is no
 * upcall. Where an upcall isn't possible (another machine, a 32-bit program, a
 * restartable sequence, a shadow stack, single steps, a tracer, a stack that
 * can't be written to, a system call that isn't over or that goes on by
 * restart_syscall(), other rights by protection keys than the owner had when it made
 * the block) the kernel sends the owner SIGURG instead. A thread's event control
 * blocks have a tail each.
 */
struct flexsc_upcall_frame {
	__u64	r11, r10, r9, r8;
	__u64	di, si, dx, cx, ax;
	__u64	flags;
	__u64	ip;
};

/*
 * The kernel's part
 *
 * FLEXSC_IOC_ECB on /dev/flexsc, whether registered or not, makes an event
 * control block whose owner is the calling thread, and returns its descriptor
 * (close-on-exec). mmap() of "area" bytes at offset 0 gives its memory. No process
 * with another address space can use it. fork() gives a child neither events nor,
 * unless the parent used MADV_DOFORK on it, the memory. The block ends when its
 * descriptor is closed and its memory unmapped.
 *
 * When the owner executes another program, or ends, the kernel no longer notifies or
 * wakes it, and accepts no connections for it. The watches end at the next event of
 * which the kernel would have notified the owner, or for which it would have woken it,
 * or when their descriptors are closed. If exec or the process's end closes the block's
 * descriptor, all watches end then. Beside -EFAULT the kernel refuses with
 *
 *	-EINVAL		a wrong size, flag, or number of slots; a reserved word
 *			that isn't zero
 *	-EPROTONOSUPPORT  another "abi" than the kernel's
 *	-EOPNOTSUPP	the kernel refuses the probe that reports closed
 *			descriptors
 *	-EPERM		a thread under a seccomp filter
 *	-ENOMEM, -EMFILE, -ENFILE	as for FLEXSC_IOC_REGISTER, and open(2)
 */
struct flexsc_ecb_create {
	__u32	size;		/* in: sizeof(struct flexsc_ecb_create) */
	__u32	abi;		/* in: FLEXSC_ECB_ABI_VERSION */
	__u32	events;		/* in: slots */
	__u32	flags;		/* in: FLEXSC_ECB_* */
	__u64	area;		/* out: the size to map, in bytes */
	__u64	reserved[5];	/* zero */
};

/* Notification makes a system call that the owner sleeps in end with -EINTR. */
#define FLEXSC_ECB_INTERRUPTS_CALLS	0x1U
/* Slots' "time" is set. */
#define FLEXSC_ECB_TIMES		0x2U

/*
 * FLEXSC_ECB_WATCH: give a slot to a descriptor, or to the process' threads. The
 * state that the descriptor has now is its first event, if it has one of
 * "want". Returns the slot's index, or the errors below.
 *
 * A watch ends when its descriptor is closed, inside close(), dup2(),
 * close_range(), exec and the process's end: it doesn't keep the file. A duplicate
 * of the descriptor isn't watched. If the owner unshares its table of descriptors,
 * its watches stay with the table that it leaves.
 *
 *	-EINVAL		an unknown flag, type or group
 *	-EBADF		no such descriptor
 *	-EPERM		the caller isn't the owner; the file has no poll(2)
 *	-ENOENT		the block has ended
 *	-ELOOP		a file that itself watches others: an event control
 *			block, epoll, io_uring, /dev/flexsc
 *	-ENOSPC		no slot is free, the file has more than four queues, or
 *			the open file has FLEXSC_ECB_FILE_WATCHES watches.
 *			A slot that was revoked is free when the owner took it
 *	-EOPNOTSUPP	FLEXSC_WATCH_ACCEPT: a listener that blocks
 */
struct flexsc_ecb_watch {
	__s32	fd;		/* -1, with FLEXSC_EVT_USER alone */
	__u32	want;		/* bits of poll(2); hang-up and error always are */
	__u16	type;
	__u16	group;
	__u32	flags;		/* FLEXSC_WATCH_* */
	__u64	data;
	/* With FLEXSC_WATCH_ACCEPT: of what is accepted. */
	__u32	accept_want;
	__u16	accept_group;	/* of FLEXSC_EVT_IOREADY */
	__u16	reserved1;
	__u32	accept_flags;	/* SOCK_NONBLOCK, SOCK_CLOEXEC */
	__u32	reserved2;
	__u64	accept_data;
	__u64	reserved3[2];
};

/*
 * The descriptor listens. Connections are accepted when they are to be delivered
 * (SEND, section 3.6.1), and each gets a slot of its own. Its first event is
 * FLEXSC_EVT_IPACCEPT in "group", with the state that it has then; later events
 * are FLEXSC_EVT_IOREADY in "accept_group". Where there is no slot, no descriptor
 * or no memory for one, FLEXSC_EVT_OVERFLOW of the listener has the error and
 * "overflows" counts it, once until a connection is accepted again or none waits.
 * It is tried again when a watch ends, and by the owner's next flush or wait.
 * Another error of accept4(), and a connection that can't be accepted because
 * something watches the owner's calls or the listener blocks by now, is an event
 * of the listener's own type.
 */
#define FLEXSC_WATCH_ACCEPT	0x1U
/* The library's, which the kernel refuses: poll(2) before an event is handed out. */
#define FLEXSC_WATCH_CHECKED	0x2U

#define FLEXSC_IOC_ECB		_IOWR(0xe9, 16, struct flexsc_ecb_create)
/* On the descriptor of an event control block, by its owner alone. */
#define FLEXSC_ECB_WATCH	_IOW(0xe9, 17, struct flexsc_ecb_watch)
/* Take the slot with that index from its source; 0, or -ENOENT. */
#define FLEXSC_ECB_FORGET	_IO(0xe9, 18)
/*
 * Deliver what was held and may be delivered now. 1: a connection still finds no
 * slot or no descriptor; otherwise 0.
 */
#define FLEXSC_ECB_FLUSH	_IO(0xe9, 19)
/*
 * By any thread of the process, as S3 says, for the groups of the argument: wake
 * the owner, or notify it. -EPERM: the owner has executed another program, or the block
 * has ended. If the owner has ended, this has no effect.
 */
#define FLEXSC_ECB_KICK		_IO(0xe9, 20)
/*
 * lseek(fd, groups, FLEXSC_ECB_WAIT_SEEK): sleep until one of the groups is
 * pending, or until "deadline". What is held of them is delivered first. 0: look;
 * -EINTR: a signal. The handler isn't called because of what ended the sleep.
 * The kernel stores "waiting" itself, and zero at the end.
 */
#define FLEXSC_ECB_WAIT_SEEK	3	/* SEEK_DATA */

#if defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
_Static_assert(sizeof(struct flexsc_event_slot) == 64, "slot is a cache line");
_Static_assert(sizeof(struct flexsc_event_peer) == 24, "peer is a payload");
_Static_assert(sizeof(struct flexsc_event_control) == 256, "four lines");
_Static_assert(sizeof(struct flexsc_upcall_frame) == 88, "eleven words");
_Static_assert(sizeof(struct flexsc_ecb_create) == 64, "ABI");
_Static_assert(sizeof(struct flexsc_ecb_watch) == 64, "ABI");
_Static_assert(__builtin_offsetof(struct flexsc_event_slot, data) == 24, "ABI");
_Static_assert(__builtin_offsetof(struct flexsc_event_slot, payload) == 40, "ABI");
_Static_assert(__builtin_offsetof(struct flexsc_event_control, entry) == 16, "ABI");
_Static_assert(__builtin_offsetof(struct flexsc_event_control, pending) == 64, "ABI");
_Static_assert(__builtin_offsetof(struct flexsc_event_control, regs) == 80, "ABI");
_Static_assert(__builtin_offsetof(struct flexsc_event_control, head) == 128, "ABI");
#endif

#endif /* _UAPI_LINUX_FLEXSC_ECB_H */
