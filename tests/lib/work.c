/* SPDX-License-Identifier: MIT */
/*
 * Functions of the program on syscall threads: each runs once or not at all, beside
 * the calls, and isn't interrupted.
 */
#include "tests/lib/counted.h"

#include <flexsc/netdb.h>
#include <semaphore.h>

#include "lib/calls/call_info.h"

#define CROWD	200U

/* A function that waits for a byte, which releases it. */
struct job {
	struct call call;	/* first: count_call() finds it here */
	int gate[2];
	_Atomic unsigned int begun, ended;
	int64_t ret;
};

static int64_t job_run(void *arg)
{
	struct job *job = arg;
	char c;

	job->begun++;
	/* No signal may interrupt this thread: EINTR would be a failure. */
	CHECK_EQ(read(job->gate[0], &c, 1), 1);
	job->ended++;
	return job->ret;
}

static void job_post(struct job *job, int64_t ret)
{
	*job = (struct job){ .call.cb.callback = count_call, .ret = ret };
	CHECK_EQ(pipe2(job->gate, O_CLOEXEC), 0);
	CHECK_EQ(flexsc_loop_work(loop, &job->call.cb, job_run, job), 0);
}

static void job_release(const struct job *job)
{
	CHECK_EQ(write(job->gate[1], "x", 1), 1);
}

static void run_until_begun(const struct job *job)
{
	while (!job->begun)
		run_for(loop, 1);
}

struct answer {
	int64_t a, b;
	pid_t tid;
	sigset_t blocked;
};

static int64_t add(void *arg)
{
	struct answer *answer = arg;

	answer->tid = gettid();
	pthread_sigmask(SIG_SETMASK, NULL, &answer->blocked);
	return answer->a + answer->b;
}

static int64_t await_work(struct call *call)
{
	CHECK(run_until(loop, &call->runs, 1, 10000));
	CHECK_EQ(call->runs, 1);
	call->runs = 0;
	return call->cb.ret;
}

LOOP_TEST(a_function_runs_on_another_thread)
{
	struct answer answer = { .a = INT32_MAX, .b = 7 };
	struct call call = CALL_INIT;
	bool sync;

	sync = !strcmp(flexsc_loop_engine(loop), "sync");
	CHECK_EQ(flexsc_loop_work(NULL, &call.cb, add, &answer), -ENXIO);
	CHECK_EQ(flexsc_loop_work(loop, &call.cb, NULL, &answer), -EINVAL);
	CHECK_EQ(flexsc_loop_work(loop, &call.cb, add, &answer), 0);
	CHECK_EQ(await_work(&call), INT32_MAX + 7LL);
	CHECK_EQ(answer.tid == gettid(), sync);
	CHECK(sync || sigismember(&answer.blocked, SIGTERM));
	CHECK_EQ(flexsc_loop_set_default(loop), 0);
	CHECK_EQ(flexsc_work(&call.cb, add, &answer), 0);
	CHECK_EQ(await_work(&call), INT32_MAX + 7LL);
	CHECK_EQ(stats_of(loop).posted, 2);
	CHECK_EQ(stats_of(loop).waited, 0);
}

/* A number from an untrusted source never becomes the address of a function. */
LOOP_TEST(no_system_call_number_runs_a_function)
{
	struct call call = CALL_INIT;

	CHECK_EQ(flexsc_loop_call(loop, &call.cb, NR_WORK, 0,
				  (uintptr_t)abort, 0, 0, 0, 0), -ENOSYS);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK_EQ(call.runs, 0);
}

static atomic_uint ran;

static int64_t count_run(void *arg)
{
	ran++;
	return (int64_t)(intptr_t)arg;
}

LOOP_TEST(many_functions_run_once_each, .max_threads = 3, .max_entries = 64)
{
	static struct call calls[CROWD];

	for (unsigned int i = 0; i < CROWD; i++) {
		calls[i] = (struct call)CALL_INIT;
		CHECK_EQ(flexsc_loop_work(loop, &calls[i].cb, count_run,
					  (void *)(uintptr_t)i), 0);
	}
	for (unsigned int i = 0; i < CROWD; i++) {
		CHECK(run_until(loop, &calls[i].runs, 1, 10000));
		CHECK_EQ(calls[i].cb.ret, i);
	}
	CHECK_EQ(ran, CROWD);
}

static int64_t end_as_interrupted(void *arg)
{
	volatile char deep[600 * 1024];

	for (size_t i = 0; i < sizeof(deep); i += 1024)
		deep[i] = 1;
	ran++;
	(void)arg;
	return -EINTR;
}

/* This function also uses much of its stack. */
LOOP_TEST(a_result_of_eintr_is_a_result)
{
	struct call call = CALL_INIT;

	CHECK_EQ(flexsc_loop_work(loop, &call.cb, end_as_interrupted, NULL), 0);
	CHECK_EQ(await_work(&call), -EINTR);
	CHECK_EQ(ran, 1);
}

