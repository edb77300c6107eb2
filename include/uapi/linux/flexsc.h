/* SPDX-License-Identifier: ((GPL-2.0-only WITH Linux-syscall-note) OR MIT) */
/*
 * FlexSC: the contract between the side that posts system calls and the side
 * that executes them. Both sides compile this one file: the library and its
 * engines in user space, and a kernel that executes entries itself.
 *
 * A system call is an ENTRY of 64 bytes in a SYSCALL PAGE of 64 entries
 * (OSDI 2010, section 3.2). An entry is named by its index, counted through
 * all pages of one registration: page * FLEXSC_PAGE_ENTRIES + place. A page
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
 *	SUBMITTED	DONE		owner	refused: no engine begins it
 *	BUSY		CANCEL		owner	cancelled while it executes
 *	BUSY		SUBMITTED	engine	it is left to another thread
 *	BUSY		DONE		engine	it has a result
 *	CANCEL		DONE		both	it has a result; see "ret"
 *	DONE		SUBMITTED	owner	it came back before its end
 *	DONE		FREE		owner	the result was consumed
 *
 * The arrows from SUBMITTED to BUSY or CANCEL, and from BUSY to CANCEL or
 * SUBMITTED, are compare-and-swaps, because two sides compete for them. The
 * others have a single writer: the owner completes what no engine has taken,
 * or will. (The library's uring engine makes most calls without their entries,
 * which stay FREE then, as nobody else sees them.)
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

#define FLEXSC_ABI_VERSION	2

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

/* The completion queue: a cache line of its own, because engines write it. */
struct flexsc_completions {
	__u32	head;			/* newest completed entry, or NO_ENTRY */
	__u32	reserved[15];		/* zero */
};

/*
 * The kernel engine
 *
 * /dev/flexsc lets the kernel execute entries itself. An open file of it is a
 * REGISTRATION of one process (flexsc_register() in OSDI 2010, section 3.4):
 * FLEXSC_IOC_REGISTER makes it, mmap() of "area" bytes at offset 0 gives its
 * memory, which is laid out as
 *
 *	0			struct flexsc_shared
 *	ring_offset		__u32[ring_entries], the submission ring
 *	entries_offset		struct flexsc_page[pages]
 *
 * No other process can use the file, and fork() gives a child neither the
 * registration nor the memory. Linux 6.1 and 6.12 let MADV_DOFORK pass the
 * memory on (7.3 doesn't): a child can then corrupt entries, but nothing else.
 *
 * Entries are executed by threads of the process: by syscall threads, which
 * call FLEXSC_IOC_SERVE and stay there, and by the owner itself in
 * FLEXSC_IOC_WAIT (flexsc_wait() there). So address space, files, limits and
 * signals are those of a plain call by construction. Credentials are as well,
 * because a syscall thread with other credentials than the owner's executes
 * nothing. An entry can call neither ioctl (-ELOOP).
 *
 *
 * How submissions are found
 *
 * The owner stores an entry's index into ring[tail % ring_entries] after U1,
 * and then tail with release (U4), which pairs with the kernel's acquiring
 * load of tail (E4). There is room if tail - head < ring_entries.
 *
 * The kernel looks at the ring while a syscall thread is active. When one
 * stops looking, the kernel sets needs_kick, and loads tail once more after a
 * full barrier. The owner does the opposite: after U4 and a full barrier it
 * loads needs_kick, and calls FLEXSC_IOC_KICK or FLEXSC_IOC_WAIT if that is
 * set. So either the kernel sees the new tail, or the owner sees needs_kick.
 */

/*
 * In flexsc_entry.nargs, from the owner: where the kernel may execute an entry.
 * DEFER and IF_* say so of an owner that waits without FLEXSC_WAIT_HANDOVER:
 * with it the owner may execute any entry, because it may block.
 */
