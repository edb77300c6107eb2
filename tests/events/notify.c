/* SPDX-License-Identifier: MIT */
/* The handler: when and where it is called, what it finds, and what it leaves. */
#include "events.h"

#include <math.h>
#include <pty.h>
#include <setjmp.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>

/* The handler's actions. Only the owner's thread writes this. */
struct seen {
	volatile unsigned int calls;
	volatile unsigned int events;
	volatile unsigned int inside;
	volatile uint32_t groups;
	uint32_t take;		/* groups whose events the handler takes */
};

static void take_all(struct flexsc_ecb *ecb, void *arg)
{
	struct seen *seen = arg;
	struct flexsc_ecb_event event;

	CHECK_EQ(seen->inside++, 0);
	seen->calls++;
	while (flexsc_ecb_next(ecb, seen->take, &event)) {
		seen->events++;
		seen->groups |= 1U << event.group;
	}
	errno = 4242;
	seen->inside--;
}

static struct seen seen;

/* The ECB calls take_all() for all groups. */
static void notified(void)
{
	seen = (struct seen){ .take = ALL };
	ecb = NEW_ECB();
	CHECK_EQ(flexsc_ecb_handler(ecb, take_all, &seen), 0);
	CHECK_EQ(flexsc_ecb_notify(ecb, ALL), 0);
}

#define NOTIFIED_TEST(id)	NOTIFIED_TEST_LIMIT(id, 20)
#define NOTIFIED_TEST_LIMIT(id, seconds)				\
	ECB_TEST_ENTRY(id, seconds, notified())

/* Long enough for a handler call that is due. */
static void compute_a_while(void)
{
	uint64_t until = now_ns() + 20 * MS;

	while (now_ns() < until)
		;
}

/* Acts after some time, while the test computes. */
struct later {
	unsigned int ms;
	void (*act)(int arg);
	int arg;
};

static void *act_later(void *arg)
{
	struct later later = *(struct later *)arg;

	free(arg);
	sleep_ms(later.ms);
	later.act(later.arg);
	return NULL;
}

static pthread_t later(unsigned int ms, void (*act)(int arg), int arg)
{
	struct later *later = malloc(sizeof(*later));

	CHECK(later);
	*later = (struct later){ ms, act, arg };
	return test_thread(act_later, later);
}

static void post_event(int event)
{
	CHECK_EQ(flexsc_ecb_post(ecb, (unsigned int)event, 1), 0);
}

static void one_count(int fd)
{
	eventfd_write(fd, 1);
}

static void usr1(int pid)
{
	kill(pid, SIGUSR1);
}

static void end_child(int pid)
{
	kill(pid, SIGKILL);
}

static void arm(int fd)
{
	const struct itimerspec soon = { .it_value = { .tv_nsec = 1000000 } };

	CHECK_EQ(timerfd_settime(fd, 0, &soon, NULL), 0);
}

static void touch(int fd)
{
	CHECK(fchmod(fd, 0600) == 0);
}

/* Watches a source, and causes an event of it while the owner computes. */
static void preempts(int fd, void (*act)(int fd), int act_fd)
{
	pthread_t thread;

	notified();
	CHECK(flexsc_ecb_watch(ecb, fd, POLLIN, 4, NULL) >= 0);
	CHECK_EQ(seen.events, 0);
	thread = later(20, act, act_fd);
	compute_until(&seen.events, 1);
	CHECK_EQ(seen.groups, 1U << 4);
	pthread_join(thread, NULL);
	CHECK_EQ(flexsc_ecb_destroy(ecb), 0);
}

TEST(a_socket_preempts)
{
	int fds[2];

	test_pair(fds);
	preempts(fds[0], test_write, fds[1]);
}

TEST(a_pipe_preempts)
{
	int fds[2];

	CHECK_EQ(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
	preempts(fds[0], test_write, fds[1]);
}

TEST(a_terminal_preempts)
{
	int master, slave;

	CHECK_EQ(openpty(&master, &slave, NULL, NULL, NULL), 0);
	preempts(master, test_write, slave);
}

TEST(an_eventfd_preempts)
{
	int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);

	preempts(fd, one_count, fd);
}

TEST(a_timer_preempts)
{
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);

	preempts(fd, arm, fd);
}

TEST(a_signal_preempts)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	preempts(signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC), usr1,
		 getpid());
}

TEST(a_child_preempts)
{
	int pid = test_fork();

	if (!pid)
		for (;;)
			pause();
	preempts((int)syscall(SYS_pidfd_open, pid, 0), end_child, pid);
	CHECK_EQ(waitpid(pid, NULL, 0), pid);
}

