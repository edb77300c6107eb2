// SPDX-License-Identifier: MIT
#include "raw.h"

#include "honest.h"
#include "system.h"

#define USER	2000
#define BATCH	24
#define SIZE	4096
#define PATIENCE (60 * SECOND)

struct job {
	struct raw raw;
	int file, pipe[2];
	char content[SIZE];
	char got[BATCH][64];
	uint64_t expected[BATCH];		/* results */
	uint64_t offset[BATCH];		/* of a pread */
	bool reads[BATCH];
};

static void prepare(struct job *job)
{
	char name[] = "/tmp/honest-XXXXXX";

	for (int i = 0; i < SIZE; i++)
		job->content[i] = (char)test_random();
	job->file = mkstemp(name);
	CHECK(job->file >= 0);
	CHECK_EQ(unlink(name), 0);
	CHECK_EQ(write(job->file, job->content, SIZE), SIZE);
	CHECK_EQ(pipe(job->pipe), 0);
	CHECK_EQ(syscall(SYS_setresgid, USER, USER, USER), 0);
	CHECK_EQ(syscall(SYS_setresuid, USER, USER, USER), 0);
	raw_open(&job->raw, 2, 0);
}

/* Posts one call. Each entry of the batch is a different one. */
static void post(struct job *job, uint32_t i)
{
	static const struct timespec soon = { 0, 200000 };
	struct raw *raw = &job->raw;

	job->expected[i] = 0;
	job->reads[i] = false;
	switch (test_random() % 6) {
	case 0:
		job->expected[i] = (uint64_t)getppid();
		raw_post(raw, i, 0, SYS_getppid);
		break;
	case 1:
		job->expected[i] = (uint64_t)-EBADF;
		raw_post(raw, i, 0, SYS_close, 12345);
		break;
	case 2:
		raw_post(raw, i, DEFER, SYS_nanosleep, &soon);
		break;
	case 3:
		job->expected[i] = 64;
		raw_post(raw, i, DEFER, SYS_write, job->pipe[1], job->content, 64);
		break;
	default:
		job->expected[i] = 64;
		job->reads[i] = true;
		job->offset[i] = test_random() % (SIZE - 64);
		raw_post(raw, i, FLEXSC_MAY_SLEEP, SYS_pread64, job->file,
			 job->got[i], 64, job->offset[i]);
	}
}

/* Reads from the pipe what was written to it, by calls as well. */
static void drain(struct job *job)
{
	struct raw *raw = &job->raw;
	char got[64];
	int n;

	CHECK_EQ(ioctl(job->pipe[0], FIONREAD, &n), 0);
	for (; n > 0; n -= 64) {
		raw_post(raw, 0, FLEXSC_IF_READABLE | FLEXSC_MAY_SLEEP,
			 SYS_read, job->pipe[0], got, 64);
		while (!raw_reap(raw))
			CHECK(raw_wait(raw, UINT64_MAX) >= 0);
		CHECK_EQ(raw->entries[0].ret, 64);
		CHECK(!memcmp(got, job->content, 64));
	}
}

static void batch(struct job *job)
{
	struct raw *raw = &job->raw;
	uint32_t done = 0;

	for (uint32_t i = 0; i < BATCH; i++)
		post(job, i);
	while (done < BATCH) {
		CHECK(raw_wait(raw, UINT64_MAX) >= 0);
		done += raw_reap(raw);
	}
	CHECK_EQ(done, BATCH);
	for (uint32_t i = 0; i < BATCH; i++) {
		CHECK_EQ(raw->entries[i].ret, job->expected[i]);
		CHECK(!job->reads[i] ||
		      !memcmp(job->got[i], job->content + job->offset[i], 64));
	}
	drain(job);
}

static void live(struct honest *honest)
{
	static struct job job;

	prepare(&job);
	while (!atomic_load(&honest->shared->ending)) {
		batch(&job);
		atomic_fetch_add(&honest->shared->calls, BATCH);
		usleep(500);
	}
	raw_close(&job.raw);
}

void honest_start(struct honest *honest)
{
	honest->shared = system_share();
	honest->pid = test_fork();
	if (!honest->pid) {
		live(honest);
		test_leave();
	}
	/*
	 * Processes that are forked from now on, and behave arbitrarily, don't get
	 * the page.
	 */
	CHECK_EQ(madvise(honest->shared, 4096, MADV_DONTFORK), 0);
	honest_check(honest);
}

static void check_lives(struct honest *honest)
{
	int status;

	if (waitpid(honest->pid, &status, WNOHANG) == honest->pid)
		test_fail(__FILE__, __LINE__,
			  "the honest process has ended: status %#x, %llu calls",
			  (unsigned int)status,
			  (unsigned long long)atomic_load(&honest->shared->calls));
}

void honest_check(struct honest *honest)
{
	const uint64_t before = atomic_load(&honest->shared->calls);

	for (uint64_t end = now_ns() + PATIENCE; now_ns() < end;) {
		if (atomic_load(&honest->shared->calls) != before)
			return;
		check_lives(honest);
		usleep(1000);
	}
	system_report(honest->pid);
	test_fail(__FILE__, __LINE__, "the honest process has stopped");
}

void honest_end(struct honest *honest)
{
	atomic_store(&honest->shared->ending, true);
	test_reap(honest->pid);
	test_note("the honest process made %llu calls",
		  (unsigned long long)atomic_load(&honest->shared->calls));
	munmap(honest->shared, 4096);
}
