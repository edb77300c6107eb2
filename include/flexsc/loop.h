/* SPDX-License-Identifier: MIT */
/*
 * The loop: hands what was posted to an engine in batches and runs callbacks
 * (ATC 2011, section 4). flexsc-loop(3) is the reference.
 */
#ifndef FLEXSC_LOOP_H
#define FLEXSC_LOOP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

struct flexsc_loop;
struct flexsc_cb;

/* How a loop is made. Start from FLEXSC_OPTIONS_INIT: zero means the default. */
struct flexsc_options {
	size_t size;		/* sizeof(struct flexsc_options) */
	/* A name; NULL: FLEXSC_ENGINE of the environment, else the first that works. */
	const char *engine;
	/* Where calls are executed, as "2,4-6"; NULL: where the owner may run. */
	const char *kernel_cores;
	/* Calls executing at once; default 1048576, at most 67108864. */
	uint32_t max_entries;
	uint32_t max_threads;	/* syscall threads; default 64, at most 4096 */
	/* Microseconds to poll for work before sleeping, by whoever executes calls. */
	uint32_t poll_us;
	uint32_t flags;		/* none is defined: 0 */
};

/* All fields by their order: C++ before 20 has no names here. */
#define FLEXSC_OPTIONS_INIT \
	{ sizeof(struct flexsc_options), NULL, NULL, 0, 0, 0, 0 }

/* No time limit, where nanoseconds are asked for. */
#define FLEXSC_FOREVER	UINT64_MAX

/*
 * Make a loop, owned by the calling thread (OSDI 2010, section 3.4:
 * flexsc_register). options may be NULL.
 */
int flexsc_loop_create(struct flexsc_loop **loop,
		       const struct flexsc_options *options);

/*
 * Cancel what is pending, wait until the kernel has let go of every buffer, run the
 * callbacks, free everything. NULL is fine.
 */
int flexsc_loop_destroy(struct flexsc_loop *loop);

/* Run callbacks until flexsc_loop_stop() or until nothing is pending. */
int flexsc_loop_run(struct flexsc_loop *loop);

/* End this run after the callback that it is in, or else the next run. */
int flexsc_loop_stop(struct flexsc_loop *loop);

/* Count one more, or one fewer, of what flexsc_loop_run() waits for. */
int flexsc_loop_ref(struct flexsc_loop *loop);
int flexsc_loop_unref(struct flexsc_loop *loop);

/*
 * The parts of flexsc_loop_run(): start what was posted; run the callbacks of what is
 * complete, and return how many; sleep until something is (OSDI 2010, section 3.2:
 * flexsc_wait), and return 1 if so, else 0. The last two start what was posted as well.
 */
int flexsc_loop_submit(struct flexsc_loop *loop);
int flexsc_loop_dispatch(struct flexsc_loop *loop);
int flexsc_loop_wait(struct flexsc_loop *loop, uint64_t ns);

/*
 * dispatch without callbacks: put the next n completed cbs at most into done, with ret
 * and flags set, and return how many.
 */
int flexsc_loop_harvest(struct flexsc_loop *loop, struct flexsc_cb **done,
			unsigned int n);

/*
 * A loop inside another one: watch the descriptor for POLLIN, prepare the loop before
 * each sleep, which lasts ns at most, and dispatch it after: flexsc-embed(3).
 */
int flexsc_loop_fd(struct flexsc_loop *loop);
int flexsc_loop_prepare(struct flexsc_loop *loop, uint64_t *ns);

/* Timers, signals and wake-ups complete a cb, as calls do. They take no entry. */

/*
 * Complete cb with ret 0 after ns nanoseconds of CLOCK_MONOTONIC. Posting a pending
 * timer again replaces it.
 */
int flexsc_loop_timer(struct flexsc_loop *loop, struct flexsc_cb *cb,
		      uint64_t ns);

/* Complete cb with ret signo when the process or a thread gets that signal. */
int flexsc_loop_signal(struct flexsc_loop *loop, struct flexsc_cb *cb,
		       int signo);

/*
 * From any thread, and from signal handlers: run cb's callback on the loop's own thread,
 * with ret 0. cb == NULL only wakes the loop.
 */
int flexsc_loop_wake(struct flexsc_loop *loop, struct flexsc_cb *cb);

/* The engine's name; and one line that says why not a better one, or NULL. */
const char *flexsc_loop_engine(const struct flexsc_loop *loop);
const char *flexsc_loop_why(const struct flexsc_loop *loop);

/* Does this engine work here? 0, or a negative error number and the reason in why. */
int flexsc_engine_probe(const char *engine, char *why, size_t size);

/* The engines' names, those that are chosen unasked first; NULL past the last. */
const char *flexsc_engine_name(unsigned int i);

/* The library's FLEXSC_VERSION; the program may have been compiled for another. */
unsigned int flexsc_version(void);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif /* FLEXSC_LOOP_H */