#define FLEXSC_MAY_SLEEP	0x08	/* may block: ready a thread first */
#define FLEXSC_DEFER		0x10	/* not on the owner */
#define FLEXSC_IF_READABLE	0x20	/* on it if args[0] has POLLIN */
#define FLEXSC_IF_WRITABLE	0x40	/* on it if args[0] has POLLOUT */
/*
 * In flexsc_entry.nargs, from the kernel, together with DONE: the call ended
 * early, not because it was cancelled, but because its thread was needed
 * elsewhere or may not go on. "ret" says what was done:
 *
 *	-EINTR	nothing, unless the call documents an effect that it has with
 *		-EINTR (close, connect)
 *	-EAGAIN	nothing; as a rule the call wasn't begun, because no thread is
 *		left that may block in it
 *	else	perhaps only a part
 *
 * A signal handler that runs on the waiting owner ends its call like this, too.
 * So a call with a signal mask of its own (ppoll, say), which is meant to end
 * with -EINTR then, needs FLEXSC_DEFER.
 */
#define FLEXSC_INTERRUPTED	0x80

struct flexsc_shared {
	/* Written by the owner; a cache line of its own. */
	__u32	tail;			/* submissions so far */
	__u32	wait_flags;		/* FLEXSC_WAIT_*, of the next wait */
	__u64	seen;			/* completions the owner has taken */
	__u64	timeout;		/* of the next wait, in ns; ~0: none */
	__u64	reserved1[5];		/* zero */
	/* Written by the kernel. */
	__u32	head;			/* ring words taken; it wraps */
	__u32	needs_kick;		/* perhaps no thread sees the ring */
	__u32	bounced;		/* entries that bounced; it wraps */
	__u32	reserved2[13];
	struct flexsc_completions completions;
};

/*
 * FLEXSC_IOC_REGISTER. Beside -EFAULT, the kernel refuses with
 *
 *	-E2BIG		a struct that is larger than the kernel's
 *	-EINVAL		a smaller one, unknown flags, reserved words that aren't
 *			zero, and a number of pages that isn't a power of two
 *			or is above FLEXSC_PAGES_MAX
 *	-EPROTONOSUPPORT  another "abi" than the kernel's
 *	-EALREADY	a file that is registered
 *	-EPERM		a thread under a seccomp filter, unless
 *			FLEXSC_REGISTER_FILTERED is set
 *	-ENOMEM		more memory than is allowed: by RLIMIT_MEMLOCK, for all
 *			registrations of the user together, or by the memory
 *			cgroup
 *
 * An owner whose calls something watches (a filter, a tracer, auditing)
 * executes no entries itself, but leaves them to syscall threads. A syscall
 * thread that is watched bounces its entries. If there is no syscall thread,
 * and none can be made, entries come back with -EAGAIN.
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
 * Register even if a seccomp filter is in force. All entries bounce then, so
 * the filter sees every call.
 */
#define FLEXSC_REGISTER_FILTERED	0x1
/*
 * Go on if a filter is installed after registering; a thread that is under one
 * already can't register. Without either flag WAIT and KICK of a thread that
 * is under a filter fail with -EPERM.
 */
#define FLEXSC_REGISTER_FILTERED_LATER	0x2

#define FLEXSC_FEATURE_CORES		0x1	/* syscall threads per core */
#define FLEXSC_FEATURE_TAKEOVER		0x2	/* FLEXSC_WAIT_HANDOVER */
/*
 * A state rather than a feature: something watches the system calls of the
 * registering thread, so entries will bounce, and each costs more than a plain
 * call. flexsc_shared.bounced shows whether entries bounce later on.
 */
#define FLEXSC_FEATURE_TRACED		0x4

/*
 * FLEXSC_IOC_SERVE: the calling thread becomes a syscall thread. It should have
 * all signals blocked. The ioctl returns one of the results below, or -errno. A
 * thread that isn't to end then calls the ioctl again.
 */
