/* SPDX-License-Identifier: MIT */
/*
 * Calls that hang and that no signal ends, like calls that wait for a disk, a
 * network or another process. All other threads continue, whatever they wait for.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <grp.h>
#include <linux/fuse.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "lib/base/syscall.h"
#include "threads.h"

static unsigned int carriers(void)
{
	const char *n = getenv("FLEXSC_CARRIERS");

	return n ? (unsigned int)strtoul(n, NULL, 10) : 2;
}

/*
 * A call that hangs: the parent of a vfork() returns from the kernel only when its
 * child ends. The child runs in the parent's memory, on a separate stack, and uses
 * nothing from libc.
 */
struct hang {
	atomic_bool begun, let, expired;
	uint64_t ns;	/* the call ends by itself after this time; 0: never */
	char stack[16384] __attribute__((aligned(16)));
};

enum { EXPIRES_MS = 20000 };

static void hang_child(struct hang *hang)
{
	const struct timespec moment = { 0, 1000000 };
	struct timespec time = { 0, (long)hang->ns };

	hang->begun = true;
	if (hang->ns)
		raw_syscall(SYS_nanosleep, PTR(&time), 0, 0, 0, 0, 0);
	for (int i = 0; !hang->ns && !hang->let && !hang->expired; i++) {
		raw_syscall(SYS_nanosleep, PTR(&moment), 0, 0, 0, 0, 0);
		if (i == EXPIRES_MS)
			hang->expired = true;
	}
	raw_syscall(SYS_exit, 0, 0, 0, 0, 0, 0);
}

#if defined(__aarch64__)

/* Like vfork(), but at a place that the runtime doesn't intercept. */
static long vfork_for(struct hang *hang)
{
	register uint64_t nr __asm__("x8") = SYS_clone;
	register uint64_t flags __asm__("x0") = CLONE_VM | CLONE_VFORK | SIGCHLD;
	register void *stack __asm__("x1") = hang->stack + sizeof(hang->stack);
	register uint64_t parent __asm__("x2") = 0, tls __asm__("x3") = 0;
	register uint64_t tid __asm__("x4") = 0;
	register struct hang *kept __asm__("x19") = hang;
	register void (*child)(struct hang *) __asm__("x20") = hang_child;

	__asm__ volatile("svc #0\n\t"
			 "cbnz x0, 1f\n\t"
			 "mov x0, x19\n\t"
			 "blr x20\n"
			 "1:"
			 : "+r"(flags)
			 : "r"(nr), "r"(stack), "r"(parent), "r"(tls), "r"(tid),
			   "r"(kept), "r"(child)
			 : "x30", "memory");
	return (long)flags;
}

#else

/* Like vfork(), but at a place that the runtime doesn't intercept. */
static long vfork_for(struct hang *hang)
{
	register uint64_t tls __asm__("r8") = 0, tid __asm__("r10") = 0;
	register struct hang *kept __asm__("r12") = hang;
	long ret;

	__asm__ volatile("syscall\n\t"
			 "test %%rax, %%rax\n\t"
			 "jnz 1f\n\t"
			 "mov %%r12, %%rdi\n\t"
			 "call *%[child]\n"
			 "1:"
			 : "=a"(ret)
			 : "a"(SYS_clone), "S"(hang->stack + sizeof(hang->stack)),
			   "d"(0), "r"(tid), "r"(tls), "r"(kept),
			   [child] "b"(hang_child),
			   "D"(CLONE_VM | CLONE_VFORK | SIGCHLD)
			 : "rcx", "r11", "memory");
	return ret;
}

#endif

static void hang_here(struct hang *hang)
{
	long pid = vfork_for(hang);
	int status;

	CHECK(pid > 0);
	CHECK_EQ(waitpid((pid_t)pid, &status, 0), pid);
	CHECK_EQ(status, 0);
}

static void *hang_once(void *arg)
{
	/* A thread that has waited runs on a carrier. */
	usleep(100);
	hang_here(arg);
	return NULL;
}

/*
 * Threads that wait, some of each kind, and a process that wakes them and counts
 * wrong results. Each thread counts its waits.
 */
enum kind {
	SLEEPS, WAITS_FOR_A_TIME, READS, RECEIVES, POLLS, ACCEPTS, JOINS,
	IS_SIGNALLED, KINDS
};

enum { OF_A_KIND = 4, WAITERS = KINDS * OF_A_KIND };

static struct waiter {
	enum kind kind;
	int own, other;		/* ends of a pair of sockets */
	pthread_t thread;
	atomic_long waits;
} waiters[WAITERS];

static struct shared {
	atomic_bool stop;
	atomic_long wrong;
	/* the longest pause of the process itself, in ns */
	_Atomic uint64_t worst;
	atomic_long rounds;
	_Atomic int tids[WAITERS];
} *shared;

static atomic_bool stop;
static int listener;
static struct sockaddr_in address;

static void sleep_once(struct waiter *w)
{
	(void)w;
	usleep(1000);
}

/*
 * Two waiters take turns of 1 ms, so a post often comes when the limit expires. The
 * other waiters get no post.
 */
static sem_t turns[OF_A_KIND];

static void wait_for_a_time(struct waiter *w)
{
	unsigned int i = (unsigned int)(w - waiters) / KINDS;
	struct timespec until = in_ms(CLOCK_REALTIME, 2);

	if (sem_timedwait(&turns[i], &until)) {
		CHECK_EQ(errno, ETIMEDOUT);
		return;
	}
	usleep(1000);
	sem_post(&turns[!i]);
}

static void begin_turns(void)
{
	for (unsigned int i = 0; i < OF_A_KIND; i++)
		sem_init(&turns[i], 0, !i);
}

static void no_post_is_lost(void)
{
	int value, sum = 0;

	for (unsigned int i = 0; i < OF_A_KIND; i++, sum += value)
		sem_getvalue(&turns[i], &value);
	CHECK_EQ(sum, 1);
}