TEST(a_file_preempts)
{
	int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC), file;

	enter_scratch();
	file = open("file", O_CREAT | O_RDWR | O_CLOEXEC, 0644);
	CHECK(inotify_add_watch(fd, "file", IN_ATTRIB) >= 0);
	preempts(fd, touch, file);
}

NOTIFIED_TEST(a_post_preempts)
{
	int user = flexsc_ecb_user(ecb, 1, NULL);
	pthread_t thread = later(20, post_event, user);

	compute_until(&seen.events, 1);
	pthread_join(thread, NULL);
	/* The owner's own posts notify, too. */
	post_event(user);
	compute_until(&seen.events, 2);
}

NOTIFIED_TEST(not_in_a_critical_section)
{
	int fds[2];

	watched_pair(fds, 0);
	for (unsigned int i = 1; i <= 20; i++) {
		flexsc_ecb_critical_begin(ecb);
		flexsc_ecb_critical_begin(ecb);
		test_write(fds[1]);
		if (i % 4 == 1)
			compute_a_while();
		flexsc_ecb_critical_end(ecb);
		CHECK_EQ(seen.calls, i - 1);
		/* The outermost end calls the handler at once. */
		flexsc_ecb_critical_end(ecb);
		compute_until(&seen.calls, i);
	}
	CHECK_EQ(seen.events, 20);
}

NOTIFIED_TEST(not_while_notify_excludes_the_group)
{
	struct flexsc_event_control *control = flexsc_ecb_control(ecb);
	struct flexsc_ecb_event event;
	int fds[2];

	watched_pair(fds, 6);
	CHECK_EQ(flexsc_ecb_deliver(ecb, ALL), 0);
	__atomic_store_n(&control->notify, 0, __ATOMIC_RELAXED);
	test_write(fds[1]);
	compute_a_while();
	CHECK_EQ(seen.calls, 0);
	/* The event is delivered anyway. */
	CHECK_EQ(flexsc_ecb_next(ecb, ALL, &event), 1);
	test_write(fds[1]);
	compute_a_while();
	CHECK_EQ(flexsc_ecb_notify(ecb, 1U << 5), 0);
	CHECK_EQ(seen.calls, 0);
	CHECK_EQ(flexsc_ecb_notify(ecb, 1U << 6), 0);
	CHECK_EQ(seen.events, 1);
	test_write(fds[1]);
	compute_until(&seen.events, 2);
}

NOTIFIED_TEST(events_that_the_handler_leaves_stay_pending)
{
	int low = flexsc_ecb_user(ecb, 1, NULL);
	int high = flexsc_ecb_user(ecb, 9, NULL);
	struct flexsc_ecb_event event;

	/*
	 * The handler takes only the lower group's events. The higher group doesn't
	 * notify.
	 */
	seen.take = 1U << 1;
	CHECK_EQ(flexsc_ecb_notify(ecb, 1U << 1), 0);
	post_event(high);
	post_event(low);
	compute_until(&seen.calls, 1);
	CHECK_EQ(seen.events, 1);
	CHECK_EQ(flexsc_ecb_next(ecb, ALL, &event), 1);
	CHECK_EQ(event.event, high);
}

/* Posts an event when the owner waits. */
static void *post_in_wait(void *event)
{
	await_wait(ecb);
	/* A post just before the sleep counts, too. */
	sleep_ms(20);
	post_event((int)(intptr_t)event);
	return NULL;
}

static pthread_t later_in_wait(int event)
{
	return test_thread(post_in_wait, (void *)(intptr_t)event);
}

NOTIFIED_TEST(an_event_that_ends_a_wait_does_not_notify)
{
	struct flexsc_ecb_event event;
	pthread_t thread;
	int fds[2], user;

	watched_pair(fds, 2);
	user = flexsc_ecb_user(ecb, 3, NULL);
	/*
	 * An event that ends the wait doesn't call the handler. Events of other
	 * groups do.
	 */
	thread = later_in_wait(user);
	CHECK_EQ(flexsc_ecb_wait(ecb, 1U << 3, 3600 * SECOND), 1);
	CHECK_EQ(seen.calls, 0);
	CHECK_EQ(flexsc_ecb_next(ecb, ALL, &event), 1);
	pthread_join(thread, NULL);
	/* The handler takes no event but the next one. */
	thread = later_in_wait(user);
	while (!seen.events)
		CHECK_EQ(flexsc_ecb_wait(ecb, 1U << 2, 100 * MS), 0);
	pthread_join(thread, NULL);
}

