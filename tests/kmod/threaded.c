// SPDX-License-Identifier: MIT
/*
 * A program with threads, to count mode switches under flexsc run: pairs of threads pass
 * a byte back and forth through two pipes. Exit status 0 if each byte arrived.
 *
 *	filtered	first install a seccomp filter that ends the process at ioctl(2)
 *	twice		do the same in a forked child afterwards
 *	user		change the user when all threads exist, before the first byte
 *	exec COMMAND	run the shell command after the last byte, before the threads end
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAIRS	16
#define ROUNDS	500

struct side {
	pthread_t thread;
	int in, out;
	char sends;
	char expects;
};

static void pass_on(const struct side *side)
{
	char got = 0;

	if (write(side->out, &side->sends, 1) != 1 || read(side->in, &got, 1) != 1 ||
	    got != side->expects)
		exit(1);
}

/* Where the threads wait for the change of the user. */
static pthread_barrier_t changed;
static bool changes_user;
/* Where the threads wait for the others, and for the command. */
static pthread_barrier_t passed, ended;
static const char *command;

static void *run(void *arg)
{
	if (changes_user)
		pthread_barrier_wait(&changed);
	for (int i = 0; i < ROUNDS; i++)
		pass_on(arg);
	if (command) {
		pthread_barrier_wait(&passed);
		pthread_barrier_wait(&ended);
	}
	return NULL;
}

/* 0, or a number of what failed. */
static int run_command(void)
{
	int status;

	if (!command)
		return 0;
	pthread_barrier_wait(&passed);
	status = system(command);
	pthread_barrier_wait(&ended);
	return status ? 7 : 0;
}

static bool change_user(void)
{
	bool done;

	if (!changes_user)
		return true;
	done = !setuid(65534);
	pthread_barrier_wait(&changed);
	return done;
}

static void begin(struct side *side)
{
	if (pthread_create(&side->thread, NULL, run, side))
		exit(2);
}

static int forbid_ioctl(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(*code), code };

	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* Let the bytes pass. 0, or a number of what failed. */
static int pass_bytes(void)
{
	static struct side sides[2 * PAIRS];
	int failed;

	for (int i = 0; i < PAIRS; i++) {
		int there[2], back[2];

		if (pipe(there) || pipe(back))
			return 3;
		sides[2 * i] = (struct side){ .in = back[0], .out = there[1],
					      .sends = 'a', .expects = 'b' };
		sides[2 * i + 1] = (struct side){ .in = there[0], .out = back[1],
						  .sends = 'b', .expects = 'a' };
	}
	for (int i = 0; i < 2 * PAIRS; i++)
		begin(&sides[i]);
	failed = change_user() ? run_command() : 8;
	for (int i = 0; i < 2 * PAIRS; i++)
		if (pthread_join(sides[i].thread, NULL))
			return 4;
	return failed;
}

/* A process that has carriers creates another one, which needs carriers, too. */
static int pass_bytes_twice(void)
{
	const int failed = pass_bytes();
	int status;
	pid_t pid;

	if (failed)
		return failed;
	pid = fork();
	if (!pid)
		exit(pass_bytes());
	if (pid < 0)
		return 6;
	return waitpid(pid, &status, 0) == pid ? status : 6;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	if (!strcmp(mode, "twice"))
		return pass_bytes_twice() != 0;
	if (!strcmp(mode, "exec") && argc > 2) {
		pthread_barrier_init(&passed, NULL, 2 * PAIRS + 1);
		pthread_barrier_init(&ended, NULL, 2 * PAIRS + 1);
		command = argv[2];
	}
	if (!strcmp(mode, "user")) {
		pthread_barrier_init(&changed, NULL, 2 * PAIRS + 1);
		changes_user = true;
	}
	if (!strcmp(mode, "filtered") && forbid_ioctl())
		return 5;
	return pass_bytes();
}
