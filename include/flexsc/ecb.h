/* SPDX-License-Identifier: MIT */
/*
 * Events in memory, and a handler that preempts: the thesis SEND (2000) on stock
 * Linux. An event control block (ECB) belongs to the thread that made it. The kernel and other threads write
 * events of descriptors, listeners, signals, timers, children, files, threads
 * and finished calls into its memory: their DELIVERY. A handler is called on
 * the owner, wherever it computes: their NOTIFICATION. The owner controls the
 * two apart, by stores into struct flexsc_event_control (SEND, section 3.2).
 *
 * Events are in groups 0 to 31; the lower group comes first. An event that isn't
 * taken yet coalesces with the next one of its source, so memory is in
 * proportion to sources, and nothing overflows.
 *
 * Every function is for the owner alone, unless it says otherwise. Functions
 * return 0 or more, or -errno. Errors in common: -EINVAL (NULL, bad argument),
 * -ESTALE (the ECB belongs to the parent process), -EPERM (another thread's ECB;
 * checked in test builds alone for the functions that are said to be fast).
 *
 *
 * The handler
 *
 * It runs on top of whatever the owner's thread was doing, as a signal's
 * handler does, and never inside of itself. So it may call what is safe in a
 * signal's handler; with the interrupted code in a critical section while that
 * uses anything else, it may use that, too. errno and all registers are kept.
 * Queue the work and return: SEND, section 4.3. A handler that is left by
 * longjmp() has to end the critical section that it is called in:
 * flexsc_ecb_critical_end().
 *
 * It is called while a group that has its bit in "notify" is pending, and
 * again when it returns and one still is. So it takes all events of those groups
 * with flexsc_ecb_next(), or clears their bits.
 * A child that is forked in the handler goes back to what was interrupted, as its
 * parent does, and has no ECB.
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

/* How an ECB is made. Start from FLEXSC_ECB_OPTIONS_INIT. */
struct flexsc_ecb_options {
	size_t size;		/* sizeof(struct flexsc_ecb_options) */
	/*
	 * "kmod", "uring", or NULL: what the environment variable FLEXSC_ECB
	 * names (not in set-user-ID programs), otherwise the first of the two
	 * that works.
	 */
	const char *backend;
	uint32_t events;	/* sources at once; default 4096, at most 1048576 */
	uint32_t flags;		/* FLEXSC_ECB_* */
};

#define FLEXSC_ECB_OPTIONS_INIT \
	{ sizeof(struct flexsc_ecb_options), NULL, 0, 0 }

/*
 * FLEXSC_ECB_INTERRUPTS_CALLS, FLEXSC_ECB_TIMES: <linux/flexsc_ecb.h>; and of
 * the library alone:
 */
/*
 * Deliver in flexsc_ecb_wait() only: "poll, then handle" (SEND, section 4.7: PS1).
 * There is no notification.
 */
#define FLEXSC_ECB_BATCHED	0x10000U
/*
 * The handler uses general registers alone (-mgeneral-regs-only): vector and
 * floating-point registers aren't kept for it.
 */
#define FLEXSC_ECB_INTEGER_ONLY	0x20000U

/*
 * Make an ECB, owned by the calling thread (SEND, section 3.2.2: evtctl(),
 * DEF_ECB). options may be NULL. *ecb is valid until it is destroyed. SIGURG is
 * unblocked for the thread.
 *
 *	-EINVAL		an unknown backend, option or flag
 *	-EOPNOTSUPP	no backend, or not the one asked for, works here;
 *			see flexsc_ecb_probe(). Also under "flexsc run": its user
 *			threads have no kernel threads of their own
 *	-ENOMEM, -EMFILE, -ENFILE	out of that resource
 */
int flexsc_ecb_create(struct flexsc_ecb **ecb,
		      const struct flexsc_ecb_options *options);

/*
 * Forget all sources, free everything, close connections whose event wasn't handed
 * out (uring). -EBUSY inside of the handler. An owner calls it before its thread
 * ends: later no thread can, and the sources stay until the process ends.
 */
int flexsc_ecb_destroy(struct flexsc_ecb *ecb);

/* The name of the ECB's backend. It lives as long as the library. */
const char *flexsc_ecb_backend(const struct flexsc_ecb *ecb);

/*
 * Any thread: does a backend ("kmod", "uring") work here? 0, -EOPNOTSUPP and a
 * line that says why in "why", -EINVAL (no such backend), or another -errno.
 */
int flexsc_ecb_probe(const char *backend, char *why, size_t size);

