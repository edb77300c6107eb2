/* SPDX-License-Identifier: MIT */
/*
 * The table of system calls: the properties of each call, by number. Generated from
 * syscalls.tbl for the target machine; read-only.
 */
#ifndef FLEXSC_CALL_INFO_H
#define FLEXSC_CALL_INFO_H

#include <linux/flexsc.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/* Where a call may run; "class" in syscalls.tbl. */
enum call_class {
	CLASS_NONE = 0,	/* no such call: a gap in the numbers */
	CLASS_FAST,	/* never sleeps for long: inline at submission */
	CLASS_DISK,	/* may sleep for a bounded time, for a device such as a
			 * disk */
	CLASS_WAIT,	/* may sleep until another thread or process acts */
	CLASS_SELF,	/* acts on the calling thread: inline, always */
	CLASS_ADMIN,	/* as CLASS_WAIT, but never made by the kernel module */
	CLASS_NEVER,	/* refused */
	CLASS_WORK,	/* not a system call: see loop/work.h, loop/await.h */
	CLASS_RING,	/* for io_uring only: see loop/multishot.h */
};

/* What a CLASS_WAIT call waits for on argument 0. */
enum call_poll {
	POLL_NONE = 0,	/* nothing */
	POLL_READ,	/* POLLIN */
	POLL_WRITE,	/* POLLOUT; a large write may still wait afterwards */
};

/*
 * Which SQE field holds which argument; "shape" in syscalls.tbl. lib/engine/uring_ops.c
 * has a function for each shape.
 */
enum call_shape {
	SHAPE_NONE = 0,	/* a call without an operation */
	/* Reads and writes. */
	SHAPE_RW, SHAPE_RW_AT, SHAPE_RW_V2, SHAPE_RANGE, SHAPE_MADVISE,
	/* Calls with a descriptor and few other arguments. */
	SHAPE_FD, SHAPE_DATASYNC, SHAPE_NUMBER, SHAPE_FALLOCATE,
	SHAPE_FTRUNCATE,
	/* Sockets and pipes. */
	SHAPE_SOCKET, SHAPE_ADDRESS, SHAPE_ACCEPT, SHAPE_SENDTO,
	SHAPE_RECVFROM, SHAPE_SENDMSG, SHAPE_RECVMSG, SHAPE_PIPE,
	SHAPE_SPLICE, SHAPE_TEE,
	/* Calls that wait. */
	SHAPE_POLL, SHAPE_PPOLL, SHAPE_EPOLL_CTL, SHAPE_EPOLL_WAIT, SHAPE_NANOSLEEP,
	SHAPE_CLOCK_SLEEP, SHAPE_WAITID,
	/* Calls that take a path and the descriptor of its directory. */
	SHAPE_OPENAT, SHAPE_OPENAT2, SHAPE_STATX, SHAPE_TWO_AT,
	SHAPE_UNLINKAT, SHAPE_MKDIRAT, SHAPE_SYMLINKAT,
	/* Calls that take a path only. */
	SHAPE_OPEN, SHAPE_CREAT, SHAPE_TWO, SHAPE_UNLINK, SHAPE_RMDIR,
	SHAPE_MKDIR, SHAPE_SYMLINK,
	/* Extended attributes, of a path and of a descriptor. */
	SHAPE_XATTR, SHAPE_FXATTR,
	/* Not system calls: loop/await.h, loop/multishot.h. */
	SHAPE_AWAIT, SHAPE_MULTISHOT_ACCEPT, SHAPE_MULTISHOT_RECV,
	SHAPES
};

/* Where a call's number of bytes to transfer is stored: "len" in syscalls.tbl. */
enum call_length {
	LENGTH_NONE = 0,
	LENGTH_BYTES,	/* argument length_arg */
	LENGTH_VECTOR,	/* a vector of struct iovec; the next argument is its length */
	LENGTH_MESSAGE,	/* a struct msghdr */
};

/* How the call uses the file's position: "pos" in syscalls.tbl. */
enum call_position {
	POSITION_NONE = 0,
	POSITION_USED,
	POSITION_IF_NEGATIVE,	/* used if argument position_arg is -1 */
	POSITION_GIVEN,		/* not at all: an argument is the offset */
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
	CLOSES_RANGE,	/* the range from argument 0 to argument 1; argument 2 has
			 * flags */
	CLOSES_SHUT,	/* shutdown(): closes nothing, but ends the waits of calls on
			 * argument 0 */
};

enum call_changes {
	CHANGES_NOTHING = 0,
	CHANGES_FLAGS,	/* O_NONBLOCK of argument 0 */
	CHANGES_OPTION,	/* a socket option; argument 2 is its number */
};