/* Reads the bytes of a sequence, one at a time. */
static void read_byte(struct waiter *w)
{
	unsigned char byte;
	ssize_t n = read(w->own, &byte, 1);

	if (!n)
		return;
	CHECK_EQ(n, 1);
	CHECK_EQ(byte, (unsigned char)(w->waits + 1));
	CHECK_EQ(write(w->own, &byte, 1), 1);
}

static void receive_byte(struct waiter *w)
{
	unsigned char byte;
	ssize_t n = recv(w->own, &byte, 1, 0);

	if (!n)
		return;
	CHECK_EQ(n, 1);
	CHECK_EQ(byte, (unsigned char)(w->waits + 1));
	CHECK_EQ(send(w->own, &byte, 1, 0), 1);
}

static void poll_for_byte(struct waiter *w)
{
	struct pollfd fd = { w->own, POLLIN, 0 };

	CHECK_EQ(poll(&fd, 1, -1), 1);
	read_byte(w);
}

static void accept_one(struct waiter *w)
{
	int fd = accept(listener, NULL, NULL);

	(void)w;
	if (stop && fd < 0)
		return;
	CHECK(fd >= 0);
	CHECK_EQ(write(fd, "y", 1), 1);
	close(fd);
}

static void join_one(struct waiter *w)
{
	(void)w;
	join(start(nothing, NULL));
	usleep(500);
}

static void handle(int signo)
{
	(void)signo;
}

static void be_signalled(struct waiter *w)
{
	shared->tids[w - waiters] = gettid();
	while (usleep(900000) == 0 && !stop)
		;
}

static void *wait_again_and_again(void *arg)
{
	static void (*const once[KINDS])(struct waiter *) = {
		sleep_once, wait_for_a_time, read_byte, receive_byte,
		poll_for_byte, accept_one, join_one, be_signalled,
	};
	struct waiter *w = arg;

	while (!stop) {
		once[w->kind](w);
		w->waits++;
	}
	shared->tids[w - waiters] = 0;
	return NULL;
}

/*
 * The process that wakes the waiters. This process has no threads, so the runtime is
 * inactive in it.
 */

static bool has_byte(int fd)
{
	struct pollfd p = { fd, POLLIN, 0 };

	return poll(&p, 1, 30000) == 1;
}

static void wake_by_byte(const struct waiter *w, unsigned char round)
{
	unsigned char byte = round;

	if (write(w->other, &byte, 1) != 1 || !has_byte(w->other) ||
	    read(w->other, &byte, 1) != 1 || byte != round)
		shared->wrong++;
}

static void connect_once(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	char byte;

	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) ||
	    !has_byte(fd) || read(fd, &byte, 1) != 1)
		shared->wrong++;
	close(fd);
}

static void wake_all(unsigned char round)
{
	for (int i = 0; i < WAITERS && !shared->wrong; i++)
		if (waiters[i].kind == READS || waiters[i].kind == RECEIVES ||
		    waiters[i].kind == POLLS)
			wake_by_byte(&waiters[i], round);
		else if (waiters[i].kind == ACCEPTS)
			connect_once();
		else if (waiters[i].kind == IS_SIGNALLED && shared->tids[i])
			raw_syscall(SYS_tgkill, (uint64_t)getppid(),
				    (uint64_t)shared->tids[i], SIGUSR1, 0, 0, 0);
}

static void be_waker(void)
{
	for (unsigned char round = 1; !shared->stop && !shared->wrong; round++) {
		uint64_t begin = now_ns(), pause;

		usleep(1000);
		pause = now_ns() - begin;
		if (pause > shared->worst)
			shared->worst = pause;
		wake_all(round);
		shared->rounds++;
	}
	test_leave();
}

/* Reports a waiter that doesn't continue, and whether the others do. */
static void fail_to_wait(enum kind kind, const long *until, long n, long rounds)
{
	char waits[128] = "";

	for (int i = kind; i < WAITERS; i += KINDS)
		snprintf(waits + strlen(waits), sizeof(waits) - strlen(waits),
			 " %ld", waiters[i].waits - until[i] + n);
	test_fail(__FILE__, __LINE__,
		  "threads of kind %d have waited%s times in %ld rounds, expected "
		  "%ld each", kind, waits, rounds, n);
}

/* Every waiter waits n times more. Fails if a hanging call expires before that. */
static void all_go_on(long n, const struct hang *hanging, unsigned int count)
{
	const long begun = shared->rounds;
	long until[WAITERS];

	for (int i = 0; i < WAITERS; i++)
		until[i] = waiters[i].waits + n;
	for (int i = 0; i < WAITERS; i++)
		while (waiters[i].waits < until[i]) {
			CHECK_EQ(shared->wrong, 0);
			for (unsigned int j = 0; j < count; j++)
				if (hanging[j].expired)
					fail_to_wait(waiters[i].kind, until, n,
						     shared->rounds - begun);
			usleep(1000);
		}
}

static int begin_waiting(void)
{
	const struct sigaction action = { .sa_handler = handle };
	int pid;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(shared != MAP_FAILED);
	CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
	listener = listening_socket(&address, 0, 100);
	for (int i = 0; i < WAITERS; i++) {
		int pair[2];

		CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
		waiters[i].kind = (enum kind)(i % KINDS);
		waiters[i].own = pair[0];
		waiters[i].other = pair[1];
	}
	begin_turns();
	pid = test_fork();
	if (!pid)
		be_waker();
	for (int i = 0; i < WAITERS; i++)
		waiters[i].thread = start(wait_again_and_again, &waiters[i]);
	all_go_on(3, NULL, 0);
	return pid;
}

static void end_waiting(int pid)
{
	shared->stop = true;
	test_reap(pid);
	CHECK_EQ(shared->wrong, 0);
	stop = true;
	CHECK_EQ(shutdown(listener, SHUT_RDWR), 0);
	for (int i = 0; i < WAITERS; i++)
		CHECK_EQ(shutdown(waiters[i].other, SHUT_RDWR), 0);
	for (int i = 0; i < WAITERS; i++)
		join(waiters[i].thread);
	no_post_is_lost();
}

