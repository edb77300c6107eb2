/* SPDX-License-Identifier: MIT */
/*
 * C++20 coroutines over a loop. A coroutine awaits a system call, which posts
 * it, and continues when the call is complete. Meanwhile the loop runs other
 * coroutines.
 *
 * 	#include <flexsc/flexsc.hpp>
 *
 * 	flexsc::task<> echo(flexsc::loop &loop, int fd)
 * 	{
 * 		std::array<std::byte, 4096> buffer;
 *
 * 		for (;;) {
 * 			auto got = co_await loop.read(fd, buffer);
 * 			if (got.ret <= 0)
 * 				break;
 * 			co_await loop.write(fd, std::span(buffer).first(got.ret));
 * 		}
 * 		co_await loop.close(fd);
 * 	}
 *
 * 	flexsc::loop loop;
 * 	loop.spawn(echo(loop, 0));
 * 	loop.run();
 *
 * This library consists of headers over <flexsc/flexsc.h>; link as for that. A
 * call's cb is in the coroutine's frame, so no call allocates memory.
 * <flexsc/call.h> describes calls and their costs, <flexsc/pending.hpp>
 * results, deadlines and stop tokens, <flexsc/task.hpp> tasks and when_all().
 *
 *
 * Errors
 *
 * If a system call fails, its result contains the error: see class result. All
 * other errors are exceptions. If posting is refused, the co_await throws
 * std::system_error with the error's code. If the function of a loop::work()
 * throws, the co_await throws the same exception. An exception leaves a task
 * through the co_await of that task. An exception of a spawned task, which no
 * coroutine awaits, leaves loop::run().
 *
 *
 * Threads
 *
 * A loop, its coroutines and all objects that they use belong to the thread
 * that made the loop. Any thread and any signal handler may call loop::stop()
 * and event::set(). Any thread may request the stop of a token that was passed
 * to a call. All of this is allowed only until the owner begins to destroy the
 * loop.
 *
 *
 * Lifetimes
 *
 * From the beginning of a co_await to its end, the memory that the call's
 * arguments point to belongs to the library. The coroutine is suspended
 * meanwhile, so the arguments may point to its local variables and to
 * temporaries in the co_await's expression.
 *
 * A suspended coroutine must never be destroyed, because its frame contains the
 * cb, and perhaps the buffer, of a call that the kernel is executing. The
 * classes here ensure that. A task that has started lives in the frame that
 * awaits it, a spawned task owns itself, and when_all() waits for all of its
 * tasks even if one fails. Destroying a loop cancels pending calls, and lets
 * each coroutine run to its end. If a program destroys the handle of a
 * suspended coroutine nevertheless, the process is ended with a message before
 * the frame is freed.
 *
 * So a coroutine's parameters must be values, or references to objects that
 * outlive it. The captures of a lambda are in the lambda, not in the frame. So
 * a lambda that is a coroutine must outlive its call, or capture nothing.
 */
#ifndef FLEXSC_FLEXSC_HPP
#define FLEXSC_FLEXSC_HPP

#ifndef __cpp_impl_coroutine
#error "<flexsc/flexsc.hpp> needs C++20: compile with -std=c++20"
#endif

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <flexsc/arguments.hpp>
#include <flexsc/flexsc.h>
#include <flexsc/pending.hpp>
#include <flexsc/task.hpp>

