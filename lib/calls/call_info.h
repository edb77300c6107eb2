/* SPDX-License-Identifier: MIT */
/*
 * The system-call table: what is known about each call, by number. Generated
 * from syscalls.tbl for the machine compiled for; read-only.
 */
#ifndef FLEXSC_CALL_INFO_H
#define FLEXSC_CALL_INFO_H

#include <linux/flexsc.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/* Where a call may run; "class" in syscalls.tbl. */
enum call_class {
	CLASS_NONE = 0,	/* no such call: a hole in the numbers */
	CLASS_FAST,	/* never sleeps for long: inline at flush time */
	CLASS_DISK,	/* may sleep for a device, a while */
	CLASS_WAIT,	/* may sleep until somebody else acts */
	CLASS_SELF,	/* acts on the calling thread: inline, always */
	CLASS_ADMIN,	/* as WAIT, and never by the kernel module */
	CLASS_NEVER,	/* refused */
	CLASS_WORK,	/* no system call: see loop/work.h, loop/await.h */
	CLASS_RING,	/* of io_uring alone: see loop/multishot.h */
};

/* What a CLASS_WAIT call waits for on argument 0. */
enum call_poll {
	POLL_NONE = 0,	/* nothing */
	POLL_READ,	/* POLLIN */
	POLL_WRITE,	/* POLLOUT; a large one may still wait */
};

/*
 * Which field of an io_uring request takes which argument; "shape" in
 * syscalls.tbl. lib/engine/uring_ops.c has a function for each.
 */
enum call_shape {
	SHAPE_NONE = 0,	/* a call without an operation */
	/* Reads and writes. */
	SHAPE_RW, SHAPE_RW_AT, SHAPE_RW_V2, SHAPE_RANGE, SHAPE_MADVISE,
	/* A descriptor and little else. */
	SHAPE_FD, SHAPE_DATASYNC, SHAPE_NUMBER, SHAPE_FALLOCATE,
	SHAPE_FTRUNCATE,
	/* Sockets and pipes. */
	SHAPE_SOCKET, SHAPE_ADDRESS, SHAPE_ACCEPT, SHAPE_SENDTO,
	SHAPE_RECVFROM, SHAPE_SENDMSG, SHAPE_RECVMSG, SHAPE_PIPE,
	SHAPE_SPLICE, SHAPE_TEE,
	/* Calls that wait. */
	SHAPE_POLL, SHAPE_EPOLL_CTL, SHAPE_EPOLL_WAIT, SHAPE_NANOSLEEP,
	SHAPE_CLOCK_SLEEP, SHAPE_WAITID,
	/* Paths with their directories. */
	SHAPE_OPENAT, SHAPE_OPENAT2, SHAPE_STATX, SHAPE_TWO_AT,
	SHAPE_UNLINKAT, SHAPE_MKDIRAT, SHAPE_SYMLINKAT,
	/* Paths alone. */
	SHAPE_OPEN, SHAPE_CREAT, SHAPE_TWO, SHAPE_UNLINK, SHAPE_RMDIR,
	SHAPE_MKDIR, SHAPE_SYMLINK,
	/* Extended attributes, of a path and of a descriptor. */
	SHAPE_XATTR, SHAPE_FXATTR,
	/* What no system call is: loop/await.h, loop/multishot.h. */
	SHAPE_AWAIT, SHAPE_MULTISHOT_ACCEPT, SHAPE_MULTISHOT_RECV,
	SHAPES
};

/* How many bytes a call is asked to transfer: "len" in syscalls.tbl. */
enum call_length {
	LENGTH_NONE = 0,
	LENGTH_BYTES,	/* argument length_arg */
	LENGTH_VECTOR,	/* of the struct iovec there, as many as the next one */
	LENGTH_MESSAGE,	/* of the struct msghdr there */
};

/* What the call does with the file's position: "pos". */
enum call_position {
	POSITION_NONE = 0,
	POSITION_USED,
	POSITION_IF_NEGATIVE,	/* used if argument position_arg is -1 */
	POSITION_GIVEN,		/* an offset is an argument */
};

enum call_limit {
	LIMIT_NONE = 0,
	LIMIT_MS,
	LIMIT_TIMESPEC,
};

enum call_closes {
	CLOSES_NOTHING = 0,
	CLOSES_ONE,	/* argument 0 */
	CLOSES_OTHER,	/* argument 1, unless it equals argument 0 */
	CLOSES_RANGE,	/* from argument 0 to 1; argument 2 has flags */
	CLOSES_SHUT,	/* none, but calls on argument 0 wait no longer */
};