static struct hang *hangs;

static void await_hang(unsigned int i)
{
	while (!hangs[i].begun)
		usleep(1000);
}

static void begin_to_hang(pthread_t *threads, unsigned int n)
{
	hangs = calloc(n, sizeof(*hangs));
	for (unsigned int i = 0; i < n; i++)
		threads[i] = start(hang_once, &hangs[i]);
	for (unsigned int i = 0; i < n; i++)
		await_hang(i);
}

static void let_go(const pthread_t *threads, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		hangs[i].let = true;
	join_all(threads, n);
	free(hangs);
}

static void all_go_on_while_calls_hang(unsigned int n)
{
	pthread_t *threads = calloc(n, sizeof(*threads));
	int pid = begin_waiting();

	for (int i = 0; i < 2; i++) {
		begin_to_hang(threads, n);
		all_go_on(5, hangs, n);
		let_go(threads, n);
		all_go_on(2, NULL, 0);
	}
	end_waiting(pid);
	free(threads);
}

TEST_LIMIT(all_go_on_while_one_call_hangs, 60)
{
	all_go_on_while_calls_hang(1);
}

TEST_LIMIT(all_go_on_while_more_calls_hang_than_there_are_carriers, 60)
{
	all_go_on_while_calls_hang(carriers() + 1);
}

/*
 * A woken thread is queued on the carrier of the thread that woke it, which then
 * hangs.
 */

static sem_t behind;

static void *run_behind(void *arg)
{
	struct hang *hang = arg;

	CHECK_EQ(sem_wait(&behind), 0);
	hang->let = true;
	return NULL;
}

static void *wake_and_hang(void *arg)
{
	CHECK_EQ(sem_post(&behind), 0);
	hang_here(arg);
	return NULL;
}

TEST_LIMIT(a_thread_queued_behind_a_call_that_hangs_goes_on, 60)
{
	CHECK_EQ(sem_init(&behind, 0, 0), 0);
	for (int i = 0; i < 20; i++) {
		struct hang *hang = calloc(1, sizeof(*hang));
		pthread_t woken = start(run_behind, hang);

		settle();
		join(start(wake_and_hang, hang));
		join(woken);
		CHECK(!hang->expired);
		free(hang);
	}
}

/*
 * With so many groups, the line of groups in /proc/.../status has 700 KB. It
 * precedes the line that the monitor reads.
 */
TEST_LIMIT(all_go_on_while_a_call_hangs_in_a_process_of_many_groups, 60)
{
	enum { GROUPS = 65536 };
	gid_t *groups = calloc(GROUPS, sizeof(*groups));

	/* In an emulated guest, reading the line takes the monitor's whole time. */
	if (test_slower() > 1)
		SKIP("this machine is too slow");
	for (gid_t i = 0; i < GROUPS; i++)
		groups[i] = 1000000000 + i;
	if (setgroups(GROUPS, groups))
		SKIP("setgroups: %s", strerror(errno));
	free(groups);
	all_go_on_while_calls_hang(1);
}

/* Each call hangs for up to 30 ms, so it often ends just when its carrier is adopted. */
static void *hang_again_and_again(void *arg)
{
	struct hang *hang = arg;
	unsigned int seed = (unsigned int)(hang - hangs);

	while (!stop) {
		hang->ns = 2 * MS + (uint64_t)rand_r(&seed) % (30 * MS);
		hang_once(hang);
	}
	return NULL;
}

TEST_LIMIT(calls_that_hang_again_and_again_lose_nothing, 60)
{
	enum { HANGERS = 3 };
	pthread_t threads[HANGERS];
	uint64_t end;
	int pid;

	/*
	 * Otherwise the threads would soon stay on their hosts, where they stop no
	 * others.
	 */
	setenv("FLEXSC_STICKY", "0", 1);
	pid = begin_waiting();
	hangs = calloc(HANGERS, sizeof(*hangs));
	for (int i = 0; i < HANGERS; i++)
		threads[i] = start(hang_again_and_again, &hangs[i]);
	end = now_ns() + SECOND;
	while (now_ns() < end)
		all_go_on(1, NULL, 0);
	end_waiting(pid);
	join_all(threads, HANGERS);
}

/* The longest time between two wake-ups of a thread that sleeps for 1 ms. */
static _Atomic uint64_t longest;

static void *watch(void *arg)
{
	uint64_t last = now_ns(), now;

	while (!stop) {
		usleep(1000);
		now = now_ns();
		if (now - last > longest)
			longest = now - last;
		last = now;
	}
	return arg;
}

/*
 * On a busy machine all threads pause now and then, including those of another
 * process. So the pause that a call causes is the smallest of several.
 */
static void the_pause_is_short(unsigned int n)
{
	uint64_t least = UINT64_MAX, own;
	pthread_t watcher, hanging[n];
	int pid;

	if (test_slower() > 1)
		SKIP("this machine is too slow");
	pid = begin_waiting();
	watcher = start(watch, NULL);
	for (int i = 0; i < 10 && least > 50 * MS; i++) {
		shared->worst = 0;
		longest = 0;
		begin_to_hang(hanging, n);
		all_go_on(20, hangs, n);
		own = longest > shared->worst ? longest - shared->worst : 0;
		least = own < least ? own : least;
		let_go(hanging, n);
	}
	CHECK(least <= 50 * MS);
	end_waiting(pid);
	join(watcher);
}

TEST_LIMIT(a_call_that_hangs_causes_a_pause_of_50_ms_at_most, 60)
{
	the_pause_is_short(1);
}

/*
 * The threads are in one queue. When a carrier hangs in one of them, another carrier
 * takes the next one, and hangs, too.
 */
