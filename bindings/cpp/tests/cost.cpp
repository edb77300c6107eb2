/* SPDX-License-Identifier: MIT */
/*
 * Not a test: what a coroutine costs. Reads of 64 bytes from a cached file, 64 at
 * once, by C callbacks and by coroutines in turn. The time is the median of the
 * rounds. Instructions in user mode are counted by stepping through a process.
 *
 *	cost [ROUNDS]
 */
#include <flexsc/flexsc.hpp>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

static constexpr unsigned int width = 64;
static unsigned int calls = 2000;	/* by each */
static int fd;

struct reader {
	flexsc_cb cb;
	flexsc_loop *loop;
	unsigned int left;
	std::array<std::byte, 64> buffer;
};

static void was_read(flexsc_cb *cb)
{
	auto *self = reinterpret_cast<reader *>(cb);

	if (cb->ret != 64)
		std::abort();
	if (--self->left)
		flexsc_loop_pread64(self->loop, cb, fd, self->buffer.data(),
				    self->buffer.size(), 0);
}

static void by_callbacks(flexsc::loop &loop)
{
	static reader readers[width];

	for (auto &one : readers) {
		one.cb.callback = was_read;
		one.loop = loop.native();
		one.left = calls;
		flexsc_loop_pread64(one.loop, &one.cb, fd, one.buffer.data(),
				    one.buffer.size(), 0);
	}
	flexsc_loop_run(loop.native());
}

static flexsc::task<> reads(flexsc::loop &loop)
{
	std::array<std::byte, 64> buffer;

	for (unsigned int i = 0; i < calls; i++)
		if ((co_await loop.pread(fd, buffer, 0)).ret != 64)
			std::abort();
}

static void by_coroutines(flexsc::loop &loop)
{
	for (unsigned int i = 0; i < width; i++)
		loop.spawn(reads(loop));
	loop.run();
}

static double time_of(void (*run)(flexsc::loop &), flexsc::loop &loop)
{
	auto begin = std::chrono::steady_clock::now();

	run(loop);
	return std::chrono::duration<double, std::nano>(
		       std::chrono::steady_clock::now() - begin).count() /
	       (width * calls);
}

/* In the process that is stepped through: what is counted is between two stops. */
static void run_between_stops(void (*run)(flexsc::loop &), unsigned int n)
{
	flexsc::loop loop;

	calls = 10;
	run(loop);
	calls = n;
	ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
	raise(SIGSTOP);
	run(loop);
	raise(SIGSTOP);
}

static double steps(void (*run)(flexsc::loop &), unsigned int n)
{
	pid_t child = fork();
	double count = 0;
	int status;

	if (!child) {
		run_between_stops(run, n);
		_exit(0);
	}
	waitpid(child, &status, 0);
	do {
		if (ptrace(PTRACE_SINGLESTEP, child, nullptr, nullptr) ||
		    waitpid(child, &status, 0) != child)
			std::abort();
		count++;
	} while (WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP);
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	return count;
}

/* What one more read takes, without what beginning and ending take. */
static double instructions(void (*run)(flexsc::loop &))
{
	return (steps(run, 30) - steps(run, 10)) / (width * 20);
}

static double median(std::vector<double> &values)
{
	std::ranges::sort(values);
	return values[values.size() / 2];
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? std::atoi(argv[1]) : 21;
	std::vector<double> callbacks, coroutines;

	fd = memfd_create("cost", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, 4096))
		return 1;
	double steps_of_callbacks = instructions(by_callbacks);
	double steps_of_coroutines = instructions(by_coroutines);
	flexsc::loop loop;

	for (int i = 0; i < rounds; i++) {
		callbacks.push_back(time_of(by_callbacks, loop));
		coroutines.push_back(time_of(by_coroutines, loop));
	}
	std::printf("%s: a read takes\n", flexsc_loop_engine(loop.native()));
	std::printf("  by callbacks   %7.1f ns %7.1f instructions\n",
		    median(callbacks), steps_of_callbacks);
	std::printf("  by coroutines  %7.1f ns %7.1f instructions\n",
		    median(coroutines), steps_of_coroutines);
	return 0;
}
