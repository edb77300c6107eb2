/* SPDX-License-Identifier: ((GPL-2.0-only WITH Linux-syscall-note) OR MIT) */
/*
 * FlexSC: the contract between the side that posts system calls and the side
 * that executes them. Both sides compile this one file: the library and its
 * engines in user space, and a kernel that executes entries itself.
 *
 * A system call is an ENTRY of 64 bytes in a SYSCALL PAGE of 64 entries
 * (OSDI 2010, section 3.2). An entry is named by its index, counted through
 * all pages of one registration: page * FLEXSC_PAGE_ENTRIES + slot. A page
 * has exactly one posting thread, its owner, so posting takes plain stores
 * and no atomic read-modify-write.
 *
 *
 * The life of an entry
 *
 *	from		to		by	when
 *	FREE		SUBMITTED	owner	the call is posted
 *	SUBMITTED	BUSY		engine	it starts to execute
 *	SUBMITTED	CANCEL		owner	cancelled before it started
 *	BUSY		CANCEL		owner	cancelled while it executes
 *	BUSY		DONE		engine	it has a result
 *	CANCEL		DONE		engine	the same; see "ret"
 *	DONE		FREE		owner	the result was consumed
 *
 * The arrows out of SUBMITTED, and BUSY to CANCEL, are compare-and-swaps,
 * because two sides compete for them. The others have a single writer.
 *
 *
 * What must be seen before what
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
 * Never by looking at entries that are not complete (ATC 2011, section 7).
 * struct flexsc_completions is a list threaded through the "link" fields of
 * completed entries, newest first. An engine pushes with compare-and-swap on
 * head; the owner alone takes the list, all of it at once, which leaves no
 * ABA problem. An engine only ever writes links and never follows one, so an
 * owner that scribbles on them harms nobody but itself.
 */
#ifndef _UAPI_LINUX_FLEXSC_H
#define _UAPI_LINUX_FLEXSC_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define FLEXSC_ABI_VERSION	1

#define FLEXSC_ARGS_MAX		6
#define FLEXSC_NARGS_MASK	0x07
#define FLEXSC_PAGE_ENTRIES	64

/* No entry: the end of a list of indices. */
#define FLEXSC_NO_ENTRY		0xffffffffU

