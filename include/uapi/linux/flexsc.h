/* SPDX-License-Identifier: ((GPL-2.0-only WITH Linux-syscall-note) OR MIT) */
/*
 * FlexSC: the contract between the side that posts system calls and the side
 * that executes them. Both sides compile this file: the library with its
 * engines in user space, and a kernel that executes entries itself.
 *
 * A system call is an ENTRY of 64 bytes in a SYSCALL PAGE of 64 entries (OSDI
 * 2010, section 3.2). An entry is identified by its index, which counts through
 * all pages of one registration: page * FLEXSC_PAGE_ENTRIES + place. A page has
 * exactly one posting thread, its owner. So posting needs plain stores but no
 * atomic read-modify-write.
 *
 *
 * The life of an entry
 *
 *	from		to		by	when
 *	FREE		SUBMITTED	owner	the call is posted
 *	SUBMITTED	BUSY		engine	it starts to execute
 *	SUBMITTED	CANCEL		owner	cancelled before it started
 *	SUBMITTED	DONE		owner	refused: no engine begins it
 *	BUSY		CANCEL		owner	cancelled while it executes
 *	BUSY		SUBMITTED	engine	left to another thread
 *	BUSY		DONE		engine	it has a result
 *	CANCEL		DONE		both	it has a result; see "ret"
 *	DONE		SUBMITTED	owner	returned incomplete: posted again
 *	DONE		FREE		owner	the result was consumed
 *
 * The arrows from SUBMITTED to BUSY or CANCEL, and from BUSY to CANCEL or
 * SUBMITTED, are compare-and-swaps, because two sides compete for them. The
 * others have a single writer: the owner completes only entries that no engine
 * has taken or will take. (The library's uring engine makes most calls without
 * their entries. These stay FREE, because no other thread uses them.)
 *
 *
 * Memory order
 *
 *  U1  The owner stores nr, nargs and args, then status = SUBMITTED with
 *	release. Pairs with E1, the engine's acquiring compare-and-swap to
 *	BUSY: an engine that owns an entry sees its arguments.
 *  E2  The engine stores ret, then status = DONE with release. Pairs with U2,
 *	the owner's acquiring load of status: an owner that sees DONE sees the
 *	result, and all that the call wrote to memory.
 *  E3  The engine pushes the entry's index on the completion queue after E2,
 *	with release. Pairs with U3, the owner's acquiring exchange that takes
 *	the whole queue: an owner that finds an index there finds it DONE.
 *
 *
 * How completions are found
 *
 * The owner never scans incomplete entries (ATC 2011, section 7). struct
 * flexsc_completions is a list, linked through the "link" fields of completed
 * entries, newest first. An engine pushes with compare-and-swap on head. Only
 * the owner takes the list, and all of it at once, so there is no ABA problem.
 * An engine writes links but never follows one, so an owner that corrupts them
 * harms only itself.
 */
#ifndef _UAPI_LINUX_FLEXSC_H
#define _UAPI_LINUX_FLEXSC_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define FLEXSC_ABI_VERSION	2

#define FLEXSC_ARGS_MAX		6
#define FLEXSC_NARGS_MASK	0x07
#define FLEXSC_PAGE_ENTRIES	64

/* No entry: the end of a list of indices. */
#define FLEXSC_NO_ENTRY		0xffffffffU

/* Values of flexsc_entry.status. Numbers are only ever appended. */
enum flexsc_status {
	/* Belongs to the posting thread: unused or being filled. */
	FLEXSC_FREE		= 0,
	FLEXSC_SUBMITTED	= 1,	/* posted, not started */
	FLEXSC_BUSY		= 2,	/* belongs to the engine: being executed */
	FLEXSC_DONE		= 3,	/* belongs to the posting thread: ret is valid */
	FLEXSC_CANCEL		= 4,	/* belongs to the engine: to be ended early */
};

/*
 * One system call (OSDI 2010, figure 6).
 *
 *	field	written by			read by
 *	status	owner and engine, see above	both, at any time, atomically
 *	nargs	owner, while FREE		engine, after E1
 *	nr	owner, while FREE		engine, after E1
 *	link	engine, between E2 and E3	owner, after U3
 *	args	owner, while FREE		engine, after E1
 *	ret	engine, before E2		owner, after U2
 *
 * An engine that doesn't trust the owner loads every field once, and checks the
 * copy.
 */
