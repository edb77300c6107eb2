/* SPDX-License-Identifier: MIT */
/*
 * Engines execute submitted entries and report the done ones. Every function
 * but wake is called by the loop's owner.
 */
#ifndef FLEXSC_ENGINE_H
#define FLEXSC_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct flexsc_loop;

struct engine {
	const char *name;
	/*
	 * Get ready to execute: 0, or -errno. -EOPNOTSUPP means that the
	 * engine doesn't work here, and loop->why says why in one line.
	 */
	int (*open)(struct flexsc_loop *loop);
	/* Start executing loop->submitted; leaves its lists empty. */
	void (*submit)(struct flexsc_loop *loop);
	/*
	 * Submit, then collect what is complete into loop->done. When nothing
	 * is, sleep until something is, until wake, or for ns nanoseconds at
	 * most; 0 doesn't sleep. Waking up for no reason is allowed.
	 */
	int (*wait)(struct flexsc_loop *loop, uint64_t ns);
	/* Would wait find something at once? NULL: the loop knows itself. */
	bool (*stirs)(const struct flexsc_loop *loop);
	/* Any thread, any signal handler: end the wait. */
	void (*wake)(struct flexsc_loop *loop);
	/* An entry that was BUSY is CANCEL now: end it early. */
	void (*cancel)(struct flexsc_loop *loop, uint32_t index);
	/*
	 * Any thread: a descriptor is about to be closed that calls may wait
	 * for. NULL: the kernel holds its file.
	 */
	void (*hold)(struct flexsc_loop *loop, int fd);
	/* Nothing is executing any more. */
	void (*close)(struct flexsc_loop *loop);
	/* In a forked child: close descriptors, touch nothing else. */
	void (*forked)(struct flexsc_loop *loop);
};

extern const struct engine flexsc__engine_sync;
extern const struct engine flexsc__engine_threads;
extern const struct engine flexsc__engine_uring;
extern const struct engine flexsc__engine_kmod;

/* Choose and open an engine as loop->options say. */
int flexsc__engine_open(struct flexsc_loop *loop);

/* Execute a SUBMITTED entry here and now, as a plain system call. */
void flexsc__engine_inline(struct flexsc_loop *loop, uint32_t index);
/*
 * Around every sleep: begin says whether to sleep at all, and has wake called
 * from then on.
 */
bool flexsc__sleep_begin(struct flexsc_loop *loop);
void flexsc__sleep_end(struct flexsc_loop *loop);
/* Look for work for spin_us, and ns at most, instead of sleeping at once. */
void flexsc__engine_spin(const struct flexsc_loop *loop, uint64_t ns);
/*
 * Sleep on loop->bell, for engines without something better to sleep in, and
 * how to end that.
 */
void flexsc__engine_sleep(struct flexsc_loop *loop, uint64_t ns);
void flexsc__engine_ring(struct flexsc_loop *loop);

#endif /* FLEXSC_ENGINE_H */
