/* SPDX-License-Identifier: MIT */
/*
 * Carries out one pair: see pair.h.
 *
 *	pair CALL EVENT {plain|loop} [SLOWER]
 *	pair list all {plain|loop}
 *
 * A thread makes a call, which waits. Then the event happens, and the program checks
 * whether the call has ended. It lets the call continue, and checks how the call
 * ends, what has arrived, and whether the peer sees an end once the program has
 * closed its descriptors. It prints the results in one line.
 */
#define _GNU_SOURCE
#include "pair.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <flexsc/flexsc.h>

#include "tests/harness/errors.h"
#include "quiet.h"

/*
 * Time for the runtime's monitor. When all threads are quiet after that, the call
 * waits, or has ended if the event ends it.
 */
#define BEGIN_MS	30
#define EVENT_MS	20
#define END_MS		1000
#define SHORT_MS	400	/* duration of a short sleep */

unsigned int pair_slower = 1;

static struct pair pair;
static struct flexsc_loop *loop;
static bool posts, cancels, limited;

void pair_broken(const char *what)
{
	printf("%s failed: %s\n", what, strerror(errno));
	fflush(stdout);
	_exit(1);
}

static struct timespec time_of(unsigned int ms)
{
	ms *= pair_slower;
	return (struct timespec){ ms / 1000, ms % 1000 * 1000000 };
}

void pair_pause(unsigned int ms)
{
	struct timespec time = time_of(ms);

	while (nanosleep(&time, &time))
		;
}

static void settle(unsigned int ms)
{
	pair_pause(ms);
	quiet_await(AWAKE_MS);
}

bool pair_posts(void)
{
	return posts;
}

bool pair_wait(struct pair *p, unsigned int ms)
{
	for (; ms && !p->done; ms--)
		pair_pause(1);
	return p->done;
}

/* Arguments. */

static char buffer[MANY_BYTES];
static struct iovec vector[2];
static struct sockaddr_un address = { .sun_family = AF_UNIX };
static socklen_t address_size = sizeof(address);
static struct msghdr message = { .msg_iov = vector, .msg_iovlen = 2 };
static struct mmsghdr messages[1];

static uint64_t place_of(enum argument argument)
{
	static struct pollfd poll_set;
	static fd_set fd_set_of_one;
	static uint64_t room[64], place, one = 1;
	static struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	static struct sembuf operation = { .sem_op = -1 };
	static struct timespec short_time;

	switch (argument) {
	case BUF:
		return (uintptr_t)buffer;
	case VECTOR:
		return (uintptr_t)vector;
	case MESSAGE:
		return (uintptr_t)&message;
	case MESSAGES_OF:
		messages[0].msg_hdr = message;
		return (uintptr_t)messages;
	case POLL_SET:
		poll_set = (struct pollfd){ pair.file.fd, POLLIN, 0 };
		return (uintptr_t)&poll_set;
	case FD_SET:
		FD_SET(pair.file.fd, &fd_set_of_one);
		return (uintptr_t)&fd_set_of_one;
	case EVENTS:
	case TEXT:
		return (uintptr_t)room;
	case ADDRESS:
		strcpy(address.sun_path, pair.path);
		return (uintptr_t)&address;
	case ADDRESS_SIZE:
		return (uintptr_t)&address_size;
	case PATH:
		return (uintptr_t)pair.path;
	case LOCK:
		return (uintptr_t)&lock;
	case OPERATION:
		return (uintptr_t)&operation;
	case THE_WORD:
		return (uintptr_t)&pair.word;
	case SHORT_TIME:
		short_time = time_of(SHORT_MS);
		return (uintptr_t)&short_time;
	case PLACE:
		return (uintptr_t)&place;
	case ONE:
		return (uintptr_t)&one;
	default:
		return 0;
	}
}

static uint64_t value_of(int64_t argument)
{
	if (argument < FD || argument > ONE)
		return (uint64_t)argument;
	switch ((enum argument)argument) {
	case FD:
		return (uint64_t)pair.file.fd;
	case SECOND:
		return (uint64_t)pair.second.fd;
	case MAX_FD:
		return (uint64_t)pair.file.fd + 1;
	case ID:
		return (uint64_t)pair.id;
	case PID:
		return (uint64_t)pair.pid;
	default:
		return place_of((enum argument)argument);
	}
}

static void fill(size_t n)
{
	for (size_t i = 0; i < n; i++)
		pair_bytes[i] = (char)(i * 7 / 64 + i % 63 + 1);
}

static void prepare(const struct call *call)
{
	size_t length = MANY_BYTES;

	fill(FEW);
	if (call->kind == CONTENT || call->second == CONTENT)
		fill(MANY_BYTES);
	pair.call = call;
	file_make(&pair, &pair.file, call->kind);
	file_make(&pair, &pair.second, call->second);
	if (pair.file.writes || pair.second.writes)
		fill(MANY_BYTES);
	if (pair.file.writes)
		memcpy(buffer, pair_bytes, MANY_BYTES);
	else
		length = FEW;
	vector[0] = (struct iovec){ buffer, length / 4 };
	vector[1] = (struct iovec){ buffer + length / 4, length / 4 * 3 };
	for (unsigned int i = 0; i < 6; i++)
		pair.args[i] = value_of(call->args[i]);
}