enum flexsc_serve_result {
	/*
	 * The thread had a signal or other work to do on the way to user mode.
	 * Pass the struct back as it is. -EINTR instead of AGAIN means that a
	 * signal ended the call of entry "index" and that its handler has run:
	 * pass the struct back with FLEXSC_SERVE_HANDLED.
	 */
	FLEXSC_SERVE_AGAIN	= 0,
	/*
	 * Make the call of entry "index" as a plain system call, because
	 * something watches this thread's calls, and pass its result in "ret".
	 */
	FLEXSC_SERVE_BOUNCE	= 1,
	/*
	 * The thread has the owner's role now, and goes on as if its
	 * FLEXSC_IOC_WAIT had returned.
	 */
	FLEXSC_SERVE_TAKEOVER	= 2,
	/*
	 * No idle thread is left to take over from this thread if it blocks:
	 * make another one first, or set FLEXSC_SERVE_NO_MORE.
	 */
	FLEXSC_SERVE_MORE	= 3,
	/* There was no work for idle_ms: the thread may end. */
	FLEXSC_SERVE_IDLE	= 4,
	/*
	 * The thread has to end: FLEXSC_IOC_END was called, its credentials
	 * aren't the owner's (the thread that waited or kicked last), or the
	 * owner has come under a seccomp filter and this thread is under none.
	 */
	FLEXSC_SERVE_END	= 5,
	/* Restrict the thread to "core" (-1: to none), and come back. */
	FLEXSC_SERVE_MOVE	= 6,
};

struct flexsc_serve {
	/* NO_ENTRY at first; then as the kernel left it, after any result. */
	__u32	index;
	__u32	flags;		/* in: FLEXSC_SERVE_* */
	__s64	ret;		/* in, after BOUNCE: the call's result */
	__s32	core;		/* -1 at first; then as the kernel left it */
	__u32	reserved;	/* zero */
};

/* This is the thread's first FLEXSC_IOC_SERVE. */
#define FLEXSC_SERVE_FIRST	0x1
/* No other thread can be made: the kernel goes on with those that serve. */
#define FLEXSC_SERVE_NO_MORE	0x2
/* After MOVE: the thread can't run on "core", and serves where it is. */
#define FLEXSC_SERVE_STAYS	0x4
/* After -EINTR: entry "index" ends with -EINTR. */
#define FLEXSC_SERVE_HANDLED	0x8

/*
 * FLEXSC_IOC_WAIT: execute submitted entries, then sleep until more than "seen"
 * entries have completed in total, or until "timeout" has passed; a timeout of
 * 0 doesn't sleep. Both words are in struct flexsc_shared; the ioctl's argument
 * is 0. -EBUSY: another thread waits, and only one may. -EINTR: a signal.
 * -EACCES: while this thread waited, a thread with other credentials became the
 * owner.
 */
enum flexsc_wait_result {
	FLEXSC_WAIT_LOOK	= 0,	/* something may have completed */
	FLEXSC_WAIT_MORE	= 1,	/* make a syscall thread; wait again */
	FLEXSC_WAIT_TAKEN	= 2,	/* another thread has the role now */
};

/*
 * lseek(fd, seen, FLEXSC_WAIT_SEEK) is FLEXSC_IOC_WAIT with "seen" as an
 * argument: it seeks the file's next data, that is, the next completions. It
 * enters the kernel in half the instructions, because security modules aren't
 * asked about a command. So that they can't be passed by, the thread must have
 * the credentials of the last REGISTER, WAIT or KICK that was made by ioctl().
 * With others it gets -EACCES, and may try the ioctl().
 */
#define FLEXSC_WAIT_SEEK	3	/* SEEK_DATA */

/*
 * If the waiting thread blocks in an entry and is needed in user mode, another
 * thread returns from SERVE in its place (FLEXSC_SERVE_TAKEOVER). Without this
 * flag the entry's call is interrupted instead.
 */
#define FLEXSC_WAIT_HANDOVER	0x1
/* No syscall thread can be made: go on with those that serve. */
#define FLEXSC_WAIT_NO_MORE	0x2

