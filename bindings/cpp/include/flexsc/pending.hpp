/* SPDX-License-Identifier: MIT */
/*
 * Awaitables: a call, a timer, a signal. The functions of class loop in
 * <flexsc/flexsc.hpp> make them; that file describes errors, threads and
 * lifetimes.
 */
#ifndef FLEXSC_PENDING_HPP
#define FLEXSC_PENDING_HPP

#ifndef __cpp_impl_coroutine
#error "<flexsc/pending.hpp> needs C++20: compile with -std=c++20"
#endif

#include <cerrno>
#include <chrono>
#include <coroutine>
#include <cstdint>
#include <exception>
#include <optional>
#include <stop_token>
#include <system_error>
#include <type_traits>
#include <utility>

#include <flexsc/call.h>
#include <flexsc/loop.h>
#include <flexsc/task.hpp>
#include <flexsc/work.h>

namespace flexsc
{

namespace detail
{

[[noreturn]] inline void throw_error(int64_t err, const char *what)
{
	throw std::system_error(static_cast<int>(-err), std::system_category(),
				what);
}

} // namespace detail

/*
 * The result of a call: the kernel's result, or -errno. Converts to true on
 * success.
 */
struct result {
	int64_t ret = 0;

	constexpr explicit operator bool() const noexcept { return ret >= 0; }

	/* The errno code, positive; 0 on success. */
	constexpr int error() const noexcept
	{
		return ret < 0 ? static_cast<int>(-ret) : 0;
	}

	/* Returns ret, or throws the error as std::system_error. */
	int64_t value_or_throw() const
	{
		if (ret < 0)
			detail::throw_error(ret, "flexsc");
		return ret;
	}
};

namespace detail
{

/* A time in nanoseconds for the C functions; negative times become 0. */
template <class Rep, class Period>
uint64_t nanoseconds(std::chrono::duration<Rep, Period> time)
{
	auto ns = std::chrono::ceil<std::chrono::nanoseconds>(time).count();

	return ns > 0 ? static_cast<uint64_t>(ns) : 0;
}

/* Converts an argument of a system call to the value of its register. */
template <class T> uint64_t argument(T value) noexcept
{
	static_assert(std::is_integral_v<T> || std::is_enum_v<T> ||
			      std::is_pointer_v<T> || std::is_null_pointer_v<T>,
		      "a system call's argument is an integer or a pointer");
	if constexpr (std::is_null_pointer_v<T>)
		return 0;
	else if constexpr (std::is_pointer_v<T>)
		return reinterpret_cast<uintptr_t>(value);
	else
		return static_cast<uint64_t>(value);
}

template <class Post, bool deadlines> class stoppable;

/*
 * What the functions of class loop return: an awaitable, to be awaited at once.
 * post(loop, cb) posts the operation, and returns what the C functions return. The
 * object is its own cb, so it must not move from the coroutine's frame. arg is the
 * waiting coroutine, or NULL if none waits.
 */
template <class Post, bool deadlines>
class [[nodiscard]] pending : protected flexsc_cb {
public:
	pending(flexsc_loop *on, Post how) noexcept
		: flexsc_cb{ completed, nullptr, 0, 0, 0, 0, 0 }, loop(on),
		  post(std::move(how))
	{
	}

	pending(pending &&unposted) noexcept = default;

	~pending()
	{
		if (arg)
			die("a coroutine that waits for a call was destroyed");
	}

	/*
	 * Set a deadline for a system call or for work. If it doesn't complete
	 * in this time it is cancelled, and its error is ETIME.
	 */
	template <class Rep, class Period>
	pending within(std::chrono::duration<Rep, Period> time) &&
		requires deadlines
	{
		deadline = nanoseconds(time);
		if (!deadline)
			deadline = 1;
		return std::move(*this);
	}

	/*
	 * Cancel the operation when stop is requested. It ends with the true result if
	 * it completed before that, else with EINTR or ECANCELED, as described for
	 * flexsc_loop_cancel(). Must come after within().
	 */
	stoppable<Post, deadlines> until(std::stop_token stop) &&
	{
		return { std::move(*this), std::move(stop) };
	}

	bool await_ready() const noexcept { return false; }