namespace flexsc
{

namespace detail
{

/*
 * The smallest number of arguments of a call. Some calls need fewer with some
 * of their operations.
 */
constexpr int fewest_arguments(unsigned int nr)
{
	switch (nr) {
#ifdef FLEXSC_NR_open
	case FLEXSC_NR_open:
		return 2;
#endif
	case FLEXSC_NR_openat:
		return 3;
	case FLEXSC_NR_fcntl:
	case FLEXSC_NR_ioctl:
	case FLEXSC_NR_mq_open:
		return 2;
	case FLEXSC_NR_futex:
	case FLEXSC_NR_semctl:
		return 3;
	case FLEXSC_NR_mremap:
		return 4;
	case FLEXSC_NR_keyctl:
	case FLEXSC_NR_prctl:
		return 1;
	default:
		return arguments_of(nr);
	}
}

/* A coroutine that starts at once and frees itself at its end. */
struct detached {
	struct promise_type {
		detached get_return_object() const noexcept { return {}; }
		std::suspend_never initial_suspend() const noexcept { return {}; }
		std::suspend_never final_suspend() const noexcept { return {}; }
		void return_void() const noexcept {}
		void unhandled_exception() const noexcept { std::terminate(); }
	};
};

} // namespace detail

/* Options of a new loop: struct flexsc_options in <flexsc/loop.h>. */
struct options {
	const char *engine = nullptr;
	const char *kernel_cores = nullptr;
	uint32_t max_entries = 0;
	uint32_t max_threads = 0;
	std::chrono::duration<uint32_t, std::micro> poll{ 0 };
	bool poll_adaptive = false;
	uint32_t backlog = 0;
};

/*
 * A loop, and the scope of the coroutines spawned on it. The loop belongs to the thread
 * that makes it, and may be moved while no coroutine refers to it.
 */
class loop {
	struct state {
		flexsc_loop *native = nullptr;
		size_t spawned = 0;	/* number of tasks that haven't ended */
		std::vector<std::exception_ptr> thrown;	/* exceptions of spawned tasks */
	};

	template <class Post> auto event_post(Post how)
	{
		return detail::pending<Post, false>(native(), std::move(how));
	}

public:
	/* Throws the error of flexsc_loop_create(). */
	explicit loop(const options &with = {}) : self(new state)
	{
		const flexsc_options own = {
			sizeof(own),	  with.engine,	     with.kernel_cores,
			with.max_entries, with.max_threads, with.poll.count(),
			with.poll_adaptive ? FLEXSC_POLL_ADAPTIVE : 0,
			with.backlog,	  0,
		};
		int err = flexsc_loop_create(&self->native, &own);

		if (err)
			detail::throw_error(err, "flexsc_loop_create");
	}

	loop(loop &&) noexcept = default;
	loop &operator=(loop &&) = delete;

	/*
	 * Cancels all pending calls and runs all coroutines to their ends.
	 * Their calls end with ECANCELED, EINTR or the true result; awaiting
	 * another call throws ESHUTDOWN. Exceptions of spawned tasks are
	 * dropped. The process is ended with a message if a task waits for
	 * something that doesn't belong to the loop, or if a coroutine of the
	 * loop calls this.
	 */
	~loop()
	{
		if (!self)
			return;
		/*
		 * In a forked child the copies of coroutines are never
		 * destroyed.
		 */
		bool forked = flexsc_loop_submit(self->native) == -ESTALE;

		if (flexsc_loop_destroy(self->native))
			detail::die("a loop was destroyed by its own coroutine, "
				    "or by another thread");
		if (self->spawned && !forked)
			detail::die("a loop was destroyed while a task waits "
				    "for something else");
	}

	/*
	 * Run until all spawned tasks and all posts through native() have
	 * ended, or until stop(). Throws the first exception of a spawned task
	 * at once; the other tasks continue in the next run. Also throws the
	 * error of flexsc_loop_run().
	 */
	void run()
	{
		if (!self->thrown.empty())
			stop();
		int err = flexsc_loop_run(self->native);

		if (err)
			detail::throw_error(err, "flexsc_loop_run");
		if (self->thrown.empty())
			return;
		std::exception_ptr first = std::move(self->thrown.front());

		self->thrown.erase(self->thrown.begin());
		std::rethrow_exception(first);
	}

	/*
	 * End one run, like flexsc_loop_stop(). Any thread, any signal handler.
	 */
	void stop() noexcept { flexsc_loop_stop(self->native); }

	/*
	 * Start a task that no coroutine awaits. It runs at once until it has
	 * to wait, and then in run(). Its return value is dropped.
	 */
	template <class T> void spawn(task<T> begun)
	{
		root(*self, std::move(begun));
	}

	/*
	 * The loop for functions of <flexsc/flexsc.h>. It still belongs to this
	 * object.
	 */
	flexsc_loop *native() const noexcept { return self->native; }

	/*
	 * Await whatever a C function posts in the manner of
	 * flexsc_loop_read(): how(flexsc_loop *, flexsc_cb *) calls that
	 * function, and returns 0 or -errno.
	 */
	template <class Post> auto post(Post how)
	{
		return detail::pending<Post, true>(native(), std::move(how));
	}

