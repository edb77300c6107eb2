/* SPDX-License-Identifier: ((GPL-2.0-only WITH Linux-syscall-note) OR MIT) */
/*
 * The contract of an event control block (SEND, section 3.2). Sources of events
 * are the kernel, on any core, and other threads of the process. They write
 * into the memory of one thread, the block's owner. Both sides compile this
 * file.
 *
 * Writing an event into the memory is its DELIVERY. Informing the owner, by a
 * call of its handler, is NOTIFICATION. The owner controls the two separately,
 * by stores to "deliver" and "notify".
 *
 * Each source (a descriptor, another thread) has a SLOT of 64 bytes, identified
 * by its index. There is one list for each of 32 GROUPS, and a slot is on at
 * most one list, once. So no list can overflow. An event that isn't taken yet
 * coalesces with the next one of its slot. Memory depends on the number of
 * slots, not on the rate of events.
 *
 *
 * The life of a slot
 *
 *	from	to	by	when
 *	FREE	IDLE	-	the slot is assigned to a source
 *	IDLE	QUEUED	source	an event; the source pushes the slot
 *	QUEUED	QUEUED	source	another event
 *	QUEUED	IDLE	owner	the event is taken
 *	IDLE	FREE	-	the source was closed or forgotten
 *	QUEUED	REVOKED	-	the same, but the slot is still on its list
 *	REVOKED	FREE	owner	the slot is taken without handing out an event
 *
 * "state" has a bit each for QUEUED and REVOKED. FREE and IDLE are both zero:
 * the side that assigns slots to sources (the kernel or the library) keeps
 * track of free slots, and assigns none whose state isn't zero.
 *
 *
 * Memory order
 *
 *  S1  A source ORs the event's bits and QUEUED into "state" (acquire, release).
 *	If QUEUED was already set, the source is done. Otherwise it stores
 *	"type", "group", "time" and "payload", if they change, then "next". Then
 *	it makes the slot the list's head by a compare-and-swap (a full barrier),
 *	and ORs the group into "pending" unless the bit is set. If the bit is
 *	set, this source is done: the source that set it continues with S3.
 *  U1  The owner takes a whole list by an acquiring exchange of its head. It
 *	copies a slot's fields and "next", and only then exchanges "state" for
 *	zero (acquire, release): from then on the slot may be pushed again. No
 *	field but "state" changes while the slot is on a list.
 *  U2  The owner clears a group's bit in "pending" when it finds the list
 *	empty, and then checks the list once more. Pairs with the end of S1: a
 *	slot is on a list only while the bit is set, or about to be.
 *  S3  After S1 and a full barrier, the source loads "waiting", "notify" and
 *	"critical". It wakes an owner that waits for the group. It notifies an
 *	owner that wants notification of the group and isn't in a critical
 *	section.
 *  U3  The owner stores "waiting", or "notify", or leaves a critical section by
 *	storing "critical"; then a full barrier; then loads "pending". Pairs
 *	with S3: either the source sees the owner's word, or the owner the group.
 *  S4  If a source in the kernel finds its group in none of "deliver", "notify"
 *	and "waiting", it keeps the event, and adds one to "held". After a full
 *	barrier it loads the three words again.
 *  U4  The owner stores "deliver" or "notify"; then a full barrier; then loads
 *	"held". If that isn't zero, it calls FLEXSC_ECB_FLUSH. Pairs with S4.
 *
 * The kernel writes and reads this memory, but doesn't trust it. An owner that
 * corrupts it harms only itself.
 */
#ifndef _UAPI_LINUX_FLEXSC_ECB_H
#define _UAPI_LINUX_FLEXSC_ECB_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define FLEXSC_ECB_ABI_VERSION	1

#define FLEXSC_ECB_GROUPS	32
#define FLEXSC_ECB_EVENTS_MAX	0x100000U
/*
 * The maximum number of watches of one open file. All processes that have the
 * file, by inheriting it or receiving it in a message, share this limit.
 */
#define FLEXSC_ECB_FILE_WATCHES	1024
/* Offset of the slots from the event control block, in bytes. */
#define FLEXSC_ECB_SLOTS_OFFSET	4096

/* Types of events (SEND, sections 3.3 and 3.6). Numbers are only appended. */
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
	FLEXSC_EVT_MEMORY	= 9,	/* a thread waits for a page of memory */
	FLEXSC_EVT_TYPES	= 10,
};

/* flexsc_event_slot.state has bits of poll(2) in the low half, and these bits. */
#define FLEXSC_EVENT_POLL	0x0000ffffU
/*
 * The descriptor's state changed in an unspecified way: it may be readable,
 * writable, hung up, or none of these.
 */
#define FLEXSC_EVENT_CHECK	0x00010000U
#define FLEXSC_EVENT_REVOKED	0x40000000U
#define FLEXSC_EVENT_QUEUED	0x80000000U