TEST_LIMIT(calls_that_hang_in_a_row_cause_a_pause_of_50_ms_at_most, 60)
{
	/* Otherwise the threads would stay on their hosts, where they stop no others. */
	setenv("FLEXSC_STICKY", "0", 1);
	the_pause_is_short(10);
}

/* Transfers that are partly done when a call begins to hang. */

enum {
	WRITES, WRITES_VECTORS, WRITES_TO_PIPE, SENDS, SENDS_MESSAGES,
	RECEIVES_ALL, SPLICES, TRANSFERS
};

enum { TRANSFER = 1 << 20, TRANSFERRERS = 2 * TRANSFERS };

static struct transfer {
	int kind, own, other;
	char data[TRANSFER];
} *transfers;

static char byte_at(size_t i)
{
	return (char)(i * 2654435761U >> 24);
}

static bool receives(const struct transfer *t)
{
	return t->kind == RECEIVES_ALL || t->kind == SPLICES;
}

static ssize_t splice_all(int from)
{
	int nobody = open("/dev/null", O_WRONLY | O_CLOEXEC);
	ssize_t n, all = 0;

	CHECK(nobody >= 0);
	for (; all < TRANSFER; all += n) {
		n = splice(from, NULL, nobody, NULL, TRANSFER, 0);
		CHECK(n > 0);
	}
	CHECK_EQ(close(nobody), 0);
	return all;
}

static ssize_t transfer_once(struct transfer *t)
{
	struct iovec parts[3] = {
		{ t->data, TRANSFER / 4 },
		{ t->data + TRANSFER / 4, TRANSFER / 2 },
		{ t->data + TRANSFER / 4 * 3, TRANSFER / 4 },
	};
	const struct msghdr message = { .msg_iov = parts, .msg_iovlen = 3 };

	switch (t->kind) {
	case WRITES:
	case WRITES_TO_PIPE:
		return write(t->own, t->data, TRANSFER);
	case WRITES_VECTORS:
		return writev(t->own, parts, 3);
	case SENDS:
		return send(t->own, t->data, TRANSFER, 0);
	case SENDS_MESSAGES:
		return sendmsg(t->own, &message, 0);
	case RECEIVES_ALL:
		return recv(t->own, t->data, TRANSFER, MSG_WAITALL);
	default:
		return splice_all(t->own);
	}
}

static void *be_transferred(void *arg)
{
	CHECK_EQ(transfer_once(arg), TRANSFER);
	return arg;
}

static void begin_transfer(struct transfer *t, int kind)
{
	int pair[2];

	t->kind = kind;
	for (size_t i = 0; i < TRANSFER; i++)
		t->data[i] = kind == RECEIVES_ALL ? 0 : byte_at(i);
	if (kind == WRITES_TO_PIPE || kind == SPLICES)
		CHECK_EQ(pipe(pair), 0);
	else
		CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	t->own = pair[!receives(t)];
	t->other = pair[receives(t)];
}

/*
 * The other end transfers its part of the bytes, starting at "from", as far as it
 * fits.
 */
static void transfer_part(const struct transfer *t, size_t from, size_t n)
{
	char part[1 << 14];

	for (size_t i = from; i < from + n; i += sizeof(part)) {
		for (size_t j = 0; j < sizeof(part); j++)
			part[j] = receives(t) ? byte_at(i + j) : 0;
		if (receives(t)) {
			CHECK_EQ(write(t->other, part, sizeof(part)),
				 sizeof(part));
			continue;
		}
		for (size_t j = 0; j < sizeof(part);) {
			ssize_t more;

			CHECK(has_byte(t->other));
			more = read(t->other, part + j, sizeof(part) - j);
			CHECK(more > 0);
			j += (size_t)more;
		}
		for (size_t j = 0; j < sizeof(part); j++)
			CHECK_EQ(part[j], byte_at(i + j));
	}
}

TEST_LIMIT(transfers_go_on_while_a_call_hangs, 60)
{
	pthread_t threads[TRANSFERRERS], hanging;

	transfers = calloc(TRANSFERRERS, sizeof(*transfers));
	for (int i = 0; i < TRANSFERRERS; i++) {
		begin_transfer(&transfers[i], i % TRANSFERS);
		threads[i] = start(be_transferred, &transfers[i]);
	}
	await_quiet();
	for (int i = 0; i < TRANSFERRERS; i++)
		transfer_part(&transfers[i], 0, TRANSFER / 16);
	await_quiet();
	begin_to_hang(&hanging, 1);
	for (int i = 0; i < TRANSFERRERS; i++)
		transfer_part(&transfers[i], TRANSFER / 16, TRANSFER / 16 * 15);
	join_all(threads, TRANSFERRERS);
	CHECK(!hangs[0].expired);
	let_go(&hanging, 1);
	for (int i = 0; i < TRANSFERRERS; i++)
		for (size_t j = 0; j < TRANSFER; j++)
			CHECK_EQ(transfers[i].data[j], byte_at(j));
}

/*
 * Threads accept one connection each. The hung carrier still has requests for some
 * of them. These requests must not take connections from the threads that continue
 * to wait.
 */
static void *accept_one_only(void *arg)
{
	int fd = accept(listener, NULL, NULL);

	CHECK(fd >= 0);
	CHECK_EQ(write(fd, "y", 1), 1);
	CHECK_EQ(close(fd), 0);
	return arg;
}