enum call_makes {
	MAKES_NOTHING = 0,
	MAKES_FILE,	/* a file of any kind, depending on the path */
	MAKES_SOCKET,	/* a socket of the domain and type in arguments 0 and 1 */
	MAKES_ACCEPTED,
	MAKES_STREAM,
	MAKES_SIGNALS,	/* a signalfd */
	MAKES_DUP,	/* a duplicate of argument made_arg */
};

/* Whether argument 1 points to messages that may pass descriptors: "passes". */
enum call_passes {
	PASSES_NOTHING = 0,
	PASSES_ONE,	/* struct msghdr */
	PASSES_MANY,	/* array of struct mmsghdr; the result is the number of
			 * messages */
};

/* Where a call stores the descriptors that it makes, and where their flags are. */
enum call_made_at {
	MADE_IS_RESULT = 0,
	MADE_AT_ARG,	/* two descriptors in the array at argument made_arg */
};

enum call_made_flags {
	MADE_FLAGS_NONE = 0,
	MADE_FLAGS_ARG,		/* argument made_flags_arg */
	MADE_FLAGS_AT_ARG,	/* the 64-bit word to which argument made_flags_arg
				 * points */
};

/*
 * The role of a call in an event loop's turn: "turn". runtime/calls/loop_calls.h relies
 * on this order.
 */
enum call_turn {
	TURN_OTHER = 0,
	TURN_TRANSFER,	/* receives or sends on its first argument */
	TURN_SOCKET,	/* as TURN_TRANSFER, with flags in argument 3 (MSG_DONTWAIT) */
	TURN_MESSAGE,	/* receives or sends, and may pass descriptors */
	TURN_ACCEPT,
	TURN_SUBMIT,	/* submits asynchronous I/O */
	TURN_AWAIT,	/* waits until a member of an epoll set, of a list of
			 * descriptors, or of a set of requests is ready */
	TURN_POLL,	/* as TURN_AWAIT, unless the list has exactly one descriptor */
};

/* The function of runtime/calls/hook.c that handles the call: "user". */
enum call_user {
	USER_BY_CLASS = 0,
	USER_FUTEX, USER_FUTEX2, USER_SIGACTION, USER_RSEQ, USER_SIGMASK,
	USER_GETTID, USER_KILL, USER_CPUCLOCK, USER_USAGE, USER_TIMER,
	USER_YIELD, USER_NANOSLEEP, USER_CLOCK_SLEEP, USER_POLL, USER_HOST,
	USER_EXIT, USER_EXIT_GROUP, USER_RING, USER_WAIT, USER_AFFINITY,
	USER_SIGWAIT,
};

/*
 * Does the call change its kernel thread in a way that other threads don't share? See
 * runtime/calls/apart.c.
 */
enum call_apart {
	APART_NOT = 0,
	APART_ANCHORED,
	APART_HOST_ONLY,
	APART_RAW,	/* made on the host only, unless libc makes it for all
			 * threads */
	APART_KEYRING,	/* anchors its thread if argument 1 names the thread's
			 * keyring */
	APART_COUNTER,	/* perf_event_open(), for the thread in argument 1 */
	APART_PRIORITY,	/* sets the priority of the thread in argument 1 */
	APART_RING,	/* anchors its thread if it creates a ring bound to the
			 * thread */
};

enum call_trait {
	CALL_PARTS = 1 << 0,
	CALL_TRY = 1 << 1,
	CALL_PIPE = 1 << 2,
	CALL_SEND = 1 << 3,	/* as CALL_PIPE, unless MSG_NOSIGNAL is set */
	CALL_FSIZE = 1 << 4,
	CALL_NORESTART = 1 << 5,
	CALL_SAME = 1 << 6,
	CALL_SYNC = 1 << 7,
	CALL_HANGS = 1 << 8,
	CALL_INHERITS = 1 << 9,
	CALL_REARM = 1 << 10,
	CALL_SITE = 1 << 11,
	CALL_KEEP = 1 << 12,
	CALL_CHANGES = 1 << 13,	/* the call, or a variant of it, changes facts of
				 * descriptors */
	CALL_ONCE = 1 << 14,
	CALL_WORKER = 1 << 15,	/* io_uring always executes it on a worker */
	CALL_VITAL = 1 << 16,
};

/*
 * The properties of a call: the attributes of syscalls.tbl, whose head explains them.
 * The size is a power of two, so that a row's address is computed with a shift.
 */