struct flexsc_entry {
	__u8	status;			/* enum flexsc_status */
	__u8	nargs;			/* number of valid arguments: 0 to 6 */
					/* and FLEXSC_* flags, see below */
	__u16	nr;			/* the machine's system call number */
	__u32	link;			/* next older completion, by index */
	__u64	args[FLEXSC_ARGS_MAX];	/* as the kernel expects them */
	/*
	 * The kernel's result or -errno. A cancelled call has its real result
	 * if it completed nevertheless, -EINTR if it was interrupted while it
	 * executed, -ECANCELED if it had no effect. While the entry is BUSY,
	 * FLEXSC_BLOCKED means that the call has blocked, so it has looked up
	 * its descriptors.
	 */
	__s64	ret;
};

#define FLEXSC_BLOCKED		(-0x7fffffffffffffffLL - 1)

/* Fills 4096 bytes. */
struct flexsc_page {
	struct flexsc_entry	entry[FLEXSC_PAGE_ENTRIES];
};

/* The completion queue, in its own cache line because engines write it. */
struct flexsc_completions {
	__u32	head;			/* newest completed entry, or NO_ENTRY */
	__u32	reserved[15];		/* zero */
};

/*
 * The kernel engine
 *
 * /dev/flexsc lets the kernel execute entries itself. An open file of it is a
 * REGISTRATION of one process (flexsc_register() in OSDI 2010, section 3.4).
 * FLEXSC_IOC_REGISTER creates the registration, and mmap() of "area" bytes at
 * offset 0 maps its memory, whose layout is
 *
 *	0			struct flexsc_shared
 *	ring_offset		__u32[ring_entries], the submission ring
 *	entries_offset		struct flexsc_page[pages]
 *
 * No other process can use the file, and fork() gives a child neither the
 * registration nor the memory. In Linux 6.1 and 6.12, MADV_DOFORK passes the
 * memory on (not in 7.3): a child can then corrupt entries, but nothing else.
 *
 * Threads of the process execute entries: syscall threads, which call
 * FLEXSC_IOC_SERVE and stay there, and the owner itself in FLEXSC_IOC_WAIT
 * (flexsc_wait() in OSDI 2010). So address space, files, limits and signals are
 * always those of a plain call. Credentials are as well, because a syscall
 * thread whose credentials differ from the owner's executes no entries. An
 * entry can't make these two ioctls (-ELOOP).
 *
 *
 * How submissions are found
 *
 * The owner stores an entry's index into ring[tail % ring_entries] after U1,
 * and then tail with release (U4), which pairs with the kernel's acquiring
 * load of tail (E4). There is room if tail - head < ring_entries.
 *
 * The kernel polls the ring while a syscall thread is active. When a thread
 * stops polling, the kernel sets needs_kick and, after a full barrier, loads
 * tail once more. The owner loads needs_kick after U4 and a full barrier. If it
 * is set, the owner calls FLEXSC_IOC_KICK or FLEXSC_IOC_WAIT. So either the
 * kernel sees the new tail, or the owner sees needs_kick.
 */

/*
 * Flags in flexsc_entry.nargs, set by the owner: where the kernel may execute an entry.
 * DEFER and IF_* apply to an owner that waits without FLEXSC_WAIT_HANDOVER. With that
 * flag the owner may block, so it may execute any entry.
 */
#define FLEXSC_MAY_SLEEP	0x08	/* may block: have another thread ready first */
#define FLEXSC_DEFER		0x10	/* not on the owner's thread */
#define FLEXSC_IF_READABLE	0x20	/* on the owner only if args[0] has POLLIN */
#define FLEXSC_IF_WRITABLE	0x40	/* on the owner only if args[0] has POLLOUT */
/*
 * Flag in flexsc_entry.nargs, set by the kernel together with DONE: the call
 * ended early. It wasn't cancelled, but its thread was needed elsewhere or must
 * not continue. "ret" shows how much was done:
 *
 *	-EINTR	nothing, unless the call documents an effect that it has with
 *		-EINTR (close, connect)
 *	-EAGAIN	nothing; usually the call wasn't begun, because no thread is
 *		left that may block in it
 *	else	possibly only a part
 *
 * A signal handler that runs on the waiting owner ends the owner's call in the
 * same way, and the library posts such a call again. So a call that has to
 * return -EINTR after a handler, because it has a signal mask of its own (such
 * as ppoll), needs FLEXSC_DEFER.
 */
#define FLEXSC_INTERRUPTED	0x80

/* The maximum number of cores in a policy. */
#define FLEXSC_CORES_MAX	64

