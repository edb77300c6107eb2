/* SPDX-License-Identifier: MIT */
/*
 * Awaiting calls: their results, deadlines, stop tokens, work, timers, signals,
 * and events that other threads set.
 */
#include "harness.hpp"

#include <csignal>
#include <new>

#include <linux/futex.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

static unsigned int allocated;

/*
 * noinline: otherwise the compiler optimises pairs of malloc() and delete away.
 */
__attribute__((noinline)) void *operator new(size_t size)
{
	allocated++;
	if (void *memory = malloc(size))
		return memory;
	throw std::bad_alloc();
}

__attribute__((noinline)) void operator delete(void *memory) noexcept
{
	free(memory);
}

__attribute__((noinline)) void operator delete(void *memory, size_t) noexcept
{
	free(memory);
}

static task<> use_a_file(loop &loop)
{
	const char text[] = "coroutine";
	std::array<std::byte, 32> back{};
	struct statx size;
	auto opened = co_await loop.openat(AT_FDCWD, "file", O_RDWR | O_CREAT,
					   0600);
	auto fd = static_cast<int>(opened.value_or_throw());

	CHECK_EQ((co_await loop.pwrite(fd, std::as_bytes(std::span(text)), 5)).ret,
		 sizeof(text));
	CHECK_EQ((co_await loop.fsync(fd)).ret, 0);
	CHECK_EQ((co_await loop.pread(fd, back, 5)).ret, sizeof(text));
	CHECK_EQ(memcmp(back.data(), text, sizeof(text)), 0);
	CHECK_EQ((co_await loop.statx(fd, "", AT_EMPTY_PATH, STATX_SIZE, &size))
			 .ret, 0);
	CHECK_EQ(size.stx_size, 5 + sizeof(text));
	CHECK_EQ((co_await loop.write(fd, std::span(back).first(2))).ret, 2);
	CHECK_EQ((co_await loop.read(fd, back)).ret, 3 + sizeof(text));
	CHECK_EQ((co_await loop.call<FLEXSC_NR_unlinkat>(AT_FDCWD, "file", 0)).ret,
		 0);
	CHECK_EQ((co_await loop.close(fd)).ret, 0);
}

TEST(options_are_those_of_the_library)
{
	const flexsc::options all = { "threads", "0-1023", 100, 3, 10us, true, 5 };
	loop loop(all);
	flexsc_stats stats;

	CHECK_EQ(flexsc_loop_stats(loop.native(), &stats, sizeof(stats)), 0);
	CHECK_EQ(stats.max_entries, 128); /* whole pages */
	CHECK_EQ(stats.max_threads, 3);
	CHECK_EQ(thrown_by([] { flexsc::loop bad({ nullptr, "none" }); }), EINVAL);
}

TEST(a_file_is_used)
{
	loop loop;

	enter_scratch();
	loop.spawn(use_a_file(loop));
	loop.run();
	leave_scratch();
}

static task<> fail(loop &loop)
{
	std::array<std::byte, 1> byte;
	auto bad = co_await loop.read(-1, byte);

	CHECK(!bad);
	CHECK_EQ(bad.ret, -EBADF);
	CHECK_EQ(bad.error(), EBADF);
	CHECK_EQ(thrown_by([&] { bad.value_or_throw(); }), EBADF);
	CHECK_EQ((result{ 5 }).error(), 0);
	CHECK_EQ((result{ 5 }).value_or_throw(), 5);

	/*
	 * Posting is refused, which throws; after that the loop must work as
	 * before.
	 */
	for (int i = 0; i < 3; i++) {
		uint32_t woken = 0;
		int code = 0;

		try {
			co_await loop.call<FLEXSC_NR_fork>();
		} catch (const std::system_error &error) {
			code = error.code().value();
		}
		CHECK_EQ(code, EOPNOTSUPP);
		CHECK_EQ((co_await loop.call<FLEXSC_NR_getppid>()).ret, getppid());
		/* FUTEX_WAKE has fewer arguments than other operations of futex(). */
		CHECK_EQ((co_await loop.call<FLEXSC_NR_futex>(&woken, FUTEX_WAKE, 1))
				 .ret,
			 0);
	}
}