/* Runs in a wait for group 2, which this post ends. */
static void post_awaited(struct flexsc_ecb *ecb, void *awaited)
{
	struct flexsc_ecb_event event;

	while (flexsc_ecb_next(ecb, 1U << 3, &event))
		CHECK_EQ(flexsc_ecb_post(ecb, *(unsigned int *)awaited, 1), 0);
}

QUIET_ECB_TEST(a_post_interrupts_a_wait_for_others)
{
	unsigned int awaited;
	pthread_t thread;
	int user;

	if (test_is_kmod(ecb))
		SKIP("only for the backend uring");
	user = flexsc_ecb_user(ecb, 3, NULL);
	awaited = (unsigned int)flexsc_ecb_user(ecb, 2, NULL);
	CHECK_EQ(flexsc_ecb_handler(ecb, post_awaited, &awaited), 0);
	CHECK_EQ(flexsc_ecb_notify(ecb, 1U << 3), 0);
	thread = later(20, post_event, user);
	CHECK_EQ(flexsc_ecb_wait(ecb, 1U << 2, FLEXSC_FOREVER), 1);
	CHECK_EQ(test_next(ecb, 1U << 2).event, awaited);
	pthread_join(thread, NULL);
}

static void wait_inside(struct flexsc_ecb *ecb, void *arg)
{
	struct flexsc_ecb_event event;

	while (flexsc_ecb_next(ecb, 1U << 2, &event))
		;
	CHECK_EQ(flexsc_ecb_wait(ecb, 1U << 4, MS), 0);
}

QUIET_ECB_TEST(a_handler_may_wait_inside_of_a_wait)
{
	pthread_t threads[2];
	int fds[2], user;

	CHECK_EQ(flexsc_ecb_handler(ecb, wait_inside, NULL), 0);
	watched_pair(fds, 2);
	user = flexsc_ecb_user(ecb, 3, NULL);
	CHECK_EQ(flexsc_ecb_notify(ecb, 1U << 2), 0);
	threads[0] = later(20, test_write, fds[1]);
	threads[1] = later(120, post_event, user);
	CHECK_EQ(flexsc_ecb_wait(ecb, 1U << 3, 3600 * SECOND), 1);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
}

NOTIFIED_TEST(a_wait_leaves_the_others_notified)
{
	pthread_t thread;
	int fds[2], user;

	watched_pair(fds, 2);
	user = flexsc_ecb_user(ecb, 3, NULL);
	for (unsigned int i = 1; i <= 5; i++) {
		/* A notification for another group arrives during the wait. */
		thread = later_in_wait(user);
		while (seen.events < 2 * i - 1)
			CHECK_EQ(flexsc_ecb_wait(ecb, 1U << 5, 50 * MS), 0);
		pthread_join(thread, NULL);
		CHECK_EQ(seen.events, 2 * i - 1);
		/* Without a call of the library, the event preempts. */
		test_write(fds[1]);
		compute_until(&seen.events, 2 * i);
	}
}

struct round {
	int event;
	atomic_uint round;
	atomic_bool over;
};

static void *post_each_round(void *arg)
{
	struct round *round = arg;
	uint32_t random = 1;

	for (unsigned int i = 1;; i++) {
		while (atomic_load(&round->round) < i) {
			if (atomic_load(&round->over))
				return NULL;
			sched_yield();
		}
		random = random * 1103515245 + 12345;
		test_compute(random >> 16 & 1023);
		post_event(round->event);
	}
}

/* The event ends the wait, or the handler is called. */
NOTIFIED_TEST_LIMIT(an_event_at_the_end_of_a_wait_is_notified, 60)
{
	struct round round = { flexsc_ecb_user(ecb, 1, NULL), 0, false };
	unsigned int taken = 0;
	struct flexsc_ecb_event event;
	pthread_t thread = test_thread(post_each_round, &round);

	for (unsigned int i = 1; turns_left(i - 1, MANY(2000)); i++) {
		atomic_store(&round.round, i);
		for (unsigned int n = 1 + i % 4; n; n--)
			if (flexsc_ecb_wait(ecb, 1U << 1, 0))
				while (flexsc_ecb_next(ecb, ALL, &event))
					taken++;
		while (seen.events + taken < i)
			now_ns();
	}
	atomic_store(&round.over, true);
	pthread_join(thread, NULL);
}

