/* SPDX-License-Identifier: MIT */
/*
 * Entries that bounce. A tracer, auditing, a tracepoint, or a filter that was installed
 * after the loop's creation may watch a thread's system calls. In this case the kernel
 * module makes the thread execute each call in user mode. This costs an additional mode
 * switch per call, and a switch of threads if the call is posted alone. A tracer or
 * filter sees a pool's calls, too, but such a call costs less. So a pool replaces the
 * module:
 *
 *	module -> pool	BOUNCED_MOST entries in a row have bounced, or the owner
 *			was watched when it registered
 *	pool -> module	after SPARED_MOST calls, or after TRY_NS: a trial
 *	module -> pool	in a trial, after a single bounce
 *
 * While the pool makes the calls ("spares" is set), loop->why gives the reason. Owner
 * only.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine.h"
#include "kmod.h"
#include "lib/base/clock.h"
#include "lib/base/plain.h"

#define BOUNCED_MOST	16
#define SPARED_MOST	1000
#define TRY_NS		1000000000ULL

#define TRACEPOINTS	"/sys/kernel/tracing/events/"

/* Reads the first bytes of a file, as a string. */
static const char *read_text(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	long n = fd < 0 ? -1 : plain_read(fd, text, size - 1);

	if (fd >= 0)
		plain_close(fd);
	text[n < 0 ? 0 : n] = '\0';
	return text;
}

static int tracer_pid(void)
{
	char text[2048];
	const char *line = strstr(read_text("/proc/thread-self/status", text,
					    sizeof(text)),
				  "\nTracerPid:");

	return line ? atoi(line + sizeof("\nTracerPid:") - 1) : 0;
}

/*
 * Is the tracepoint enabled ("1"), or partly so ("X")? Only root can read the file; for
 * other users the answer is no.
 */
static bool is_enabled(const char *path)
{
	char text[4];

	return strchr("1X", *read_text(path, text, sizeof(text))) && *text;
}

/*
 * Find the tracer or tracepoint. User mode can't distinguish auditing from a tracepoint
 * whose file it can't read, so the text names both.
 */
static const char *find_watcher(char *text, size_t size)
{
	const int saved = errno, pid = tracer_pid();
	const char *watcher = "auditing or a tracepoint watches";

	if (pid) {
		snprintf(text, size, "process %d traces", pid);
		watcher = text;
	} else if (is_enabled(TRACEPOINTS "raw_syscalls/enable") ||
		   is_enabled(TRACEPOINTS "syscalls/enable")) {
		watcher = "a tracepoint watches";
	}
	errno = saved;
	return watcher;
}

static void set_why(struct flexsc_loop *loop, const char *watcher)
{
	snprintf(loop->why, sizeof(loop->why),
		 "calls would bounce: %s this thread's system calls; threads make them "
		 "instead", watcher);
}

static void bounce_spare(struct flexsc_loop *loop)
{
	struct bouncing *bouncing = &kmod_of(loop)->bouncing;

	bouncing->spares = true;
	bouncing->spared = 0;
	bouncing->since = time_monotonic();
}

/* The module has just accepted the owner, which therefore has no filter. */
void flexsc__kmod_spare_first(struct flexsc_loop *loop)
{
	char text[64];

	bounce_spare(loop);
	set_why(loop, find_watcher(text, sizeof(text)));
}

/*
 * The module counts a bounce before the entry completes. So if more entries have
 * completed than bounced, at least one entry didn't bounce, and counting starts again.
 */
void flexsc__kmod_note_bounces(struct flexsc_loop *loop, uint32_t n)
{
	struct bouncing *bouncing = &kmod_of(loop)->bouncing;
	uint32_t bounced = __atomic_load_n(&kmod_of(loop)->shared->bounced,
					   __ATOMIC_RELAXED);

	bouncing->row += bounced - bouncing->seen;
	bouncing->done += n;
	bouncing->seen = bounced;
	if (bouncing->spares)
		return;
	if (bouncing->done > bouncing->row) {
		bouncing->row = 0;
		bouncing->done = 0;
		loop->why[0] = '\0';
	} else if (bouncing->row >= BOUNCED_MOST) {
		bounce_spare(loop);
		/*
		 * Make no call to find out more: a filter may be the reason, and end the
		 * process at that call.
		 */
		if (!loop->why[0])
			set_why(loop, "a tracer, a seccomp filter, auditing or a "
				      "tracepoint watches");
	}
}

void flexsc__kmod_try_again(struct flexsc_loop *loop)
{
	struct bouncing *bouncing = &kmod_of(loop)->bouncing;

	if (bouncing->always ||
	    (bouncing->spared < SPARED_MOST &&
	     time_monotonic() - bouncing->since < TRY_NS))
		return;
	bouncing->spares = false;
	bouncing->row = BOUNCED_MOST - 1;
	bouncing->done = BOUNCED_MOST - 1;
}

bool flexsc__kmod_spare(struct flexsc_loop *loop, uint32_t index,
			enum call_class class)
{
	kmod_of(loop)->bouncing.spared++;
	if (class != CLASS_FAST)
		return flexsc__kmod_to_pool(loop, index);
	flexsc__engine_inline(loop, index);
	return true;
}
