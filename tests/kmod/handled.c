// SPDX-License-Identifier: MIT
/*
 * A signal handler runs on a syscall thread, because the call unblocks the signal
 * (ppoll() and similar calls), or the thread itself does. The entry has to end like
 * a plain call of such a thread. Runs in a guest, as root.
 */
#include "raw.h"

#include <linux/time_types.h>

static atomic_int handled;
static int epoll;

struct waiting {
	const char *name;
	unsigned int nr;
	uint64_t args[FLEXSC_ARGS_MAX];
};

static uint64_t none;		/* no signal is blocked */
static struct { uint64_t mask, size; } mask_of_select = { (uint64_t)&none, 8 };
static uint8_t event[12];
static char byte;

#define CALLS	5

static void make_calls(struct waiting calls[CALLS])
{
	const struct waiting made[CALLS] = {
		{ "ppoll", SYS_ppoll, { 0, 0, 0, PTR(&none), 8 } },
		{ "pselect6", SYS_pselect6,
		  { 0, 0, 0, 0, 0, PTR(&mask_of_select) } },
		{ "epoll_pwait", SYS_epoll_pwait,
		  { (uint64_t)epoll, PTR(event), 1, (uint64_t)-1, PTR(&none),
		    8 } },
		{ "epoll_pwait2", SYS_epoll_pwait2,
		  { (uint64_t)epoll, PTR(event), 1, 0, PTR(&none), 8 } },
		{ "read", SYS_read, { (uint64_t)fds[0], PTR(&byte), 1 } },
	};

	memcpy(calls, made, sizeof(made));
}

static void handle(int signo)
{
	atomic_fetch_add(&handled, 1);
}

static void let_through(int how)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	CHECK_EQ(pthread_sigmask(how, &set, NULL), 0);
}

static void begin(int flags)
{
	const struct sigaction action = { .sa_handler = handle,
					  .sa_flags = flags };

	CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
	let_through(SIG_BLOCK);
	raw_begin(1, 0);
	epoll = (int)syscall(SYS_epoll_create1, 0);
	CHECK(epoll >= 0);
	atomic_store(&handled, 0);
}

/* Sends a signal to whichever thread doesn't block it. */
static void interrupt_once(void)
{
	const int before = atomic_load(&handled);

	CHECK_EQ(kill(getpid(), SIGUSR1), 0);
	while (atomic_load(&handled) == before)
		usleep(1000);
}

/* The oracle: plain calls. */

static atomic_int plain_tid;
static bool plain_open;

static void *make_plainly(void *arg)
{
	const struct waiting *call = arg;
	const uint64_t *args = call->args;

	if (plain_open)
		let_through(SIG_UNBLOCK);
	atomic_store(&plain_tid, (int)syscall(SYS_gettid));
	return (void *)(intptr_t)plain_call(call->nr, args[0], args[1], args[2],
					    args[3], args[4], args[5]);
}

static int64_t plainly(struct waiting *call, bool open, bool feed)
{
	pthread_t thread;
	void *ret;

	plain_open = open;
	atomic_store(&plain_tid, 0);
	thread = test_thread(make_plainly, call);
	while (!atomic_load(&plain_tid))
		usleep(1000);
	await_sleep(atomic_load(&plain_tid), call->nr);
	interrupt_once();
	if (feed)
		CHECK_EQ(write(fds[1], "x", 1), 1);
	CHECK_EQ(pthread_join(thread, &ret), 0);
	return (intptr_t)ret;
}

/* serve_openly() has to execute the entry, and no other thread. */
static bool alone;

/* Makes the call as an entry, which a syscall thread executes: the owner kicks first. */
static int64_t posted(const struct waiting *call, bool feed)
{
	const struct flexsc_entry *entry;

	raw.entries[0].nr = (uint16_t)call->nr;
	raw.entries[0].nargs = 6;
	memcpy(raw.entries[0].args, call->args, sizeof(call->args));
	raw_push(&raw, 0);
	while (raw.entries[0].status != FLEXSC_BUSY) {
		/*
		 * Until that thread has taken the entry, a kick may request another
		 * thread.
		 */
		if (alone)
			CHECK(ioctl(raw.fd, FLEXSC_IOC_KICK) >= 0);
		else
			raw_kick(&raw);
		usleep(1000);
	}
	raw_await_sleepers();
	interrupt_once();
	if (feed)
		CHECK_EQ(write(fds[1], "x", 1), 1);
	entry = raw_result(&raw);
	CHECK_EQ(entry->nargs & FLEXSC_INTERRUPTED, 0);
	return entry->ret;
}

static void compare(int flags)
{
	struct waiting calls[CALLS];

	begin(flags);
	make_calls(calls);
	/* The calls with a signal mask. */
	for (int i = 0; i < CALLS - 1; i++) {
		test_note("%s", calls[i].name);
		CHECK_EQ(plainly(&calls[i], false, false), -EINTR);
		CHECK_EQ(posted(&calls[i], false), -EINTR);
	}
	raw_close(&raw);
}

TEST(a_handler_ends_a_call_with_a_mask)
{
	compare(0);
}

TEST(a_restarting_handler_ends_a_call_with_a_mask)
{
	compare(SA_RESTART);
}

/* A syscall thread that doesn't block the signal. */
static void *serve_openly(void *arg)
{
	struct flexsc_serve serve = SERVE_FIRST;
	int result;

	let_through(SIG_UNBLOCK);
	do {
		result = ioctl(raw.fd, FLEXSC_IOC_SERVE, &serve);
		serve.flags = result == FLEXSC_SERVE_MORE ?
				      FLEXSC_SERVE_NO_MORE :
				      0;
		if (result < 0 && errno == EINTR)
			serve.flags = FLEXSC_SERVE_HANDLED;
	} while (result >= 0 ? result != FLEXSC_SERVE_END : errno == EINTR);
	return NULL;
}

static void compare_read(int flags, int64_t expected)
{
	struct waiting calls[CALLS];
	pthread_t thread;

	begin(flags);
	make_calls(calls);
	CHECK_EQ(plainly(&calls[CALLS - 1], true, expected == 1), expected);
	thread = test_thread(serve_openly, NULL);
	while (raw_shown(NULL, " idle ") != 1)
		usleep(1000);
	alone = true;
	CHECK_EQ(posted(&calls[CALLS - 1], expected == 1), expected);
	CHECK_EQ(ioctl(raw.fd, FLEXSC_IOC_END), 0);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	raw_close(&raw);
}

TEST(a_handler_ends_a_read)
{
	compare_read(0, -EINTR);
}

TEST(a_read_goes_on_after_a_restarting_handler)
{
	compare_read(SA_RESTART, 1);
}