	/*
	 * Await any system call: loop.call<FLEXSC_NR_unlinkat>(AT_FDCWD, path,
	 * 0). The compiler checks the number of arguments. post() with a typed
	 * C function checks their types as well.
	 */
	template <unsigned int NR, class... Args> auto call(Args... args)
	{
		constexpr int given = sizeof...(args);

		static_assert(detail::arguments_of(NR) >= 0,
			      "there is no system call of this number");
		static_assert(given >= detail::fewest_arguments(NR) &&
				      given <= detail::arguments_of(NR),
			      "wrong number of arguments for this system call");
		return post([a = std::array<uint64_t, sizeof...(args)>{
				     detail::argument(args)... }](
				    flexsc_loop *on, flexsc_cb *cb) {
			auto arg = [&](size_t n) { return n < a.size() ? a[n] : 0; };

			if constexpr (sizeof...(args) <= 3)
				return flexsc__call3(on, cb, NR, arg(0),
							 arg(1), arg(2));
			else
				return flexsc_loop_call(on, cb, NR, arg(0), arg(1),
							arg(2), arg(3), arg(4),
							arg(5));
		});
	}

	/*
	 * System calls to be awaited, by their names. The co_await returns the
	 * call's result.
	 */
	auto read(int fd, std::span<std::byte> to)
	{
		return call<FLEXSC_NR_read>(fd, to.data(), to.size());
	}

	auto write(int fd, std::span<const std::byte> from)
	{
		return call<FLEXSC_NR_write>(fd, from.data(), from.size());
	}

	auto pread(int fd, std::span<std::byte> to, off_t offset)
	{
		return call<FLEXSC_NR_pread64>(fd, to.data(), to.size(), offset);
	}

	auto pwrite(int fd, std::span<const std::byte> from, off_t offset)
	{
		return call<FLEXSC_NR_pwrite64>(fd, from.data(), from.size(),
						offset);
	}

	auto openat(int dirfd, const char *path, int flags, mode_t mode = 0)
	{
		return call<FLEXSC_NR_openat>(dirfd, path, flags, mode);
	}

	auto close(int fd) { return call<FLEXSC_NR_close>(fd); }

	auto statx(int dirfd, const char *path, int flags, unsigned int mask,
		   struct ::statx *to)
	{
		return call<FLEXSC_NR_statx>(dirfd, path, flags, mask, to);
	}

	auto fsync(int fd) { return call<FLEXSC_NR_fsync>(fd); }

	auto accept(int fd, struct ::sockaddr *address = nullptr,
		    unsigned int *size = nullptr, int flags = 0)
	{
		return call<FLEXSC_NR_accept4>(fd, address, size, flags);
	}

	auto connect(int fd, const struct ::sockaddr *address, unsigned int size)
	{
		return call<FLEXSC_NR_connect>(fd, address, size);
	}

	auto recv(int fd, std::span<std::byte> to, int flags = 0)
	{
		return call<FLEXSC_NR_recvfrom>(fd, to.data(), to.size(), flags,
						nullptr, nullptr);
	}

	auto send(int fd, std::span<const std::byte> from, int flags = 0)
	{
		return call<FLEXSC_NR_sendto>(fd, from.data(), from.size(),
					      flags, nullptr, 0);
	}

	/*
	 * Run function() on a syscall thread, like flexsc_loop_work(). Returns what the
	 * function returns, and throws what it throws. If the function was cancelled or
	 * timed out before it started, throws std::system_error with ECANCELED or
	 * ETIME.
	 *
	 * g++ before 13 destroys the captures of a lambda twice if the lambda is
	 * written inside a co_await. There, a function that isn't trivial needs a name:
	 * work(name) copies it, work(std::ref(name)) doesn't.
	 */
#if defined(__GNUC__) && __GNUC__ < 13 && !defined(__clang__)
	template <class Function> auto work(Function &&function)
	{
		using copy = std::decay_t<Function>;

		static_assert(std::is_lvalue_reference_v<Function> ||
				      std::is_trivially_destructible_v<copy>,
			      "this compiler destroys the captures of a lambda "
			      "twice that is written inside a co_await: give it a "
			      "name, and pass that, or std::ref() of it");
		return post(detail::work_post<copy>(
			copy(std::forward<Function>(function))));
	}
#else
	template <class Function> auto work(Function function)
	{
		return post(detail::work_post<Function>(std::move(function)));
	}
#endif