struct call_info {
	const char *name;
	uint8_t nargs;
	uint8_t class;	/* enum call_class */
	uint8_t fds;	/* bit n: argument n is a descriptor */
	uint8_t op;	/* IORING_OP_*; 0: no operation */
	uint8_t shape;	/* enum call_shape */
	uint8_t dir;	/* enum call_poll: what to wait for on argument 0 */
	uint8_t length, length_arg;		/* enum call_length */
	uint8_t position, position_arg;		/* enum call_position */
	uint8_t limit, limit_arg;		/* enum call_limit */
	uint8_t flags_arg, mask_arg;
	uint8_t closes, changes, makes;
	uint8_t made_at, made_arg, made_flags, made_flags_arg;
	uint8_t joins, passes;
	uint8_t turn, user, apart;
	uint8_t variants;	/* number of variants; 0 for most calls */
	int16_t would;		/* the result with which an attempt shows that the
				 * call would wait */
	uint16_t first_variant;
	uint8_t source_arg;	/* argument with the descriptor to read from; 0: none */
	uint32_t traits;	/* enum call_trait */
	/* Flags in argument flags_arg. */
	uint32_t nowait, all, unpolled;
	/*
	 * What an attempt sets so that the call doesn't wait: a flag of "nowait", or a
	 * value in the argument that the variants test.
	 */
	uint32_t attempt;
} __attribute__((aligned(64)));

_Static_assert(sizeof(struct call_info) == 64, "a row is one cache line");

/* A call whose properties differ if an argument has a certain value. */
struct call_variant {
	uint32_t arg, mask, value;
	struct call_info row;
};

/*
 * The size of arrays that are indexed by call number: more than the highest number, so
 * that there is room for new calls.
 */
#define CALLS_ROOM	512U

extern const struct call_info flexsc__calls[];
extern const struct call_variant flexsc__call_variants[];
/*
 * Each row's enum call_turn. A separate array, because an event loop reads it for each
 * call.
 */
extern const uint8_t flexsc__call_turns[CALLS_ROOM];
extern const unsigned int flexsc__call_count;

/* The last rows of the table, which aren't system calls. */
#define NR_WORK		(flexsc__call_count - 4)
#define NR_AWAIT	(flexsc__call_count - 3)
#define NR_ACCEPT	(flexsc__call_count - 2)
#define NR_RECV		(flexsc__call_count - 1)

/* May a program post a system call of this row? */
static inline bool call_can_be_posted(const struct call_info *row)
{
	/* One comparison for all classes between CLASS_NONE and CLASS_NEVER. */
	return (uint8_t)(row->class - CLASS_FAST) < CLASS_NEVER - CLASS_FAST;
}

/* Returns the row of call nr. A number that isn't a call has a row of CLASS_NONE. */
static inline const struct call_info *flexsc__call_info(unsigned int nr)
{
	return &flexsc__calls[nr < flexsc__call_count ? nr : flexsc__call_count];
}

/*
 * Returns the poll(2) event after which the call can begin without waiting. connect()
 * is an exception: it begins at once and can't be repeated, so the event shows its end.
 */
static inline enum call_poll call_poll(const struct call_info *row)
{
	return row->traits & CALL_ONCE ? POLL_NONE : (enum call_poll)row->dir;
}

/* Does the call transfer bytes on a socket, and obey MSG_DONTWAIT? */
static inline bool call_is_of_socket(const struct call_info *row)
{
	return row->length && row->attempt == MSG_DONTWAIT;
}

/*
 * Returns the variant of the row that matches the arguments; otherwise the row itself.
 */
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

/* Does this variant close descriptors, or change facts about them? */
static inline bool call_changes_fds(const struct call_info *variant)
{
	return variant->closes | variant->changes | (variant->makes == MAKES_DUP);
}

/* If this variant succeeds, does it make descriptors or share files with others? */
static inline bool call_adds_fds(const struct call_info *variant)
{
	return variant->makes | variant->joins | variant->passes;
}

/* Returns the class of a call with these arguments. CLASS_NEVER means -EOPNOTSUPP. */
enum call_class flexsc__call_class(const struct call_info *row,
				   const struct flexsc_entry *entry);

/*
 * Is poll(2) unable to show whether the call would wait? With MSG_ERRQUEUE or MSG_OOB,
 * the call fails at once if there is no such data. Exception: a socket without an error
 * queue ignores MSG_ERRQUEUE, and the call waits for ordinary data. With MSG_PEEK and
 * MSG_WAITALL, the call waits for all bytes, although poll(2) reports the socket ready
 * after the first.
 */
bool flexsc__call_is_unpolled(const struct call_info *row, const __u64 *args);

/*
 * Returns the number of bytes that the call is to transfer; 0 if its result isn't a
 * number of bytes. The caller guarantees that the vector or message which the arguments
 * point to is valid.
 */
uint64_t flexsc__requested_length(const struct flexsc_entry *entry);

#endif /* FLEXSC_CALL_INFO_H */
