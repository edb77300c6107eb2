/* SPDX-License-Identifier: MIT */
/*
 * Tasks: coroutines that other coroutines await. They know nothing of a loop,
 * which is in <flexsc/flexsc.hpp>, and belong to one thread.
 *
 * Tasks that begin and end pass control on by symmetric transfer: however many
 * there are, nested or one after another, the stack doesn't grow. That takes tail
 * calls, which clang makes always and g++ by -foptimize-sibling-calls, a part of -O2,
 * but not for its sanitizers. In its builds without optimisation and in those of
 * the sanitizers, nested tasks take stack as functions do.
 */
#ifndef FLEXSC_TASK_HPP
#define FLEXSC_TASK_HPP

#ifndef __cpp_impl_coroutine
#error "<flexsc/task.hpp> needs C++20: compile with -std=c++20"
#endif

#include <coroutine>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <functional>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

/* Its value must be one in all files of a program: it changes inline functions. */
#ifndef FLEXSC_TAIL_CALLS
#if defined(__clang__) || (defined(__OPTIMIZE__) && \
	!defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__))
#define FLEXSC_TAIL_CALLS	1
#else
#define FLEXSC_TAIL_CALLS	0
#endif
#endif

namespace flexsc
{

template <class T = void> class task;

namespace detail
{

/* A rule is broken, and to go on would be to use freed memory. */
[[noreturn]] inline void die(const char *why) noexcept
{
	std::fprintf(stderr, "flexsc: %s\n", why);
	std::terminate();
}

/* What is common to the promises of all tasks. */
struct promise_base {
	std::coroutine_handle<> then;	/* goes on at the end, if it is known */
	size_t *left = nullptr;		/* of when_all(): the last one goes on */
	std::exception_ptr thrown;
	bool begun = false;

	struct ending {
		bool await_ready() const noexcept { return false; }
		void await_resume() const noexcept {}

		template <class Promise>
		std::coroutine_handle<>
		await_suspend(std::coroutine_handle<Promise> ended) noexcept
		{
			promise_base &promise = ended.promise();

			if (!promise.then || (promise.left && --*promise.left))
				return std::noop_coroutine();
			return promise.then;
		}
	};

	std::suspend_always initial_suspend() const noexcept { return {}; }
	ending final_suspend() const noexcept { return {}; }
	void unhandled_exception() noexcept { thrown = std::current_exception(); }

