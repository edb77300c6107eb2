/* SPDX-License-Identifier: MIT */
/* The events that happen to a call that waits. */
#define _GNU_SOURCE
#include "pair.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void nothing(struct pair *pair)
{
	(void)pair;
}

/* Runs in a thread of the program: under flexsc run, main() may be different. */
static void in_thread(void *(*run)(void *), void *arg)
{
	pthread_t thread;

	MUST(!pthread_create(&thread, NULL, run, arg));
	MUST(!pthread_join(thread, NULL));
}

/* Closing. */

static void *close_plainly(void *arg)
{
	close(*(int *)arg);
	*(int *)arg = -1;
	return NULL;
}

static void close_it(struct pair *pair)
{
	in_thread(close_plainly, &pair->file.fd);
}

static void close_second(struct pair *pair)
{
	in_thread(close_plainly, &pair->second.fd);
}

static void *close_by_range(void *arg)
{
	unsigned int fd = *(unsigned int *)arg;

	MUST(!syscall(SYS_close_range, fd, fd, 0));
	*(int *)arg = -1;
	return NULL;
}

static void close_range_of_it(struct pair *pair)
{
	in_thread(close_by_range, &pair->file.fd);
}

static void close_by_main(struct pair *pair)
{
	close_plainly(&pair->file.fd);
}

static void close_posted_here(struct pair *pair)
{
	MUST(!pair_post_here(SYS_close, (uint64_t)pair->file.fd, 0, 0));
	pair->file.fd = -1;
}

static void close_posted_elsewhere(struct pair *pair)
{
	MUST(!pair_post_elsewhere(SYS_close, (uint64_t)pair->file.fd, 0, 0));
	pair->file.fd = -1;
}

static void close_second_posted(struct pair *pair)
{
	MUST(!pair_post_here(SYS_close, (uint64_t)pair->second.fd, 0, 0));
	pair->second.fd = -1;
}

static void close_range_posted(struct pair *pair)
{
	MUST(!pair_post_here(SYS_close_range, (uint64_t)pair->file.fd,
			     (uint64_t)pair->file.fd, 0));
	pair->file.fd = -1;
}

/*
 * The number now refers to another file. That file has data, and any byte written to
 * it is detected: the call must not touch it.
 */
static void make_other(struct pair *pair)
{
	MUST(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair->other));
	MUST(write(pair->other[0], "wrong", 5) == 5);
	MUST(write(pair->other[1], "wrong", 5) == 5);
}

static void *dup_over(void *arg)
{
	struct pair *pair = arg;

	MUST(dup2(pair->other[0], pair->file.fd) == pair->file.fd);
	return NULL;
}

static void dup_over_it(struct pair *pair)
{
	make_other(pair);
	in_thread(dup_over, pair);
	pair->file.fd = -1;
}

static void dup_over_posted(struct pair *pair)
{
	make_other(pair);
	MUST(pair_post_here(SYS_dup3, (uint64_t)pair->other[0],
			    (uint64_t)pair->file.fd, O_CLOEXEC) ==
	     pair->file.fd);
	pair->file.fd = -1;
}

static void *replace(void *arg)
{
	struct pair *pair = arg;
	int fd = pair->file.fd;

	close(fd);
	MUST(fcntl(pair->other[0], F_DUPFD_CLOEXEC, fd) == fd);
	return NULL;
}

static void replace_it(struct pair *pair)
{
	make_other(pair);
	in_thread(replace, pair);
	pair->file.fd = -1;
}

static void *replace_both(void *arg)
{
	struct pair *pair = arg;
	int fd = pair->second.fd;

	replace(arg);
	close(fd);
	MUST(fcntl(pair->other[0], F_DUPFD_CLOEXEC, fd) == fd);
	return NULL;
}

static void replace_both_of_them(struct pair *pair)
{
	make_other(pair);
	in_thread(replace_both, pair);
	pair->file.fd = pair->second.fd = -1;
}

/* Other ways to end a wait. */

static void shut(struct pair *pair, int how)
{
	if (pair_posts())
		pair_post_here(SYS_shutdown, (uint64_t)pair->file.fd,
			       (uint64_t)how, 0);
	else
		shutdown(pair->file.fd, how);
}

static void shut_reading(struct pair *pair)
{
	shut(pair, SHUT_RD);
}

static void shut_writing(struct pair *pair)
{
	shut(pair, SHUT_WR);
}

static void shut_both(struct pair *pair)
{
	shut(pair, SHUT_RDWR);
}

static void close_peer(struct pair *pair)
{
	close(pair->file.peer);
	pair->file.peer = -1;
}

static void remove_id(struct pair *pair)
{
	if (pair->file.kind == MESSAGES)
		msgctl(pair->id, IPC_RMID, NULL);
	else
		semctl(pair->id, 0, IPC_RMID);
}

static void cancel(struct pair *pair)
{
	pair_cancel(pair);
}

static void limit(struct pair *pair)
{
	(void)pair;
	pair_limit();
}

static void handle(int signo)
{
	(void)signo;
}