LOOP_TEST(a_chain_passes_a_result_as_the_argument)
{
	struct call first = CALL_INIT, call = CALL_INIT, next = CALL_INIT;

	POST(loop, &first, SYS_getppid);
	CHECK_EQ(flexsc_loop_work_after(loop, &call.cb, &first.cb,
					FLEXSC_CHAIN_ARG(1), count_run, NULL),
		 -EINVAL);
	CHECK_EQ(flexsc_loop_work_after(loop, &call.cb, &first.cb, 0, NULL, NULL),
		 -EINVAL);
	CHECK_EQ(flexsc_loop_work_after(loop, &call.cb, &first.cb,
					FLEXSC_CHAIN_ARG(0), count_run, NULL), 0);
	CHECK_EQ(await_work(&call), getppid());
	CHECK_EQ(flexsc_loop_work(loop, &call.cb, count_run, (void *)022), 0);
	CHECK_EQ(flexsc_loop_umask_after(loop, &next.cb, &call.cb,
					 FLEXSC_CHAIN_ARG(0), 0), 0);
	CHECK(await_work(&next) >= 0);
	CHECK_EQ(umask(0), 022);
}

static int64_t wake_loop(void *cb)
{
	return flexsc_loop_wake(loop, cb);
}

LOOP_TEST(a_function_may_wake_its_loop)
{
	struct call call = CALL_INIT, woken = CALL_INIT;

	CHECK_EQ(flexsc_loop_work(loop, &call.cb, wake_loop, &woken.cb), 0);
	CHECK_EQ(await_work(&call), 0);
	CHECK_EQ(await_work(&woken), 0);
}

WAITING_TEST(calls_go_on_beside_functions_that_wait, .max_threads = 3)
{
	static struct job jobs[10];
	struct call read_call = CALL_INIT;
	char c;
	int p[2];

	CHECK_EQ(pipe(p), 0);
	job_post(&jobs[0], 0);
	run_until_begun(&jobs[0]);
	for (unsigned int i = 1; i < 10; i++)
		job_post(&jobs[i], i);
	for (unsigned int i = 0; i < 100; i++) {
		read_call.runs = 0;
		POST(loop, &read_call, SYS_read, p[0], &c, 1);
		CHECK_EQ(write(p[1], "x", 1), 1);
		CHECK_EQ(await_work(&read_call), 1);
		CHECK(DO(loop, SYS_umask, 022) >= 0);
		CHECK_EQ(DO(loop, SYS_faccessat, AT_FDCWD, "/nowhere", 0),
			 -ENOENT);
	}
	CHECK_EQ(done, 0);
	for (unsigned int i = 0; i < 10; i++)
		job_release(&jobs[i]);
	CHECK(run_until(loop, &done, 10, 10000));
	for (unsigned int i = 0; i < 10; i++) {
		CHECK_EQ(jobs[i].call.cb.ret, i);
		CHECK_EQ(jobs[i].begun, 1);
	}
}

WAITING_TEST(a_function_that_runs_is_not_interrupted)
{
	static struct job jobs[2];

	job_post(&jobs[0], 41);
	job_post(&jobs[1], 42);
	run_until_begun(&jobs[0]);
	run_until_begun(&jobs[1]);
	CHECK_EQ(flexsc_loop_cancel(loop, &jobs[0].call.cb), 0);
	CHECK_EQ(flexsc_loop_deadline(loop, &jobs[1].call.cb, MS), 0);
	run_for(loop, 30);
	CHECK_EQ(done, 0);
	job_release(&jobs[0]);
	job_release(&jobs[1]);
	CHECK(run_until(loop, &done, 2, 10000));
	CHECK_EQ(jobs[0].call.cb.ret, 41);
	CHECK_EQ(jobs[1].call.cb.ret, 42);
}

WAITING_TEST(a_function_that_has_not_begun_can_be_cancelled, .max_threads = 2)
{
	static struct job jobs[8];

	/* If two threads each took one of two functions, either might begin first. */
	job_post(&jobs[0], 0);
	run_until_begun(&jobs[0]);
	for (unsigned int i = 1; i < 8; i++)
		job_post(&jobs[i], i);
	for (unsigned int i = 1; i < 7; i++)
		CHECK_EQ(flexsc_loop_cancel(loop, &jobs[i].call.cb), 0);
	CHECK_EQ(flexsc_loop_deadline(loop, &jobs[7].call.cb, MS), 0);
	CHECK(run_until(loop, &done, 7, 10000));
	for (unsigned int i = 1; i < 8; i++) {
		CHECK_EQ(jobs[i].call.cb.ret, i < 7 ? -ECANCELED : -ETIME);
		CHECK_EQ(jobs[i].begun, 0);
	}
	job_release(&jobs[0]);
	CHECK(run_until(loop, &done, 8, 10000));
	CHECK_EQ(jobs[0].call.cb.ret, 0);
	/* A thread is free for what is posted after the cancelled functions. */
	job_post(&jobs[1], 9);
	job_release(&jobs[1]);
	CHECK(run_until(loop, &done, 9, 10000));
	CHECK_EQ(jobs[1].call.cb.ret, 9);
}

static sem_t destroying;

static void note_cancelled(struct flexsc_cb *cb)
{
	count_call(cb);
	CHECK_EQ(sem_post(&destroying), 0);
}