/* A source's slot. The source writes all fields except state and next. */
struct flexsc_event_slot {
	__u32	state;
	__u32	next;		/* next older slot of the list, index + 1; 0: end */
	__u32	gen;		/* how often the slot was assigned to a source */
	__u16	type;		/* enum flexsc_event_type */
	__u16	group;
	__s32	fd;		/* -1: none */
	__s32	error;		/* -errno of an accept, or of uring's poll */
	__u64	data;		/* for the program's use */
	__u64	time;		/* of the event, if requested: CLOCK_MONOTONIC in ns */
	__u64	payload[3];	/* depends on type */
};

/*
 * The payload of FLEXSC_EVT_IPACCEPT if the kernel module accepted the
 * connection: the peer. An IPv4 address is in the first four bytes.
 */
struct flexsc_event_peer {
	__u16	family;		/* AF_INET or AF_INET6; 0: unknown */
	__u16	port;		/* in network byte order */
	__u32	scope;
	__u8	address[16];
};

/* The event control block (SEND, figure 3.1): one page, followed by the slots. */
struct flexsc_event_control {
	/*
	 * The owner's words. One bit per group; notify implies deliver.
	 * Initially zero.
	 */
	__u32	notify;
	__u32	deliver;
	/*
	 * While above zero, the handler isn't called. The kernel changes it
	 * from zero to one when it makes the owner enter the handler.
	 */
	__u32	critical;
	__u32	waiting;	/* groups for which the owner waits, asleep */
	/*
	 * How the kernel calls the handler: see "The upcall" below. These words
	 * change only while notify is zero.
	 */
	__u64	entry;
	__u64	tail_begin;
	__u64	tail_end;
	__u64	arg;
	__u64	reserved0[2];

	/*
	 * Groups whose lists may have slots. Sources set bits, the owner clears
	 * them.
	 */
	__u32	pending;
	__u32	held;		/* by the delivering side: number of events held until U4 */
	__u32	overflows;	/* by the delivering side: number of reported overflows */
	__u32	reserved1;
	__u64	regs;		/* by the kernel: the frame of the newest upcall */
	__u64	deadline;	/* of the owner's wait: CLOCK_MONOTONIC in ns; ~0: none */
	__u64	reserved2[4];

	/* The lists, newest first: index + 1; 0: empty. */
	__u32	head[FLEXSC_ECB_GROUPS];
};

/*
 * The upcall (SEND, section 3.4), on x86-64
 *
 * The kernel makes the owner enter the handler at any point of user mode, and
 * the owner returns by itself. The kernel stores struct flexsc_upcall_frame
 * right below the red zone of the interrupted code, which ends 128 bytes below
 * its stack pointer. Then it sets "critical" to one, "regs" and the stack
 * pointer to the frame's address, and di to "arg". It clears the flags DF, TF
 * and RF, and continues at "entry". Nothing else is saved: the code at "entry"
 * must preserve bx, bp, r12 to r15 and the extended state.
 *
 * User mode returns by a TAIL of instructions, in [tail_begin, tail_end). The
 * tail begins with a store of zero to "critical", and writes no other memory.
 * The stack pointer is the frame's address until the last two instructions,
 * which are "popfq", at the frame's flags, and "ret $128", at its ip. If the
 * handler has to be called while ip is inside the tail, the kernel doesn't make
 * another frame: it resets the stack pointer to the existing frame, and
 * continues as above. The tail can be run again from any point, because each
 * word that it loads is in the red zone of the stack pointer until the last
 * instruction. So neither a signal's frame, nor that of another upcall on top
 * of a signal's handler, ever overwrites these words.
 *
 * The owner sets entry; if it isn't a user-mode address, there are no upcalls.
 * If an upcall isn't possible, the kernel sends the owner SIGURG instead.
 * Reasons are another machine, a 32-bit program, a restartable sequence, a
 * shadow stack, single steps, a tracer, a stack that can't be written to, a
 * system call that isn't over or that continues by restart_syscall(), and
 * rights by protection keys that differ from those when the owner created the
 * block. Each event control block of a thread has its own tail.
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
 * FLEXSC_IOC_ECB on /dev/flexsc, whether registered or not, creates an event
 * control block whose owner is the calling thread, and returns its descriptor
 * (close-on-exec). mmap() of "area" bytes at offset 0 maps its memory.
 * Processes with another address space can't use it. A forked child gets no
 * events, and gets the memory only if the parent used MADV_DOFORK on it. The
 * block ends when its descriptor is closed and its memory unmapped.
 *
 * When the owner executes another program, or ends, the kernel no longer
 * notifies or wakes it, and accepts no connections for it. A watch ends at the
 * next event for which the kernel would have notified or woken the owner, or
 * when its descriptor is closed. If exec or the process's end closes the
 * block's descriptor, all watches end then. Besides -EFAULT, the kernel returns
 *
 *	-EINVAL		invalid size, flag, or number of slots; a reserved word
 *			that isn't zero
 *	-EPROTONOSUPPORT  "abi" differs from the kernel's
 *	-EOPNOTSUPP	the kernel refuses the probe that reports closed
 *			descriptors
 *	-EPERM		the thread has a seccomp filter
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

/* If the owner sleeps in a system call, a notification ends that call with -EINTR. */
#define FLEXSC_ECB_INTERRUPTS_CALLS	0x1U
/* Set "time" in the slots. */
#define FLEXSC_ECB_TIMES		0x2U