TEST(errors_are_results_and_refusals_are_thrown)
{
	loop loop;

	loop.spawn(fail(loop));
	loop.run();
}

static task<> serve(loop &loop, int listening)
{
	std::array<std::byte, 16> text;
	auto accepted = co_await loop.accept(listening);
	auto fd = static_cast<int>(accepted.value_or_throw());
	auto got = co_await loop.recv(fd, text);

	CHECK_EQ((co_await loop.send(fd, std::span(text).first(got.ret))).ret, 5);
	CHECK_EQ((co_await loop.close(fd)).ret, 0);
}

static task<> ask(loop &loop, const sockaddr_in &address)
{
	const char text[] = "echo";
	std::array<std::byte, 16> back;
	auto made = co_await loop.call<FLEXSC_NR_socket>(AF_INET, SOCK_STREAM, 0);
	auto fd = static_cast<int>(made.value_or_throw());
	auto *generic = reinterpret_cast<const sockaddr *>(&address);

	CHECK_EQ((co_await loop.connect(fd, generic, sizeof(address))).ret, 0);
	CHECK_EQ((co_await loop.send(fd, std::as_bytes(std::span(text)))).ret, 5);
	CHECK_EQ((co_await loop.recv(fd, back, MSG_WAITALL)).ret, 5);
	CHECK_EQ(memcmp(back.data(), text, 5), 0);
	CHECK_EQ((co_await loop.close(fd)).ret, 0);
}

TEST(sockets_are_used)
{
	loop loop;
	sockaddr_in address{};
	socklen_t size = sizeof(address);
	int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	NEEDS_WAITING_ENGINE();
	address.sin_family = AF_INET;
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK_EQ(bind(listening, reinterpret_cast<sockaddr *>(&address), size), 0);
	CHECK_EQ(listen(listening, 1), 0);
	CHECK_EQ(getsockname(listening, reinterpret_cast<sockaddr *>(&address),
			     &size), 0);
	loop.spawn(serve(loop, listening));
	loop.spawn(ask(loop, address));
	loop.run();
	close(listening);
}

static task<> call_often(loop &loop, unsigned int &allocations)
{
	/* The first calls allocate memory of the library itself. */
	for (int i = 0; i < 200; i++) {
		if (i == 100)
			allocations = allocated;
		co_await loop.call<FLEXSC_NR_getppid>();
		co_await loop.sleep_for(0s);
		co_await loop.call<FLEXSC_NR_getppid>().within(1h);
	}
	allocations = allocated - allocations;
}

TEST(a_call_allocates_nothing)
{
	loop loop;
	unsigned int allocations = 1;

	loop.spawn(call_often(loop, allocations));
	loop.run();
	CHECK_EQ(allocations, 0);
}

static task<> be_late(loop &loop, int fd)
{
	std::array<std::byte, 1> byte;
	uint64_t begin = now_ns();

	CHECK_EQ((co_await loop.read(fd, byte).within(20ms)).error(), ETIME);
	CHECK(now_ns() - begin >= 20 * MS);
	CHECK_EQ((co_await loop.read(fd, byte).within(0s)).error(), ETIME);
	CHECK_EQ((co_await loop.call<FLEXSC_NR_getppid>().within(1h)).ret,
		 getppid());
	CHECK_EQ((co_await loop.sleep_for(10ms)).ret, 0);
	CHECK(now_ns() - begin >= 30 * MS);
}

TEST(deadlines)
{
	loop loop;
	tube tube;

	NEEDS_WAITING_ENGINE();
	loop.spawn(be_late(loop, tube.fd[0]));
	loop.run();
}

static task<> read_until(loop &loop, int fd, std::stop_token stop, int &error)
{
	std::array<std::byte, 1> byte;
	auto got = co_await loop.read(fd, byte).within(1h).until(std::move(stop));

	error = got.error();
}

