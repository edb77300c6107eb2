/* SPDX-License-Identifier: MIT */
/*
 * Many files with bounded concurrency: opens, looks at, reads and closes each file
 * named in the input, 256 of them at a time.
 *
 *	crawl <NAMES		adds up their bytes, and says what a file took
 *	crawl -p <NAMES		the same by plain calls, one after the other
 *
 * Where the files are in memory the two are alike; where a disk has to be waited
 * for, many waits at a time are as long as one.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <flexsc/default.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define JOBS	256

struct job {
	struct flexsc_cb cb;
	int fd;
	off_t at;
	struct statx st;
	char name[4096], bytes[65536];
};

static unsigned long long files, bytes;

static int next_name(char *name, size_t size)
{
	if (!fgets(name, (int)size, stdin))
		return 0;
	name[strcspn(name, "\n")] = '\0';
	return 1;
}

static void begin(struct job *job);

static void end(struct job *job)
{
	if (job->cb.ret < 0)
		fprintf(stderr, "%s: %s\n", job->name,
			strerror((int)-job->cb.ret));
	if (job->fd >= 0)
		flexsc_close(NULL, job->fd);
	begin(job);
}

static void was_read(struct flexsc_cb *cb);

/* By its place: reads that share a file's position wait for each other. */
static void read_on(struct job *job)
{
	job->cb.callback = was_read;
	flexsc_pread64(&job->cb, job->fd, job->bytes, sizeof(job->bytes),
		       job->at);
}

static void was_read(struct flexsc_cb *cb)
{
	struct job *job = cb->arg;

	if (cb->ret > 0) {
		bytes += (unsigned long long)cb->ret;
		job->at += cb->ret;
	}
	if (cb->ret == (int64_t)sizeof(job->bytes))
		read_on(job);
	else
		end(job);
}

static void looked_at(struct flexsc_cb *cb)
{
	struct job *job = cb->arg;

	if (cb->ret < 0 || !S_ISREG(job->st.stx_mode))
		end(job);
	else
		read_on(job);
}

static void opened(struct flexsc_cb *cb)
{
	struct job *job = cb->arg;

	job->fd = (int)cb->ret;
	if (cb->ret < 0) {
		end(job);
		return;
	}
	cb->callback = looked_at;
	flexsc_statx(cb, job->fd, "", AT_EMPTY_PATH, STATX_TYPE | STATX_SIZE,
		     &job->st);
}

static void begin(struct job *job)
{
	if (!next_name(job->name, sizeof(job->name)))
		return;
	files++;
	job->at = 0;
	job->cb.callback = opened;
	flexsc_openat(&job->cb, AT_FDCWD, job->name, O_RDONLY | O_CLOEXEC, 0);
}

static void crawl_plainly(struct job *job)
{
	ssize_t n;

	while (next_name(job->name, sizeof(job->name))) {
		int fd = open(job->name, O_RDONLY | O_CLOEXEC);

		files++;
		if (fd < 0 || statx(fd, "", AT_EMPTY_PATH, STATX_SIZE, &job->st))
			perror(job->name);
		while (fd >= 0 &&
		       (n = read(fd, job->bytes, sizeof(job->bytes))) > 0) {
			bytes += (unsigned long long)n;
			if (n < (ssize_t)sizeof(job->bytes))
				break;
		}
		if (fd >= 0)
			close(fd);
	}
}

static double seconds(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	double time = seconds(CLOCK_MONOTONIC);
	double cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
	static struct job jobs[JOBS];

	if (argc == 2 && !strcmp(argv[1], "-p")) {
		crawl_plainly(jobs);
	} else if (argc != 1 || flexsc_init()) {
		return 1;
	} else {
		for (int i = 0; i < JOBS; i++) {
			jobs[i].cb.arg = &jobs[i];
			begin(&jobs[i]);
		}
		if (flexsc_main_loop())
			return 1;
	}
	if (!files)
		return 1;
	printf("%llu files, %llu bytes; for each %.2f us, %.2f of a processor\n",
	       files, bytes,
	       (seconds(CLOCK_MONOTONIC) - time) * 1e6 / (double)files,
	       (seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu) * 1e6 / (double)files);
	return 0;
}