static void signal_it(struct pair *pair, int flags)
{
	struct sigaction action = { .sa_handler = handle, .sa_flags = flags };

	sigaction(SIGUSR1, &action, NULL);
	syscall(SYS_tgkill, getpid(), pair->tid, SIGUSR1);
}

static void interrupt(struct pair *pair)
{
	signal_it(pair, 0);
}

static void interrupt_to_restart(struct pair *pair)
{
	signal_it(pair, SA_RESTART);
}

/*
 * The restarted call finds what the kernel would find: another file, or a closed
 * descriptor.
 */
static void close_and_restart(struct pair *pair)
{
	close_it(pair);
	signal_it(pair, SA_RESTART);
}

static void close_and_interrupt(struct pair *pair)
{
	close_it(pair);
	signal_it(pair, 0);
}

/* Processes. */

static pid_t stays = -1;

static void kill_child(void)
{
	kill(stays, SIGKILL);
}

/* A child that has the descriptors, too. They are closed when it ends. */
static void *fork_and_exit(void *arg)
{
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	MUST(waitpid(pid, &status, 0) == pid);
	return arg;
}

static void fork_one(struct pair *pair)
{
	in_thread(fork_and_exit, pair);
}

/* A child that has closed the descriptors, and keeps running. */
static void *fork_and_close(void *arg)
{
	struct pair *pair = arg;
	char byte;
	int p[2];

	MUST(!pipe2(p, O_CLOEXEC));
	stays = fork();
	MUST(stays >= 0);
	if (!stays) {
		for (int i = 0; i < 2; i++) {
			struct file *file = i ? &pair->second : &pair->file;

			close(file->fd);
			close(file->peer);
		}
		MUST(write(p[1], "", 1) == 1);
		for (;;)
			pause();
	}
	atexit(kill_child);
	MUST(read(p[0], &byte, 1) == 1);
	return NULL;
}

static void fork_closing(struct pair *pair)
{
	in_thread(fork_and_close, pair);
}

static void fork_closing_then_close(struct pair *pair)
{
	fork_closing(pair);
	close_it(pair);
}

/*
 * The parent closes the descriptor first: the child must not inherit what the
 * library holds for it.
 */
static void close_then_fork(struct pair *pair)
{
	close_it(pair);
	fork_closing(pair);
}

static void *spawn(void *arg)
{
	char *const argv[] = { "sleep", "30", NULL };

	MUST(!posix_spawn(&stays, "/bin/sleep", NULL, NULL, argv, NULL));
	atexit(kill_child);
	return arg;
}

/* All descriptors here are close-on-exec. */
static void spawn_one(struct pair *pair)
{
	in_thread(spawn, pair);
}

static void close_then_spawn(struct pair *pair)
{
	close_it(pair);
	in_thread(spawn, pair);
}

static void end_process(struct pair *pair)
{
	(void)pair;
	_exit(0);
}

const struct event events[] = {
	{ "nothing", 0, nothing },
	{ "close", ON_FD | ON_PLAIN, close_it },
	{ "close-by-main", ON_FD | ON_PLAIN, close_by_main },
	{ "close-range", ON_FD | ON_PLAIN, close_range_of_it },
	{ "close-second", ON_SECOND | ON_PLAIN, close_second },
	{ "close-posted", ON_FD | ON_POSTED, close_posted_here },
	{ "close-posted-elsewhere", ON_FD | ON_POSTED, close_posted_elsewhere },
	{ "close-range-posted", ON_FD | ON_POSTED, close_range_posted },
	{ "close-second-posted", ON_SECOND | ON_POSTED, close_second_posted },
	{ "dup-over", ON_FD | ON_PLAIN, dup_over_it },
	{ "dup-over-posted", ON_FD | ON_POSTED, dup_over_posted },
	{ "replace", ON_FD | ON_PLAIN, replace_it },
	{ "replace-both", ON_SECOND | ON_PLAIN, replace_both_of_them },
	{ "shutdown-reading", ON_SOCKET, shut_reading },
	{ "shutdown-writing", ON_SOCKET, shut_writing },
	{ "shutdown", ON_SOCKET, shut_both },
	{ "peer-closes", ON_PEER, close_peer },
	{ "removed", ON_ID, remove_id },
	{ "cancel", 0, cancel },
	{ "deadline", ON_POSTED, limit },
	{ "interrupt", ON_PLAIN, interrupt },
	{ "interrupt-restart", ON_PLAIN, interrupt_to_restart },
	{ "close-interrupt", ON_FD | ON_PLAIN, close_and_interrupt },
	{ "close-restart", ON_FD | ON_PLAIN, close_and_restart },
	{ "fork", 0, fork_one },
	{ "fork-closing", 0, fork_closing },
	{ "fork-closing-close", ON_FD | ON_PLAIN, fork_closing_then_close },
	{ "close-fork-closing", ON_FD | ON_PLAIN, close_then_fork },
	{ "spawn", 0, spawn_one },
	{ "close-spawn", ON_FD | ON_PLAIN, close_then_spawn },
	{ "exit", ENDS_PROCESS, end_process },
	{ 0 },
};