/*
 * The words that are shared with the kernel. The program stores to notify and
 * deliver, by __atomic_store_n(); the others are the library's. Storing zeroes
 * into bits takes effect at once, except that with uring a listener accepts until
 * the next call of the library. After storing ones call flexsc_ecb_flush(),
 * or use flexsc_ecb_notify() and flexsc_ecb_deliver(), which do both.
 */
struct flexsc_event_control *flexsc_ecb_control(struct flexsc_ecb *ecb);

/*
 * What threads post is delivered whatever "deliver" says.
 *
 * Store the bits, and have what waited for them delivered, and notified of if
 * "notify" says so. A system call only if something did. uring: -EMFILE, -ENFILE
 * or -ENOMEM if descriptors for notification can't be made; events are delivered
 * all the same. Or the ring's error, see flexsc_ecb_watch().
 */
int flexsc_ecb_deliver(struct flexsc_ecb *ecb, uint32_t groups);
int flexsc_ecb_notify(struct flexsc_ecb *ecb, uint32_t groups);
int flexsc_ecb_flush(struct flexsc_ecb *ecb);

/* Set the handler. -EBUSY unless notify is zero. */
int flexsc_ecb_handler(struct flexsc_ecb *ecb,
		       void (*handler)(struct flexsc_ecb *ecb, void *arg),
		       void *arg);

/* The group of sources of that type that are made with group -1. At first 0. */
int flexsc_ecb_group(struct flexsc_ecb *ecb, enum flexsc_event_type type,
		     unsigned int group);

/*
 * Deliver events of a descriptor: "want" has bits of poll(2); hang-up and errors
 * are always told. The event comes when the descriptor's state changes, as with
 * EPOLLET: read until -EAGAIN. What it is at first is an event, too. data is
 * handed out with each event. FLEXSC_WATCH_CHECKED: ask poll(2) before an event is
 * handed out, and hand out none that isn't true any more.
 *
 * A watch belongs to the descriptor and not to the file: with the backend kmod
 * it ends inside close(), and the other duplicates go on. With uring it ends
 * in flexsc_ecb_forget() or _close(), and a descriptor that is closed without
 * these stays open inside of the kernel. When too many events came at once, uring watches
 * the descriptor's number anew, which may mean another file by then.
 *
 * Returns the event's index, which names it until it is forgotten or closed.
 *
 *	-EBADF		no such descriptor
 *	-EPERM		it can't be polled
 *	-ENOSPC		options.events are watched; with the kernel module,
 *			1024 of one open file
 *	-ELOOP		kmod: it watches others itself, as epoll does
 *	others		uring: io_uring_enter() fails, as when the program forbids it by
 *			a seccomp filter. Then flexsc_ecb_autoaccept(), sources with
 *			descriptors of the library's own, and waits without an event
 *			return this error, too. Threads' posts are delivered; earlier
 *			watches may end without an event
 */
int flexsc_ecb_watch(struct flexsc_ecb *ecb, int fd, uint32_t want, int group,
		     void *data);

/* The same, of a certain type, and with flags: FLEXSC_WATCH_CHECKED. */
int flexsc_ecb_watch_as(struct flexsc_ecb *ecb, int fd,
			enum flexsc_event_type type, uint32_t want, int group,
			uint32_t flags, void *data);

/* What becomes of accepted connections. */
struct flexsc_ecb_inherit {
	uint32_t want;		/* as in flexsc_ecb_watch() */
	int group;
	uint32_t flags;		/* SOCK_NONBLOCK, SOCK_CLOEXEC */
	void *data;
};

/*
 * Accept connections when they are delivered (SEND, section 3.6.1), whatever the
 * owner does meanwhile. Each is an event FLEXSC_EVT_IPACCEPT in "group" with its
 * descriptor and the state that it has; it is watched as "inherit" says, under
 * the index of that event. A listener that blocks is -EINVAL.
 *
 * With no free slot or descriptor, connections stay in the backlog, and an event
 * FLEXSC_EVT_OVERFLOW of the listener says so; it goes on when one is free.
 */
int flexsc_ecb_autoaccept(struct flexsc_ecb *ecb, int listener, int group,
			  const struct flexsc_ecb_inherit *inherit, void *data);

/*
 * A source that other threads post to: flexsc_ecb_post(). Returns the event's
 * index. The words of several posts are ORed until the event is taken.
 */
int flexsc_ecb_user(struct flexsc_ecb *ecb, int group, void *data);

