/* SPDX-License-Identifier: MIT */
/*
 * Tasks: coroutines that other coroutines await. They don't depend on a loop,
 * which is in <flexsc/flexsc.hpp>, and belong to one thread.
 *
 * Tasks that begin and end pass control by symmetric transfer. So any number of
 * tasks, nested or in sequence, takes no additional stack. This needs tail
 * calls. clang always makes them; g++ needs -foptimize-sibling-calls, a part of
 * -O2, and makes none with sanitizers. Without tail calls, nested tasks take
 * stack as functions do.
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

/*
 * Must have the same value in all files of a program, because it changes inline
 * functions.
 */
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

/* The program broke a rule of these headers. Continuing would use freed memory. */
[[noreturn]] inline void die(const char *why) noexcept
{
	std::fprintf(stderr, "flexsc: %s\n", why);
	std::terminate();
}

/* The common part of the promises of all tasks. */
struct promise_base {
	std::coroutine_handle<> then;	/* resumed at the end; may be unset */
	size_t *left = nullptr;		/* for when_all(): unfinished tasks; the task
					 * that lowers this number to 0 resumes
					 * "then" */
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
 * A coroutine that returns a T: a value, an lvalue reference or nothing. It
 * starts when it is awaited, which is allowed once: co_await f(), or co_await
 * std::move(task). It lives as long as the task object, which is in the
 * awaiting frame. A task that is never awaited never starts.
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
		/*
		 * If the task ends at once, control returns here, and its
		 * awaiter continues.
		 */
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
	 * For when_all(): start the task. The task that decrements *left to 0
	 * at its end resumes the coroutine `waits`. After that, take the task's
	 * value or exception.
	 */
	void begin(size_t *left, std::coroutine_handle<> waits) const noexcept
	{
		fresh().promise().left = left;
		frame.promise().then = waits;
		frame.resume();
	}

	T take() const { return frame.promise().take(); }

private:
	/* The coroutine, which must not have started. */
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

/* Starts n tasks by each(begin), and waits for all. */
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
	size_t left;	/* unfinished tasks, plus one until all have started */
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
	/*
	 * Evaluated in this order, so that the first task's exception is
	 * thrown.
	 */
	co_return std::tuple<or_unit<T>...>{ take(parts)... };
}

} // namespace detail

/*
 * Run tasks, calls, timers and so on concurrently: start all of them, wait for
 * all, and return a tuple of their values (std::monostate for void). If some
 * throw, the exception of the first one in the list is thrown when all have
 * ended.
 */
template <class... Awaitable> auto when_all(Awaitable... parts)
{
	return detail::all_of(detail::as_task(std::move(parts))...);
}

/* As when_all() above, for a vector of tasks; returns a vector. */
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