struct flexsc_shared {
	/* Written by the owner, in a cache line of its own. */
	__u32	tail;			/* submissions so far */
	__u32	wait_flags;		/* FLEXSC_WAIT_*, for the next wait */
	__u64	seen;			/* completions that the owner has taken */
	__u64	timeout;		/* of the next wait, in ns; ~0: no limit */
	__u64	reserved1[5];		/* zero */
	/* Written by the kernel. */
	__u32	head;			/* number of ring words taken; wraps */
	/* Nonzero if possibly no thread polls the ring: the owner must kick. */
	__u32	needs_kick;
	__u32	bounced;		/* number of entries that bounced; wraps */
	__u32	reserved2[13];
	struct flexsc_completions completions;
	/*
	 * Written by the kernel: the number of entries that syscall threads
	 * have taken on each core of the policy, in the policy's order. The
	 * owner's entries aren't counted. Older kernels leave zeros.
	 */
	__u64	taken[FLEXSC_CORES_MAX];
};

/*
 * FLEXSC_IOC_REGISTER. Besides -EFAULT, the kernel returns
 *
 *	-E2BIG		the struct is larger than the kernel's
 *	-EINVAL		the struct is smaller, a flag is unknown, a reserved word
 *			isn't zero, or the number of pages isn't a power of two
 *			or is above FLEXSC_PAGES_MAX
 *	-EPROTONOSUPPORT  "abi" differs from the kernel's
 *	-EALREADY	the file is already registered
 *	-EPERM		the thread has a seccomp filter, and
 *			FLEXSC_REGISTER_FILTERED isn't set
 *	-ENOMEM		more memory than is allowed: by RLIMIT_MEMLOCK, for all
 *			registrations of the user together, or by the memory
 *			cgroup
 *
 * If a filter, a tracer or auditing watches the owner's calls, the owner
 * executes no entries itself, but leaves them to syscall threads. A syscall
 * thread that is watched bounces its entries. If there is no syscall thread,
 * and none can be created, entries come back with -EAGAIN.
 */
struct flexsc_register {
	__u32	size;			/* in: sizeof(struct flexsc_register) */
	__u32	abi;			/* in: FLEXSC_ABI_VERSION */
	__u32	flags;			/* in: FLEXSC_REGISTER_* */
	__u32	pages;			/* in: syscall pages, a power of two */
	__u64	features;		/* out: FLEXSC_FEATURE_* */
	__u32	ring_entries;		/* out: a power of two */
	__u32	ring_offset;		/* out, in bytes */
	__u32	entries_offset;		/* out, in bytes */
	__u32	area;			/* out: the size to map, in bytes */
	__u64	reserved[3];		/* zero */
};

#define FLEXSC_PAGES_MAX	1024

/*
 * Register even if the thread has a seccomp filter. All entries bounce then, so
 * the filter sees every call.
 */
#define FLEXSC_REGISTER_FILTERED	0x1
/*
 * Continue if a filter is installed after registering; a thread that already
 * has one can't register. Without either flag, WAIT and KICK fail with -EPERM
 * on a thread that has a filter.
 */
#define FLEXSC_REGISTER_FILTERED_LATER	0x2

#define FLEXSC_FEATURE_CORES		0x1	/* syscall threads per core */
#define FLEXSC_FEATURE_TAKEOVER		0x2	/* FLEXSC_WAIT_HANDOVER */
/*
 * A state rather than a feature: a tracer, filter or auditing watches the
 * registering thread's system calls. So entries will bounce, and each costs
 * more than a plain call. flexsc_shared.bounced shows whether entries bounce
 * later.
 */
#define FLEXSC_FEATURE_TRACED		0x4
#define FLEXSC_FEATURE_BLOCKED		0x8	/* FLEXSC_BLOCKED is stored */

/*
 * FLEXSC_IOC_SERVE: the calling thread becomes a syscall thread. It should have
 * all signals blocked. The ioctl returns one of the results below, or -errno.
 * Unless the thread has to end, it then calls the ioctl again.
 */