	/*
	 * A timer, like flexsc_loop_timer(). It never expires early. The result
	 * is 0.
	 */
	template <class Rep, class Period>
	auto sleep_for(std::chrono::duration<Rep, Period> time)
	{
		return event_post([ns = detail::nanoseconds(time)](auto *on,
								   auto *cb) {
			return flexsc_loop_timer(on, cb, ns);
		});
	}

	/*
	 * The next signal of this number, like flexsc_loop_signal(). The result
	 * is the number.
	 */
	auto signal(int signo)
	{
		return event_post([signo](auto *on, auto *cb) {
			return flexsc_loop_signal(on, cb, signo);
		});
	}

private:
	template <class T>
	static detail::detached root(state &self, task<T> begun)
	{
		self.spawned++;
		flexsc_loop_ref(self.native);
		try {
			co_await std::move(begun);
		} catch (...) {
			self.thrown.push_back(std::current_exception());
			flexsc_loop_stop(self.native);
		}
		self.spawned--;
		flexsc_loop_unref(self.native);
	}

	std::unique_ptr<state> self;
};

/*
 * An event that any thread may set. One coroutine of the loop awaits it: co_await
 * event, or wait(). The result is 0. What was written before set() is visible then.
 */
class event {
public:
	explicit event(const loop &on) : self(new shared)
	{
		self->loop = on.native();
	}

	event(event &&) = delete;

	~event()
	{
		if (self->waits)
			detail::die("an event that a coroutine awaits was destroyed");
		/* If a wake-up is pending, its callback frees the memory. */
		if (self->woken)
			self->orphan = true;
		else
			delete self;
	}

	/*
	 * End the current wait; without one, end the next wait at once. Several calls
	 * before a wait count as one. Any thread, any signal handler.
	 */
	void set() noexcept
	{
		if (!self->woken.exchange(true) &&
		    flexsc_loop_wake(self->loop, self))
			self->woken = false;	/* the loop is being destroyed */
	}

	/*
	 * Await the event for a limited time. The error is ETIME after that
	 * time, and may be ECANCELED with until(). Throws EBUSY if a coroutine
	 * awaits the event already.
	 */
	auto wait_for(std::chrono::nanoseconds time)
	{
		return wait_ns(detail::nanoseconds(time));
	}

	auto wait() { return wait_ns(FLEXSC_FOREVER); }
	auto operator co_await() { return wait(); }

private:
	/* Only the owner's thread uses this struct, except for "woken". */
	struct shared : flexsc_cb {
		flexsc_loop *loop = nullptr;
		flexsc_cb *waits = nullptr;	/* the waiting coroutine's timer */
		bool is_set = false;
		bool orphan = false;		/* the event was destroyed */
		std::atomic<bool> woken = false;	/* was_woken() will be called */

		shared() noexcept : flexsc_cb{ was_woken, nullptr, 0, 0, 0, 0, 0 } {}
	};

	static void was_woken(flexsc_cb *cb) noexcept
	{
		auto *self = static_cast<shared *>(cb);

		/*
		 * Acquires what was written before the set() that stored true.
		 */
		self->woken.exchange(false);
		self->is_set = true;
		if (self->orphan)
			delete self;
		else if (self->waits)
			flexsc_loop_cancel(self->loop, self->waits);
	}

	/*
	 * A wait is a timer, so it can time out, be cancelled, and end with the
	 * loop.
	 */
	struct wait_post {
		shared *self;
		uint64_t ns;
		bool posted = false;

		int operator()(flexsc_loop *loop, flexsc_cb *cb) noexcept
		{
			int err = self->waits ? -EBUSY :
						flexsc_loop_timer(
							loop, cb,
							self->is_set ? 0 : ns);

			posted = !err;
			if (posted)
				self->waits = cb;
			return err;
		}

		result take(int64_t ret) noexcept
		{
			/*
			 * If the post failed, the timer may belong to another
			 * coroutine's wait.
			 */
			if (!posted)
				return { ret };
			self->waits = nullptr;
			if (std::exchange(self->is_set, false))
				return { 0 };
			return { ret ? ret : -ETIME };
		}
	};

	detail::pending<wait_post, false> wait_ns(uint64_t ns)
	{
		return { self->loop, wait_post{ self, ns } };
	}

	shared *self;
};

} // namespace flexsc

#endif /* FLEXSC_FLEXSC_HPP */
