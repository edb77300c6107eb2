/* SPDX-License-Identifier: MIT */
/*
 * The kernel engine's interface, used without the library: a registration, its
 * rings, and as many syscall threads as the module requests. For tests, and for
 * counting instructions.
 */
#ifndef FLEXSC_TESTS_RAW_H
#define FLEXSC_TESTS_RAW_H

#include "tests/harness/harness.h"

#include <linux/flexsc.h>

#include "lib/base/syscall.h"

#define FOREVER	UINT64_MAX

/* For nargs: a syscall thread executes the entry, which may block. */
#define DEFER	(FLEXSC_DEFER | FLEXSC_MAY_SLEEP)

/* The arguments of a syscall thread's first FLEXSC_IOC_SERVE. */
#define SERVE_FIRST							\
	{ .index = FLEXSC_NO_ENTRY, .flags = FLEXSC_SERVE_FIRST, .core = -1 }

struct raw {
	int fd;
	struct flexsc_register args;
	struct flexsc_shared *shared;
	uint32_t *ring;
	struct flexsc_entry *entries;
	uint64_t seen;		/* number of completions taken */
	atomic_int threads;
	atomic_bool ending;
	uint32_t flags;		/* FLEXSC_WAIT_* */
	void (*taken_over)(struct raw *raw);	/* called by a syscall thread */
};

/* The registration of most tests; and a pipe, or in an ECB_TEST a pair of sockets. */
extern struct raw raw;
extern int fds[2];

/* A test between two statements, which begin and end it. */
#define TEST_BETWEEN(id, seconds, begin, end)				\
	static void between_##id(void);					\
	TEST_LIMIT(id, seconds)						\
	{								\
		begin;							\
		between_##id();						\
		end;							\
	}								\
	static void between_##id(void)

/* A test with "raw", which at first has one page, no flags and no syscall thread. */
#define RAW_TEST(id)			RAW_TEST_LIMIT(id, 20)
#define RAW_TEST_LIMIT(id, seconds)	RAW_TEST_WITH(id, seconds, 1, 0)
#define RAW_TEST_WITH(id, seconds, pages, flags)			\
	TEST_BETWEEN(id, seconds, raw_begin(pages, flags), raw_close(&raw))

/* Opens "raw" and "fds". */
void raw_begin(uint32_t pages, uint32_t flags);
void raw_open(struct raw *raw, uint32_t pages, uint32_t flags);
void raw_close(struct raw *raw);
/* Creates one more syscall thread. */
void raw_thread(struct raw *raw);
/*
 * Waits, and creates the threads that the module requests. Returns the ioctl's
 * result.
 */
int raw_wait(struct raw *raw, uint64_t timeout);
void raw_kick(struct raw *raw);
/* Waits until a thread sleeps in this system call, or has ended. */
void await_sleep(pid_t tid, long nr);
/* Waits until the entry has this status. */
void raw_await(struct raw *raw, uint32_t index, uint8_t status);
/* BUSY or SUBMITTED -> CANCEL; false: the entry has another status. */
bool raw_cancel(struct raw *raw, uint32_t index, uint8_t from);
/* Waits until all other threads of the process sleep in ioctl(). */
void raw_await_sleepers(void);
/* Moves the calling thread to a core, or permits any core (-1); false: impossible. */
bool raw_move(int core);
/*
 * Returns a number that debugfs shows of the process's registration: the one behind
 * "key", which is searched behind "part" if that isn't NULL; -1: it isn't shown.
 * Such keys begin and end with a space.
 */
int64_t raw_shown(const char *part, const char *key);
int64_t raw_shown_of(pid_t pid, const char *part, const char *key);
/* Waits for the only posted entry, and frees it. */
struct flexsc_entry *raw_result(struct raw *raw);
/* Waits until this many entries have completed, and frees them. */
void raw_collect(struct raw *raw, uint32_t count);
/*
 * The same. An entry that comes back because its thread was needed elsewhere is
 * posted again, as by the library.
 */
void raw_finish(struct raw *raw, uint32_t count);

/* The same as the ioctl, in fewer instructions. shared->timeout has to be set. */
static inline long raw_enter(const struct raw *raw)
{
	return raw_syscall(SYS_lseek, (uint64_t)raw->fd, raw->seen,
			   FLEXSC_WAIT_SEEK, 0, 0, 0);
}

/* Has a thread to be woken after the last push, because none polls the ring? */
static inline bool raw_needs_kick(const struct raw *raw)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return __atomic_load_n(&raw->shared->needs_kick, __ATOMIC_RELAXED);
}

static inline void raw_push(struct raw *raw, uint32_t index)
{
	struct flexsc_shared *shared = raw->shared;
	uint32_t tail = shared->tail;

	/* Steps U1 and U4. */
	__atomic_store_n(&raw->entries[index].status, FLEXSC_SUBMITTED,
			 __ATOMIC_RELEASE);
	raw->ring[tail & (raw->args.ring_entries - 1)] = index;
	__atomic_store_n(&shared->tail, tail + 1, __ATOMIC_RELEASE);
}

/* raw_post(raw, index, flags, nr, ...): up to six arguments; missing ones are 0. */
#define raw_post(raw, index, flags, ...)				\
	raw_post_call(raw, index, flags, ARGS(__VA_ARGS__))

static inline void raw_post_call(struct raw *raw, uint32_t index, uint8_t flags,
				 unsigned int nr, uint64_t a, uint64_t b,
				 uint64_t c, uint64_t d, uint64_t e, uint64_t f)
{
	struct flexsc_entry *entry = &raw->entries[index];

	entry->nr = (uint16_t)nr;
	entry->nargs = 6 | flags;
	memcpy(entry->args, (uint64_t[]){ a, b, c, d, e, f },
	       sizeof(entry->args));
	raw_push(raw, index);
}

/* Takes all completions, newest first. */
static inline uint32_t raw_take(struct raw *raw)
{
	uint32_t *head = &raw->shared->completions.head;

	if (__atomic_load_n(head, __ATOMIC_RELAXED) == FLEXSC_NO_ENTRY)
		return FLEXSC_NO_ENTRY;
	return __atomic_exchange_n(head, FLEXSC_NO_ENTRY, __ATOMIC_ACQUIRE);
}

/* Counts the complete entries, and frees them. */
static inline uint32_t raw_reap(struct raw *raw)
{
	uint32_t index = raw_take(raw), n = 0;

	while (index != FLEXSC_NO_ENTRY) {
		struct flexsc_entry *entry = &raw->entries[index];

		index = entry->link;
		entry->status = FLEXSC_FREE;
		n++;
	}
	raw->seen += n;
	return n;
}

#endif /* FLEXSC_TESTS_RAW_H */