/* Any thread, any signal handler. A word of 0 is -EINVAL; -ENOENT: forgotten. */
int flexsc_ecb_post(struct flexsc_ecb *ecb, unsigned int event, uint64_t word);

/*
 * Events of what a descriptor of the library's own tells: it is made by these
 * functions, and closed when the event is forgotten. Each returns the event's
 * index. Taking such an event reads the descriptor, and so is a system call.
 *
 * A signal of the set, which is blocked for the calling thread; have other
 * threads block it as well. payload: signo | code << 32, pid | uid << 32, value;
 * of a descriptor's signal (F_SETSIG) its band and the descriptor in their place.
 * Each signal that is queued is an event. SIGURG is -EINVAL: it notifies.
 */
int flexsc_ecb_signal(struct flexsc_ecb *ecb, const sigset_t *set, int group,
		      void *data);

/*
 * A timer: after "first" ns of CLOCK_MONOTONIC, and every "period" ns after that;
 * 0: once. payload[0]: how often it expired.
 */
int flexsc_ecb_timer(struct flexsc_ecb *ecb, uint64_t first, uint64_t period,
		     int group, void *data);

/*
 * The end of a child, which is reaped when the event is taken. payload: si_code
 * and si_status of waitid(2), pid.
 */
int flexsc_ecb_child(struct flexsc_ecb *ecb, pid_t pid, int group, void *data);

/* A file or directory; mask as in inotify(7). payload[0]: what happened, ORed. */
int flexsc_ecb_file(struct flexsc_ecb *ecb, const char *path, uint32_t mask,
		    int group, void *data);

/*
 * Calls of a loop are complete: run flexsc_loop_dispatch(), then
 * flexsc_loop_prepare(), as an outer loop does (<flexsc/loop.h>).
 */
int flexsc_ecb_loop(struct flexsc_ecb *ecb, struct flexsc_loop *loop, int group,
		    void *data);

/* No more events of it; the second one closes its descriptor, too. */
int flexsc_ecb_forget(struct flexsc_ecb *ecb, unsigned int event);
int flexsc_ecb_close(struct flexsc_ecb *ecb, unsigned int event);

/* An event, as it is handed out. */
struct flexsc_ecb_event {
	uint32_t event;		/* its index */
	uint16_t type;		/* enum flexsc_event_type */
	uint16_t group;
	int32_t fd;		/* -1: none */
	/*
	 * Bits of poll(2); FLEXSC_EVENT_CHECK beside POLLIN and POLLOUT says
	 * that these may be untrue, and so may be a hang-up that isn't told.
	 */
	uint32_t ready;
	/*
	 * Of FLEXSC_EVT_OVERFLOW, why a connection wasn't accepted: -errno of
	 * accept4(), -ENOSPC without a slot, -EPERM where the program has to accept:
	 * a tracer or a filter watches its calls, or the listener blocks. uring, with
	 * POLLERR in ready: why the descriptor can't be polled any more. No event of it
	 * follows. Otherwise 0.
	 */
	int32_t error;
	uint32_t reserved;
	void *data;
	/*
	 * With FLEXSC_ECB_TIMES: ns of CLOCK_MONOTONIC. When it happened; with
	 * the backend uring when the owner's thread looked first.
	 */
	uint64_t time;
	uint64_t payload[3];	/* a post's words; struct flexsc_event_peer */
};

/*
 * Fast. Take the next event of the groups, the lowest group first, and the
 * oldest first within one. 1, or 0: there is none. Inside of the handler, and
 * outside. No system call, but for FLEXSC_WATCH_CHECKED and sources that say so,
 * and with the backend uring one for all connections that were accepted since
 * the last time, and one to be notified again.
 */
int flexsc_ecb_next(struct flexsc_ecb *ecb, uint32_t groups,
		    struct flexsc_ecb_event *event);

/*
 * Sleep until there may be an event of the groups, or for ns nanoseconds
 * (FLEXSC_FOREVER: no limit). 1: look; 0: none came. -EINTR: a signal's handler
 * ran. The ECB's handler isn't called for events of these groups, and "deliver"
 * doesn't matter for them meanwhile (SEND, section 3.5).
 */
int flexsc_ecb_wait(struct flexsc_ecb *ecb, uint32_t groups, uint64_t ns);

/*
 * Fast. Between the two the handler isn't called. They nest. The last end calls
 * it, if it is due.
 */
void flexsc_ecb_critical_begin(struct flexsc_ecb *ecb);
void flexsc_ecb_critical_end(struct flexsc_ecb *ecb);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif /* FLEXSC_ECB_H */
