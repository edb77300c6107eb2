// SPDX-License-Identifier: MIT
// C++'s runtime among user threads: exceptions, locals, static guards,
// cancellation.
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <pthread.h>
#include <unistd.h>

extern "C" {
#include "tests/harness/harness.h"
}

namespace {

constexpr int THREADS = 12;

void wait_a_little()
{
	std::this_thread::sleep_for(std::chrono::microseconds(200));
}

template <typename F> void in_threads(F run)
{
	std::vector<std::thread> threads;

	for (int i = 0; i < THREADS; i++)
		threads.emplace_back(run, i);
	for (auto &thread : threads)
		thread.join();
}

// Its destructor waits while the stack is unwound.
struct Slow {
	std::atomic<int> &count;

	~Slow()
	{
		wait_a_little();
		count++;
	}
};

struct Wrong : std::runtime_error {
	int who;

	explicit Wrong(int i)
		: std::runtime_error("wrong " + std::to_string(i)), who(i)
	{
	}
};

std::atomic<int> destroyed;

void fall(int who, int depth)
{
	Slow slow{destroyed};

	wait_a_little();
	if (!depth)
		throw Wrong(who);
	fall(who, depth - 1);
}

void throw_and_catch(int who)
{
	for (int i = 0; i < 10; i++) {
		try {
			try {
				fall(who, 5);
			} catch (const Wrong &) {
				// Other threads throw while this thread handles
				// its exception.
				wait_a_little();
				CHECK_EQ(std::uncaught_exceptions(), 0);
				throw;
			}
		} catch (const std::exception &e) {
			CHECK(e.what() == "wrong " + std::to_string(who));
		}
	}
}

TEST(exceptions_unwind_while_destructors_wait)
{
	in_threads(throw_and_catch);
	CHECK_EQ(destroyed, THREADS * 10 * 6);
}

// thread_local objects.

std::atomic<int> ended;

struct Local {
	int value = 7;

	Local() { wait_a_little(); }
	~Local()
	{
		wait_a_little();
		ended += value;
	}
};

thread_local Local local;

void use_local(int)
{
	for (int i = 0; i < 20; i++) {
		CHECK_EQ(local.value, 7 + i);
		local.value++;
		wait_a_little();
	}
}

TEST(locals_are_made_and_ended_in_their_thread)
{
	in_threads(use_local);
	CHECK_EQ(ended, THREADS * 27);
}

// Guards of static objects.

std::atomic<int> attempts;

struct Made {
	int value;

	Made()
	{
		std::this_thread::sleep_for(std::chrono::milliseconds(30));
		// The constructor fails, so the next thread tries again.
		if (++attempts < 3)
			throw Wrong(attempts);
		value = 5;
	}
};

std::atomic<int> failed;

void meet_guard(int)
{
	for (;;) {
		try {
			static Made made;

			CHECK_EQ(made.value, 5);
			return;
		} catch (const Wrong &) {
			failed++;
		}
	}
}

TEST(a_static_s_guard_makes_other_threads_wait)
{
	in_threads(meet_guard);
	CHECK_EQ(attempts, 3);
	CHECK_EQ(failed, 2);
}

std::atomic<bool> waits;

void *wait_for_the_end(void *arg)
{
	Slow slow{destroyed};

	try {
		waits = true;
		for (;;)
			pause();
	} catch (const Wrong &) {
		CHECK(false);
	} catch (...) {
		// A cancellation has to be rethrown.
		wait_a_little();
		throw;
	}
	return arg;
}

TEST(cancellation_runs_destructors)
{
	for (int i = 1; i <= 10; i++) {
		pthread_t thread;
		void *ret;

		waits = false;
		CHECK_EQ(pthread_create(&thread, nullptr, wait_for_the_end,
					nullptr), 0);
		while (!waits)
			wait_a_little();
		CHECK_EQ(pthread_cancel(thread), 0);
		CHECK_EQ(pthread_join(thread, &ret), 0);
		CHECK(ret == PTHREAD_CANCELED);
		CHECK_EQ(destroyed, i);
	}
}

} // namespace
