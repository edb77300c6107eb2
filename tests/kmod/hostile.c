// SPDX-License-Identifier: MIT
/*
 * Attacks with event control blocks, by a malicious user: nobody, who may use the
 * module and has no other rights. Each test is one attack, and checks what must
 * hold. In none of them does the kernel complain, or the module keep anything once
 * the processes have ended. Runs in a guest, as root, with victim.c.
 */
#include "ecb.h"

#include "system.h"

#define MEMLOCK	(8U << 20)	/* the default */
#define VICTIM	"/tmp/victim"

static char stacks[8][65536] __attribute__((aligned(16)));

/* The module's only references are files: blocks, and /dev/flexsc. */
static void expect_nothing_left(void)
{
	CHECK(falls_to(system_module_references, 0));
	CHECK_EQ(system_mappings(), 0);
}

/* Runs "run" in a process of user nobody. */
static void attack(void (*run)(void))
{
	IN_CHILD {
		become_nobody();
		run();
	}
	expect_nothing_left();
}

/* Other processes see no lock of a watch, and can lock the whole file. */
static void watch_and_look(void)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	int fds[2];

	CHECK_EQ(pipe(fds), 0);
	ecb_open(&ecb, 8, 0);
	ecb_watch(&ecb, fds[0], POLLIN, 0);
	IN_CHILD {
		CHECK_EQ(fcntl(fds[0], F_GETLK, &lock), 0);
		CHECK_EQ(lock.l_type, F_UNLCK);
		lock.l_type = F_WRLCK;
		CHECK_EQ(fcntl(fds[1], F_SETLK, &lock), 0);
	}
}

TEST(a_watch_is_no_lock)
{
	attack(watch_and_look);
}

static atomic_bool over;

/* A thread that executes another program must not be affected any more. */

static struct {
	int ready[2];	/* from the victim: it is about to sleep */
	int go[2];	/* to the attacker */
	int gate[2];	/* to the victim: the end */
} pipes;

/*
 * "prepare" starts the attacker, and then the process becomes the victim, which must
 * not be interrupted.
 */
static void attack_victim(void (*prepare)(void))
{
	int status;
	pid_t pid;

	system_install("/bin/kmod-victim", VICTIM);
	CHECK_EQ(pipe(pipes.ready), 0);
	CHECK_EQ(pipe(pipes.go), 0);
	CHECK_EQ(pipe(pipes.gate), 0);
	pid = test_fork();
	if (!pid) {
		become_nobody();
		prepare();
		CHECK_EQ(dup2(pipes.gate[0], STDIN_FILENO), STDIN_FILENO);
		CHECK_EQ(dup2(pipes.ready[1], STDOUT_FILENO), STDOUT_FILENO);
		execl(VICTIM, VICTIM, NULL);
		_exit(99);
	}
	receive_byte(pipes.ready[0]);
	send_byte(pipes.go[1]);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	expect_nothing_left();
}

/* Shares the memory that the block's owner had, and has a descriptor of the block. */
static int kick_often(void *arg)
{
	receive_byte(pipes.go[0]);
	for (uint32_t i = 0; i < 100000; i++) {
		ecb.control->notify = i & 1;
		ecb.control->waiting = ~i & 1;
		ecb.control->critical = 0;
		/* The kick may be refused. */
		ioctl(ecb.fd, FLEXSC_ECB_KICK, 1UL);
		if (i % 16 == 0)
			sched_yield();
	}
	send_byte(pipes.gate[1]);
	_exit(0);
}

static void start_kicker(void)
{
	ecb_open(&ecb, 1, FLEXSC_ECB_INTERRUPTS_CALLS);
	CHECK(clone(kick_often, stacks[1], CLONE_VM | SIGCHLD, NULL) > 0);
}

TEST_LIMIT(a_kick_does_not_reach_the_next_program, 60)
{
	attack_victim(start_kicker);
}

enum { SOURCES = 300 };
static int sources[SOURCES];