enum call_changes {
	CHANGES_NOTHING = 0,
	CHANGES_FLAGS,	/* O_NONBLOCK of argument 0 */
	CHANGES_OPTION,	/* option argument 2 of the socket */
};

enum call_makes {
	MAKES_NOTHING = 0,
	MAKES_FILE,	/* whatever the path names */
	MAKES_SOCKET,	/* of the domain and type in arguments 0 and 1 */
	MAKES_ACCEPTED,
	MAKES_STREAM,
	MAKES_SIGNALS,	/* a signalfd */
	MAKES_DUP,	/* another descriptor of argument 0's file */
};

/* Messages at argument 1, which may pass descriptors: "passes". */
enum call_passes {
	PASSES_NOTHING = 0,
	PASSES_ONE,	/* struct msghdr */
	PASSES_MANY,	/* struct mmsghdr, as many as the result says */
};

/* Where the descriptors are that a call makes, and what gives their flags. */
enum call_made_at {
	MADE_IS_RESULT = 0,
	MADE_AT_ARG,	/* two, at made_arg */
};

enum call_made_flags {
	MADE_FLAGS_NONE = 0,
	MADE_FLAGS_ARG,		/* argument made_flags_arg */
	MADE_FLAGS_AT_ARG,	/* the 64-bit word there */
};

/* Calls of which an event loop's turn consists: "turn". */
enum call_turn {
	TURN_OTHER = 0,
	TURN_TRANSFER,	/* receives or sends by its first argument */
	TURN_MESSAGE,	/* likewise, and may pass descriptors */
	TURN_ACCEPT,
	TURN_SUBMIT,	/* requests of asynchronous I/O */
	TURN_AWAIT,	/* any of a set, a list of descriptors, or requests */
	TURN_POLL,	/* any of a list that hasn't just one descriptor */
};

/* Which function of runtime/calls/hook.c makes the call; "user". */
enum call_user {
	USER_BY_CLASS = 0,
	USER_FUTEX, USER_FUTEX2, USER_SIGACTION, USER_RSEQ, USER_SIGMASK,
	USER_GETTID, USER_KILL, USER_CPUCLOCK, USER_USAGE, USER_TIMER,
	USER_YIELD, USER_NANOSLEEP, USER_CLOCK_SLEEP, USER_POLL, USER_HOST,
	USER_EXIT, USER_EXIT_GROUP, USER_RING, USER_WAIT, USER_AFFINITY,
	USER_SIGWAIT,
};

/* Does the call make its thread unlike others? runtime/calls/apart.c */
enum call_apart {
	APART_NOT = 0,
	APART_ANCHORED,
	APART_HOST_ONLY,
	APART_RAW,	/* host_only, unless libc makes it for all threads */
	APART_KEYRING,	/* anchored if argument 1 is the thread's keyring */
	APART_COUNTER,	/* a counter of events, of argument 1's thread */
	APART_PRIORITY,	/* a priority, of argument 1's thread */
	APART_RING,	/* anchored if it makes a ring that belongs to its thread */
};

enum call_trait {
	CALL_PARTS = 1 << 0,
	CALL_TRY = 1 << 1,
	CALL_PIPE = 1 << 2,
	CALL_SEND = 1 << 3,	/* as CALL_PIPE, unless MSG_NOSIGNAL is given */
	CALL_FSIZE = 1 << 4,
	CALL_NORESTART = 1 << 5,
	CALL_SAME = 1 << 6,
	CALL_SYNC = 1 << 7,
	CALL_HANGS = 1 << 8,
	CALL_INHERITS = 1 << 9,
	CALL_REARM = 1 << 10,
	CALL_SITE = 1 << 11,
	CALL_KEEP = 1 << 12,
	CALL_CHANGES = 1 << 13,	/* it or a variant changes descriptors' facts */
	CALL_ONCE = 1 << 14,
	CALL_WORKER = 1 << 15,	/* its operation always takes a worker of io_uring's */
	CALL_VITAL = 1 << 16,
};

/*
 * What is known of a call: the attributes of syscalls.tbl, whose head explains
 * them. A power of two in size, so that a row is found by a shift.
 */
