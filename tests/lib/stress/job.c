/* SPDX-License-Identifier: MIT */
#include "job.h"

/* Results. */

static bool early(const struct job *job, int64_t ret)
{
	if (job->late && ret == -ETIME)
		return true;
	return job->cancelled && is_cancelled(ret);
}

#define REQUIRE(condition)						\
	((condition) ? (void)0 :					\
	 test_fail(__FILE__, __LINE__, "kind %d: %s; ret %lld", job->kind, \
		   #condition, (long long)ret))

static void check_read(struct job *job, int64_t ret)
{
	if (job->kind == READ_EVENT) {
		REQUIRE(ret == 8 || early(job, ret));
		if (ret == 8) {
			REQUIRE(job->value == 1);
			job->taken++;
		}
		return;
	}
	REQUIRE(ret == 1 || early(job, ret));
	if (ret == 1) {
		REQUIRE(job->c == (uint8_t)job->eaten);
		job->eaten++;
	}
}

/*
 * A second call that wasn't cancelled itself ends after the first one's callback,
 * with a result that depends on the first one's.
 */
static void check_second(struct job *job, int64_t ret)
{
	if (early(job, ret))
		return;
	REQUIRE(!job->a.pending);
	if (job->kind == ALWAYS)
		REQUIRE(ret == getpid());
	else
		REQUIRE(ret == (job->a.cb.ret < 0 ? -ECANCELED : 0));
}

/* Closes the opened descriptor if the chained close hasn't done it. */
static void finish(struct job *job)
{
	int64_t ret = job->a.cb.ret;

	if (job->kind == OPEN_CLOSE && ret >= 0 && job->b.cb.ret < 0)
		REQUIRE(close((int)ret) == 0);
}

static void check_first(struct job *job, int64_t ret)
{
	switch (job->kind) {
	case READ_PIPE:
	case READ_EVENT:
		check_read(job, ret);
		break;
	case WRITE_PIPE:
		REQUIRE(ret == 1 || early(job, ret));
		job->fed += ret == 1;
		break;
	case FAST:
		REQUIRE(ret == getpid() || early(job, ret));
		break;
	case SLEEP:
		REQUIRE(ret == 0 || early(job, ret));
		break;
	case OPEN_CLOSE:
		REQUIRE(ret >= 0 || early(job, ret));
		break;
	case ALWAYS:
		REQUIRE(ret == -EBADF || early(job, ret));
		break;
	case TIMER:
		REQUIRE(ret == 0 || early(job, ret));
		if (ret == 0)
			REQUIRE(now_ns() >= job->due);
		break;
	case SIGNAL:
		REQUIRE(ret == SIGUSR1 || early(job, ret));
		break;
	case KINDS:
		break;
	}
}

static void post_done(struct flexsc_cb *cb)
{
	struct post *post = (struct post *)cb;
	struct job *job = post->job;
	struct worker *worker = job->worker;

	if (!post->pending)
		test_fail(__FILE__, __LINE__, "kind %d: its callback ran twice",
			  job->kind);
	post->pending = false;
	worker->ran++;
	if (post == &job->a)
		check_first(job, cb->ret);
	else
		check_second(job, cb->ret);
	if (job_busy(job))
		return;
	finish(job);
	if (!worker->ending && once_in(worker, 2))
		job_start(job);
}

/* Starting. */

static void owe(struct post *post)
{
	CHECK(!post->pending);
	post->pending = true;
	post->cb.callback = post_done;
	post->job->worker->posted++;
}

#define CALL(post, ...)							\
	do {								\
		owe(post);						\
		CHECK_EQ(flexsc_loop_call(loop, &(post)->cb,		\
					  ARGS(__VA_ARGS__)), 0);	\
		job->worker->calls++;					\
	} while (0)

static void feed_pipe(struct job *job)
{
	CHECK_EQ(write(job->p[1], &(uint8_t){ (uint8_t)job->fed }, 1), 1);
	job->fed++;
}

static void start_read(struct job *job, struct flexsc_loop *loop)
{
	bool serial = job->worker->serial;

	if (job->kind == READ_PIPE) {
		if (serial || once_in(job->worker, 4))
			feed_pipe(job);
		CALL(&job->a, SYS_read, job->p[0], &job->c, 1);
		return;
	}
	if (serial) {
		CHECK_EQ(eventfd_write(job->event, 1), 0);
		atomic_fetch_add(&job->wanted, 1);
		atomic_fetch_add(&job->given, 1);
	}
	CALL(&job->a, SYS_read, job->event, &job->value, 8);
	if (!serial && once_in(job->worker, 2))
		atomic_fetch_add(&job->wanted, 1);
}

static void start_chain(struct job *job, struct flexsc_loop *loop)
{
	if (job->kind == OPEN_CLOSE) {
		CALL(&job->a, SYS_openat, AT_FDCWD, "/dev/null",
		     O_RDONLY | O_CLOEXEC);
		owe(&job->b);
		CHECK_EQ(flexsc_loop_close_after(loop, &job->b.cb, &job->a.cb,
						 FLEXSC_CHAIN_ARG(0), -1), 0);
	} else {
		CALL(&job->a, SYS_fsync, -1);
		owe(&job->b);
		CHECK_EQ(flexsc_loop_getpid_after(loop, &job->b.cb, &job->a.cb,
						  FLEXSC_CHAIN_ALWAYS), 0);
	}
	job->worker->calls++;
}

static void start_timer(struct job *job, struct flexsc_loop *loop)
{
	uint64_t ns = random_of(job->worker) % (3 * MS);

	job->due = now_ns() + ns;
	owe(&job->a);
	CHECK_EQ(flexsc_loop_timer(loop, &job->a.cb, ns), 0);
}

/* Removes what earlier jobs have left in the pipe. */
void job_drain_pipe(struct job *job)
{
	uint8_t c;

	while (job->eaten < job->fed) {
		CHECK_EQ(read(job->p[0], &c, 1), 1);
		CHECK_EQ(c, (uint8_t)job->eaten);
		job->eaten++;
	}
}

void job_start(struct job *job)
{
	struct flexsc_loop *loop = job->worker->loop;

	job->kind = (enum kind)(random_of(job->worker) % KINDS);
	job->cancelled = false;
	job->late = false;
	job->span.tv_nsec = (long)(random_of(job->worker) % (2 * MS));
	switch (job->kind) {
	case READ_PIPE:
	case READ_EVENT:
		start_read(job, loop);
		break;
	case WRITE_PIPE:
		job_drain_pipe(job);
		job->c = (uint8_t)job->fed;
		CALL(&job->a, SYS_write, job->p[1], &job->c, 1);
		break;
	case FAST:
		CALL(&job->a, SYS_getpid);
		break;
	case SLEEP:
		CALL(&job->a, SYS_nanosleep, &job->span, NULL);
		break;
	case OPEN_CLOSE:
	case ALWAYS:
		start_chain(job, loop);
		break;
	case TIMER:
		start_timer(job, loop);
		break;
	case SIGNAL:
		owe(&job->a);
		CHECK_EQ(flexsc_loop_signal(loop, &job->a.cb, SIGUSR1), 0);
		break;
	case KINDS:
		break;
	}
}

/* Disturbing. */

/* -ENOENT: the call is complete, and its callback hasn't run yet. */
void job_cancel(struct job *job, struct post *post)
{
	int ret = flexsc_loop_cancel(job->worker->loop, &post->cb);

	CHECK(ret == -ENOENT || (ret == 0 && post->pending));
	job->cancelled |= ret == 0;
}

static void set_deadline(struct job *job)
{
	struct worker *worker = job->worker;
	uint64_t ns = random_of(worker) % (2 * MS);
	int ret = flexsc_loop_deadline(worker->loop, &job->a.cb, ns);

	if (job->kind == TIMER || job->kind == SIGNAL || !job->a.pending) {
		CHECK_EQ(ret, -ENOENT);
		return;
	}
	CHECK(ret == 0 || ret == -ENOENT);
	/* An earlier deadline may have passed already. */
	job->late |= ret == 0 && ns != 0;
}

static void cancel_descriptor(struct job *job)
{
	bool pipe_read = job->kind == READ_PIPE && job->a.pending;
	bool event_read = job->kind == READ_EVENT && job->a.pending;
	int n;

	if (!pipe_read && !event_read)
		return;
	n = flexsc_loop_cancel_fd(job->worker->loop,
				  pipe_read ? job->p[0] : job->event);
	CHECK(n == 0 || n == 1);
	job->cancelled |= n == 1;
}

static void post_forgotten(struct worker *worker)
{
	static const uint64_t one = 1;

	CHECK_EQ(flexsc_loop_call(worker->loop, NULL,
				  ARGS(SYS_write, worker->counter, &one, 8)), 0);
	worker->forgotten++;
	worker->calls++;
}

void job_disturb(struct job *job)
{
	struct worker *worker = job->worker;

	switch (random_of(worker) % 8) {
	case 0:
		job_cancel(job, &job->a);
		break;
	case 1:
		job_cancel(job, &job->b);
		break;
	case 2:
		set_deadline(job);
		break;
	case 3:
		cancel_descriptor(job);
		break;
	case 4:
		post_forgotten(worker);
		break;
	default:
		if (job->kind == READ_PIPE && job->a.pending &&
		    job->fed == job->eaten)
			feed_pipe(job);
		break;
	}
}