NOTIFIED_TEST(errno_and_numbers_are_kept)
{
	volatile double x = 2;
	pthread_t thread;
	int user;

	user = flexsc_ecb_user(ecb, 1, NULL);
	for (unsigned int i = 0; i < 20; i++) {
		double sum = 0;

		thread = later(20, post_event, user);
		errno = 17;
		while (seen.events == i) {
			sum = sqrt(x) * sqrt(x);
			CHECK(sum > 1.99 && sum < 2.01);
			now_ns();
		}
		CHECK_EQ(errno, 17);
		pthread_join(thread, NULL);
	}
}

NOTIFIED_TEST(the_end_of_a_section_keeps_errno)
{
	int user = flexsc_ecb_user(ecb, 1, NULL);

	flexsc_ecb_critical_begin(ecb);
	post_event(user);
	errno = 17;
	flexsc_ecb_critical_end(ecb);
	CHECK_EQ(seen.calls, 1);
	CHECK_EQ(errno, 17);
}

static atomic_uint program_s;

static void on_urgent(int signo)
{
	program_s++;
}

static void *raise_urgent(void *arg)
{
	raise(SIGURG);
	return NULL;
}

TEST(other_threads_signals_are_the_program_s)
{
	const struct sigaction action = { .sa_handler = on_urgent };
	struct sigaction now;
	pthread_t thread;

	sigaction(SIGURG, &action, NULL);
	notified();
	thread = test_thread(raise_urgent, NULL);
	pthread_join(thread, NULL);
	CHECK_EQ(program_s, 1);
	CHECK_EQ(flexsc_ecb_destroy(ecb), 0);
	CHECK_EQ(sigaction(SIGURG, NULL, &now), 0);
	CHECK(now.sa_handler == on_urgent);
}

static sigjmp_buf landing;

static void leap(struct flexsc_ecb *ecb, void *arg)
{
	siglongjmp(landing, 1);
}

QUIET_ECB_TEST(a_handler_may_be_left_by_a_jump)
{
	struct flexsc_ecb_event event;
	volatile int leaps = 0;
	int user;

	CHECK_EQ(flexsc_ecb_handler(ecb, leap, NULL), 0);
	user = flexsc_ecb_user(ecb, 0, NULL);
	CHECK_EQ(flexsc_ecb_notify(ecb, 1), 0);
	if (sigsetjmp(landing, 1)) {
		CHECK_EQ(flexsc_ecb_control(ecb)->critical, 1);
		while (flexsc_ecb_next(ecb, ALL, &event))
			;
		flexsc_ecb_critical_end(ecb);
		leaps++;
	}
	if (leaps < 3) {
		post_event(user);
		for (;;)
			now_ns();
	}
}

static jmp_buf plain_landing;
static volatile unsigned int landings;

static void leap_at_first(struct flexsc_ecb *ecb, void *arg)
{
	take_all(ecb, arg);
	if (!landings++)
		longjmp(plain_landing, 1);
}

static void write_in_section(struct flexsc_ecb *ecb, int fd)
{
	flexsc_ecb_critical_begin(ecb);
	eventfd_write(fd, 1);
	compute_a_while();
	flexsc_ecb_critical_end(ecb);
}

static void write_and_compute(struct flexsc_ecb *ecb, int fd)
{
	eventfd_write(fd, 1);
	compute_a_while();
}

static void write_and_wait(struct flexsc_ecb *ecb, int fd)
{
	eventfd_write(fd, 1);
	flexsc_ecb_wait(ecb, 1U << 5, SECOND);
}

/* act() causes an event, and the handler leaves by a jump. Later events still notify. */
static void leave_and_go_on(void (*act)(struct flexsc_ecb *ecb, int fd))
{
	struct seen seen = { .take = ALL };
	int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), user;

	ecb = NEW_ECB(.events = 0);
	landings = 0;
	CHECK_EQ(flexsc_ecb_handler(ecb, leap_at_first, &seen), 0);
	CHECK(flexsc_ecb_watch(ecb, fd, POLLIN, 0, NULL) >= 0);
	user = flexsc_ecb_user(ecb, 5, NULL);
	CHECK_EQ(flexsc_ecb_notify(ecb, ALL), 0);
	if (!setjmp(plain_landing)) {
		act(ecb, fd);
		CHECK(false);
	}
	flexsc_ecb_critical_end(ecb);
	for (unsigned int i = 2; i < 6; i++) {
		eventfd_write(fd, 1);
		compute_until(&landings, 2 * i - 2);
		post_event(user);
		compute_until(&landings, 2 * i - 1);
	}
	CHECK_EQ(flexsc_ecb_destroy(ecb), 0);
}