/*
 * FLEXSC_ECB_WATCH: assign a slot to a descriptor, or to the process's threads.
 * If the descriptor has a state of "want" now, that is its first event. Returns
 * the slot's index, or the errors below.
 *
 * A watch doesn't keep the file open. It ends when its descriptor is closed,
 * inside close(), dup2(), close_range(), exec and the process's end. A
 * duplicate of the descriptor isn't watched. If the owner unshares its table of
 * descriptors, its watches stay with the old table.
 *
 *	-EINVAL		an unknown flag, type or group
 *	-EBADF		no such descriptor
 *	-EPERM		the caller isn't the owner; the file has no poll(2)
 *	-ENOENT		the block has ended
 *	-ELOOP		a file that itself watches files: an event control
 *			block, epoll, io_uring, /dev/flexsc
 *	-ENOSPC		no slot is free, the file has more than four queues, or
 *			the open file has FLEXSC_ECB_FILE_WATCHES watches.
 *			A revoked slot is free after the owner took it
 *	-EOPNOTSUPP	FLEXSC_WATCH_ACCEPT: not a socket, or it lacks O_NONBLOCK
 */
struct flexsc_ecb_watch {
	__s32	fd;		/* -1, with FLEXSC_EVT_USER only */
	__u32	want;		/* bits of poll(2); hang-up and error are implied */
	__u16	type;
	__u16	group;
	__u32	flags;		/* FLEXSC_WATCH_* */
	__u64	data;
	/* With FLEXSC_WATCH_ACCEPT: for accepted connections. */
	__u32	accept_want;
	__u16	accept_group;	/* for FLEXSC_EVT_IOREADY */
	__u16	reserved1;
	__u32	accept_flags;	/* SOCK_NONBLOCK, SOCK_CLOEXEC */
	__u32	reserved2;
	__u64	accept_data;
	__u64	reserved3[2];
};

/*
 * The descriptor is a listening socket. Connections are accepted when they may
 * be delivered (SEND, section 3.6.1), and each gets a slot of its own. Its
 * first event is FLEXSC_EVT_IPACCEPT in "group", with its state at that time;
 * later events are FLEXSC_EVT_IOREADY in "accept_group". If no slot, descriptor
 * or memory is free for a connection, an event FLEXSC_EVT_OVERFLOW of the
 * listening socket has the error, and "overflows" counts it. This happens once,
 * until a connection is accepted again or none is waiting. The kernel tries
 * again when a watch ends, and at the owner's next flush or wait. Two other
 * cases are reported by an event of the listening socket's own type: another
 * error of accept4(), and a connection that can't be accepted because the
 * owner's calls are watched or the socket has lost O_NONBLOCK.
 */
#define FLEXSC_WATCH_ACCEPT	0x1U
/*
 * A flag for the library: it calls poll(2) before it hands an event out. The
 * kernel refuses the flag.
 */
#define FLEXSC_WATCH_CHECKED	0x2U

#define FLEXSC_IOC_ECB		_IOWR(0xe9, 16, struct flexsc_ecb_create)
/* Only a block's owner makes the next three, on the block's descriptor. */
#define FLEXSC_ECB_WATCH	_IOW(0xe9, 17, struct flexsc_ecb_watch)
/*
 * Stop the events of the slot with this index: its source ends. 0, or -ENOENT.
 */
#define FLEXSC_ECB_FORGET	_IO(0xe9, 18)
/*
 * Deliver held events that may be delivered now. 1: a connection still finds no
 * slot or no descriptor; otherwise 0.
 */
#define FLEXSC_ECB_FLUSH	_IO(0xe9, 19)
/*
 * From any thread of the process, for the groups in the argument: wake the
 * owner or notify it, as in S3. -EPERM: the owner has executed another program,
 * or the block has ended. If the owner has ended, this has no effect.
 */
#define FLEXSC_ECB_KICK		_IO(0xe9, 20)
/*
 * lseek(fd, groups, FLEXSC_ECB_WAIT_SEEK): sleep until one of the groups is pending, or
 * until "deadline". Held events of the groups are delivered first. Returns 0: check the
 * lists; -EINTR: a signal. The events that end the sleep don't cause a call of the
 * handler. The kernel itself stores "waiting", and clears it at the end.
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