static void be_accepted(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	struct pollfd p = { fd, POLLIN, 0 };
	char byte;

	CHECK_EQ(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	CHECK_EQ(poll(&p, 1, EXPIRES_MS / 2), 1);
	CHECK_EQ(read(fd, &byte, 1), 1);
	CHECK_EQ(close(fd), 0);
}

TEST_LIMIT(each_connection_is_accepted_at_once_while_a_call_hangs, 60)
{
	enum { ACCEPTERS = 24 };
	pthread_t accepters[ACCEPTERS], hanging;

	listener = listening_socket(&address, 0, 100);
	start_all(accepters, ACCEPTERS, accept_one_only, NULL);
	await_quiet();
	begin_to_hang(&hanging, 1);
	for (int i = 0; i < ACCEPTERS; i++)
		be_accepted();
	CHECK(!hangs[0].expired);
	let_go(&hanging, 1);
	join_all(accepters, ACCEPTERS);
}

/*
 * An accept() whose descriptor was closed stays on the hung carrier, because its
 * number may refer to another file by then. Its request must not take a connection
 * from the thread that waits on another carrier. The threads' carriers vary from
 * round to round.
 */
static void *accept_by(void *arg)
{
	int fd = accept((int)(long)arg, NULL, NULL);

	CHECK(fd >= 0);
	CHECK_EQ(write(fd, "y", 1), 1);
	CHECK_EQ(close(fd), 0);
	return NULL;
}

TEST_LIMIT(an_accept_that_stays_takes_no_connection_from_others, 60)
{
	enum { ROUNDS = 12 };
	pthread_t stays, goes_on, hanging;

	listener = listening_socket(&address, 0, 100);
	for (int i = 0; i < ROUNDS; i++) {
		long copy = dup(listener);

		CHECK(copy >= 0);
		stays = start(accept_by, (void *)copy);
		await_quiet();
		CHECK_EQ(close((int)copy), 0);
		goes_on = start(accept_by, (void *)(long)listener);
		await_quiet();
		begin_to_hang(&hanging, 1);
		be_accepted();
		CHECK(!hangs[0].expired);
		let_go(&hanging, 1);
		/* Until the hung carrier is back, its requests may take the wake-up. */
		await_quiet();
		be_accepted();
		join(stays);
		join(goes_on);
	}
}

/*
 * A moved accept polls first. It accepts from its original listener, even if its
 * descriptor's number refers to another listener by then.
 */
TEST_LIMIT(an_accept_that_moved_keeps_its_file_when_its_number_is_used_again, 60)
{
	enum { ACCEPTERS = 16 };
	pthread_t accepters[ACCEPTERS], hanging;
	int numbers[ACCEPTERS], first, second, fd;
	struct sockaddr_in first_address;

	listener = listening_socket(&address, 0, 100);
	first = listener;
	first_address = address;
	for (int i = 0; i < ACCEPTERS; i++) {
		numbers[i] = dup(first);
		CHECK(numbers[i] >= 0);
		accepters[i] = start(accept_by, (void *)(long)numbers[i]);
	}
	await_quiet();
	begin_to_hang(&hanging, 1);
	settle();
	settle();
	settle();
	listener = listening_socket(&address, 0, 100);
	second = listener;
	for (int i = 0; i < ACCEPTERS; i++)
		CHECK_EQ(dup2(second, numbers[i]), numbers[i]);
	/* None of the threads may accept this connection. */
	fd = socket(AF_INET, SOCK_STREAM, 0);
	CHECK_EQ(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	address = first_address;
	for (int i = 0; i < ACCEPTERS; i++)
		be_accepted();
	CHECK(!hangs[0].expired);
	let_go(&hanging, 1);
	join_all(accepters, ACCEPTERS);
	accept_by((void *)(long)second);
	CHECK_EQ(close(fd), 0);
	CHECK_EQ(close(first), 0);
}

/*
 * A connect() to a local socket waits for room in the listener's queue. The runtime
 * must not repeat the call, because the socket may be connected by then.
 */
static struct sockaddr_un local = { .sun_family = AF_UNIX };
static socklen_t local_size;

static void *connect_locally(void *arg)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	CHECK(fd >= 0);
	usleep(100);
	CHECK_EQ(connect(fd, (struct sockaddr *)&local, local_size), 0);
	CHECK_EQ(close(fd), 0);
	return arg;
}

TEST_LIMIT(connections_to_a_local_socket_are_made_while_a_call_hangs, 60)
{
	enum { CONNECTORS = 8 };
	pthread_t connectors[CONNECTORS], hanging;
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	/* The kernel chooses a name. */
	CHECK_EQ(bind(fd, (struct sockaddr *)&local, sizeof(local.sun_family)), 0);
	CHECK_EQ(listen(fd, 0), 0);
	local_size = sizeof(local);
	CHECK_EQ(getsockname(fd, (struct sockaddr *)&local, &local_size), 0);
	join(start(connect_locally, NULL));
	start_all(connectors, CONNECTORS, connect_locally, NULL);
	await_quiet();
	begin_to_hang(&hanging, 1);
	settle();
	for (int i = 0; i < CONNECTORS + 1; i++)
		CHECK_EQ(close(accept(fd, NULL, NULL)), 0);
	join_all(connectors, CONNECTORS);
	CHECK(!hangs[0].expired);
	let_go(&hanging, 1);
	CHECK_EQ(close(fd), 0);
}

/*
 * A thread's wait is being cancelled when its carrier gets stuck. The thread that
 * hangs yields first, so that the carrier posts the cancellation.
 */
static pthread_t cancelled;

static void *receive_until_cancelled(void *arg)
{
	char byte;

	recv(*(int *)arg, &byte, 1, 0);
	return NULL;
}

static void *cancel_and_hang(void *arg)
{
	usleep(100);
	CHECK_EQ(pthread_cancel(cancelled), 0);
	CHECK_EQ(sched_yield(), 0);
	hang_here(arg);
	return NULL;
}

TEST_LIMIT(a_cancelled_wait_ends_though_its_carrier_is_stuck, 60)
{
	enum { ROUNDS = 8 };
	pthread_t hanging;
	int pair[2];

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	for (int i = 0; i < ROUNDS; i++) {
		cancelled = start(receive_until_cancelled, &pair[0]);
		await_quiet();
		hangs = calloc(1, sizeof(*hangs));
		hanging = start(cancel_and_hang, hangs);
		CHECK(join(cancelled) == PTHREAD_CANCELED);
		CHECK(!hangs[0].expired);
		let_go(&hanging, 1);
	}
}

/*
 * An accept() loses its connection to another thread while a call hangs. After 5 ms
 * it is cancelled, and polls again. At about that time the next call begins to hang,
 * at another moment in each round.
 */
static uint64_t hangs_after;

static void *connect_and_hang(void *arg)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	uint64_t end, now;
	char byte;

	usleep(100);
	CHECK_EQ(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	end = now_ns() + hangs_after;
	/*
	 * Yields often, because the monitor moves a thread that keeps its carrier to
	 * its host.
	 */
	while ((now = now_ns()) < end) {
		while (now_ns() < now + MS / 4)
			;
		CHECK_EQ(sched_yield(), 0);
	}
	hang_here(arg);
	CHECK_EQ(read(fd, &byte, 1), 1);
	CHECK_EQ(close(fd), 0);
	return NULL;
}

TEST_LIMIT(an_accept_that_polls_again_goes_on_when_another_call_hangs, 60)
{
	enum { ROUNDS = 12, ACCEPTERS = 4 };
	pthread_t accepters[ACCEPTERS], hanging[2];

	listener = listening_socket(&address, 0, 100);
	for (int i = 0; i < ROUNDS; i++) {
		start_all(accepters, ACCEPTERS, accept_one_only, NULL);
		await_quiet();
		hangs = calloc(2, sizeof(*hangs));
		hanging[0] = start(hang_once, &hangs[0]);
		await_hang(0);
		settle();
		hangs_after = 4 * MS + (uint64_t)i * MS / 4;
		hanging[1] = start(connect_and_hang, &hangs[1]);
		await_hang(1);
		for (int j = 1; j < ACCEPTERS; j++)
			be_accepted();
		join_all(accepters, ACCEPTERS);
		CHECK(!hangs[0].expired && !hangs[1].expired);
		let_go(hanging, 2);
	}
}

/* A file system (FUSE) that a thread of the program serves. */

static char mounted[] = "/tmp/flexsc-stuck.XXXXXX";
static int device;

static void reply(uint64_t unique, int err, const void *data, size_t n)
{
	struct fuse_out_header head = {
		.len = (uint32_t)(sizeof(head) + n), .error = -err,
		.unique = unique,
	};
	struct iovec parts[2] = { { &head, sizeof(head) },
				  { (void *)(uintptr_t)data, n } };

	/* If a signal has ended the call that made the request, the request is gone. */
	CHECK(writev(device, parts, 2) > 0 || errno == ENOENT);
}

static struct fuse_attr attributes(uint64_t node)
{
	return (struct fuse_attr){
		.ino = node,
		.mode = node == FUSE_ROOT_ID ? S_IFDIR | 0755 : S_IFREG | 0644,
		.nlink = 1, .size = 4, .blksize = 4096,
	};
}

/* A file system in which every name is a file of four bytes. */
static void serve(const struct fuse_in_header *in)
{
	const struct fuse_read_in *read = (const void *)(in + 1);
	struct fuse_init_out init = { .major = FUSE_KERNEL_VERSION, .minor = 31,
				      .max_write = 65536 };
	struct fuse_entry_out entry = { .nodeid = 2, .attr = attributes(2) };
	struct fuse_attr_out attr = { .attr = attributes(in->nodeid) };
	struct fuse_open_out opened = { .open_flags = FOPEN_DIRECT_IO };

	switch (in->opcode) {
	case FUSE_INIT:
		reply(in->unique, 0, &init, sizeof(init));
		break;
	case FUSE_LOOKUP:
		reply(in->unique, 0, &entry, sizeof(entry));
		break;
	case FUSE_GETATTR:
		reply(in->unique, 0, &attr, sizeof(attr));
		break;
	case FUSE_OPEN:
		reply(in->unique, 0, &opened, sizeof(opened));
		break;
	case FUSE_READ:
		reply(in->unique, 0, "fuse", read->offset ? 0 : 4);
		break;
	case FUSE_FLUSH:
	case FUSE_RELEASE:
		reply(in->unique, 0, NULL, 0);
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break;
	default:
		reply(in->unique, ENOSYS, NULL, 0);
	}
}

static void *serve_all(void *arg)
{
	static char request[1 << 17];

	while (read(device, request, sizeof(request)) > 0)
		serve((struct fuse_in_header *)request);
	return arg;
}

static bool by_range;

static void *use_files(void *arg)
{
	char path[64], data[8];

	for (int i = 0; i < 10; i++) {
		int fd;

		snprintf(path, sizeof(path), "%s/%ld", mounted, (long)arg);
		usleep(500);
		fd = open(path, O_RDONLY);
		CHECK(fd >= 0);
		CHECK_EQ(read(fd, data, sizeof(data)), 4);
		CHECK_EQ(memcmp(data, "fuse", 4), 0);
		CHECK_EQ(by_range ? close_range((unsigned int)fd, (unsigned int)fd, 0) :
				    close(fd), 0);
	}
	return NULL;
}

/*
 * A process that outlives the test unmounts the file system when the test is over,
 * or has hung for a while. The unmount ends calls that hang in the file system; no
 * signal would.
 */
static void guard_mount(int over)
{
	struct pollfd fd = { over, POLLIN, 0 };

	setsid();
	poll(&fd, 1, 30000);
	umount2(mounted, MNT_FORCE);
	umount2(mounted, MNT_DETACH);
	rmdir(mounted);
	_exit(0);
}

static int mount_own(void)
{
	char options[128];
	int over[2];

	device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (device < 0)
		SKIP("/dev/fuse: %s", strerror(errno));
	CHECK(mkdtemp(mounted));
	snprintf(options, sizeof(options),
		 "fd=%d,rootmode=40000,user_id=0,group_id=0", device);
	if (mount("flexsc", mounted, "fuse", MS_NOSUID | MS_NODEV, options)) {
		rmdir(mounted);
		SKIP("mount: %s", strerror(errno));
	}
	CHECK_EQ(pipe2(over, O_CLOEXEC), 0);
	if (!fork()) {
		close(device);
		close(over[1]);
		guard_mount(over[0]);
	}
	close(over[0]);
	return over[1];
}

static void use_what_it_serves(void)
{
	int over = mount_own();
	pthread_t server = start(serve_all, NULL);

	run_numbered(8, use_files);
	CHECK_EQ(write(over, "x", 1), 1);
	/* The server's read ends with the unmount. */
	join(server);
}

TEST_LIMIT(a_program_uses_the_file_system_that_it_serves, 40)
{
	use_what_it_serves();
}

/*
 * Without stickiness, threads don't stay on their hosts after their first such call,
 * so close() hangs, too.
 */
TEST_LIMIT(a_program_opens_and_closes_files_that_it_serves_on_carriers, 40)
{
	setenv("FLEXSC_STICKY", "0", 1);
	use_what_it_serves();
}

/* The carriers that replace the hung ones have descriptors of the runtime. */
TEST_LIMIT(a_program_closes_ranges_of_files_that_it_serves, 40)
{
	setenv("FLEXSC_STICKY", "0", 1);
	by_range = true;
	use_what_it_serves();
}

/*
 * A read that waits continues with its file, although the number refers to another
 * file by then.
 */

static atomic_int reading;

static void *read_one(void *arg)
{
	char byte;

	reading++;
	CHECK_EQ(read(*(int *)arg, &byte, 1), 1);
	CHECK_EQ(byte, 'o');
	return NULL;
}

TEST_LIMIT(a_wait_keeps_its_file_when_its_number_is_used_again, 40)
{
	enum { READERS = 8 };
	int old[READERS][2], new[2], numbers[READERS];
	pthread_t readers[READERS], hanging;

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, new), 0);
	for (int i = 0; i < READERS; i++) {
		CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, old[i]), 0);
		numbers[i] = old[i][0];
		readers[i] = start(read_one, &numbers[i]);
	}
	while (reading < READERS)
		usleep(1000);
	/* A read that begins later uses the new file. */
	await_quiet();
	for (int i = 0; i < READERS; i++)
		CHECK_EQ(dup2(new[0], numbers[i]), numbers[i]);
	begin_to_hang(&hanging, 1);
	/* The new file has enough bytes for all readers, but none may take them. */
	for (int i = 0; i < READERS; i++)
		CHECK_EQ(write(new[1], "n", 1), 1);
	settle();
	settle();
	settle();
	for (int i = 0; i < READERS; i++)
		CHECK_EQ(write(old[i][1], "o", 1), 1);
	settle();
	let_go(&hanging, 1);
	join_all(readers, READERS);
}