enum { CROWD = 4000 };

static int crowd[CROWD];
static volatile bool crowd_seen[CROWD];
static atomic_bool crowd_over;

static void *write_to_crowd(void *arg)
{
	for (unsigned int i = 0; !crowd_over && i < 200 * CROWD; i++)
		eventfd_write(crowd[i % CROWD], 1);
	return NULL;
}

static void see_crowd(struct flexsc_ecb *ecb, void *arg)
{
	struct flexsc_ecb_event event;

	while (flexsc_ecb_next(ecb, ALL, &event))
		*(volatile bool *)event.data = true;
}

/* More completions than their queue holds. */
QUIET_ECB_TEST(a_full_queue_ends_no_watch, .events = 4000)
{
	uint64_t until;
	pthread_t thread;

	if (!raise_fd_limit(CROWD + 100))
		SKIP("needs %d descriptors", CROWD);
	CHECK_EQ(flexsc_ecb_handler(ecb, see_crowd, NULL), 0);
	for (int i = 0; i < CROWD; i++) {
		crowd[i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
		CHECK(flexsc_ecb_watch(ecb, crowd[i], POLLIN, 0,
				       (void *)&crowd_seen[i]) >= 0);
	}
	CHECK_EQ(flexsc_ecb_notify(ecb, ALL), 0);
	thread = test_thread(write_to_crowd, NULL);
	for (int i = 0; i < 4; i++) {
		flexsc_ecb_critical_begin(ecb);
		until = now_ns() + 300 * MS;
		while (now_ns() < until)
			;
		flexsc_ecb_critical_end(ecb);
	}
	crowd_over = true;
	pthread_join(thread, NULL);
	compute_a_while();
	memset((void *)crowd_seen, 0, sizeof(crowd_seen));
	for (int i = 0; i < CROWD; i++) {
		eventfd_write(crowd[i], 1);
		while (!crowd_seen[i])
			now_ns();
	}
}

TEST(events_after_a_jump_out_of_a_handler_are_notified)
{
	leave_and_go_on(write_and_compute);
	leave_and_go_on(write_in_section);
	leave_and_go_on(write_and_wait);
}

static atomic_bool storm_over;

static void *write_until_over(void *arg)
{
	while (!storm_over)
		eventfd_write(*(const int *)arg, 1);
	return NULL;
}

TEST(an_ecb_is_destroyed_during_many_events)
{
	int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	pthread_t thread;

	thread = test_thread(write_until_over, &fd);
	for (unsigned int i = 0; i < MANY(500); i++) {
		notified();
		CHECK(flexsc_ecb_watch(ecb, fd, POLLIN, 0, NULL) >= 0);
		CHECK_EQ(flexsc_ecb_destroy(ecb), 0);
	}
	storm_over = true;
	pthread_join(thread, NULL);
}

/* A child with its own ECB, which notifies. */
static void preempted_child(void)
{
	int fds[2];

	notified();
	watched_pair(fds, 0);
	test_write(fds[1]);
	compute_until(&seen.calls, 1);
	CHECK_EQ(flexsc_ecb_destroy(ecb), 0);
	test_leave();
}

NOTIFIED_TEST(a_child_of_a_section_is_notified)
{
	int fds[2], pid;

	watched_pair(fds, 0);
	flexsc_ecb_critical_begin(ecb);
	test_write(fds[1]);
	compute_a_while();
	pid = test_fork();
	if (!pid)
		preempted_child();
	flexsc_ecb_critical_end(ecb);
	test_reap(pid);
}

TEST(an_owner_unblocks_the_signal)
{
	sigset_t set;
	int fds[2];

	sigemptyset(&set);
	sigaddset(&set, SIGURG);
	sigprocmask(SIG_BLOCK, &set, NULL);
	notified();
	watched_pair(fds, 0);
	test_write(fds[1]);
	compute_until(&seen.calls, 1);
	sigaddset(&set, SIGUSR1);
	CHECK_EQ(flexsc_ecb_signal(ecb, &set, 0, NULL), -EINVAL);
	CHECK_EQ(flexsc_ecb_destroy(ecb), 0);
}

ECB_TEST(signals_that_are_not_watched_stay_unchanged)
{
	sigset_t set, now;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	sigaddset(&set, SIGUSR2);
	CHECK_EQ(flexsc_ecb_signal(ecb, &set, 40, NULL), -EINVAL);
	pthread_sigmask(SIG_BLOCK, NULL, &now);
	CHECK_EQ(sigismember(&now, SIGUSR1), 1);
	CHECK_EQ(sigismember(&now, SIGUSR2), 0);
}

static volatile int child = -1;

static void fork_once(struct flexsc_ecb *ecb, void *arg)
{
	if (child < 0)
		child = test_fork();
	if (!child)
		CHECK_EQ(flexsc_ecb_destroy(ecb), -EBUSY);
	take_all(ecb, arg);
}

TEST(a_handler_may_fork)
{
	struct seen seen = { .take = ALL };
	int fds[2];

	ecb = NEW_ECB(.events = 0);
	test_pair(fds);
	CHECK_EQ(flexsc_ecb_handler(ecb, fork_once, &seen), 0);
	CHECK(flexsc_ecb_watch(ecb, fds[0], POLLIN, 0, NULL) >= 0);
	CHECK_EQ(flexsc_ecb_notify(ecb, ALL), 0);
	test_write(fds[1]);
	compute_until(&seen.calls, 1);
	if (!child) {
		CHECK_EQ(seen.events, 0);
		CHECK_EQ(flexsc_ecb_destroy(ecb), 0);
		preempted_child();
	}
	test_reap(child);
	CHECK_EQ(seen.events, 1);
	test_write(fds[1]);
	compute_until(&seen.events, 2);
	CHECK_EQ(flexsc_ecb_destroy(ecb), 0);
}

static void try_to_end(struct flexsc_ecb *ecb, void *arg)
{
	struct flexsc_ecb_event event;

	while (flexsc_ecb_next(ecb, ALL, &event))
		;
	*(volatile int *)arg = flexsc_ecb_destroy(ecb);
}

QUIET_ECB_TEST(a_handler_can_not_end_its_ecb)
{
	volatile int err = 0;
	int user;

	CHECK_EQ(flexsc_ecb_handler(ecb, try_to_end, (void *)&err), 0);
	user = flexsc_ecb_user(ecb, 0, NULL);
	CHECK_EQ(flexsc_ecb_notify(ecb, 1), 0);
	CHECK_EQ(flexsc_ecb_handler(ecb, NULL, NULL), -EBUSY);
	post_event(user);
	while (!err)
		now_ns();
	CHECK_EQ(err, -EBUSY);
}

QUIET_ECB_TEST(a_lack_of_descriptors_is_reported)
{
	struct rlimit limit, least;
	struct seen seen = { .take = ALL };
	int fds[2];

	if (test_is_kmod(ecb))
		SKIP("only for the backend uring");
	test_pair(fds);
	CHECK_EQ(flexsc_ecb_handler(ecb, take_all, &seen), 0);
	CHECK(flexsc_ecb_watch(ecb, fds[0], POLLIN, 0, NULL) >= 0);
	CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
	least = limit;
	least.rlim_cur = (rlim_t)fds[1] + 1;
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &least), 0);
	CHECK_EQ(flexsc_ecb_notify(ecb, ALL), -EMFILE);
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
	CHECK_EQ(flexsc_ecb_notify(ecb, ALL), 0);
	test_write(fds[1]);
	compute_until(&seen.calls, 1);
}

