/* SPDX-License-Identifier: MIT */
/*
 * Each function that creates a process, called in the first thread, in another one
 * that runs anywhere, and in a signal handler. The child has its creator's mask, and
 * can make calls that wait.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/sched.h>
#include <pty.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <wordexp.h>

#include "threads.h"

extern char **environ;

/* A command that succeeds if its signal mask holds SIGUSR2 alone. */
static char grep[] = "grep", quiet[] = "-q", pattern[] = "^SigBlk:.0*800$",
	    status_file[] = "/proc/self/status";
static char *const words[] = { grep, quiet, pattern, status_file, NULL };
/* A shell has a signal mask of its own, so this command doesn't check it. */
#define COMMAND	"true"

static void block_one(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	CHECK_EQ(pthread_sigmask(SIG_SETMASK, &set, NULL), 0);
}

static bool blocks_one(void)
{
	sigset_t set;

	return !sigprocmask(SIG_BLOCK, NULL, &set) &&
	       sigismember(&set, SIGUSR2) && !sigismember(&set, SIGTERM) &&
	       !sigismember(&set, SIGSEGV);
}

static int status_of(pid_t pid)
{
	int status;

	CHECK(pid > 0);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	return status;
}

static int count_numbers(void)
{
	int n = 0;

	for (int fd = 0; fd < 4096; fd++)
		n += syscall(SYS_fcntl, fd, F_GETFD) >= 0;
	return n;
}

/*
 * The number of descriptors in fork()'s child, in shared memory. NULL: other threads
 * open and close descriptors, so the number varies.
 */
static int *fds_of_fork;

static bool has_more_fds(void)
{
	int n = count_numbers();

	if (fds_of_fork && !*fds_of_fork)
		*fds_of_fork = n;
	return fds_of_fork && n > *fds_of_fork;
}

/* Runs in a child that has its own memory. */
static int live(void)
{
	char byte = 0;
	int fds[2];

	if (!blocks_one() || getpid() != syscall(SYS_gettid) || pipe(fds))
		return 1;
	usleep(100);
	if (write(fds[1], "x", 1) != 1 || read(fds[0], &byte, 1) != 1)
		return 2;
	return byte == 'x' ? 0 : 3;
}

static int begin(void *arg)
{
	(void)arg;
	return has_more_fds() ? 4 : live();
}

static int end_of(pid_t pid)
{
	if (!pid)
		_exit(begin(NULL));
	return status_of(pid);
}

static int by_fork(void)
{
	return end_of(fork());
}

static int by_async_fork(void)
{
	return end_of(_Fork());
}

static int by_vfork(void)
{
	pid_t pid = vfork();

	if (!pid) {
		execvp(words[0], words);
		_exit(1);
	}
	return status_of(pid);
}

static int by_clone(void)
{
	static __thread char stack[65536] __attribute__((aligned(16)));

	return status_of(clone(begin, stack + sizeof(stack), SIGCHLD, NULL));
}

static int run_grep(void *arg)
{
	(void)arg;
	execvp(words[0], words);
	return 1;
}

static int by_clone_that_shares(void)
{
	static __thread char stack[65536] __attribute__((aligned(16)));

	return status_of(clone(run_grep, stack + sizeof(stack),
			       CLONE_VM | CLONE_VFORK | SIGCHLD, NULL));
}

#ifdef SYS_fork
static int by_number(void)
{
	return end_of((pid_t)syscall(SYS_fork));
}
#endif

static int by_number_of_clone(void)
{
	return end_of((pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0));
}

static int by_number_of_clone3(void)
{
	struct clone_args how = { .exit_signal = SIGCHLD };

	CHECK_EQ(syscall(SYS_clone3, NULL, sizeof(how)), -1);
	CHECK_EQ(errno, EFAULT);
	return end_of((pid_t)syscall(SYS_clone3, &how, sizeof(how)));
}

static int by_spawn(void)
{
	pid_t pid;

	CHECK_EQ(posix_spawnp(&pid, words[0], NULL, NULL, words, environ), 0);
	return status_of(pid);
}

static int by_system(void)
{
	return WEXITSTATUS(system("exit 6")) != 6;
}

static int by_popen(void)
{
	FILE *file = popen(COMMAND " && echo y", "r");
	int heard;

	CHECK(file != NULL);
	heard = fgetc(file);
	CHECK_EQ(pclose(file), 0);
	return heard != 'y';
}