static bool is_cancelled(int error) { return is_cancelled(-int64_t{ error }); }

static task<> stop_after(loop &loop, std::stop_source stop)
{
	co_await loop.sleep_for(5ms);
	stop.request_stop();
}

TEST(a_stop_cancels)
{
	loop loop;
	tube tube;
	std::stop_source same, other;
	int error[3] = {};

	NEEDS_WAITING_ENGINE();
	loop.spawn(read_until(loop, tube.fd[0], same.get_token(), error[0]));
	loop.spawn(read_until(loop, tube.fd[0], other.get_token(), error[1]));
	loop.spawn(stop_after(loop, same));
	std::jthread thread([&] {
		sleep_ms(10);
		other.request_stop();
	});
	loop.run();
	loop.spawn(read_until(loop, tube.fd[0], same.get_token(), error[2]));
	CHECK_EQ(error[2], ECANCELED);
	loop.run();
	CHECK(is_cancelled(error[0]) && is_cancelled(error[1]));
}

static task<> race(loop &loop, unsigned int rounds, std::stop_source *stops,
		   std::atomic<unsigned int> &round, unsigned int &completed)
{
	tube tube;
	std::array<std::byte, 1> byte{};

	for (unsigned int i = 0; i < rounds; i++) {
		round = i + 1;
		CHECK_EQ(write(tube.fd[1], byte.data(), 1), 1);
		auto got = co_await loop.read(tube.fd[0], byte)
				   .until(stops[i].get_token());
		if (got) {
			completed++;
			continue;
		}
		/* Cancelled by this round's stop token, not by an earlier round's. */
		CHECK(is_cancelled(got.error()) && stops[i].stop_requested());
		CHECK_EQ(read(tube.fd[0], byte.data(), 1), 1);
	}
}

TEST(a_stop_by_another_thread_races_with_completions)
{
	constexpr unsigned int rounds = MANY(20000);
	static std::stop_source stops[rounds];
	std::atomic<unsigned int> round = 0;
	unsigned int completed = 0;
	loop loop;

	std::jthread thread([&] {
		for (unsigned int i = 0; i < rounds; i++) {
			while (round <= i)
				std::this_thread::yield();
			for (unsigned int spin = i % 97; spin; spin--)
				std::atomic_signal_fence(std::memory_order_seq_cst);
			stops[i].request_stop();
		}
	});
	loop.spawn(race(loop, rounds, stops, round, completed));
	loop.run();
	test_note("%u of %u reads completed", completed, rounds);
}

struct movable {
	std::unique_ptr<int> value;
};

static task<> work(loop &loop)
{
	auto owner = std::this_thread::get_id();
	bool elsewhere = false, caught = false;
	/* The lambda is outside the co_await: see loop::work(). */
	auto make = [n = std::make_unique<int>(7)]() mutable {
		return movable{ std::move(n) };
	};
	auto value = co_await loop.work(std::ref(make));

	CHECK_EQ(*value.value, 7);
	co_await loop.work([&] {
		elsewhere = std::this_thread::get_id() != owner;
	});
	CHECK(elsewhere || !strcmp(test_engine(), "sync"));
	try {
		co_await loop.work([]() -> int { throw std::string("thrown"); });
	} catch (const std::string &text) {
		caught = text == "thrown";
	}
	CHECK(caught);
}

TEST(work_returns_and_throws)
{
	loop loop;

	loop.spawn(work(loop));
	loop.run();
}

/* The work that has begun lasts until the others are late. */
static task<> work_late(loop &loop, std::atomic<unsigned int> &late)
{
	bool begun = false;
	int code = 0;

	try {
		co_await loop.work([&] {
			begun = true;
			while (late < 2)
				sleep_ms(1);
		}).within(10ms);
	} catch (const std::system_error &error) {
		code = error.code().value();
	}
	/* A thread that has started work isn't interrupted. */
	CHECK_EQ(code, begun ? 0 : ETIME);
	late += !begun;
}

