/* SPDX-License-Identifier: MIT */
/*
 * study --raw steps: the number of instructions in a period of work (work.h). A
 * child process runs the work, and is single-stepped, so neither a clock nor
 * other processes matter. A period takes seconds.
 */
#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "study/cases.h"
#include "bench/raw/report.h"
#include "work.h"

/* The parent counts the instructions between the two SIGSTOPs. */
static void child_run(struct bench_work *work, unsigned int units)
{
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		_exit(1);
	raise(SIGSTOP);
	bench_work_run(work, units);
	raise(SIGSTOP);
	_exit(0);
}

/*
 * Wait until the child stops. Returns the signal that stopped it, or 0. A child
 * that has ended isn't reaped here, so that no other process can get its id.
 */
static int stopped_by(pid_t child)
{
	siginfo_t info;

	if (waitid(P_PID, (id_t)child, &info, WEXITED | WSTOPPED | WNOWAIT) ||
	    info.si_code != CLD_TRAPPED)
		return 0;
	return info.si_status;
}

static void end(pid_t child)
{
	int status;

	kill(child, SIGKILL);
	while (waitpid(child, &status, 0) == child && WIFSTOPPED(status))
		;
}

/*
 * Count the child's instructions up to its second SIGSTOP. 0: the child can't
 * be traced, or another signal stopped it.
 */
static uint64_t steps(pid_t child)
{
	uint64_t n = 0;
	int number;

	if (stopped_by(child) != SIGSTOP ||
	    ptrace(PTRACE_SETOPTIONS, child, NULL, PTRACE_O_EXITKILL))
		return 0;
	do {
		if (ptrace(PTRACE_SINGLESTEP, child, NULL, NULL))
			return 0;
		n++;
		number = stopped_by(child);
	} while (number == SIGTRAP);
	return number == SIGSTOP ? n : 0;
}

static uint64_t steps_of(struct bench_work *work, unsigned int units)
{
	pid_t child = fork();
	uint64_t n;

	if (child < 0)
		return 0;
	if (!child)
		child_run(work, units);
	n = steps(child);
	end(child);
	return n;
}

static int report(struct bench_work *work,
		  const struct bench_settings *settings)
{
	uint64_t without = steps_of(work, 0);
	uint64_t with = steps_of(work, BENCH_WORK_PERIOD);

	if (!without || with <= without)
		return bench_failed("steps: tracing a child", -EPERM);
	if (bench_work_check(work))
		return 1;
	bench_report_begin("steps", settings);
	bench_report_counts();
	bench_report_count("instructions", (double)(with - without));
	bench_report_count("units", BENCH_WORK_PERIOD);
	bench_report_count("sum", work->period);
	bench_report_end();
	return 0;
}

int bench_steps(const struct bench_settings *settings)
{
	struct bench_work work;
	int err;

	if (bench_work_init(&work, settings->work))
		return 1;
	err = report(&work, settings);
	bench_work_fini(&work);
	return err;
}