enum flexsc_serve_result {
	/*
	 * The thread had a signal or other work on its way to user mode. Pass
	 * the struct back unchanged. -EINTR instead of AGAIN means that a
	 * signal ended the call of entry "index", and that the signal's handler
	 * has run: pass the struct back with FLEXSC_SERVE_HANDLED.
	 */
	FLEXSC_SERVE_AGAIN	= 0,
	/*
	 * Make the call of entry "index" as a plain system call, because this
	 * thread's calls are watched, and pass its result in "ret".
	 */
	FLEXSC_SERVE_BOUNCE	= 1,
	/*
	 * The thread is the owner now, and continues as if its FLEXSC_IOC_WAIT
	 * had returned.
	 */
	FLEXSC_SERVE_TAKEOVER	= 2,
	/*
	 * No idle thread is left to take over if this thread blocks: create
	 * another thread first, or set FLEXSC_SERVE_NO_MORE.
	 */
	FLEXSC_SERVE_MORE	= 3,
	/* No entry was submitted for idle_ms: the thread may end. */
	FLEXSC_SERVE_IDLE	= 4,
	/*
	 * The thread has to end: FLEXSC_IOC_END was called; or its credentials
	 * aren't those of the owner (the thread that waited or kicked last); or
	 * the owner now has a seccomp filter, and this thread has none.
	 */
	FLEXSC_SERVE_END	= 5,
	/* Restrict the thread to "core" (-1: to no core), and call again. */
	FLEXSC_SERVE_MOVE	= 6,
};

struct flexsc_serve {
	/* NO_ENTRY at first; then the value that the kernel has stored. */
	__u32	index;
	__u32	flags;		/* in: FLEXSC_SERVE_* */
	__s64	ret;		/* in, after BOUNCE: the call's result */
	__s32	core;		/* -1 at first; then the value that the kernel has stored */
	__u32	reserved;	/* zero */
};

/* This is the thread's first FLEXSC_IOC_SERVE. */
#define FLEXSC_SERVE_FIRST	0x1
/* No other thread can be created: the kernel continues with the existing ones. */
#define FLEXSC_SERVE_NO_MORE	0x2
/* After MOVE: the thread can't run on "core", and stays where it is. */
#define FLEXSC_SERVE_STAYS	0x4
/* After -EINTR: a signal handler has run, so end entry "index" with -EINTR. */
#define FLEXSC_SERVE_HANDLED	0x8

/*
 * FLEXSC_IOC_WAIT: execute submitted entries, then sleep until the total number
 * of completed entries exceeds "seen", or until "timeout" has passed. A timeout
 * of 0 doesn't sleep. Both words are in struct flexsc_shared; the ioctl's
 * argument is 0. -EBUSY: another thread is waiting. -EINTR: a signal. -EACCES:
 * while this thread waited, a thread with different credentials became the
 * owner.
 */
enum flexsc_wait_result {
	FLEXSC_WAIT_LOOK	= 0,	/* an entry may have completed */
	FLEXSC_WAIT_MORE	= 1,	/* create a syscall thread; wait again */
	FLEXSC_WAIT_TAKEN	= 2,	/* another thread is the owner now */
};

/*
 * lseek(fd, seen, FLEXSC_WAIT_SEEK) is FLEXSC_IOC_WAIT with "seen" as an
 * argument: it seeks the file's next data, which are the next completions.
 * Entering the kernel takes half the instructions, because security modules
 * don't check lseek() as they check an ioctl(). To prevent a bypass of these
 * modules, the thread must have the credentials of the last REGISTER, WAIT or
 * KICK made through ioctl(). Otherwise it gets -EACCES, and may try the
 * ioctl().
 */
#define FLEXSC_WAIT_SEEK	3	/* SEEK_DATA */

/*
 * If the waiting thread blocks in an entry and is needed in user mode, another
 * thread returns from SERVE in its place (FLEXSC_SERVE_TAKEOVER). Without this
 * flag the entry's call is interrupted instead.
 */
#define FLEXSC_WAIT_HANDOVER	0x1
/*
 * No syscall thread can be created: the kernel continues with the existing
 * ones.
 */
#define FLEXSC_WAIT_NO_MORE	0x2

/*
 * Where and how syscall threads run (OSDI 2010, section 3.6). The policy may
 * change at any time. Without cores, the scheduler places the threads. With
 * cores, the next thread runs on the first core of the list that is online and
 * has no active syscall thread of the process; if all are offline it runs
 * anywhere. Registrations of a process whose policies list the same core take
 * turns on it. Each thread moves itself (FLEXSC_SERVE_MOVE), so a process can't
 * leave its cpuset.
 *
 * With cores the waiting owner executes entries only if it runs on one of them,
 * or if no syscall thread is active (all are blocked or in user mode) and none
 * can be created.
 *
 * The next core is used if more than "backlog" submissions wait, if the kernel
 * took no entry for a millisecond, or if the owner kicks or waits while every
 * active thread is in a call.
 *
 * FLEXSC_IOC_SET_POLICY returns -EINVAL for a core that the machine doesn't
 * have, a core that is listed twice, and a spin_us above FLEXSC_SPIN_US_MAX. It
 * returns -ENODEV for a core that is offline.
 */