/*
 * The numbers are reused one after the other: some while the monitor finds the hung
 * carrier, some while its reads are moved, and some later.
 */
static void use_again_slowly(const int *numbers, int n, int new)
{
	const uint64_t begin = now_ns();

	for (int i = 0; i < n; i++) {
		CHECK_EQ(dup2(new, numbers[i]), numbers[i]);
		while (now_ns() - begin < (uint64_t)i * 40 * MS / (uint64_t)n)
			;
	}
}

TEST_LIMIT(a_wait_keeps_its_file_while_it_moves, 60)
{
	enum { READERS = 250, ROUNDS = 10 };
	static int old[READERS][2], numbers[READERS];
	static pthread_t readers[READERS];
	pthread_t hanging;
	int new[2];

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, new), 0);
	for (int i = 0; i < READERS; i++)
		CHECK_EQ(write(new[1], "n", 1), 1);
	for (int round = 0; round < ROUNDS; round++) {
		reading = 0;
		for (int i = 0; i < READERS; i++) {
			CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, old[i]), 0);
			numbers[i] = old[i][0];
			readers[i] = start(read_one, &numbers[i]);
		}
		while (reading < READERS)
			usleep(1000);
		await_quiet();
		begin_to_hang(&hanging, 1);
		use_again_slowly(numbers, READERS, new[0]);
		for (int i = 0; i < READERS; i++)
			CHECK_EQ(write(old[i][1], "o", 1), 1);
		let_go(&hanging, 1);
		for (int i = 0; i < READERS; i++) {
			join(readers[i]);
			CHECK_EQ(close(numbers[i]), 0);
			CHECK_EQ(close(old[i][1]), 0);
		}
	}
	CHECK_EQ(close(new[0]), 0);
	CHECK_EQ(close(new[1]), 0);
}