struct call_info {
	const char *name;
	uint8_t nargs;
	uint8_t class;	/* enum call_class */
	uint8_t fds;	/* bit n: argument n is a descriptor */
	uint8_t op;	/* IORING_OP_*, or 0 for none */
	uint8_t shape;	/* enum call_shape */
	uint8_t dir;	/* enum call_poll: what argument 0 is waited for */
	uint8_t length, length_arg;		/* enum call_length */
	uint8_t position, position_arg;		/* enum call_position */
	uint8_t limit, limit_arg;		/* enum call_limit */
	uint8_t flags_arg, mask_arg;
	uint8_t closes, changes, makes;
	uint8_t made_at, made_arg, made_flags, made_flags_arg;
	uint8_t joins, passes;
	uint8_t turn, user, apart;
	uint8_t variants;	/* how many; 0 for most calls */
	int16_t would;		/* the result of an attempt that would wait */
	uint16_t first_variant;
	uint8_t source_arg;	/* 0: none */
	uint32_t traits;	/* enum call_trait */
	/* Bits of argument flags_arg. */
	uint32_t nowait, all, unpolled;
	/* What an attempt sets: a flag of nowait; or the variant's argument */
	uint32_t attempt;
} __attribute__((aligned(64)));

_Static_assert(sizeof(struct call_info) == 64, "a row is one cache line");

/* What a call is if an argument has a certain value. */
struct call_variant {
	uint32_t arg, mask, value;
	struct call_info row;
};

/* All numbers of the table are below, and have room for new ones. */
#define CALLS_ROOM	512U

extern const struct call_info flexsc__calls[];
extern const struct call_variant flexsc__call_variants[];
/* enum call_turn of each row, as bytes: each call of a turn is looked up. */
extern const uint8_t flexsc__call_turns[CALLS_ROOM];
extern const unsigned int flexsc__call_count;

/* The last rows, which are no system call's. */
#define NR_WORK		(flexsc__call_count - 4)
#define NR_AWAIT	(flexsc__call_count - 3)
#define NR_ACCEPT	(flexsc__call_count - 2)
#define NR_RECV		(flexsc__call_count - 1)

/* May a system call of this row be posted? */
static inline bool call_can_be_posted(const struct call_info *row)
{
	/* One comparison: the classes between NONE and NEVER. */
	return (uint8_t)(row->class - CLASS_FAST) < CLASS_NEVER - CLASS_FAST;
}

/* The row of call nr; a row of CLASS_NONE for any number that isn't a call. */
static inline const struct call_info *flexsc__call_info(unsigned int nr)
{
	return &flexsc__calls[nr < flexsc__call_count ? nr : flexsc__call_count];
}

/*
 * What poll(2) has to report before the call can begin without waiting. A connect()
 * begins at once, and can't be begun twice: its end is what it waits for.
 */
static inline enum call_poll call_poll(const struct call_info *row)
{
	return row->traits & CALL_ONCE ? POLL_NONE : (enum call_poll)row->dir;
}

/* Does it transfer bytes of a socket, and heed MSG_DONTWAIT? */
static inline bool call_is_of_socket(const struct call_info *row)
{
	return row->length && row->attempt == MSG_DONTWAIT;
}

/* The row, or the variant of it that these arguments make it. */
static inline const struct call_info *call_variant_of(const struct call_info *row,
						const __u64 *args)
{
	const struct call_variant *v = &flexsc__call_variants[row->first_variant];

	for (unsigned int n = row->variants; n; n--, v++)
		if (((uint32_t)args[v->arg] & v->mask) == v->value)
			return &v->row;
	return row;
}

static inline const struct call_info *call_info_of(unsigned int nr,
						   const __u64 *args)
{
	return call_variant_of(flexsc__call_info(nr), args);
}

/* Does a call of this variant close descriptors, or change what is known of them? */
static inline bool call_changes_fds(const struct call_info *variant)
{
	return variant->closes | variant->changes | (variant->makes == MAKES_DUP);
}

/* Does it make descriptors, or give others their files, if it succeeds? */
static inline bool call_adds_fds(const struct call_info *variant)
{
	return variant->makes | variant->joins | variant->passes;
}

/* The class of a call with these arguments. CLASS_NEVER: -EOPNOTSUPP. */
enum call_class flexsc__call_class(const struct call_info *row,
				   const struct flexsc_entry *entry);

/*
 * Does poll(2) not show whether the call would wait? So it is with MSG_ERRQUEUE and
 * MSG_OOB: the call fails at once if nothing is there. (A socket without a queue of
 * errors ignores MSG_ERRQUEUE, and waits for data.) And with MSG_PEEK and MSG_WAITALL
 * together: the call waits although poll(2) reports some bytes.
 */
bool flexsc__call_is_unpolled(const struct call_info *row, const __u64 *args);

/*
 * How many bytes a call is asked to transfer; 0 for calls whose result isn't a number of
 * bytes. The vector or the message that the arguments name is valid.
 */
uint64_t flexsc__requested_length(const struct flexsc_entry *entry);

#endif /* FLEXSC_CALL_INFO_H */