static int by_forkpty(void)
{
	int terminal;

	int status = end_of(forkpty(&terminal, NULL, NULL, NULL));

	close(terminal);
	return status;
}

static int by_wordexp(void)
{
	wordexp_t found;
	bool right;

	CHECK_EQ(wordexp("$(" COMMAND " && echo y)", &found, 0), 0);
	right = found.we_wordc == 1 && !strcmp(found.we_wordv[0], "y");
	wordfree(&found);
	return !right;
}

/* The creator ends, so a pipe reports the end of the daemon. */
static int by_daemon(void)
{
	char byte = 1;
	int fds[2];
	pid_t pid;

	CHECK_EQ(pipe(fds), 0);
	pid = fork();
	if (!pid) {
		if (daemon(1, 1))
			_exit(1);
		byte = (char)live();
		if (write(fds[1], &byte, 1) != 1)
			_exit(1);
		_exit(0);
	}
	status_of(pid);
	close(fds[1]);
	CHECK_EQ(read(fds[0], &byte, 1), 1);
	close(fds[0]);
	return byte;
}

/* exec() in a thread of a child. */

static void *exec_l(void *arg)
{
	usleep(100);
	execl("/bin/grep", grep, quiet, pattern, status_file, NULL);
	return arg;
}

static void *exec_le(void *arg)
{
	usleep(100);
	execle("/bin/grep", grep, quiet, pattern, status_file, NULL, environ);
	return arg;
}

static void *exec_lp(void *arg)
{
	usleep(100);
	execlp("grep", grep, quiet, pattern, status_file, NULL);
	return arg;
}

static void *exec_v(void *arg)
{
	usleep(100);
	execv("/bin/grep", words);
	return arg;
}

static int by_exec(void *(*run)(void *))
{
	pid_t pid = fork();

	if (!pid) {
		join(start(run, NULL));
		_exit(1);
	}
	return status_of(pid);
}

static const struct way {
	const char *name;
	int (*run)(void);
	void *(*exec)(void *);
} ways[] = {
	{ "fork()", by_fork, NULL },
	{ "_Fork()", by_async_fork, NULL },
	{ "vfork()", by_vfork, NULL },
	{ "clone()", by_clone, NULL },
	{ "clone(CLONE_VM)", by_clone_that_shares, NULL },
#ifdef SYS_fork
	{ "SYS_fork", by_number, NULL },
#endif
	{ "SYS_clone", by_number_of_clone, NULL },
	{ "SYS_clone3", by_number_of_clone3, NULL },
	{ "posix_spawn()", by_spawn, NULL },
	{ "system()", by_system, NULL },
	{ "popen()", by_popen, NULL },
	{ "forkpty()", by_forkpty, NULL },
	{ "wordexp()", by_wordexp, NULL },
	{ "daemon()", by_daemon, NULL },
	{ "execl()", NULL, exec_l },
	{ "execle()", NULL, exec_le },
	{ "execlp()", NULL, exec_lp },
	{ "execv()", NULL, exec_v },
};

static void *each_way(void *arg)
{
	block_one();
	for (unsigned int i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		const struct way *way = &ways[i];
		int status;

		usleep(100);
		status = way->run ? way->run() : by_exec(way->exec);
		if (status)
			test_note("by %s: status %#x", way->name, status);
		CHECK_EQ(status, 0);
		/* The creator continues unchanged. */
		CHECK(blocks_one());
		usleep(100);
	}
	return arg;
}

static void handle(int signo)
{
	(void)signo;
	each_way(NULL);
}

static void *each_way_in_a_handler(void *arg)
{
	struct sigaction action = { .sa_handler = handle };

	CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
	CHECK_EQ(pthread_kill(pthread_self(), SIGUSR1), 0);
	usleep(100);
	return arg;
}

TEST_LIMIT(each_way_from_the_only_thread, 60)
{
	each_way(NULL);
}

TEST_LIMIT(each_way_from_any_thread, 60)
{
	pthread_t threads[2];

	start_all(threads, 2, each_way, NULL);
	each_way(NULL);
	join_all(threads, 2);
	each_way(NULL);
}

TEST_LIMIT(each_way_from_a_handler, 60)
{
	fds_of_fork = mmap(NULL, sizeof(*fds_of_fork), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(fds_of_fork != MAP_FAILED);
	join(start(each_way_in_a_handler, NULL));
	each_way_in_a_handler(NULL);
}