	void rethrow() const
	{
		if (thrown)
			std::rethrow_exception(thrown);
	}
};

template <class T> struct promise : promise_base {
	using stored = std::conditional_t<
		std::is_reference_v<T>,
		std::reference_wrapper<std::remove_reference_t<T>>, T>;

	std::optional<stored> value;

	task<T> get_return_object() noexcept;

	template <class U = T> void return_value(U &&from)
	{
		value.emplace(std::forward<U>(from));
	}

	T take()
	{
		rethrow();
		return static_cast<T>(*std::move(value));
	}
};

template <> struct promise<void> : promise_base {
	task<void> get_return_object() noexcept;
	void return_void() const noexcept {}
	void take() const { rethrow(); }
};

} // namespace detail

/*
 * A coroutine that returns a T: a value, an lvalue reference or nothing. It begins
 * when it is awaited, once: co_await f(), or co_await std::move(task). It lives
 * as long as the task, which is in the frame that awaits it. One that is never
 * awaited never begins.
 */
template <class T> class [[nodiscard]] task {
public:
	using promise_type = detail::promise<T>;
	using handle = std::coroutine_handle<promise_type>;

	explicit task(handle own) noexcept : frame(own) {}
	task(task &&other) noexcept : frame(std::exchange(other.frame, {})) {}

	task &operator=(task &&other) noexcept
	{
		std::swap(frame, other.frame);
		return *this;
	}

	~task()
	{
		if (frame)
			frame.destroy();
	}

	struct awaiter {
		handle frame;

		bool await_ready() const noexcept { return false; }
		T await_resume() const { return frame.promise().take(); }
#if FLEXSC_TAIL_CALLS
		std::coroutine_handle<>
		await_suspend(std::coroutine_handle<> waits) const noexcept
		{
			frame.promise().then = waits;
			return frame;
		}
#else
		/* One that ends at once returns here, and its awaiter goes on. */
		bool await_suspend(std::coroutine_handle<> waits) const noexcept
		{
			frame.resume();
			frame.promise().then = waits;
			return !frame.done();
		}
#endif
	};

	awaiter operator co_await() && noexcept { return awaiter{ fresh() }; }

	/*
	 * For when_all(): begin. The task that lowers *left to 0 by its end resumes
	 * waits. Afterwards take its value, or what it threw.
	 */
	void begin(size_t *left, std::coroutine_handle<> waits) const noexcept
	{
		fresh().promise().left = left;
		frame.promise().then = waits;
		frame.resume();
	}

	T take() const { return frame.promise().take(); }

private:
	/* The coroutine, which hasn't begun. */
	handle fresh() const noexcept
	{
		if (!frame)
			detail::die("a task was awaited or spawned after it had been "
				    "moved from");
		if (frame.promise().begun)
			detail::die("a task was awaited twice");
		frame.promise().begun = true;
		return frame;
	}

	handle frame;
};

namespace detail
{

template <class T> task<T> promise<T>::get_return_object() noexcept
{
	return task<T>(task<T>::handle::from_promise(*this));
}

inline task<void> promise<void>::get_return_object() noexcept
{
	return task<void>(task<void>::handle::from_promise(*this));
}

/* Begin n tasks by each(begin), and wait for all. */
template <class Each> class all {
public:
	all(size_t n, Each begin_each) noexcept
		: left(n + 1), each(std::move(begin_each))
	{
	}

	bool await_ready() const noexcept { return false; }
	void await_resume() const noexcept {}

	bool await_suspend(std::coroutine_handle<> waits) noexcept
	{
		each([&](const auto &part) { part.begin(&left, waits); });
		return --left;
	}

private:
	size_t left;	/* tasks, and one until all have begun */
	Each each;
};

template <class T>
using or_unit = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

template <class T> or_unit<T> take(const task<T> &part)
{
	if constexpr (std::is_void_v<T>)
		return part.take(), std::monostate();
	else
		return part.take();
}

template <class T> task<T> as_task(task<T> part)
{
	return part;
}

template <class Awaitable>
auto as_task(Awaitable call) -> task<decltype(call.await_resume())>
{
	co_return co_await std::move(call);
}

template <class... T> task<std::tuple<or_unit<T>...>> all_of(task<T>... parts)
{
	co_await all(sizeof...(parts), [&]([[maybe_unused]] auto begin) {
		(begin(parts), ...);
	});
	/* In this order, so that the first one's exception is thrown. */
	co_return std::tuple<or_unit<T>...>{ take(parts)... };
}

} // namespace detail

/*
 * Tasks, calls, timers and so on, at the same time: begins all of them, waits
 * for all, and returns a tuple of their values (std::monostate for void). If
 * some throw, the first one's exception is thrown when all are over.
 */
template <class... Awaitable> auto when_all(Awaitable... parts)
{
	return detail::all_of(detail::as_task(std::move(parts))...);
}

/* The same with a vector of tasks, which returns a vector. */
template <class T>
task<std::vector<detail::or_unit<T>>> when_all(std::vector<task<T>> parts)
{
	std::vector<detail::or_unit<T>> values;

	co_await detail::all(parts.size(), [&](auto begin) {
		for (auto &part : parts)
			begin(part);
	});
	values.reserve(parts.size());
	for (auto &part : parts)
		values.push_back(detail::take(part));
	co_return values;
}

} // namespace flexsc

#endif /* FLEXSC_TASK_HPP */