static void *release_later(void *job)
{
	while (sem_wait(&destroying))
		CHECK_EQ(errno, EINTR);
	sleep_ms(50);
	job_release(job);
	return NULL;
}

WAITING_TEST(destroying_waits_for_functions_that_run, .max_threads = 2)
{
	static struct job runs, waits;
	pthread_t thread;

	CHECK_EQ(sem_init(&destroying, 0, 0), 0);
	job_post(&runs, 5);
	run_until_begun(&runs);
	job_post(&waits, 6);
	waits.call.cb.callback = note_cancelled;
	/* A function without a cb isn't cancelled. */
	CHECK_EQ(flexsc_loop_work(loop, NULL, count_run, NULL), 0);
	/* An earlier release would let the second function begin. */
	thread = test_thread(release_later, &runs);
	test_end_loop();
	CHECK_EQ(runs.ended, 1);
	CHECK_EQ(runs.call.cb.ret, 5);
	CHECK_EQ(waits.begun, 0);
	CHECK_EQ(waits.call.cb.ret, -ECANCELED);
	CHECK_EQ(ran, 1);
	CHECK_EQ(done, 2);
	pthread_join(thread, NULL);
}

WAITING_TEST(a_forked_child_does_not_run_functions)
{
	static struct job job;
	int pid;

	job_post(&job, 3);
	run_until_begun(&job);
	pid = test_fork();
	if (!pid) {
		CHECK_EQ(flexsc_loop_work(loop, NULL, count_run, NULL),
			 -ESTALE);
		test_end_loop();
		test_leave();
	}
	test_reap(pid);
	CHECK_EQ(done, 0);
	job_release(&job);
	CHECK(run_until(loop, &done, 1, 10000));
	CHECK_EQ(job.call.cb.ret, 3);
}

/* Name lookups. */

static const struct addrinfo numeric = {
	.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
	.ai_socktype = SOCK_STREAM,
};

LOOP_TEST(numeric_names_have_addresses)
{
	struct flexsc_getaddrinfo request;
	struct call call = CALL_INIT;
	struct sockaddr_in address;

	CHECK_EQ(flexsc_loop_getaddrinfo(loop, &call.cb, &request, "127.0.0.5",
					 "8080", &numeric), 0);
	CHECK_EQ(await_work(&call), 0);
	CHECK_EQ(request.error, 0);
	CHECK(request.result);
	CHECK_EQ(request.result->ai_family, AF_INET);
	memcpy(&address, request.result->ai_addr, sizeof(address));
	CHECK_EQ(ntohl(address.sin_addr.s_addr), 0x7f000005);
	CHECK_EQ(ntohs(address.sin_port), 8080);
	freeaddrinfo(request.result);
	CHECK_EQ(flexsc_loop_set_default(loop), 0);
	CHECK_EQ(flexsc_loop_getaddrinfo(flexsc_loop_default(), &call.cb, &request, "no number", NULL,
				    &numeric), 0);
	CHECK_EQ(await_work(&call), -ENOENT);
	CHECK_EQ(request.error, EAI_NONAME);
	CHECK(!request.result);
}

/* The results are those of getaddrinfo(), with many lookups at a time. */
LOOP_TEST(names_of_files_are_found_by_many_at_once)
{
	static struct flexsc_getaddrinfo requests[CROWD];
	static struct call calls[CROWD];
	struct addrinfo *plain = NULL;
	int error = getaddrinfo("localhost", NULL, NULL, &plain);

	for (unsigned int i = 0; i < CROWD; i++) {
		calls[i] = (struct call)CALL_INIT;
		CHECK_EQ(flexsc_loop_getaddrinfo(loop, &calls[i].cb,
						 &requests[i], "localhost",
						 NULL, NULL), 0);
	}
	for (unsigned int i = 0; i < CROWD; i++) {
		CHECK(run_until(loop, &calls[i].runs, 1, 15000));
		CHECK_EQ(requests[i].error, error);
		CHECK_EQ(!calls[i].cb.ret, !error);
		if (error)
			continue;
		CHECK_EQ(requests[i].result->ai_family, plain->ai_family);
		CHECK_EQ(memcmp(requests[i].result->ai_addr, plain->ai_addr,
				plain->ai_addrlen), 0);
		freeaddrinfo(requests[i].result);
	}
	if (!error)
		freeaddrinfo(plain);
}

WAITING_TEST(a_query_that_has_not_begun_can_be_cancelled, .max_threads = 2)
{
	static struct job job;
	struct flexsc_getaddrinfo request;
	struct call call = CALL_INIT;

	job_post(&job, 0);
	run_until_begun(&job);
	CHECK_EQ(flexsc_loop_getaddrinfo(loop, &call.cb, &request, "localhost",
					 NULL, NULL), 0);
	run_for(loop, 5);
	CHECK_EQ(flexsc_loop_cancel(loop, &call.cb), 0);
	CHECK_EQ(await_work(&call), -ECANCELED);
	CHECK(!request.result);
	job_release(&job);
	CHECK(run_until(loop, &done, 1, 10000));
}