/* The thread that makes the call. */

static void *call_plainly(void *arg)
{
	const uint64_t *a = pair.args;

	pair.tid = gettid();
	if (cancels)
		pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	pair.ret = syscall(pair.call->nr, a[0], a[1], a[2], a[3], a[4], a[5]);
	if (pair.ret < 0)
		pair.ret = -errno;
	pair.done = true;
	return arg;
}

/* A request to the loop's owner. */
struct request {
	struct flexsc_cb cb;
	long nr;		/* a system call, or an operation on the call */
	uint64_t args[3];
	atomic_bool done;
};

static _Atomic(struct request *) asked;
static struct flexsc_cb call_cb;

static void request_done(struct flexsc_cb *cb)
{
	((struct request *)cb)->done = true;
}

static void call_ended(struct flexsc_cb *cb)
{
	pair.ret = cb->ret;
	pair.done = true;
}

enum { CANCEL = -1, DEADLINE = -2 };

static void serve(struct request *request)
{
	if (request->nr == CANCEL)
		flexsc_loop_cancel(loop, &call_cb);
	else if (request->nr == DEADLINE)
		MUST(!flexsc_loop_deadline(loop, &call_cb, 1000000));
	request->done = request->nr < 0;
	if (request->done)
		return;
	request->cb.callback = request_done;
	MUST(!flexsc_loop_call(loop, &request->cb, (unsigned int)request->nr,
			       request->args[0], request->args[1],
			       request->args[2], 0, 0, 0));
}

/*
 * Posts a sleep before the call that waits, so that the kernel module gets a syscall
 * thread. Without one, the module leaves such a call to the owner's own thread.
 */
static void use_loop(void)
{
	static const struct timespec brief = { .tv_nsec = 1 };

	MUST(!flexsc_loop_call(loop, NULL, SYS_nanosleep, (uintptr_t)&brief, 0,
			       0, 0, 0, 0));
	MUST(!flexsc_loop_run(loop));
}

static void *call_posted(void *arg)
{
	const uint64_t *a = pair.args;
	struct request *request;

	MUST(!flexsc_loop_create(&loop, NULL));
	use_loop();
	call_cb.callback = call_ended;
	MUST(!flexsc_loop_call(loop, &call_cb, (unsigned int)pair.call->nr,
			       a[0], a[1], a[2], a[3], a[4], a[5]));
	pair.tid = gettid();
	for (;;) {
		flexsc_loop_wait(loop, FLEXSC_FOREVER);
		flexsc_loop_dispatch(loop);
		request = atomic_exchange(&asked, NULL);
		if (request)
			serve(request);
	}
	return arg;
}

static int64_t ask(long nr, uint64_t a, uint64_t b, uint64_t c)
{
	struct request request = { .nr = nr, .args = { a, b, c } };

	asked = &request;
	flexsc_loop_wake(loop, NULL);
	for (int ms = 0; ms < END_MS && !request.done; ms++)
		pair_pause(1);
	MUST(request.done);
	return request.cb.ret;
}

struct plain {
	long nr;
	uint64_t args[3];
	int64_t ret;
};

static void *make_plain(void *arg)
{
	struct plain *plain = arg;

	plain->ret = syscall(plain->nr, plain->args[0], plain->args[1],
			     plain->args[2]);
	return arg;
}

static int64_t in_thread(long nr, uint64_t a, uint64_t b, uint64_t c)
{
	struct plain plain = { nr, { a, b, c }, 0 };
	pthread_t thread;

	MUST(!pthread_create(&thread, NULL, make_plain, &plain));
	MUST(!pthread_join(thread, NULL));
	return plain.ret;
}

int64_t pair_post_here(long nr, uint64_t a, uint64_t b, uint64_t c)
{
	return posts ? ask(nr, a, b, c) : in_thread(nr, a, b, c);
}

int64_t pair_post_elsewhere(long nr, uint64_t a, uint64_t b, uint64_t c)
{
	struct flexsc_cb cb = { 0 };
	struct flexsc_loop *other;

	if (!posts)
		return in_thread(nr, a, b, c);
	MUST(!flexsc_loop_create(&other, NULL));
	MUST(!flexsc_loop_call(other, &cb, (unsigned int)nr, a, b, c, 0, 0, 0));
	MUST(!flexsc_loop_run(other));
	flexsc_loop_destroy(other);
	return cb.ret;
}

void pair_cancel(struct pair *p)
{
	void *ret;

	if (posts) {
		ask(CANCEL, 0, 0, 0);
		return;
	}
	pthread_cancel(p->caller);
	settle(EVENT_MS);
	if (p->done)
		return;
	MUST(!pthread_join(p->caller, &ret));
	p->joined = true;
	p->ret = -EINTR;
	p->done = true;
}

void pair_limit(void)
{
	ask(DEADLINE, 0, 0, 0);
}

/* Results. */

