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

#include <linux/types.h>

#define FLEXSC_ABI_VERSION	1

#define FLEXSC_ARGS_MAX		6
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

#ifndef __cplusplus
_Static_assert(sizeof(struct flexsc_entry) == 64, "entry is a cache line");
_Static_assert(sizeof(struct flexsc_page) == 4096, "page is a page");
_Static_assert(sizeof(struct flexsc_completions) == 64, "queue is a line");
_Static_assert(__builtin_offsetof(struct flexsc_entry, nr) == 2, "ABI");
_Static_assert(__builtin_offsetof(struct flexsc_entry, link) == 4, "ABI");
_Static_assert(__builtin_offsetof(struct flexsc_entry, args) == 8, "ABI");
_Static_assert(__builtin_offsetof(struct flexsc_entry, ret) == 56, "ABI");
#endif

#endif /* _UAPI_LINUX_FLEXSC_H */