/*
 * Where and how syscall threads run (OSDI 2010, section 3.6); may change at any
 * time. Without cores they run where the scheduler puts them. With some, the
 * next thread runs on the first core of the list that is online and has no
 * active syscall thread; if all are offline it runs anywhere. Each thread moves
 * itself (FLEXSC_SERVE_MOVE), so a process can't leave its cpuset.
 *
 * With cores the waiting owner executes entries only if it runs on one of them,
 * or if no syscall thread is idle and none can be made.
 *
 * The next core is used if more than "backlog" submissions wait, if the kernel
 * took no entry for a millisecond, or if the owner kicks or waits while every
 * active thread is in a call.
 *
 * FLEXSC_IOC_SET_POLICY refuses with -EINVAL a core that the machine doesn't
 * have, a core that is named twice, and a spin_us above FLEXSC_SPIN_US_MAX, and
 * with -ENODEV a core that is offline.
 */
#define FLEXSC_CORES_MAX	64
#define FLEXSC_SPIN_US_MAX	10000

/* Whether a syscall thread without work polls before it sleeps. */
enum flexsc_spin {
	FLEXSC_SPIN_OFF		= 0,
	FLEXSC_SPIN_FIXED	= 1,	/* for spin_us */
	/*
	 * For at most spin_us: twice as long after each time that work came
	 * within spin_us, half as long after each time that it came later.
	 */
	FLEXSC_SPIN_ADAPTIVE	= 2,
};

struct flexsc_policy {
	__u32	cores;		/* valid elements of core[]; 0: any core */
	__u32	spin;		/* enum flexsc_spin */
	__u32	spin_us;
	__u32	idle_ms;	/* until SERVE returns IDLE; 0: never */
	__u32	backlog;	/* submissions that justify another core */
	__u32	reserved[3];	/* zero */
	__u16	core[FLEXSC_CORES_MAX];
};

/*
 * Linux's list of ioctl numbers (Documentation/userspace-api/ioctl/
 * ioctl-number.rst) gives 0xe9 to no driver, neither in 6.1 nor in 6.12.
 */
#define FLEXSC_IOC_MAGIC	0xe9

#define FLEXSC_IOC_REGISTER	_IOWR(FLEXSC_IOC_MAGIC, 0, struct flexsc_register)
#define FLEXSC_IOC_SERVE	_IOWR(FLEXSC_IOC_MAGIC, 1, struct flexsc_serve)
#define FLEXSC_IOC_WAIT		_IO(FLEXSC_IOC_MAGIC, 2)
/*
 * Have a syscall thread execute submitted entries; doesn't wait. Returns enum
 * flexsc_wait_result: LOOK, or MORE if a syscall thread has to be made.
 */
#define FLEXSC_IOC_KICK		_IO(FLEXSC_IOC_MAGIC, 3)
/*
 * Interrupt the call of the entry whose index is the argument, and which the
 * owner has just changed from BUSY to CANCEL.
 */
#define FLEXSC_IOC_CANCEL	_IO(FLEXSC_IOC_MAGIC, 4)
/* End the wait, from any thread or signal handler. */
#define FLEXSC_IOC_WAKE		_IO(FLEXSC_IOC_MAGIC, 5)
/* End all syscall threads; a thread in a call ends when the call has. */
#define FLEXSC_IOC_END		_IO(FLEXSC_IOC_MAGIC, 6)
#define FLEXSC_IOC_SET_POLICY	_IOW(FLEXSC_IOC_MAGIC, 7, struct flexsc_policy)
#define FLEXSC_IOC_GET_POLICY	_IOR(FLEXSC_IOC_MAGIC, 8, struct flexsc_policy)

/*
 * KICK, CANCEL, WAKE and END are also lseek(fd, FLEXSC_CALL(command, argument),
 * FLEXSC_CALL_SEEK), with the same result: a seccomp filter that is installed
 * later may forbid ioctl(), and threads that wait or serve must still be
 * reachable. If a filter stops a thread from calling SERVE again, the entry
 * that it carries stays BUSY. After BOUNCE the call's result is then known to
 * that thread alone; after AGAIN or a signal it is in the entry's "ret".
 */
#define FLEXSC_CALL_SEEK	4	/* SEEK_HOLE */
#define FLEXSC_CALL(command, arg)	(_IOC_NR(command) | (__u64)(arg) << 8)

#if defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
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