/* A child holds the sources, and with them the watches. */
static void start_writer(void)
{
	const uint64_t one = 1;

	ecb_open(&ecb, SOURCES, FLEXSC_ECB_INTERRUPTS_CALLS);
	for (int i = 0; i < SOURCES; i++) {
		sources[i] = eventfd(0, EFD_NONBLOCK);
		ecb_watch(&ecb, sources[i], POLLIN, 0);
	}
	ecb_store(&ecb.control->notify, 1);
	if (test_fork())
		return;
	receive_byte(pipes.go[0]);
	for (int i = 0; i < SOURCES; i++) {
		CHECK_EQ(write(sources[i], &one, 8), 8);
		usleep(500);
	}
	send_byte(pipes.gate[1]);
	_exit(0);
}

/* The executed program keeps the block's descriptor. */
static void start_writer_to_the_program(void)
{
	start_writer();
	CHECK_EQ(fcntl(ecb.fd, F_SETFD, 0), 0);
}

TEST_LIMIT(an_event_does_not_reach_the_next_program, 60)
{
	attack_victim(start_writer_to_the_program);
}

/* Only the child keeps the descriptor. */
TEST_LIMIT(an_event_of_a_kept_block_does_not_reach_the_next_program, 60)
{
	attack_victim(start_writer);
}

/* An endless series of connections. */

static struct sockaddr_un address;
static socklen_t address_size;
static int listener;

static void listen_as(const char *name, int backlog)
{
	address.sun_family = AF_UNIX;
	strcpy(address.sun_path + 1, name);
	address_size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
				   strlen(name));
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	CHECK_EQ(bind(listener, (void *)&address, address_size), 0);
	CHECK_EQ(listen(listener, backlog), 0);
}

static int connect_always(void *arg)
{
	for (;;) {
		int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);

		if (fd < 0) {
			usleep(1000);
			continue;
		}
		if (connect(fd, (void *)&address, address_size))
			sched_yield();
		close(fd);
	}
	return *(int *)arg;
}

/* Closes accepted connections, and returns their slots. */
static int close_always(void *arg)
{
	for (uint32_t i = 1;; i = i % (ecb.args.events - 1) + 1) {
		struct flexsc_event_slot *slot = &ecb.slots[i];
		int fd = slot->fd;

		if (slot->type == FLEXSC_EVT_IPACCEPT && fd > listener &&
		    fd != ecb.fd && slot->state & FLEXSC_EVENT_QUEUED) {
			slot->fd = -1;
			close(fd);
		}
		if (slot->state & FLEXSC_EVENT_REVOKED)
			slot->state = 0;
	}
	return *(int *)arg;
}

static void accept_for_ever(pid_t *helpers, int ready)
{
	become_nobody();
	listen_as("for-ever", 4000);
	ecb_open(&ecb, 20000, 0);
	ecb_deliver(&ecb, 1);
	CHECK_EQ(ecb_try_accept(&ecb, listener, 0, POLLIN, 1), 0);
	for (int i = 0; i < 4; i++) {
		helpers[i] = clone(i < 2 ? connect_always : close_always,
				   stacks[i + 1], CLONE_VM | CLONE_FILES, NULL);
		CHECK(helpers[i] > 0);
	}
	send_byte(ready);
	/* Waits for a group without events. */
	for (;;)
		ecb_wait(&ecb, 1U << 31, UINT64_MAX);
}

/* Helper processes make new connections constantly. */
TEST_LIMIT(an_owner_that_accepts_forever_can_be_killed, 60)
{
	pid_t *helpers = system_share();
	uint64_t begin, took;
	int ready[2];
	pid_t pid;

	CHECK_EQ(pipe(ready), 0);
	pid = test_fork();
	if (!pid)
		accept_for_ever(helpers, ready[1]);
	receive_byte(ready[0]);
	/* By now the helpers are busy. */
	sleep_ms(1000);
	begin = now_ns();
	CHECK_EQ(kill(pid, SIGKILL), 0);
	do {
		usleep(1000);
		took = now_ns() - begin;
	} while (waitpid(pid, NULL, WNOHANG) == 0 && took < 12 * SECOND);
	test_note("it ended after %llu ms", (unsigned long long)(took / MS));
	for (int i = 0; i < 4; i++)
		kill(helpers[i], SIGKILL);
	CHECK(took < test_slower() * SECOND);
	expect_nothing_left();
}

