/* SPDX-License-Identifier: MIT */
/*
 * Events in memory, and a handler that preempts computation: the thesis SEND (2000) on
 * stock Linux. See flexsc-ecb(3) and flexsc-ecb(7).
 *
 * Functions return 0 or more, or -errno. Unless stated otherwise, only the owner may
 * call them: the thread that created the control block.
 */
#ifndef FLEXSC_ECB_H
#define FLEXSC_ECB_H

#include <linux/flexsc_ecb.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#if defined(__GLIBC__) && !defined(__sigset_t_defined)
#error "<flexsc/ecb.h> needs POSIX: compile with -D_GNU_SOURCE, or with -std=gnu11"
#endif

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

struct flexsc_ecb;
struct flexsc_loop;

/* Options for creating an ECB. Start from FLEXSC_ECB_OPTIONS_INIT. */
struct flexsc_ecb_options {
	size_t size;		/* sizeof(struct flexsc_ecb_options) */
	const char *backend;	/* "kmod", "uring", or NULL: the first that works */
	uint32_t events;	/* maximum number of sources; default 4096, at most
				 * 1048576 */
	uint32_t flags;		/* FLEXSC_ECB_* */
	void *stack;		/* the handler's stack, lowest address; default NULL:
				 * the interrupted one */
	size_t stack_size;	/* at least FLEXSC_ECB_STACK_MIN */
};

#define FLEXSC_ECB_STACK_MIN	16384

#define FLEXSC_ECB_OPTIONS_INIT \
	{ sizeof(struct flexsc_ecb_options), NULL, 0, 0, NULL, 0 }

/*
 * In addition to FLEXSC_ECB_INTERRUPTS_CALLS and FLEXSC_ECB_TIMES of
 * <linux/flexsc_ecb.h>:
 */
#define FLEXSC_ECB_BATCHED	0x10000U /* deliver only in flexsc_ecb_wait() */
#define FLEXSC_ECB_INTEGER_ONLY	0x20000U /* the handler uses only general registers */

/* Create an ECB, owned by the calling thread. options may be NULL. */
int flexsc_ecb_create(struct flexsc_ecb **ecb,
		      const struct flexsc_ecb_options *options);

/* Forget all sources and free everything. Call it before the owner's thread ends. */
int flexsc_ecb_destroy(struct flexsc_ecb *ecb);

/* Returns the name of the ECB's backend, valid as long as the library is loaded. */
const char *flexsc_ecb_backend(const struct flexsc_ecb *ecb);

/* Any thread: does a backend work here? If not, *why is the reason in one line. */
int flexsc_ecb_probe(const char *backend, char *why, size_t size);

/*
 * Returns the words shared with the kernel. The program may store to "notify" and
 * "deliver" with __atomic_store_n(), and must call flexsc_ecb_flush() after setting
 * bits.
 */
struct flexsc_event_control *flexsc_ecb_control(struct flexsc_ecb *ecb);

/*
 * Set the groups whose events are delivered, and the groups whose events also call the
 * handler. flexsc_ecb_flush() applies bits that the program has stored itself. Posts by
 * threads are delivered regardless of "deliver".
 */
int flexsc_ecb_deliver(struct flexsc_ecb *ecb, uint32_t groups);
int flexsc_ecb_notify(struct flexsc_ecb *ecb, uint32_t groups);
int flexsc_ecb_flush(struct flexsc_ecb *ecb);

/* Set the handler. -EBUSY: "notify" isn't zero. */
int flexsc_ecb_handler(struct flexsc_ecb *ecb,
		       void (*handler)(struct flexsc_ecb *ecb, void *arg),
		       void *arg);

/* Set the group of sources of this type that are created with group -1. Initially 0. */
int flexsc_ecb_group(struct flexsc_ecb *ecb, enum flexsc_event_type type,
		     unsigned int group);

/*
 * Deliver changes of a descriptor; want has bits of poll(2). Like all functions that
 * create sources, returns the event's index.
 */
int flexsc_ecb_watch(struct flexsc_ecb *ecb, int fd, uint32_t want, int group,
		     void *data);

/*
 * As flexsc_ecb_watch(), with an explicit type, and with flags: FLEXSC_WATCH_CHECKED.
 */
int flexsc_ecb_watch_as(struct flexsc_ecb *ecb, int fd,
			enum flexsc_event_type type, uint32_t want, int group,
			uint32_t flags, void *data);

/* Properties of accepted connections. */
struct flexsc_ecb_inherit {
	uint32_t want;		/* as in flexsc_ecb_watch() */
	int group;
	uint32_t flags;		/* SOCK_NONBLOCK, SOCK_CLOEXEC */
	void *data;
};

/*
 * Accept connections of a listening socket, which must be non-blocking, when they are
 * delivered.
 */
int flexsc_ecb_autoaccept(struct flexsc_ecb *ecb, int listener, int group,
			  const struct flexsc_ecb_inherit *inherit, void *data);

/* Create a source to which other threads post. */
int flexsc_ecb_user(struct flexsc_ecb *ecb, int group, void *data);

