// SPDX-License-Identifier: MIT
/*
 * Processes end in every possible way: killed, by exec, frozen, stopped, without
 * their memory or their file, or while another process holds these. They have a
 * registration, syscall threads, calls in flight, and an event control block whose
 * owner gets events and connections. Afterwards nothing of them remains.
 *
 *	kmod-rounds [seed=N] [rounds=N] [memory=KiB]
 *
 * A round is one such process, the OWNER. Two WORKERS make rounds at the same time.
 * An honest process beside them must get correct results only. Runs in a guest, as
 * root.
 */
#include "ecb.h"

#include "chance.h"
#include "honest.h"
#include "system.h"

#define WORKERS	2
#define KEPT	4		/* registrations of ended processes */
#define CALLS	16

/* How the owner ends. */
enum end {
	END_KILLED,
	END_EXEC,		/* by its first thread */
	END_EXEC_ASIDE,		/* by another thread */
	END_EXIT,
	END_EXIT_ASIDE,
	END_FIRST_THREAD_LEFT,	/* and is killed then */
	END_UNMAPPED,
	END_CLOSED,
	END_CLOSED_UNMAPPED,
	END_SENT_HOME,		/* the syscall threads leave the kernel */
	END_FROZEN,		/* and killed while frozen */
	END_THAWED,
	END_STOPPED,
	END_CONTINUED,
	END_PASSED,		/* its worker keeps the file */
	END_INHERITED,		/* a child keeps the memory */
	ENDS,
};

/* Shared by an owner and its worker. */
struct round {
	enum end end;
	int channel[2];
	struct {
		atomic_bool ready;
		_Atomic uint64_t beats;		/* number of waits that ended */
	} *shared;
};

/* The owner. */

static struct round *own;
static int empty[2], both_ends[2], file;
static char buffer[CALLS][64];
static struct pollfd polled;

/* Most of these calls block, some of them where the owner executes them. */
static void post(uint32_t i)
{
	static const struct timespec times[] = { { 0, 300000 }, { 100, 0 } };
	const uint64_t to = (uint64_t)buffer[i];
	uint8_t flags = DEFER;

	if (!below(8))
		flags = (uint8_t)(below(16) << 3);
	switch (below(8)) {
	case 0:
	case 1:
		raw_post(&raw, i, 0, SYS_getppid);
		break;
	case 2:
		raw_post(&raw, i, flags, SYS_pread64, file, to, 64);
		break;
	case 3:
		raw_post(&raw, i, flags, SYS_read, empty[0], to, 64);
		break;
	case 4:
		raw_post(&raw, i, flags, SYS_recvfrom, both_ends[0], to, 64);
		break;
	case 5:
		raw_post(&raw, i, flags, SYS_poll, &polled, 1, -1);
		break;
	default:
		raw_post(&raw, i, flags, SYS_nanosleep, &times[below(2)]);
	}
}

/* Waits, and posts completed entries again. */
static void *keep_on(void *seed)
{
	chance_seed(*(uint64_t *)seed);
	for (uint32_t i = 0; i < CALLS; i++)
		post(i);
	for (;;) {
		uint32_t index;

		raw_wait(&raw, 2 * MS);
		for (index = raw_take(&raw); index != FLEXSC_NO_ENTRY;
		     raw.seen++) {
			const uint32_t next = raw.entries[index].link;

			post(index);
			index = next;
		}
		atomic_fetch_add(&own->shared->beats, 1);
	}
	return NULL;
}

/* Events that the owner causes, and connections that it accepts. */

static struct ecb events;
static atomic_bool eventful;

static void make_events(const struct sockaddr_un *name, socklen_t size)
{
	struct flexsc_event_slot event;
	int both[2], caller;

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, both), 0);
	caller = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	ecb_try_watch(&events, both[0], POLLIN, (uint16_t)below(2));
	if (one_in(2))
		CHECK_EQ(write(both[1], "x", 1), 1);
	connect(caller, (const void *)name, size);
	ecb_wait(&events, 3, below(2) * MS);
	while (ecb_next(&events, ALL_GROUPS, &event))
		if (event.type == FLEXSC_EVT_IPACCEPT)
			close(event.fd);
	close(both[0]);
	close(both[1]);
	close(caller);
}

static void *keep_events(void *seed)
{
	struct sockaddr_un name = { 0 };
	socklen_t size = sizeof(name);

	chance_seed(*(uint64_t *)seed ^ 1);
	signal(SIGURG, SIG_IGN);
	ecb_open(&events, 16, 0);
	CHECK(ecb_try_accept(&events, listen_anywhere(&name, &size, 64), 2,
			     POLLIN, 3) >= 0);
	ecb_deliver(&events, ALL_GROUPS);
	ecb_store(&events.control->notify, (uint32_t)number());
	atomic_store(&eventful, true);
	for (;;)
		make_events(&name, size);
	return NULL;
}

/*
 * The owner's child inherits memory that it shouldn't. When the owner has ended, the
 * child writes to it.
 */