/* Sources whose descriptors the library creates. */

static uint64_t said[FLEXSC_EVT_TYPES][3];
static volatile unsigned int counts[FLEXSC_EVT_TYPES];

static void note(struct flexsc_ecb *ecb, void *arg)
{
	struct flexsc_ecb_event event;

	while (flexsc_ecb_next(ecb, ALL, &event)) {
		memcpy(said[event.type], event.payload, sizeof(event.payload));
		counts[event.type]++;
	}
}

#define NOTED_TEST(id)							\
	ECB_TEST_ENTRY(id, 20, ecb = NEW_ECB();				\
		       CHECK_EQ(flexsc_ecb_handler(ecb, note, NULL), 0);\
		       CHECK_EQ(flexsc_ecb_notify(ecb, ALL), 0))

NOTED_TEST(each_queued_signal_is_an_event)
{
	unsigned int fds = count_fds();
	sigset_t set;
	int index;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN + 3);
	index = flexsc_ecb_signal(ecb, &set, 0, NULL);
	CHECK(index >= 0);
	flexsc_ecb_critical_begin(ecb);
	for (int i = 0; i < 10; i++)
		CHECK_EQ(sigqueue(getpid(), SIGRTMIN + 3,
				  (union sigval){ .sival_int = i }), 0);
	flexsc_ecb_critical_end(ecb);
	compute_until(&counts[FLEXSC_EVT_SIGNAL], 10);
	CHECK_EQ((uint32_t)said[FLEXSC_EVT_SIGNAL][0], SIGRTMIN + 3);
	CHECK_EQ((int32_t)(said[FLEXSC_EVT_SIGNAL][0] >> 32), SI_QUEUE);
	CHECK_EQ((uint32_t)said[FLEXSC_EVT_SIGNAL][1], getpid());
	CHECK_EQ((uint32_t)said[FLEXSC_EVT_SIGNAL][2], 9);
	CHECK_EQ(counts[FLEXSC_EVT_SIGNAL], 10);
	CHECK_EQ(flexsc_ecb_forget(ecb, (unsigned int)index), 0);
	CHECK_EQ(count_fds(), fds);
}