TEST(work_that_waits_for_a_thread_may_be_late)
{
	std::atomic<unsigned int> late = 0;
	loop loop({ .max_threads = 2 });

	NEEDS_WAITING_ENGINE();
	for (int i = 0; i < 3; i++)
		loop.spawn(work_late(loop, late));
	loop.run();
	/* Only one thread runs work: even the first function may start too late. */
	CHECK(late >= 2);
}

static task<> await_signal(loop &loop, unsigned int &n)
{
	CHECK_EQ((co_await loop.signal(SIGUSR1)).ret, SIGUSR1);
	n++;
}

TEST(signals)
{
	unsigned int n = 0;
	loop loop;

	loop.spawn(await_signal(loop, n));
	loop.spawn(await_signal(loop, n));
	CHECK_EQ(raise(SIGUSR1), 0);
	loop.run();
	CHECK_EQ(n, 2);
}

static task<> await_events(event &event, const unsigned int &written,
			   const std::atomic<bool> &over,
			   std::atomic<unsigned int> &seen)
{
	/* One wait may consume several set()s. The last set() comes after "over". */
	do {
		CHECK_EQ((co_await event).ret, 0);
		seen = __atomic_load_n(&written, __ATOMIC_RELAXED);
	} while (!over);
}

TEST(events_by_another_thread)
{
	constexpr unsigned int rounds = MANY(20000);
	std::atomic<unsigned int> seen = 0;
	std::atomic<bool> over = false;
	unsigned int written = 0;
	loop loop;
	event event(loop);

	loop.spawn(await_events(event, written, over, seen));
	std::jthread thread([&] {
		for (unsigned int i = 1; turns_left(i - 1, rounds); i++) {
			__atomic_store_n(&written, i, __ATOMIC_RELAXED);
			event.set();
			/* Sometimes await the event before it is set. */
			while (i % 16 == 0 && seen < i)
				std::this_thread::yield();
		}
		over = true;
		event.set();
	});
	loop.run();
	thread.join();
	CHECK_EQ(seen, written);
}

static task<> event_rules(loop &loop, event &event)
{
	std::stop_source stop;
	int code = 0;

	CHECK_EQ((co_await event.wait_for(5ms)).error(), ETIME);
	stop.request_stop();
	CHECK_EQ((co_await event.wait().until(stop.get_token())).error(),
		 ECANCELED);
	event.set();
	event.set();
	CHECK_EQ((co_await event).ret, 0);
	try {
		co_await when_all(event.wait_for(5ms), event.wait());
	} catch (const std::system_error &error) {
		code = error.code().value();
	}
	CHECK_EQ(code, EBUSY);
	CHECK_EQ((co_await loop.sleep_for(0s)).ret, 0);
}

TEST(an_event_may_be_late_cancelled_set_twice_and_is_for_one)
{
	loop loop;
	event event(loop);

	loop.spawn(event_rules(loop, event));
	loop.run();
}

static task<> wait_for_it(event &event, bool &came)
{
	came = (co_await event).ret == 0;
}

static task<> be_stopped(loop &loop, event &event)
{
	std::stop_source stop;

	stop.request_stop();
	co_await loop.sleep_for(1ms);
	CHECK_EQ((co_await event.wait().until(stop.get_token())).error(),
		 ECANCELED);
	event.set();
}

/*
 * The wait's token was stopped before the wait began; another coroutine waits
 * meanwhile.
 */
TEST(a_stopped_wait_takes_no_event_from_another)
{
	loop loop;
	event event(loop);
	bool came = false;

	loop.spawn(wait_for_it(event, came));
	loop.spawn(be_stopped(loop, event));
	loop.run();
	CHECK(came);
}

TEST(an_event_may_go_while_its_wake_up_is_on_its_way)
{
	loop loop;

	{
		event event(loop);

		event.set();
	}
	loop.run();
	{
		event event(loop);

		event.set();
	}
}