static void inherit(void)
{
	/* Linux 7.3 doesn't permit the inheritance. */
	const bool inherited = !madvise(raw.shared, raw.args.area, MADV_DOFORK);
	char byte;

	CHECK(inherited || errno == EINVAL);
	if (test_fork())
		return;
	CHECK(ioctl(raw.fd, FLEXSC_IOC_KICK) == -1 && errno == EPERM);
	close(own->channel[1]);
	/* A byte from the worker, or its end. */
	CHECK(read(own->channel[0], &byte, 1) >= 0);
	if (inherited)
		memset(raw.shared, 0x5a, raw.args.area);
	_exit(0);
}

static void run_true(void)
{
	execl("/bin/busybox", "true", NULL);
	_exit(1);
}

static void *aside(void *unused)
{
	if (own->end == END_EXEC_ASIDE)
		run_true();
	_exit(0);
	return unused;
}

static void end(void)
{
	pthread_t thread;

	switch (own->end) {
	case END_EXEC:
		run_true();
		break;
	case END_EXIT:
		_exit(0);
	case END_EXEC_ASIDE:
	case END_EXIT_ASIDE:
		pthread_create(&thread, NULL, aside, NULL);
		break;
	case END_FIRST_THREAD_LEFT:
		syscall(SYS_exit, 0);
		break;
	case END_CLOSED_UNMAPPED:
		close(raw.fd);
		close(events.fd);
		/* Fall through. */
	case END_UNMAPPED:
		munmap(raw.shared, raw.args.area);
		munmap(events.control, events.args.area);
		break;
	case END_CLOSED:
		close(raw.fd);
		close(events.fd);
		break;
	case END_SENT_HOME:
		ioctl(raw.fd, FLEXSC_IOC_END);
		break;
	default:
		break;
	}
	for (;;)
		pause();
}

static void be_owner(void)
{
	char name[] = "/tmp/rounds-XXXXXX";
	static uint64_t seed;
	unsigned int n;

	seed = number();
	file = mkstemp(name);
	unlink(name);
	CHECK(file >= 0 && pipe(empty) == 0);
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, both_ends), 0);
	CHECK_EQ(write(file, buffer, 64), 64);
	polled = (struct pollfd){ empty[0], POLLIN, 0 };
	raw_open(&raw, 1U << below(4), 0);
	n = (unsigned int)below(4);
	while (n--)
		raw_thread(&raw);
	test_thread(keep_on, &seed);
	test_thread(keep_events, &seed);
	while (atomic_load(&own->shared->beats) < 2 || !atomic_load(&eventful))
		usleep(100);
	if (own->end == END_PASSED)
		CHECK_EQ(pass_file(own->channel[1],
				   below(2) ? raw.fd : events.fd), 0);
	if (own->end == END_INHERITED)
		inherit();
	usleep((useconds_t)below(1000));
	atomic_store(&own->shared->ready, true);
	end();
}

/* The worker. */

static int kept[KEPT] = { -1, -1, -1, -1 };

/* The file of another process's registration is useless. */
static void check_useless(int fd)
{
	static const unsigned long commands[] = {
		FLEXSC_IOC_SERVE, FLEXSC_IOC_WAIT, FLEXSC_IOC_KICK,
		FLEXSC_IOC_CANCEL, FLEXSC_IOC_WAKE, FLEXSC_IOC_END,
		FLEXSC_IOC_SET_POLICY, FLEXSC_IOC_GET_POLICY,
	};

	for (int i = 0; i < 8; i++)
		CHECK(ioctl(fd, commands[i], 0) == -1 && errno == EPERM);
	CHECK(mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED &&
	      errno == EPERM);
}

static void keep_passed(int channel)
{
	int *place = &kept[below(KEPT)];

	if (*place >= 0) {
		check_useless(*place);
		close(*place);
	}
	*place = take_file(channel);
	CHECK(*place >= 0);
	check_useless(*place);
}

/* Fails, because a limit has passed. */
static void give_up(struct round *round, pid_t pid, const char *what)
{
	system_report(pid);
	test_fail(__FILE__, __LINE__, "%s: end %d, %llu waits", what,
		  round->end,
		  (unsigned long long)atomic_load(&round->shared->beats));
}

/* Checks that the owner makes progress again. */
static void await_beats(struct round *round, pid_t pid)
{
	const uint64_t before = atomic_load(&round->shared->beats);

	for (int i = 0; atomic_load(&round->shared->beats) < before + 2; i++) {
		if (i == 100000)
			give_up(round, pid, "it doesn't go on");
		CHECK_EQ(waitpid(pid, NULL, WNOHANG), 0);
		usleep(200);
	}
}