/*
 * The only remaining thread makes a call that depends on the number of threads, so
 * all carriers end. Just then, a carrier that was stuck comes back.
 */
TEST_LIMIT(carriers_end_just_after_a_call_has_hung, 40)
{
	struct stat tasks;
	unsigned int seed = 1;

	setenv("FLEXSC_STICKY", "0", 1);
	hangs = calloc(1, sizeof(*hangs));
	for (int i = 0; i < 50; i++) {
		long pid;

		join(start(nothing, NULL));
		hangs->ns = 12 * MS + (uint64_t)rand_r(&seed) % (20 * MS);
		usleep(100);
		pid = vfork_for(hangs);
		CHECK_EQ(unshare(CLONE_FS), 0);
		CHECK_EQ(stat("/proc/self/task", &tasks), 0);
		CHECK_EQ(tasks.st_nlink, 2 + 1);
		test_reap((int)pid);
	}
	free(hangs);
}

/*
 * While calls hang, a filter is installed that ends the process at system calls
 * which carriers make.
 */

static void *echo_byte(void *arg)
{
	const int fd = *(int *)arg;
	char byte;

	while (recv(fd, &byte, 1, 0) == 1)
		CHECK_EQ(send(fd, &byte, 1, 0), 1);
	return NULL;
}

/*
 * Installs a filter for all threads: an action for the calls that are listed, and
 * another one for all others.
 */
