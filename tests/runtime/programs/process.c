/* SPDX-License-Identifier: MIT */
/* Processes with threads: how they end, fork, and execute other programs. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "threads.h"

static atomic_int alive;

static void *live(void *arg)
{
	alive++;
	for (;;)
		usleep(20000);
	return arg;
}

static void *exit_later(void *arg)
{
	settle();
	exit((int)(long)arg);
}

static int status_of(void (*run)(void))
{
	int pid = fork(), status;

	CHECK(pid >= 0);
	if (!pid) {
		run();
		_exit(99);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void main_leaves(void)
{
	start(exit_later, (void *)42L);
	pthread_exit(NULL);
}

static void *only_leave(void *arg)
{
	settle();
	return arg;
}

static void all_leave(void)
{
	start(only_leave, NULL);
	pthread_exit(NULL);
}

static void exit_from_thread(void)
{
	start(exit_later, (void *)17L);
	for (;;)
		pause();
}

/* The first thread ends in each way, after each kind of wait. */

static pthread_t first;

static void wait_a_little(void *arg)
{
	(void)arg;
	usleep(1000);
}

static void have_destructor(void)
{
	pthread_key_t key;

	CHECK_EQ(pthread_key_create(&key, wait_a_little), 0);
	CHECK_EQ(pthread_setspecific(key, &first), 0);
}

static void *cancel_first(void *arg)
{
	settle();
	CHECK_EQ(pthread_cancel(first), 0);
	settle();
	exit((int)(long)arg);
}

static void main_is_cancelled(void)
{
	first = pthread_self();
	start(cancel_first, (void *)43L);
	pthread_cleanup_push(wait_a_little, NULL);
	for (;;)
		sleep(5);
	pthread_cleanup_pop(0);
}

static void main_is_cancelled_while_it_computes(void)
{
	first = pthread_self();
	have_destructor();
	start(cancel_first, (void *)44L);
	usleep(100);
	for (;;)
		pthread_testcancel();
}

/* From <threads.h>, which the compiler would take for our own threads.h. */
void thrd_exit(int result) __attribute__((noreturn));

static void main_leaves_as_a_c11_thread(void)
{
	have_destructor();
	start(exit_later, (void *)45L);
	usleep(100);
	thrd_exit(0);
}

TEST(the_process_goes_on_without_its_first_thread)
{
	CHECK_EQ(status_of(main_is_cancelled), 43);
	CHECK_EQ(status_of(main_is_cancelled_while_it_computes), 44);
	CHECK_EQ(status_of(main_leaves_as_a_c11_thread), 45);
}

TEST(the_process_ends_as_natively)
{
	CHECK_EQ(status_of(main_leaves), 42);
	CHECK_EQ(status_of(all_leave), 0);
	CHECK_EQ(status_of(exit_from_thread), 17);
}

/* When a process has ended, the port on which it waited is free. */

static int listener;

static void *accept_forever(void *arg)
{
	while (accept(listener, NULL, NULL) >= 0 || errno == EINTR)
		;
	return arg;
}

static void *poll_forever(void *arg)
{
	struct pollfd set = { listener, POLLIN, 0 };

	while (poll(&set, 1, -1) <= 0)
		;
	return arg;
}

static void *end_the_process(void *arg)
{
	usleep(1000);
	if (!arg)
		exit(0);
	if (arg == &listener)
		_exit(0);
	syscall(SYS_exit_group, 0);
	return NULL;
}

static void serve(void *how)
{
	for (int i = 0; i < 4; i++) {
		start(accept_forever, NULL);
		start(poll_forever, NULL);
	}
	settle();
	start(end_the_process, how);
	accept_forever(NULL);
}

static int listen_at(struct sockaddr_in *address)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

	CHECK_EQ(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)),
		 0);
	if (bind(fd, (struct sockaddr *)address, sizeof(*address)) ||
	    listen(fd, 10)) {
		CHECK_EQ(errno, EADDRINUSE);
		close(fd);
		return -1;
	}
	return fd;
}

/* Is the port free at once? If not, waits until it is. */
static bool is_free_after(void *how)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t length = sizeof(address);
	bool at_once;
	int pid;

	listener = listen_at(&address);
	CHECK_EQ(getsockname(listener, (struct sockaddr *)&address, &length),
		 0);
	pid = test_fork();
	if (!pid)
		serve(how);
	close(listener);
	test_reap(pid);
	listener = listen_at(&address);
	at_once = listener >= 0;
	while (listener < 0) {
		usleep(1000);
		listener = listen_at(&address);
	}
	close(listener);
	return at_once;
}

TEST(a_port_is_free_when_its_process_has_ended)
{
	void *const ways[] = { NULL, &listener, &alive };

	for (unsigned int i = 0; i < 3; i++) {
		unsigned int n = 0;

		/*
		 * On a busy machine the port may become free later, but not each
		 * time.
		 */
		while (!is_free_after(ways[i]))
			CHECK(++n < 10);
	}
}

static void *exec_here(void *arg)
{
	usleep(100);
	execlp("sh", "sh", "-c", "exit 33", NULL);
	return arg;
}

static void exec_from_thread(void)
{
	start(live, NULL);
	join(start(exec_here, NULL));
}

TEST(exec_from_a_thread_replaces_the_process)
{
	CHECK_EQ(status_of(exec_from_thread), 33);
}
