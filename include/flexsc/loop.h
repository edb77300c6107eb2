/* SPDX-License-Identifier: MIT */
/*
 * The loop hands posted calls to an engine in batches, and runs callbacks (ATC 2011,
 * section 4): flexsc-loop(3).
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

/* Options for creating a loop. Start from FLEXSC_OPTIONS_INIT; zero is the default. */
struct flexsc_options {
	size_t size;		/* sizeof(struct flexsc_options) */
	/*
	 * The engine's name; NULL: $FLEXSC_ENGINE, or else the first engine that
	 * works.
	 */
	const char *engine;
	/*
	 * Cores where calls execute, such as "2,4-6", the preferred ones first; NULL:
	 * where the owner may run.
	 */
	const char *kernel_cores;
	/* Maximum number of simultaneous calls; default 1048576, at most 67108864. */
	uint32_t max_entries;
	uint32_t max_threads;	/* syscall threads; default 64, at most 4096 */
	/*
	 * How long the owner and syscall threads poll for work before they sleep,
	 * in microseconds.
	 */
	uint32_t poll_us;
	uint32_t flags;		/* FLEXSC_POLL_ADAPTIVE or 0 */
	/*
	 * Number of waiting calls that justify the use of one more core; default 16,
	 * or 64 for kmod.
	 */
	uint32_t backlog;
	uint32_t reserved;	/* must be 0 */
};

/*
 * A flag: poll_us is a maximum. The time is shortened while work arrives later than
 * that, down to 0.
 */
#define FLEXSC_POLL_ADAPTIVE	1U

/* Without designated initialisers, which C++ before 20 lacks. */
#define FLEXSC_OPTIONS_INIT \
	{ sizeof(struct flexsc_options), NULL, NULL, 0, 0, 0, 0, 0, 0 }

/* As a number of nanoseconds: no time limit. */
#define FLEXSC_FOREVER	UINT64_MAX

/*
 * Create a loop, owned by the calling thread (OSDI 2010, section 3.4: flexsc_register).
 * options may be NULL.
 */
int flexsc_loop_create(struct flexsc_loop **loop,
		       const struct flexsc_options *options);

/*
 * Cancel pending calls, wait until the kernel has released every buffer, run the
 * callbacks, and free everything. NULL has no effect.
 */
int flexsc_loop_destroy(struct flexsc_loop *loop);

/* Run callbacks until flexsc_loop_stop(), or until nothing is pending. */
int flexsc_loop_run(struct flexsc_loop *loop);

/*
 * End the current run after the current callback. Without a run, the next one ends at
 * once.
 */
int flexsc_loop_stop(struct flexsc_loop *loop);

/*
 * Increment or decrement the number of pending operations for which flexsc_loop_run()
 * waits.
 */
int flexsc_loop_ref(struct flexsc_loop *loop);
int flexsc_loop_unref(struct flexsc_loop *loop);

/*
 * The parts of flexsc_loop_run(). submit starts posted calls. dispatch runs the
 * callbacks of complete calls, and returns their number. wait sleeps until a call is
 * complete, and returns 1, or 0 after ns (OSDI 2010, section 3.2: flexsc_wait).
 * dispatch and wait also start posted calls.
 */
int flexsc_loop_submit(struct flexsc_loop *loop);
int flexsc_loop_dispatch(struct flexsc_loop *loop);
int flexsc_loop_wait(struct flexsc_loop *loop, uint64_t ns);

/*
 * dispatch without callbacks: store up to n completed cbs, with ret and flags set, in
 * done. Returns their number.
 */
int flexsc_loop_harvest(struct flexsc_loop *loop, struct flexsc_cb **done,
			unsigned int n);

/*
 * Embedding in an outer loop: watch the descriptor for POLLIN, call prepare before each
 * sleep, which may last at most the ns that prepare stores, and call dispatch after it:
 * flexsc-embed(3).
 */
int flexsc_loop_fd(struct flexsc_loop *loop);
int flexsc_loop_prepare(struct flexsc_loop *loop, uint64_t *ns);

/* Timers, signals and wake-ups complete a cb, like calls. They need no entry. */

/*
 * Complete cb with ret 0 after ns nanoseconds of CLOCK_MONOTONIC. Posting a pending
 * timer again replaces it.
 */
int flexsc_loop_timer(struct flexsc_loop *loop, struct flexsc_cb *cb,
		      uint64_t ns);

/* Complete cb with ret == signo when the process or a thread receives that signal. */
int flexsc_loop_signal(struct flexsc_loop *loop, struct flexsc_cb *cb,
		       int signo);

/*
 * Any thread, any signal handler: run cb's callback on the loop's own thread, with ret
 * 0. cb == NULL only wakes the loop.
 */
int flexsc_loop_wake(struct flexsc_loop *loop, struct flexsc_cb *cb);

/*
 * Return the engine's name, and one line about why a better engine or kernel_cores isn't
 * used (or NULL).
 */
const char *flexsc_loop_engine(const struct flexsc_loop *loop);
const char *flexsc_loop_why(const struct flexsc_loop *loop);

/*
 * Any thread, any signal handler: call this after the users, groups or capabilities of
 * the process's threads have changed. From then on all loops start calls with the
 * present ones of their owners: flexsc-engines(7).
 */
int flexsc_identity_changed(void);

/* Does this engine work here? 0, or -errno with the reason in why. */
int flexsc_engine_probe(const char *engine, char *why, size_t size);

/*
 * Returns the name of engine i, those chosen by default first; NULL after the last one.
 */
const char *flexsc_engine_name(unsigned int i);

/*
 * Returns the FLEXSC_VERSION of the library. The program may have been compiled for
 * another version.
 */
unsigned int flexsc_version(void);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif /* FLEXSC_LOOP_H */