/* A signalfd returns the process's signals, and those of the thread that reads it. */
NOTED_TEST(a_signal_that_is_sent_to_the_owner_is_an_event)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN + 3);
	CHECK(flexsc_ecb_signal(ecb, &set, 0, NULL) >= 0);
	CHECK_EQ(pthread_kill(pthread_self(), SIGRTMIN + 3), 0);
	compute_until(&counts[FLEXSC_EVT_SIGNAL], 1);
	CHECK_EQ((uint32_t)said[FLEXSC_EVT_SIGNAL][0], SIGRTMIN + 3);
	CHECK_EQ((int32_t)(said[FLEXSC_EVT_SIGNAL][0] >> 32), SI_TKILL);
}

NOTED_TEST(a_timer_goes_on)
{
	uint64_t began = now_ns();

	CHECK(flexsc_ecb_timer(ecb, 20 * MS, 10 * MS, 3, NULL) >= 0);
	compute_until(&counts[FLEXSC_EVT_TIMER], 5);
	CHECK(now_ns() - began >= 60 * MS);
	CHECK(said[FLEXSC_EVT_TIMER][0]);
}

NOTED_TEST(a_child_is_reaped)
{
	int pid = test_fork();

	if (!pid)
		_exit(42);
	CHECK(flexsc_ecb_child(ecb, pid, 3, NULL) >= 0);
	compute_until(&counts[FLEXSC_EVT_CHILD], 1);
	CHECK_EQ(said[FLEXSC_EVT_CHILD][0], CLD_EXITED);
	CHECK_EQ(said[FLEXSC_EVT_CHILD][1], 42);
	CHECK_EQ(said[FLEXSC_EVT_CHILD][2], pid);
	CHECK_EQ(waitpid(pid, NULL, 0), -1);
	CHECK_EQ(flexsc_ecb_child(ecb, pid, 3, NULL), -ESRCH);
}

NOTED_TEST(a_directory_is_watched)
{
	enter_scratch();
	CHECK(flexsc_ecb_file(ecb, ".", IN_CREATE | IN_DELETE, 3, NULL) >= 0);
	CHECK_EQ(flexsc_ecb_file(ecb, "none", IN_CREATE, 3, NULL), -ENOENT);
	close(open("new", O_CREAT | O_WRONLY, 0600));
	compute_until(&counts[FLEXSC_EVT_FILE], 1);
	CHECK_EQ(said[FLEXSC_EVT_FILE][0], IN_CREATE);
	CHECK_EQ(unlink("new"), 0);
	compute_until(&counts[FLEXSC_EVT_FILE], 2);
	CHECK_EQ(said[FLEXSC_EVT_FILE][0], IN_DELETE);
}

static void dispatch(struct flexsc_ecb *ecb, void *arg)
{
	struct flexsc_ecb_event event;
	uint64_t ns;

	while (flexsc_ecb_next(ecb, ALL, &event)) {
		CHECK_EQ(event.type, FLEXSC_EVT_DONE);
		CHECK(flexsc_loop_dispatch(arg) >= 0);
		CHECK_EQ(flexsc_loop_prepare(arg, &ns), 0);
	}
}

TEST(finished_calls_are_events)
{
	struct flexsc_loop *loop;
	struct call call = CALL_INIT;
	pthread_t thread;
	uint64_t ns;
	char byte;
	int fds[2];

	ecb = NEW_ECB(.events = 0);
	CHECK_EQ(flexsc_loop_create(&loop, NULL), 0);
	CHECK_EQ(flexsc_ecb_handler(ecb, dispatch, loop), 0);
	CHECK(flexsc_ecb_loop(ecb, loop, 0, NULL) >= 0);
	CHECK_EQ(flexsc_ecb_notify(ecb, ALL), 0);
	CHECK_EQ(pipe2(fds, O_CLOEXEC), 0);
	flexsc_ecb_critical_begin(ecb);
	POST(loop, &call, SYS_read, fds[0], &byte, 1);
	CHECK_EQ(flexsc_loop_prepare(loop, &ns), 0);
	flexsc_ecb_critical_end(ecb);
	thread = later(20, test_write, fds[1]);
	compute_until(&call.runs, 1);
	CHECK_EQ(call.cb.ret, 1);
	pthread_join(thread, NULL);
	CHECK_EQ(flexsc_ecb_destroy(ecb), 0);
	CHECK_EQ(flexsc_loop_destroy(loop), 0);
}

