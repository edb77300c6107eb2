/* SPDX-License-Identifier: MIT */
/* Tasks: nesting, exceptions, concurrency, and their end with their loop. */
#include "harness.hpp"

#include <csignal>
#include <cstdlib>
#include <stdexcept>

#include <sys/wait.h>

#define CALLS	4

static task<> live(loop &loop, unsigned int &ended)
{
	counted count{ ended };

	for (int i = 0; i < CALLS; i++) {
		CHECK_EQ((co_await loop.call<FLEXSC_NR_getppid>()).ret, getppid());
		co_await loop.sleep_for(std::chrono::microseconds(test_random() %
								  500));
	}
}

TEST(thousands_at_once)
{
	constexpr unsigned int n = MANY(20000);
	unsigned int ended = 0;
	loop loop;

	for (unsigned int i = 0; i < n; i++)
		loop.spawn(live(loop, ended));
	CHECK_EQ(ended, 0);
	loop.run();
	CHECK_EQ(ended, n);
}

/* A broken rule must end the process before any harm is done. */
static void dies(task<> (*breaks)(loop &))
{
	pid_t child = fork();
	int status;

	if (!child) {
		loop loop;

		loop.spawn(breaks(loop));
		loop.run();
		_exit(0);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK(WIFSIGNALED(status));
	CHECK_EQ(WTERMSIG(status), SIGABRT);
}

static task<int> one(loop &loop)
{
	co_await loop.sleep_for(std::chrono::milliseconds(1));
	co_return 1;
}

static task<> awaits_twice(loop &loop)
{
	auto task = one(loop);

	CHECK_EQ(co_await std::move(task), 1);
	co_await std::move(task);
}

static task<> awaits_moved(loop &loop)
{
	auto task = one(loop), elsewhere = std::move(task);

	co_await std::move(task);
}

static task<> spawns_moved(loop &loop)
{
	auto task = one(loop);

	loop.spawn(std::move(task));
	loop.spawn(std::move(task));
	co_return;
}

static task<> gathers_moved(loop &loop)
{
	auto task = one(loop), elsewhere = std::move(task);

	co_await when_all(std::move(task), std::move(elsewhere));
}

TEST(a_task_is_awaited_once)
{
	dies(awaits_twice);
	dies(awaits_moved);
	dies(spawns_moved);
	dies(gathers_moved);
}

/* The approximate stack pointer. */
static __attribute__((noinline)) const char *stack()
{
	return static_cast<const char *>(__builtin_frame_address(0));
}

/* How much the stack has grown since "from", in bytes. */
static size_t grown(const char *from)
{
	return static_cast<size_t>(std::abs(stack() - from));
}

/*
 * Nested tasks take no stack, neither when they begin nor when they end. The loop
 * resumes the innermost one on its own stack, so "from" is set anew.
 */
static task<unsigned int> nest(loop &loop, unsigned int depth, const char *&from)
{
	unsigned int below = 0;

	CHECK(!FLEXSC_TAIL_CALLS || grown(from) < 4096);
	if (depth) {
		below = 1 + co_await nest(loop, depth - 1, from);
	} else {
		co_await loop.sleep_for(0s);
		from = stack();
	}
	CHECK(!FLEXSC_TAIL_CALLS || grown(from) < 4096);
	co_return below;
}

static task<unsigned int> at_once(unsigned int value)
{
	co_return value;
}

static task<> go_deep(loop &loop, unsigned int depth, unsigned int &ended)
{
	const char *from = stack();

	CHECK_EQ(co_await nest(loop, depth, from), depth);
	ended++;
}

TEST(tasks_nest_deeply)
{
	/* Without tail calls, nested tasks take stack. */
	unsigned int depth = FLEXSC_TAIL_CALLS ? 100000 : 1000, ended = 0;
	loop loop;

	loop.spawn(go_deep(loop, depth, ended));
	loop.run();
	loop.spawn(go_deep(loop, depth, ended));
	loop.run();
	CHECK_EQ(ended, 2);
}

static task<> one_after_another(unsigned int n, unsigned int &sum)
{
	const char *from = stack();

	for (unsigned int i = 0; i < n; i++) {
		sum += co_await at_once(1);
		CHECK(grown(from) < 4096);
	}
}

TEST(tasks_that_end_at_once_leave_no_stack_behind)
{
	unsigned int sum = 0;
	loop loop;

	loop.spawn(one_after_another(100000, sum));
	CHECK_EQ(sum, 100000);
	loop.run();
}

static task<> throw_below(loop &loop, unsigned int depth, unsigned int &ended)
{
	counted count{ ended };

	if (depth)
		co_await throw_below(loop, depth - 1, ended);
	co_await loop.sleep_for(0s);
	throw std::runtime_error("below");
}

static task<> catch_it(loop &loop, unsigned int &ended)
{
	bool caught = false;

	try {
		co_await throw_below(loop, 9, ended);
	} catch (const std::runtime_error &error) {
		caught = !strcmp(error.what(), "below");
		CHECK_EQ(ended, 10);
	}
	CHECK(caught);
	co_await throw_below(loop, 0, ended);
}

TEST(exceptions_go_through_awaits_and_leave_run)
{
	unsigned int ended = 0, others = 0, thrown = 0;
	loop loop;

	loop.spawn(catch_it(loop, ended));
	loop.spawn(catch_it(loop, others));
	for (int i = 0; i < 10; i++)
		loop.spawn(live(loop, others));
	for (int i = 0; i < 3; i++) {
		try {
			loop.run();
		} catch (const std::runtime_error &) {
			thrown++;
		}
	}
	CHECK_EQ(thrown, 2);
	CHECK_EQ(ended, 11);
	CHECK_EQ(others, 11 + 10);
}

static task<> throw_at_once()
{
	throw std::runtime_error("at once");
	co_return;
}

static task<> await_it(event &event, unsigned int &ended)
{
	CHECK_EQ((co_await event).ret, 0);
	ended++;
}

TEST(a_run_throws_at_once_and_one_by_one)
{
	unsigned int thrown = 0, ended = 0;
	loop loop;
	event event(loop);

	loop.spawn(throw_at_once());
	loop.spawn(throw_at_once());
	loop.spawn(await_it(event, ended));
	loop.spawn(throw_below(loop, 0, ended));
	while (thrown < 3) {
		try {
			loop.run();
			CHECK(!"thrown");
		} catch (const std::runtime_error &) {
			thrown++;
		}
	}
	CHECK_EQ(ended, 1);
	event.set();
	loop.run();
	CHECK_EQ(ended, 2);
}

static task<int> number(loop &loop, int value)
{
	co_await loop.sleep_for(std::chrono::milliseconds(value % 3));
	co_return value;
}

static task<int &> same(int &value)
{
	co_return value;
}

static task<> use_when_all(loop &loop)
{
	unsigned int ended = 0;
	int value = 1, code = 0;
	std::vector<task<int>> tasks;
	std::vector<task<>> voids;

	auto [a, b, c, d] = co_await when_all(
		number(loop, 1), live(loop, ended), loop.sleep_for(1ms),
		loop.work([] { return std::string("d"); }));
	CHECK_EQ(a, 1);
	CHECK_EQ(ended, 1);
	CHECK_EQ(c.ret, 0);
	CHECK(d == "d");
	static_assert(std::is_same_v<decltype(b), std::monostate>);

	for (int i = 0; i < 1000; i++)
		tasks.push_back(number(loop, i));
	auto values = co_await when_all(std::move(tasks));
	for (int i = 0; i < 1000; i++)
		CHECK_EQ(values[static_cast<size_t>(i)], i);

	CHECK((co_await when_all(std::vector<task<int>>())).empty());
	co_await when_all();
	co_await same(value) = 5;
	CHECK_EQ(value, 5);

	/* All tasks must end before the exception of the first one is thrown. */
	voids.push_back(live(loop, ended));
	voids.push_back(throw_at_once());
	voids.push_back(throw_below(loop, 3, ended));
	voids.push_back(live(loop, ended));
	try {
		co_await when_all(std::move(voids));
	} catch (const std::runtime_error &error) {
		code = strcmp(error.what(), "at once") ? 1 : 2;
	}
	CHECK_EQ(code, 2);
	CHECK_EQ(ended, 1 + 1 + 4 + 1);
}

TEST(when_all_waits_for_all)
{
	loop loop;

	loop.spawn(use_when_all(loop));
	loop.run();
}

static task<> stop_it(loop &loop, unsigned int &ended)
{
	loop.stop();
	co_await loop.sleep_for(0s);
	ended++;
}

TEST(stop_ends_one_run)
{
	loop made({ .engine = test_engine() }), loop(std::move(made));
	unsigned int ended = 0;

	CHECK_EQ(strcmp(flexsc_loop_engine(loop.native()), test_engine()), 0);
	loop.spawn(stop_it(loop, ended));
	loop.run();
	CHECK_EQ(ended, 0);
	std::jthread thread([&] { loop.stop(); });
	loop.run();
	thread.join();
	loop.run();
	CHECK_EQ(ended, 1);
}

TEST(a_task_that_is_not_awaited_never_begins)
{
	unsigned int ended = 0;
	loop loop;

	{
		auto never = live(loop, ended), moved = std::move(never);
	}
	loop.run();
	CHECK_EQ(ended, 0);
}

TEST(an_unknown_engine_is_thrown)
{
	CHECK_EQ(thrown_by([] { loop loop({ .engine = "none" }); }), EINVAL);
}

static task<> wait_for_ever(loop &loop, int fd, event &event,
			    unsigned int &ended)
{
	counted count{ ended };
	std::array<std::byte, 1> byte;
	std::stop_source stop;
	auto forever = 1000h;

	auto [read, slept, set, stopped] = co_await when_all(
		loop.read(fd, byte), loop.sleep_for(forever), event.wait(),
		loop.signal(SIGUSR2).until(stop.get_token()));
	CHECK(is_cancelled(read.ret));
	CHECK_EQ(slept.error(), ECANCELED);
	CHECK_EQ(set.error(), ECANCELED);
	CHECK_EQ(stopped.error(), ECANCELED);
	/* While the loop is destroyed, a call throws, which ends this task. */
	for (;;)
		co_await loop.sleep_for(forever);
}

static task<> nest_for_ever(loop &loop, int fd, event &event,
			    unsigned int &ended, unsigned int depth)
{
	counted count{ ended };

	if (depth)
		co_await nest_for_ever(loop, fd, event, ended, depth - 1);
	else
		co_await wait_for_ever(loop, fd, event, ended);
}

TEST(a_loop_ends_with_its_coroutines)
{
	constexpr unsigned int n = 100;
	static std::optional<event> events[n];
	unsigned int ended = 0;
	tube tube;

	NEEDS_WAITING_ENGINE();
	{
		loop loop;

		for (auto &one : events) {
			one.emplace(loop);
			loop.spawn(nest_for_ever(loop, tube.fd[0], *one, ended, 3));
		}
		CHECK_EQ(flexsc_loop_dispatch(loop.native()), 0);
		CHECK_EQ(ended, 0);
	}
	CHECK_EQ(ended, n * 5);
}

static task<> stop_the_others(loop &loop, std::stop_source stop)
{
	CHECK_EQ((co_await loop.sleep_for(1h)).error(), ECANCELED);
	stop.request_stop();
}

static task<> sleep_long(loop &loop, std::stop_token stop, unsigned int &ended)
{
	CHECK_EQ((co_await loop.sleep_for(2h).until(std::move(stop))).error(),
		 ECANCELED);
	ended++;
}

TEST(a_stop_while_a_loop_ends)
{
	unsigned int ended = 0;
	std::stop_source stop;

	{
		loop loop;

		loop.spawn(stop_the_others(loop, stop));
		for (int i = 0; i < 10; i++)
			loop.spawn(sleep_long(loop, stop.get_token(), ended));
	}
	CHECK_EQ(ended, 10);
}

TEST(a_forked_child_leaves_the_loop_alone)
{
	unsigned int ended = 0;
	auto parents = std::make_unique<loop>();
	int child;

	parents->spawn(live(*parents, ended));
	child = test_fork();
	if (!child) {
		CHECK_EQ(thrown_by([&] { parents->run(); }), ESTALE);
		parents.reset();
		CHECK_EQ(ended, 0);
		test_leave();
	}
	test_reap(child);
	parents->run();
	CHECK_EQ(ended, 1);
}

/* Awaitables of the program itself, which receive coroutine handles. */
struct handle_keeper {
	std::coroutine_handle<> &handle;

	bool await_ready() const noexcept { return false; }
	void await_suspend(std::coroutine_handle<> waits) noexcept
	{
		handle = waits;
	}
	void await_resume() const noexcept {}
};

/* A coroutine whose frame has no owner. */
struct loose {
	struct promise_type {
		loose get_return_object() noexcept
		{
			return { std::coroutine_handle<promise_type>::from_promise(
				*this) };
		}
		std::suspend_never initial_suspend() noexcept { return {}; }
		std::suspend_always final_suspend() noexcept { return {}; }
		void return_void() noexcept {}
		void unhandled_exception() noexcept { std::terminate(); }
	};
	std::coroutine_handle<> handle;
};

static loose wait_loosely(loop &loop)
{
	co_await loop.sleep_for(1h);
}

static task<> wait_elsewhere(std::coroutine_handle<> &handle)
{
	co_await handle_keeper{ handle };
}

/* Check that what() ends the process with this message. */
template <class Function> static void ends(Function what, const char *message)
{
	char said[256] = "";
	int output[2], status, child;

	CHECK_EQ(pipe(output), 0);
	child = test_fork();
	if (!child) {
		CHECK_EQ(dup2(output[1], STDERR_FILENO), STDERR_FILENO);
		signal(SIGABRT, SIG_DFL);
		what();
		test_leave();
	}
	close(output[1]);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK(read(output[0], said, sizeof(said) - 1) > 0);
	CHECK_EQ(status, WIFSIGNALED(status) ? status : -1);
	CHECK_EQ(WTERMSIG(status), SIGABRT);
	CHECK(strstr(said, message));
	close(output[0]);
}

TEST(a_broken_rule_ends_the_process)
{
	ends([] {
		loop loop;

		wait_loosely(loop).handle.destroy();
	}, "flexsc: a coroutine that waits for a call was destroyed\n");
	ends([] {
		std::coroutine_handle<> handle;
		loop loop;

		loop.spawn(wait_elsewhere(handle));
	}, "flexsc: a loop was destroyed while a task waits for something else\n");
	ends([] {
		loop loop;
		auto waits = [](event &event) -> task<> { co_await event; };
		auto gone = std::make_unique<event>(loop);

		loop.spawn(waits(*gone));
		gone.reset();
	}, "flexsc: an event that a coroutine awaits was destroyed\n");
	ends([] {
		auto own = std::make_unique<loop>();
		auto destroys = [](std::unique_ptr<loop> &it) -> task<> {
			co_await it->sleep_for(0s);
			it.reset();
		};

		own->spawn(destroys(own));
		own->run();
	}, "flexsc: a loop was destroyed by its own coroutine");
}

TEST(a_coroutine_may_wait_for_something_else)
{
	std::coroutine_handle<> handle;
	unsigned int ended = 0;
	loop loop;

	loop.spawn(wait_elsewhere(handle));
	loop.spawn(live(loop, ended));
	loop.spawn(stop_it(loop, ended));
	loop.run();
	handle.resume();
	loop.run();
	CHECK_EQ(ended, 2);
}