static void filter(const int *list, unsigned int n, uint32_t listed,
		   uint32_t other)
{
	CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	CHECK_EQ(filter_install(list, n, listed, other, SECCOMP_FILTER_FLAG_TSYNC),
		 0);
}

#define FORBID(...)							\
	filter((const int[]){ __VA_ARGS__ },				\
	       sizeof((const int[]){ __VA_ARGS__ }) / sizeof(int),	\
	       SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_ALLOW)

static void exchange_byte(int fd)
{
	char byte = 'b';

	CHECK_EQ(send(fd, &byte, 1, 0), 1);
	CHECK_EQ(recv(fd, &byte, 1, 0), 1);
	CHECK_EQ(byte, 'b');
}

static void filter_while_calls_hang(unsigned int n)
{
	enum { ECHOES = 8 };
	pthread_t echoing[ECHOES], *threads = calloc(n, sizeof(*threads));
	int p[ECHOES][2];

	for (int i = 0; i < ECHOES; i++) {
		CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, p[i]), 0);
		echoing[i] = start(echo_byte, &p[i][1]);
		exchange_byte(p[i][0]);
	}
	begin_to_hang(threads, n);
	FORBID(SYS_io_uring_enter, SYS_io_uring_register, SYS_epoll_pwait);
	for (int i = 0; i < ECHOES; i++)
		exchange_byte(p[i][0]);
	let_go(threads, n);
	/* By now the kernel threads that hung have continued. */
	settle();
	for (int i = 0; i < ECHOES; i++) {
		exchange_byte(p[i][0]);
		CHECK_EQ(close(p[i][0]), 0);
		join(echoing[i]);
	}
	free(threads);
}

TEST_LIMIT(a_filter_comes_while_a_call_hangs, 40)
{
	filter_while_calls_hang(1);
}

TEST_LIMIT(a_filter_comes_while_calls_hang_on_all_carriers, 40)
{
	filter_while_calls_hang(carriers());
}

/*
 * A filter that ends the process at all calls except those that the runtime tries
 * before it accepts a filter, and those of this test. Carriers continue, and make no
 * other calls.
 */

static const int permitted[] = {
#define OWN_CALL(name, ...)	SYS_##name,
#define NEW_CALL		OWN_CALL
#define CALL_OF(group, name, ...) IN_##group(SYS_##name)
#define IN_OWN_RINGS(nr)	nr,
#define IN_OWN_MODULE(nr)	nr,
#define IN_OWN_CORES(nr)	nr,
#define IN_OWN_COMMAND(nr)
#include "runtime/calls/own_calls.def"
	/* Calls of this program, and of libc on its behalf. */
	SYS_read, SYS_write, SYS_recvfrom, SYS_accept, SYS_ppoll,
	SYS_clock_nanosleep, SYS_shutdown, SYS_exit, SYS_exit_group,
	SYS_rt_sigreturn, SYS_rseq, SYS_seccomp,
	/* Calls of the harness. */
#ifdef SYS_readlink
	SYS_readlink,
#endif
	SYS_getdents64, SYS_lseek, SYS_fstat, SYS_kill,
};

static void *be_carried(void *arg)
{
	*(bool *)arg = becomes_carried();
	return NULL;
}

static void *compute(void *arg)
{
	const uint64_t end = now_ns() + 50 * MS;

	usleep(100);
	while (now_ns() < end)
		;
	return arg;
}

static void compute_and_hang_under_a_filter(void)
{
	pthread_t threads[2];

	for (int i = 0; i < 2; i++) {
		join(start(compute, NULL));
		begin_to_hang(threads, 2);
		all_go_on(5, hangs, 2);
		let_go(threads, 2);
		all_go_on(2, NULL, 0);
	}
}

TEST_LIMIT(the_runtime_makes_the_calls_that_a_filter_was_tried_with, 60)
{
	bool carried = false;
	int pid = begin_waiting();

	filter(permitted, sizeof(permitted) / sizeof(*permitted),
	       SECCOMP_RET_ALLOW, SECCOMP_RET_KILL_PROCESS);
	compute_and_hang_under_a_filter();
	join(start(be_carried, &carried));
	CHECK_EQ(carried, preloaded());
	end_waiting(pid);
	/* Carriers end, and start again. */
	pid = test_fork();
	if (!pid)
		test_leave();
	test_reap(pid);
	join(start(be_carried, &carried));
	CHECK_EQ(carried, preloaded());
}

/* The filter forbids calls that the runtime seldom makes, and this test never. */
TEST_LIMIT(a_filter_forbids_the_calls_that_create_a_carrier, 60)
{
	int pid = begin_waiting();

	FORBID(SYS_memfd_create, SYS_timer_create, SYS_ftruncate);
	compute_and_hang_under_a_filter();
	end_waiting(pid);
}

/* The filter forbids a call by which the monitor reads whether a carrier is stuck. */
TEST_LIMIT(a_filter_forbids_the_monitor_s_calls, 60)
{
	int pid = begin_waiting();

	FORBID(SYS_pread64);
	compute_and_hang_under_a_filter();
	end_waiting(pid);
}

static atomic_bool may_compute;

static void *compute_later(void *arg)
{
	while (!may_compute)
		usleep(1000);
	return compute(arg);
}

static void forbid_to_return(uint32_t action)
{
	static const int call = SYS_rt_sigreturn;
	pthread_t thread = start(compute_later, NULL);

	settle();
	filter(&call, 1, action, SECCOMP_RET_ALLOW);
	may_compute = true;
	join(thread);
	join(start(compute, NULL));
}

TEST(a_filter_kills_at_the_return_from_a_handler)
{
	forbid_to_return(SECCOMP_RET_KILL_PROCESS);
}

TEST(a_filter_fails_the_return_from_a_handler)
{
	forbid_to_return(SECCOMP_RET_ERRNO | EPERM);
}