/* The worker brings the owner into this state. Afterwards the owner is killed. */
static void bring_about(struct round *round, pid_t pid, const char *group)
{
	switch (round->end) {
	case END_FROZEN:
	case END_THAWED:
		system_group_enter(group, pid);
		CHECK(system_group_freeze(group, true));
		if (round->end == END_FROZEN)
			break;
		CHECK(system_group_freeze(group, false));
		await_beats(round, pid);
		break;
	case END_STOPPED:
		system_stop(pid);
		break;
	case END_CONTINUED:
		system_stop(pid);
		CHECK_EQ(kill(pid, SIGCONT), 0);
		await_beats(round, pid);
		break;
	case END_PASSED:
		keep_passed(round->channel[0]);
		break;
	default:
		break;
	}
}

/* The owner was killed. Without its memory it may have ended by itself. */
static bool is_fair(int status, enum end end)
{
	const bool unmapped = end == END_UNMAPPED || end == END_CLOSED_UNMAPPED;

	return WIFSIGNALED(status) &&
	       (WTERMSIG(status) == SIGKILL ||
		(unmapped && WTERMSIG(status) == SIGSEGV));
}

static bool ends_itself(enum end end)
{
	return end == END_EXEC || end == END_EXEC_ASIDE || end == END_EXIT ||
	       end == END_EXIT_ASIDE;
}

static void reap(pid_t pid, bool killed, enum end end)
{
	int status;

	for (int i = 0; i < 60000; i++) {
		const pid_t got = waitpid(pid, &status, WNOHANG);

		CHECK(got >= 0);
		if (got) {
			if (!(killed ? is_fair(status, end) : !status))
				test_fail(__FILE__, __LINE__,
					  "end %d: status %d", end, status);
			return;
		}
		usleep(i < 100 ? 100 : 500);
	}
	test_fail(__FILE__, __LINE__, "the process with end %d doesn't end", end);
}

static void one_round(struct round *round, const char *group)
{
	pid_t pid;

	round->end = (enum end)below(ENDS);
	atomic_store(&round->shared->ready, false);
	atomic_store(&round->shared->beats, 0);
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0,
			    round->channel), 0);
	pid = test_fork();
	if (!pid) {
		own = round;
		be_owner();
	}
	for (int i = 0; !atomic_load(&round->shared->ready); i++) {
		if (i == 100000)
			give_up(round, pid, "it isn't ready");
		usleep(200);
	}
	bring_about(round, pid, group);
	if (!ends_itself(round->end)) {
		usleep((useconds_t)below(1500));
		CHECK_EQ(kill(pid, SIGKILL), 0);
	}
	reap(pid, !ends_itself(round->end), round->end);
	if (round->end == END_FROZEN)
		CHECK(system_group_freeze(group, false));
	close(round->channel[0]);
	close(round->channel[1]);
	if (round->end == END_INHERITED)
		reap(-1, false, round->end);
}

static void work(uint64_t seed, unsigned long rounds, int worker)
{
	char group[16];
	struct round round = { .end = ENDS };

	snprintf(group, sizeof(group), "rounds-%d", worker);
	system_group_make(group);
	chance_seed(seed + (uint64_t)worker);
	/* Children of an owner become children of the worker. */
	CHECK_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	round.shared = system_share();
	while (rounds--) {
		one_round(&round, group);
		if (rounds && rounds % 1000 == 0)
			test_note("worker %d: %lu to go", worker, rounds);
	}
	system_group_remove(group);
}

static void work_together(uint64_t seed, unsigned long rounds)
{
	pid_t pids[WORKERS];

	for (int i = 0; i < WORKERS; i++) {
		pids[i] = test_fork();
		if (!pids[i]) {
			work(seed, rounds / WORKERS, i);
			test_leave();
		}
	}
	for (int i = 0; i < WORKERS; i++)
		test_reap(pids[i]);
}

TEST_LIMIT(nothing_is_left_of_ended_processes, 7200)
{
	const unsigned long seed = test_parameter("seed", (unsigned long)now_ns());
	const unsigned long rounds = test_parameter("rounds", 100);
	struct honest honest;
	unsigned int processes, spaces;
	long memory;

	test_note("seed=%lu rounds=%lu", seed, rounds);
	honest_start(&honest);
	/* In the first rounds the system allocates memory that it keeps. */
	work_together(seed + WORKERS, 40);
	CHECK(falls_to(system_registrations, 1));
	processes = system_processes();
	spaces = system_objects("mm_struct");
	memory = system_memory("MemAvailable");
	work_together(seed, rounds);
	CHECK(falls_to(system_registrations, 1));
	CHECK(falls_to(system_processes, processes));
	memory -= system_memory("MemAvailable");
	test_note("%ld KiB more are in use, and %d address spaces", memory,
		  (int)(system_objects("mm_struct") - spaces));
	/* A leak of one page in each of ten thousand rounds would be 40,000. */
	CHECK(memory < (long)test_parameter("memory", 24576));
	CHECK(system_objects("mm_struct") < spaces + 100);
	honest_check(&honest);
	CHECK(syscall(SYS_delete_module, "flexsc", O_NONBLOCK) == -1 &&
	      (errno == EBUSY || errno == EWOULDBLOCK));
	honest_end(&honest);
	CHECK(falls_to(system_registrations, 0));
	CHECK(falls_to(system_mappings, 0));
}