#define FLEXSC_SPIN_US_MAX	10000

/* Whether a syscall thread without work polls before it sleeps. */
enum flexsc_spin {
	FLEXSC_SPIN_OFF		= 0,
	FLEXSC_SPIN_FIXED	= 1,	/* poll for spin_us */
	/*
	 * Poll for at most spin_us. The time doubles whenever work arrives
	 * within spin_us, and is halved whenever work arrives later.
	 */
	FLEXSC_SPIN_ADAPTIVE	= 2,
};

struct flexsc_policy {
	__u32	cores;		/* valid elements of core[]; 0: any core */
	__u32	spin;		/* enum flexsc_spin */
	__u32	spin_us;
	__u32	idle_ms;	/* until SERVE returns IDLE; 0: never */
	__u32	backlog;	/* submissions that justify using another core */
	__u32	reserved[3];	/* zero */
	__u16	core[FLEXSC_CORES_MAX];
};

/*
 * Linux's list of ioctl numbers (userspace-api/ioctl/ioctl-number.rst in its
 * documentation) assigns 0xe9 to no driver, neither in 6.1 nor in 6.12.
 */
#define FLEXSC_IOC_MAGIC	0xe9

#define FLEXSC_IOC_REGISTER	_IOWR(FLEXSC_IOC_MAGIC, 0, struct flexsc_register)
#define FLEXSC_IOC_SERVE	_IOWR(FLEXSC_IOC_MAGIC, 1, struct flexsc_serve)
#define FLEXSC_IOC_WAIT		_IO(FLEXSC_IOC_MAGIC, 2)
/*
 * Make a syscall thread execute submitted entries, without waiting. Returns
 * enum flexsc_wait_result: LOOK, or MORE if a syscall thread has to be created.
 */
#define FLEXSC_IOC_KICK		_IO(FLEXSC_IOC_MAGIC, 3)
/*
 * Interrupt the call of the entry whose index is the argument. The caller must
 * have changed that entry from BUSY to CANCEL before.
 */
#define FLEXSC_IOC_CANCEL	_IO(FLEXSC_IOC_MAGIC, 4)
/* End the current wait. Any thread, any signal handler. */
#define FLEXSC_IOC_WAKE		_IO(FLEXSC_IOC_MAGIC, 5)
/* End all syscall threads; a thread that is in a call ends after the call. */
#define FLEXSC_IOC_END		_IO(FLEXSC_IOC_MAGIC, 6)
#define FLEXSC_IOC_SET_POLICY	_IOW(FLEXSC_IOC_MAGIC, 7, struct flexsc_policy)
#define FLEXSC_IOC_GET_POLICY	_IOR(FLEXSC_IOC_MAGIC, 8, struct flexsc_policy)

/*
 * KICK, CANCEL, WAKE and END are also lseek(fd, FLEXSC_CALL(command, argument),
 * FLEXSC_CALL_SEEK), with the same result. A seccomp filter that is installed
 * later may forbid ioctl(), and threads that wait or serve must still be
 * reachable. If a filter keeps a thread from calling SERVE again, the thread's
 * entry stays BUSY. After BOUNCE, only that thread has the call's result. After
 * AGAIN or a signal, the result is in the entry's "ret".
 */
#define FLEXSC_CALL_SEEK	4	/* SEEK_HOLE */
#define FLEXSC_CALL(command, arg)	(_IOC_NR(command) | (__u64)(arg) << 8)

#if defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
_Static_assert(sizeof(struct flexsc_entry) == 64, "entry is a cache line");
_Static_assert(sizeof(struct flexsc_page) == 4096, "page is a page");
_Static_assert(sizeof(struct flexsc_completions) == 64, "queue is a line");
_Static_assert(sizeof(struct flexsc_shared) == 192 + 8 * FLEXSC_CORES_MAX,
	       "three lines, and the counts");
_Static_assert(sizeof(struct flexsc_register) == 64, "ABI");
_Static_assert(sizeof(struct flexsc_serve) == 24, "ABI");
_Static_assert(sizeof(struct flexsc_policy) == 160, "ABI");
_Static_assert(__builtin_offsetof(struct flexsc_entry, nr) == 2, "ABI");
_Static_assert(__builtin_offsetof(struct flexsc_entry, link) == 4, "ABI");
_Static_assert(__builtin_offsetof(struct flexsc_entry, args) == 8, "ABI");
_Static_assert(__builtin_offsetof(struct flexsc_entry, ret) == 56, "ABI");
#endif

#endif /* _UAPI_LINUX_FLEXSC_H */