/* Values of flexsc_entry.status. Numbers are only ever appended. */
enum flexsc_status {
	FLEXSC_FREE		= 0,	/* the owner's: unused or being filled */
	FLEXSC_SUBMITTED	= 1,	/* posted, not started */
	FLEXSC_BUSY		= 2,	/* the engine's: being executed */
	FLEXSC_DONE		= 3,	/* the owner's: ret is valid */
	FLEXSC_CANCEL		= 4,	/* the engine's: to be ended early */
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
 * An engine that doesn't trust the owner loads every field once and checks
 * the copy.
 */
struct flexsc_entry {
	__u8	status;			/* enum flexsc_status */
	__u8	nargs;			/* arguments that are valid: 0 to 6 */
					/* and FLEXSC_* flags, see below */
	__u16	nr;			/* the machine's system call number */
	__u32	link;			/* next older completion, by index */
	__u64	args[FLEXSC_ARGS_MAX];	/* as the kernel expects them */
	/*
	 * What the kernel returned: a result or -errno. A cancelled call has
	 * the true result if it completed all the same, -EINTR if it was
	 * interrupted while it executed, -ECANCELED if it had no effect.
	 */
	__s64	ret;
};

/* As many entries as fill 4096 bytes. */
struct flexsc_page {
	struct flexsc_entry	entry[FLEXSC_PAGE_ENTRIES];
};

/* The completion queue; a cache line of its own, for engines write it. */
struct flexsc_completions {
	__u32	head;			/* newest completed entry, or NO_ENTRY */
	__u32	reserved[15];		/* zero */
};

/*
 * The kernel engine
 *
 * /dev/flexsc lets the kernel execute entries itself. An open file of it is a
 * REGISTRATION of one process (flexsc_register() in OSDI 2010, section 3.4):
 * FLEXSC_IOC_REGISTER makes it, mmap() of "size" bytes at offset 0 gives its
 * memory, which is laid out as
 *
 *	0			struct flexsc_shared
 *	ring_offset		__u32[ring_entries], the submission ring
 *	entries_offset		struct flexsc_page[pages]
 *
 * A child inherits nothing, unless the memory by MADV_DOFORK, which it can only
 * scribble on; and no other process can use the file.
 *
 * Whoever executes is a thread of the process: a syscall thread is one that
 * calls FLEXSC_IOC_SERVE and stays there, and FLEXSC_IOC_WAIT (flexsc_wait()
 * there) executes on the caller's own thread. So address space, files,
 * credentials, limits and signals are right by construction. An entry can call
 * neither (-ELOOP).
 *
 *
 * How submissions are found
 *
 * The owner stores an entry's index into ring[tail % ring_entries] after U1,
 * and then tail with release (U4), which pairs with the kernel's acquiring
 * load of tail (E4). There is room if tail - head < ring_entries. The kernel
 * looks at the ring while a thread of it is active. It has set "needs_kick"
 * when none is; the owner, after a full barrier behind U4, looks at that and
 * calls FLEXSC_IOC_KICK or FLEXSC_IOC_WAIT.
 */

/* In flexsc_entry.nargs, from the owner: where an entry may be executed. */
#define FLEXSC_MAY_SLEEP	0x08	/* not by the last thread there is */
#define FLEXSC_ASIDE		0x10	/* not by the waiting caller */
#define FLEXSC_IF_READABLE	0x20	/* ... unless args[0] has POLLIN */
#define FLEXSC_IF_WRITABLE	0x40	/* ... unless args[0] has POLLOUT */
/*
 * From the kernel, with DONE: the call was interrupted because its thread was
 * needed, not cancelled. -EINTR had no effect; -EAGAIN: nor was it begun, for
 * no thread is left that may block; else a part may be done.
 */
#define FLEXSC_INTERRUPTED	0x80

struct flexsc_shared {
	/* The owner's cache line. */
	__u32	tail;			/* submissions so far */
	__u32	wait_flags;		/* FLEXSC_WAIT_*, of the next wait */
	__u64	seen;			/* completions taken from the queue */
	__u64	timeout;		/* of the next wait, in ns; ~0: none */
	__u64	reserved1[5];		/* zero */
	/* The kernel's. */
	__u32	head;			/* submissions taken */
	__u32	needs_kick;		/* nobody looks at the ring */
	__u32	reserved2[14];
	struct flexsc_completions completions;
};

/*
 * FLEXSC_IOC_REGISTER. size is that of the struct; a kernel refuses what it
 * doesn't know and isn't zero (-E2BIG, -EINVAL). -ENOMEM: RLIMIT_MEMLOCK, for
 * all registrations of the user, or the memory cgroup. -EPERM: the thread is
 * under a seccomp filter, and FLEXSC_REGISTER_FILTERED wasn't asked for.
 *
 * A caller that a filter, a tracer or the like watches executes nothing itself:
 * it leaves entries to syscall threads, and those that are watched bounce them.
 * Where no thread is left, and none can be made, they come back as -EAGAIN.
 */
struct flexsc_register {
	__u32	size;			/* in: sizeof(struct flexsc_register) */
	__u32	abi;			/* in: FLEXSC_ABI_VERSION */
	__u32	flags;			/* in: FLEXSC_REGISTER_* */
	__u32	pages;			/* in: syscall pages, a power of two */
	__u64	features;		/* out: FLEXSC_FEATURE_* */
	__u32	ring_entries;		/* out */
	__u32	ring_offset;		/* out, in bytes */
	__u32	entries_offset;		/* out, in bytes */
	__u32	area;			/* out: what to map, in bytes */
	__u64	reserved[3];		/* zero */
};

#define FLEXSC_PAGES_MAX	1024

/* Filters may be in force, and see every call: all of them bounce. */
#define FLEXSC_REGISTER_FILTERED	0x1
/*
 * The same for a filter that is installed later; now there is none. Without
 * either flag WAIT and KICK of a filtered thread are refused: -EPERM.
 */
#define FLEXSC_REGISTER_FILTERED_LATER	0x2

#define FLEXSC_FEATURE_CORES		0x1	/* core specialisation */
#define FLEXSC_FEATURE_TAKEOVER		0x2	/* FLEXSC_WAIT_HANDOVER */

/*
 * FLEXSC_IOC_SERVE: the calling thread becomes a syscall thread. It should
 * have all signals blocked. It comes back with one of these, and calls again:
 */
enum flexsc_serve_result {
	/* A signal or the like was to be handled. Give the struct back. */
	FLEXSC_SERVE_AGAIN	= 0,
	/*
	 * Make the call of entry "index" as a plain system call, for something
	 * watches this thread's system calls; give back "ret".
	 */
	FLEXSC_SERVE_BOUNCE	= 1,
	/* You have the caller's role: go on as if FLEXSC_IOC_WAIT returned. */
	FLEXSC_SERVE_TAKEOVER	= 2,
	/* Nobody is idle any more: make another thread first. */
	FLEXSC_SERVE_MORE	= 3,
	/* There was nothing to do for idle_ms: the thread may end. */
	FLEXSC_SERVE_IDLE	= 4,
	/*
	 * The thread has to end: FLEXSC_IOC_END was called, or who waits or
	 * kicks has come under a seccomp filter and this thread isn't.
	 */
	FLEXSC_SERVE_END	= 5,
	/* Have this thread run on "core" only (-1: anywhere), and come back. */
	FLEXSC_SERVE_MOVE	= 6,
};

struct flexsc_serve {
	/* NO_ENTRY at first; then as it came out, whatever the result was. */
	__u32	index;
	__u32	flags;		/* in: FLEXSC_SERVE_* */
	__s64	ret;		/* in, after BOUNCE: the call's result */
	__s32	core;		/* -1 at first; then as it came out */
	__u32	reserved;	/* zero */
};

/* This thread hasn't served before. */
#define FLEXSC_SERVE_FIRST	0x1
/* No other thread can be made: go on with those there are. */
#define FLEXSC_SERVE_NO_MORE	0x2
/* After MOVE: this thread can't be there. It goes on where it is. */
#define FLEXSC_SERVE_STAYS	0x4

/*
 * FLEXSC_IOC_WAIT: execute what is submitted, then sleep until more than "seen"
 * have completed, or until the timeout; 0 doesn't sleep. What to wait for is
 * in struct flexsc_shared, and the argument is 0. One thread at a time
 * (-EBUSY). -EINTR: a signal.
 */
enum flexsc_wait_result {
	FLEXSC_WAIT_LOOK	= 0,	/* something may have completed */
	FLEXSC_WAIT_MORE	= 1,	/* make a syscall thread, wait again */
	FLEXSC_WAIT_TAKEN	= 2,	/* another thread has the role now */
};

/*
 * The same is lseek(fd, seen, FLEXSC_WAIT_SEEK), with what was seen as an
 * argument: it goes to the file's next data, which is completions. It enters
 * the kernel in half the instructions, for no security module looks at it, as
 * there is nothing to look at: every entry's call meets its own hooks.
 */
#define FLEXSC_WAIT_SEEK	3	/* SEEK_DATA */

/*
 * If this thread blocks in an entry, let another return from SERVE in its
 * place. Without it the entry is interrupted when the thread is needed.
 */
#define FLEXSC_WAIT_HANDOVER	0x1
/* No syscall thread can be made: go on with those there are. */
#define FLEXSC_WAIT_NO_MORE	0x2

/*
 * Where and how syscall threads run (OSDI 2010, section 3.6); may change at
 * any time. Without cores it is where the scheduler likes. With some it is the
 * first that has no active syscall thread and is online; if none is online it
 * is anywhere. A thread is moved there by itself (FLEXSC_SERVE_MOVE), so a
 * process can't leave its cpuset. The waiting caller then executes only if it
 * is on one of the cores itself, or if there is nobody else.
 *
 * The next core is used if more than "backlog" submissions wait, if nothing was
 * taken for a millisecond, and if the owner kicks or waits while every active
 * thread is in a call.
 *
 * FLEXSC_IOC_SET_POLICY refuses with -EINVAL a core that the machine doesn't
 * have, one that is named twice, and more than FLEXSC_SPIN_US_MAX; with
 * -ENODEV a core that is offline.
 */
#define FLEXSC_CORES_MAX	64
#define FLEXSC_SPIN_US_MAX	10000

/* How long a syscall thread looks for work before it sleeps. */
enum flexsc_spin {
	FLEXSC_SPIN_OFF		= 0,
	FLEXSC_SPIN_FIXED	= 1,	/* spin_us */
	/*
	 * At most that: twice as long after each time that work came within
	 * spin_us, half as long after each time that it didn't.
	 */
	FLEXSC_SPIN_ADAPTIVE	= 2,
};

struct flexsc_policy {
	__u32	cores;		/* how many there are in core[] */
	__u32	spin;		/* enum flexsc_spin */
	__u32	spin_us;
	__u32	idle_ms;	/* until SERVE returns IDLE; 0: never */
	__u32	backlog;	/* submissions that are worth another core */
	__u32	reserved[3];	/* zero */
	__u16	core[FLEXSC_CORES_MAX];
};

/*
 * The kernel's list of these (Documentation/userspace-api/ioctl/ioctl-number.rst)
 * has none of this kind, neither in 6.1 nor in 6.12.
 */
#define FLEXSC_IOC_MAGIC	0xe9

#define FLEXSC_IOC_REGISTER	_IOWR(FLEXSC_IOC_MAGIC, 0, struct flexsc_register)
#define FLEXSC_IOC_SERVE	_IOWR(FLEXSC_IOC_MAGIC, 1, struct flexsc_serve)
#define FLEXSC_IOC_WAIT		_IO(FLEXSC_IOC_MAGIC, 2)
/* Start executing what is submitted. Returns enum flexsc_wait_result. */
#define FLEXSC_IOC_KICK		_IO(FLEXSC_IOC_MAGIC, 3)
/* An entry was BUSY and is CANCEL now: the argument is its index. */
#define FLEXSC_IOC_CANCEL	_IO(FLEXSC_IOC_MAGIC, 4)
/* End the wait, from any thread or signal handler. */
#define FLEXSC_IOC_WAKE		_IO(FLEXSC_IOC_MAGIC, 5)
/* Send all syscall threads home; those in a call once that ends. */
#define FLEXSC_IOC_END		_IO(FLEXSC_IOC_MAGIC, 6)
#define FLEXSC_IOC_SET_POLICY	_IOW(FLEXSC_IOC_MAGIC, 7, struct flexsc_policy)
#define FLEXSC_IOC_GET_POLICY	_IOR(FLEXSC_IOC_MAGIC, 8, struct flexsc_policy)

/*
 * KICK, CANCEL, WAKE and END are also lseek(fd, FLEXSC_CALL(command, argument),
 * FLEXSC_CALL_SEEK), with the same result: a seccomp filter that comes later may
 * forbid ioctl(), and who waits or serves has to be reached nevertheless. What
 * a thread took along that may not call SERVE any more stays BUSY. After BOUNCE
 * its result is the one that the thread has, else that in the entry's "ret".
 */
#define FLEXSC_CALL_SEEK	4	/* SEEK_HOLE */
#define FLEXSC_CALL(command, arg)	(_IOC_NR(command) | (__u64)(arg) << 8)

#ifndef __cplusplus
_Static_assert(sizeof(struct flexsc_entry) == 64, "entry is a cache line");
_Static_assert(sizeof(struct flexsc_page) == 4096, "page is a page");
_Static_assert(sizeof(struct flexsc_completions) == 64, "queue is a line");
_Static_assert(sizeof(struct flexsc_shared) == 192, "three lines");
_Static_assert(sizeof(struct flexsc_register) == 64, "ABI");
_Static_assert(sizeof(struct flexsc_serve) == 24, "ABI");
_Static_assert(sizeof(struct flexsc_policy) == 160, "ABI");
_Static_assert(__builtin_offsetof(struct flexsc_entry, nr) == 2, "ABI");
_Static_assert(__builtin_offsetof(struct flexsc_entry, link) == 4, "ABI");
_Static_assert(__builtin_offsetof(struct flexsc_entry, args) == 8, "ABI");
_Static_assert(__builtin_offsetof(struct flexsc_entry, ret) == 56, "ABI");
#endif

#endif /* _UAPI_LINUX_FLEXSC_H */