	void await_suspend(std::coroutine_handle<> waits)
	{
		int err = post(loop, static_cast<flexsc_cb *>(this));

		if (err)
			throw_error(err, "flexsc: posting");
		arg = waits.address();
		/*
		 * Without memory for its deadline the call is cancelled at
		 * once.
		 */
		if (deadline && flexsc_loop_deadline(loop, this, deadline))
			flexsc_loop_cancel(loop, this);
	}

	/* Returns a `result`, or the value of post.take() if there is one. */
	auto await_resume()
	{
		if constexpr (requires { post.take(ret); })
			return post.take(ret);
		else
			return result{ ret };
	}

protected:
	/* noexcept: an exception must not unwind into the library. */
	void go_on() noexcept
	{
		std::coroutine_handle<>::from_address(std::exchange(arg, nullptr))
			.resume();
	}

	flexsc_loop *loop;

private:
	static void completed(flexsc_cb *cb) noexcept
	{
		static_cast<pending *>(cb)->go_on();
	}

	Post post;
	uint64_t deadline = 0;
};

/*
 * An operation with a stop token. Any thread may request the stop, but only the owner
 * may cancel. So the request wakes the loop, and the wake-up's callback cancels. If
 * the loop was woken, the coroutine continues when both callbacks have run: the
 * operation's and the wake-up's.
 */
template <class Post, bool deadlines>
class [[nodiscard]] stoppable : public pending<Post, deadlines> {
	using base = pending<Post, deadlines>;

public:
	stoppable(base &&call, std::stop_token token) noexcept
		: base(std::move(call)), stop(std::move(token))
	{
		this->callback = completed;
	}

	stoppable(stoppable &&unposted) noexcept
		: base(std::move(unposted)), stop(std::move(unposted.stop))
	{
	}

	/* Deleted, because the result would have no stop token. */
	void within() = delete;
	void until() = delete;

	bool await_suspend(std::coroutine_handle<> waits)
	{
		if (stop.stop_requested()) {
			this->ret = -ECANCELED;
			return false;
		}
		base::await_suspend(waits);
		on_stop.emplace(std::move(stop), wake{ this });
		return true;
	}

private:
	struct wake {
		stoppable *self;
		void operator()() noexcept
		{
			self->woken = !flexsc_loop_wake(self->loop, &self->waker);
		}
	};

	static void completed(flexsc_cb *cb) noexcept
	{
		auto *self = static_cast<stoppable *>(cb);

		/*
		 * Waits for a concurrent stop request to return; "woken"
		 * doesn't change after that.
		 */
		self->on_stop.reset();
		if (self->woken && !self->told)
			self->over = true;
		else
			self->go_on();
	}

	static void was_woken(flexsc_cb *cb) noexcept
	{
		auto *self = static_cast<stoppable *>(cb->arg);

		self->told = true;
		if (self->over)
			self->go_on();
		else
			flexsc_loop_cancel(self->loop, self);
	}

	std::stop_token stop;
	std::optional<std::stop_callback<wake>> on_stop;
	flexsc_cb waker{ was_woken, this, 0, 0, 0, 0, 0 };
	bool woken = false;	/* a stop was requested; written by the requesting
				 * thread */
	bool told = false;	/* the wake-up's callback has run */
	bool over = false;	/* the call's callback has run */
};

/* A function for a syscall thread, and its return value or exception. */
template <class Function> class work_post {
	using value_type = std::invoke_result_t<Function>;

public:
	explicit work_post(Function &&own) : function(std::move(own)) {}
	work_post(work_post &&unposted) noexcept
		: function(std::move(unposted.function))
	{
	}

	int operator()(flexsc_loop *loop, flexsc_cb *cb) noexcept
	{
		return flexsc_loop_work(loop, cb, run, this);
	}

	value_type take(int64_t ret)
	{
		if (ret < 0)
			throw_error(ret, "flexsc: work");
		if (thrown)
			std::rethrow_exception(thrown);
		if constexpr (!std::is_void_v<value_type>)
			return *std::move(value);
	}

private:
	static int64_t run(void *arg) noexcept
	{
		auto &self = *static_cast<work_post *>(arg);

		try {
			if constexpr (std::is_void_v<value_type>)
				self.function();
			else
				self.value.emplace(self.function());
		} catch (...) {
			self.thrown = std::current_exception();
		}
		return 0;
	}

	Function function;
	std::optional<or_unit<value_type>> value;
	std::exception_ptr thrown;
};

} // namespace detail

} // namespace flexsc

#endif /* FLEXSC_PENDING_HPP */