/*
 * Everything at the same time: threads write to sockets and eventfds, and post.
 * Meanwhile the owner computes, takes events, waits, and turns notification on and
 * off. At the end it has read the last value of each.
 */

#define WRITERS	4

struct writer {
	pthread_t thread;
	struct flexsc_ecb *ecb;
	/* number of a user event; otherwise fd is used */
	unsigned int event;
	int fd;
	atomic_uint written;
	volatile unsigned int seen;
};

static unsigned int writes;
static volatile unsigned int handler_inside;

static void *write_many(void *arg)
{
	struct writer *writer = arg;

	for (unsigned int i = 0; i < writes; i++) {
		atomic_fetch_add(&writer->written, 1);
		if (writer->fd < 0)
			flexsc_ecb_post(writer->ecb, writer->event, 1);
		else
			eventfd_write(writer->fd, 1);
		if (!(i % 256))
			usleep(1);
	}
	return NULL;
}

static void see(const struct flexsc_ecb_event *event)
{
	struct writer *writer = event->data;
	eventfd_t count;

	if (event->fd >= 0)
		eventfd_read(event->fd, &count);
	writer->seen = atomic_load(&writer->written);
}

static void see_in_handler(struct flexsc_ecb *ecb, void *arg)
{
	struct flexsc_ecb_event event;

	CHECK_EQ(handler_inside++, 0);
	while (flexsc_ecb_next(ecb, ALL, &event))
		see(&event);
	handler_inside--;
}

static void do_something(struct flexsc_ecb *ecb)
{
	struct flexsc_ecb_event event;

	switch (test_random() % 6) {
	case 0:
		flexsc_ecb_critical_begin(ecb);
		test_compute(1000);
		flexsc_ecb_critical_end(ecb);
		break;
	case 1:
		if (flexsc_ecb_next(ecb, ALL, &event))
			see(&event);
		break;
	case 2:
		CHECK(flexsc_ecb_wait(ecb, ALL, 100000) >= 0);
		if (flexsc_ecb_next(ecb, ALL, &event))
			see(&event);
		break;
	case 3:
		CHECK_EQ(flexsc_ecb_notify(ecb, (uint32_t)test_random()), 0);
		break;
	case 4:
		CHECK_EQ(flexsc_ecb_notify(ecb, ALL), 0);
		break;
	default:
		test_compute(20000);
	}
}

static bool all_seen(const struct writer *writers)
{
	for (int i = 0; i < WRITERS; i++)
		if (writers[i].seen != writes)
			return false;
	return true;
}

ECB_TEST_LIMIT(no_event_is_lost_under_load, 100)
{
	struct writer writers[WRITERS] = { 0 };

	writes = MANY(100000) / test_slower();
	CHECK_EQ(flexsc_ecb_handler(ecb, see_in_handler, NULL), 0);
	for (int i = 0; i < WRITERS; i++) {
		struct writer *writer = &writers[i];
		int index;

		writer->ecb = ecb;
		writer->fd = i % 2 ? eventfd(0, EFD_NONBLOCK) : -1;
		index = i % 2 ? flexsc_ecb_watch(ecb, writer->fd, POLLIN, i,
						 writer) :
				flexsc_ecb_user(ecb, i, writer);
		CHECK(index >= 0);
		writer->event = (unsigned int)index;
	}
	CHECK_EQ(flexsc_ecb_notify(ecb, ALL), 0);
	for (int i = 0; i < WRITERS; i++)
		writers[i].thread = test_thread(write_many, &writers[i]);
	do {
		do_something(ecb);
	} while (atomic_load(&writers[0].written) < writes ||
		 atomic_load(&writers[1].written) < writes);
	for (int i = 0; i < WRITERS; i++)
		pthread_join(writers[i].thread, NULL);
	/* The handler alone gets the rest, while the owner computes. */
	CHECK_EQ(flexsc_ecb_notify(ecb, ALL), 0);
	while (!all_seen(writers))
		now_ns();
}