/* Files that hold references to each other. */

/* Nearly all that a user may have. */
#define MOST	(MEMLOCK / sizeof(struct flexsc_event_slot) * 3 / 4)

/* The block's file is queued in the socket that the block watches. */
static void watch_own_way(void)
{
	int fds[2];

	pair(fds);
	ecb_open(&ecb, MOST, 0);
	ecb_watch(&ecb, fds[0], POLLIN, 0);
	CHECK_EQ(pass_file(fds[1], ecb.fd), 0);
}

/* Two blocks: each is queued in a socket that the other one watches. */
static void watch_each_other(void)
{
	struct ecb other;
	int fds[2], more[2];

	pair(fds);
	pair(more);
	ecb_open(&ecb, MOST / 2, 0);
	ecb_open(&other, MOST / 2, 0);
	ecb_watch(&ecb, fds[0], POLLIN, 0);
	ecb_watch(&other, more[0], POLLIN, 0);
	CHECK_EQ(pass_file(fds[1], other.fd), 0);
	CHECK_EQ(pass_file(more[1], ecb.fd), 0);
}

/* The block's file is queued in a connection that isn't accepted. */
static void watch_a_backlog(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);

	listen_as("backlog", 4);
	ecb_open(&ecb, MOST, 0);
	ecb_watch(&ecb, listener, POLLIN, 0);
	CHECK_EQ(connect(fd, (void *)&address, address_size), 0);
	CHECK_EQ(pass_file(fd, ecb.fd), 0);
}

static void have_most(void)
{
	ecb_open(&ecb, MOST, 0);
}

/* Afterwards the user can lock the memory again, and the module can be unloaded. */
static void expect_end_of(void (*run)(void))
{
	const struct rlimit limit = { MEMLOCK, MEMLOCK };

	CHECK_EQ(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
	attack(run);
	attack(have_most);
}

TEST(a_block_in_the_socket_that_it_watches_ends)
{
	expect_end_of(watch_own_way);
}

TEST(blocks_in_sockets_that_watch_each_other_end)
{
	expect_end_of(watch_each_other);
}

TEST(a_block_in_the_backlog_that_it_watches_ends)
{
	expect_end_of(watch_a_backlog);
}

/*
 * Gives the block's own descriptor the number of the connection that was just
 * accepted.
 */
static void *replace_always(void *arg)
{
	const int number = *(int *)arg;

	while (!atomic_load(&over)) {
		dup2(ecb.fd, number);
		close(number);
	}
	return NULL;
}

static void replace_what_is_accepted(void)
{
	enum { COUNT = 4000 };
	const uint64_t end = now_ns() + 6 * SECOND;
	unsigned long events = 0;
	pthread_t thread;
	pid_t pid;
	int number;

	listen_as("replace", 100);
	ecb_open(&ecb, COUNT, 0);
	ecb_deliver(&ecb, 3);
	CHECK_EQ(ecb_try_accept(&ecb, listener, 0, POLLIN, 1), 0);
	number = dup(0);
	close(number);
	pid = test_fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(ecb.fd);
		close(listener);
		connect_always(&number);
	}
	thread = test_thread(replace_always, &number);
	while (now_ns() < end) {
		struct flexsc_event_slot event;

		ecb_wait(&ecb, 1, 50 * MS);
		/*
		 * Each close() may accept another connection, so events may never
		 * end.
		 */
		while (now_ns() < end && ecb_next(&ecb, 3, &event)) {
			events++;
			if (event.fd > number)
				close(event.fd);
		}
	}
	test_note("%lu events", events);
	atomic_store(&over, true);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	kill(pid, SIGKILL);
	CHECK_EQ(waitpid(pid, NULL, 0), pid);
	close(number);
	close(listener);
	ecb_close(&ecb);
}

TEST_LIMIT(a_block_that_takes_the_number_of_a_connection_ends, 60)
{
	attack(replace_what_is_accepted);
}