static const char *result(int64_t ret)
{
	size_t length = pair.call->length;

	/* The event interrupts the oracle's call, so this is the same result. */
	if (posts && limited && ret == -EINTR)
		return "interrupted";
	if (posts && ret == (limited ? -ETIME : -ECANCELED))
		ret = -EINTR;
	if (ret < 0)
		return error_name((int)-ret);
	if (length)
		return (size_t)ret == length ? "all" : ret ? "part" : "none";
	return ret ? "number" : "zero";
}

static const char *amount(size_t n)
{
	if (!n)
		return "none";
	return n == pair.call->length ? "all" : "part";
}

static size_t received(void)
{
	size_t n = 0;

	while (!pair.file.writes && n < FEW && buffer[n] == pair_bytes[n])
		n++;
	return n;
}

static bool touched(void)
{
	int n[2] = { 5, 5 };

	for (int i = 0; i < 2 && pair.other[0]; i++)
		ioctl(pair.other[i], FIONREAD, &n[i]);
	return n[0] != 5 || n[1] != 5;
}

static void close_all(struct file *file)
{
	if (file->fd >= 0)
		close(file->fd);
	file->fd = -1;
}

static void report(bool early)
{
	struct file *out = pair.second.writes ? &pair.second : &pair.file;
	const bool ended = pair.done;
	bool is_part;

	close_all(&pair.file);
	close_all(&pair.second);
	printf("early=%d ended=%d", early, ended);
	if (ended) {
		file_end(&pair.file);
		file_end(&pair.second);
		is_part = pair.ret > 0 && pair.file.writes &&
			  pair.call->length == MANY_BYTES &&
			  out->peer >= 0;
		printf(" ret=%s read=%s end=%d%d", result(pair.ret),
		       amount(received()),
		       file_has_end(&pair.file) && pair.file.ended,
		       file_has_end(&pair.second) && pair.second.ended);
		if (is_part && out->sent != (size_t)pair.ret)
			printf(" lost");
	}
	printf(" sent=%s%s%s\n", amount(out->sent), out->wrong ? " wrong" : "",
	       touched() ? " touched" : "");
}

static void clean_up(void)
{
	siginfo_t info;
	char path[96];

	snprintf(path, sizeof(path), "%s/x", pair.path);
	unlink(path);
	rmdir(pair.path);
	unlink(pair.path);
	if (pair.file.kind == MESSAGES)
		msgctl(pair.id, IPC_RMID, NULL);
	if (pair.file.kind == SEMAPHORE)
		semctl(pair.id, 0, IPC_RMID);
	/* The call may have reaped the child, whose number is free then. */
	if (pair.pid && !waitid(P_PID, (id_t)pair.pid, &info, WEXITED | WNOHANG | WNOWAIT))
		kill(pair.pid, SIGKILL);
}

static void carry_out(const struct event *event)
{
	bool early;

	MUST(!pthread_create(&pair.caller, NULL,
			     posts ? call_posted : call_plainly, NULL));
	settle(BEGIN_MS);
	MUST(!pair.done);
	event->happen(&pair);
	settle(EVENT_MS);
	early = pair.done;
	if (!early) {
		file_satisfy(&pair, &pair.file);
		pair_wait(&pair, END_MS);
	}
	report(early);
}

/* The event ends the process. Another process observes the other end. */
static void carry_out_in_child(const struct event *event)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		carry_out(event);
		_exit(1);
	}
	MUST(waitpid(pid, &status, 0) == pid);
	close_all(&pair.file);
	close_all(&pair.second);
	file_end(&pair.file);
	file_end(&pair.second);
	printf("status=%d end=%d%d%s\n", status,
	       file_has_end(&pair.file) && pair.file.ended,
	       file_has_end(&pair.second) && pair.second.ended,
	       pair.file.wrong ? " wrong" : "");
}

/* Prints all pairs. */
static void list(void)
{
	for (const struct call *call = calls; call->name; call++) {
		unsigned int has = call_has(call) |
				   (posts ? ON_POSTED : ON_PLAIN);

		for (const struct event *event = events; event->name; event++)
			if (!(event->needs & ~has))
				printf("%s %s\n", call->name, event->name);
	}
}

int main(int argc, char **argv)
{
	const struct call *call = calls;
	const struct event *event = events;

	MUST(argc >= 4);
	posts = !strcmp(argv[3], "loop");
	MUST(posts || !strcmp(argv[3], "plain"));
	if (!strcmp(argv[1], "list")) {
		list();
		return 0;
	}
	while (call->name && strcmp(call->name, argv[1]))
		call++;
	while (event->name && strcmp(event->name, argv[2]))
		event++;
	MUST(call->name && event->name);
	cancels = !strcmp(event->name, "cancel");
	limited = !strcmp(event->name, "deadline");
	if (argc > 4)
		pair_slower = (unsigned int)atoi(argv[4]);
	/* Bounds every hang. */
	alarm(8 * pair_slower);
	signal(SIGPIPE, SIG_IGN);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	MUST(quiet_begin());
	prepare(call);
	if (event->needs & ENDS_PROCESS)
		carry_out_in_child(event);
	else
		carry_out(event);
	clean_up();
	fflush(stdout);
	/* Exit without joining threads whose calls never end. */
	exit(0);
}