/* Post a word to a source. Any thread, any signal handler. A word of 0 is -EINVAL. */
int flexsc_ecb_post(struct flexsc_ecb *ecb, unsigned int event, uint64_t word);

/*
 * The following functions create sources whose descriptors belong to the library.
 * Taking their events needs a system call.
 *
 * Signals of the set, which flexsc_ecb_signal() blocks for the calling thread.
 */
int flexsc_ecb_signal(struct flexsc_ecb *ecb, const sigset_t *set, int group,
		      void *data);

/*
 * A timer, which expires after "first" ns of CLOCK_MONOTONIC, then every "period" ns
 * (0: only once).
 */
int flexsc_ecb_timer(struct flexsc_ecb *ecb, uint64_t first, uint64_t period,
		     int group, void *data);

/* The end of a child, which is reaped when the event is taken. */
int flexsc_ecb_child(struct flexsc_ecb *ecb, pid_t pid, int group, void *data);

/* Changes of a file or directory; mask as in inotify(7). */
int flexsc_ecb_file(struct flexsc_ecb *ecb, const char *path, uint32_t mask,
		    int group, void *data);

/*
 * An event reports that calls of the loop are complete. The program then dispatches and
 * prepares the loop, as for flexsc_loop_fd().
 */
int flexsc_ecb_loop(struct flexsc_ecb *ecb, struct flexsc_loop *loop, int group,
		    void *data);

/* What flexsc_ecb_memory() reports. */
#define FLEXSC_MEMORY_MISSING	0x1U	/* accesses to pages that don't exist */
#define FLEXSC_MEMORY_PROTECTED	0x2U	/* writes to write-protected pages */
#define FLEXSC_MEMORY_CHANGES	0x4U	/* no events: flexsc_ecb_memory_changed() */
#define FLEXSC_MEMORY_CALLS	0x8U	/* accesses by system calls, too */
/* In an event, with FLEXSC_MEMORY_MISSING: the access is a write. */
#define FLEXSC_MEMORY_WRITE	0x10U

/*
 * Deliver page faults of other threads in this memory. Such a thread sleeps until one
 * of the next two functions completes its fault, or until the source ends.
 */
int flexsc_ecb_memory(struct flexsc_ecb *ecb, void *begin, size_t size,
		      uint32_t what, int group, void *data);

/*
 * Copy "pages" to missing pages (NULL: zeroes), or allow (1) or protect from (0) writes.
 * Both wake the threads that wait for these pages.
 */
int flexsc_ecb_memory_fill(struct flexsc_ecb *ecb, unsigned int event, void *begin,
			   size_t size, const void *pages);
int flexsc_ecb_memory_allow(struct flexsc_ecb *ecb, unsigned int event, void *begin,
			    size_t size, int writes);

struct flexsc_ecb_range {
	uint64_t begin, end;	/* addresses */
};

/*
 * Take up to n ranges of pages that were written since they were last taken, lowest
 * first. Returns their number. If it is n, there may be more.
 */
int flexsc_ecb_memory_changed(struct flexsc_ecb *ecb, unsigned int event,
			      struct flexsc_ecb_range *ranges, unsigned int n);

/* Any thread: does "what" work here? If not, *why is the reason in one line. */
int flexsc_ecb_memory_probe(uint32_t what, char *why, size_t size);

/* Stop a source's events; the second function also closes its descriptor. */
int flexsc_ecb_forget(struct flexsc_ecb *ecb, unsigned int event);
int flexsc_ecb_close(struct flexsc_ecb *ecb, unsigned int event);

/* An event that is handed out. */
struct flexsc_ecb_event {
	uint32_t event;		/* the event's index */
	uint16_t type;		/* enum flexsc_event_type */
	uint16_t group;
	int32_t fd;		/* -1: none */
	uint32_t ready;		/* bits of poll(2), and FLEXSC_EVENT_CHECK */
	int32_t error;		/* -errno, for FLEXSC_EVT_OVERFLOW and POLLERR */
	uint32_t reserved;
	void *data;
	uint64_t time;		/* with FLEXSC_ECB_TIMES: ns of CLOCK_MONOTONIC */
	uint64_t payload[3];	/* by type: flexsc-ecb(3) */
};

/* Take the next event of the groups. Returns 1, or 0 if there is none. Fast. */
int flexsc_ecb_next(struct flexsc_ecb *ecb, uint32_t groups,
		    struct flexsc_ecb_event *event);

/*
 * Sleep until an event of the groups may be available, or for ns nanoseconds
 * (FLEXSC_FOREVER: no limit). Returns 1: take events; 0: none arrived.
 */
int flexsc_ecb_wait(struct flexsc_ecb *ecb, uint32_t groups, uint64_t ns);

/*
 * The handler isn't called between begin and end. Pairs of these calls may nest. Fast.
 */
void flexsc_ecb_critical_begin(struct flexsc_ecb *ecb);
void flexsc_ecb_critical_end(struct flexsc_ecb *ecb);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif /* FLEXSC_ECB_H */
