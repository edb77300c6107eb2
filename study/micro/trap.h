/* SPDX-License-Identifier: MIT */
/*
 * A trap: one plain system call, or a few that belong together, such as open
 * and close, whose cost for the surrounding program is measured. Each result is
 * checked, because a call that fails quickly would look cheap. One thread uses
 * a trap.
 *
 * Calls on a file use a temporary file of one page in TMPDIR, or in /tmp.
 */
#ifndef FLEXSC_STUDY_TRAP_H
#define FLEXSC_STUDY_TRAP_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#define BENCH_TRAP_PAGE	4096

struct bench_trap {
	bool (*make)(struct bench_trap *trap);	/* false: a wrong result */
	uint64_t wrong;		/* number of wrong results */
	int fd;			/* descriptor of the file */
	int parent;		/* process id of the parent */
	char path[PATH_MAX];
	char page[BENCH_TRAP_PAGE];
};

/*
 * name: none, getppid, stat, pread, pwrite, open-close, mmap-munmap or
 * open-write-close. Returns 0, or 1 after a message.
 */
int bench_trap_init(struct bench_trap *trap, const char *name);

/* Close and remove the file. */
void bench_trap_fini(struct bench_trap *trap);

/* Returns 0, or 1 after a message if results were wrong. */
int bench_trap_check(const struct bench_trap *trap);

static inline void bench_trap_make(struct bench_trap *trap)
{
	trap->wrong += !trap->make(trap);
}

#endif /* FLEXSC_STUDY_TRAP_H */
