/* SPDX-License-Identifier: MIT */
/*
 * The interposed functions that are not all alike: threads, sleeping, and
 * those whose arguments need looking at.
 */
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "../carrier.h"
#include "../counters.h"
#include "fds.h"
#include "../home.h"
#include "../hook.h"
#include "../park.h"
#include "../real.h"
#include "../runtime.h"
#include "../signals.h"
#include "../stacks.h"
#include "../wait.h"
#include "home_stub.h"
#include "libc_call.h"

#define EXPORT	__attribute__((visibility("default")))

/* The next definition of a symbol; those we need exist in every libc. */
static void *next(const char *name)
{
	void *function = dlsym(RTLD_NEXT, name);

	if (!function) {
		fprintf(stderr, "flexsc: run: no %s() in this program\n", name);
		abort();
	}
	return function;
}

static void *find(struct real *real)
{
	if (!real->function)
		real->function = next(real->name);
	return real->function;
}

#define REAL(name) ((__typeof__(&name))next(#name))

/* As libc makes it, for a thread that isn't a user thread. */
static long plain_point(long nr, const uint64_t args[6])
{
	int type;
	long ret;

	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
	ret = flexsc__hook(nr, args);
	pthread_setcanceltype(type, NULL);
	return ret;
}

/* Somebody was cancelled of whom it isn't known whether he is a user thread. */
static atomic_bool anybody_cancelled;

/* As pthread_testcancel(), which reads where little else is read. */
static void test_cancel(struct uthread *u)
{
	/* C2: a cancellation that has returned is seen. */
	if (atomic_load_explicit(&u->cancelled, memory_order_relaxed) ||
	    atomic_load_explicit(&anybody_cancelled, memory_order_relaxed))
		pthread_testcancel();
}

/* A call that is a cancellation point. */
static long call_point(long nr, const uint64_t args[6])
{
	struct uthread *u = &flexsc__self;
	long ret;

	if (!u->alive)
		return plain_point(nr, args);
	test_cancel(u);
	u->point = true;
	ret = flexsc__hook(nr, args);
	u->point = false;
	return ret;
}

long flexsc__libc_call(bool point, long nr, const uint64_t args[6])
{
	long ret = point ? call_point(nr, args) : flexsc__hook(nr, args);

	if ((unsigned long)ret > -4096UL) {
		errno = (int)-ret;
		return -1;
	}
	return ret;
}

void *flexsc__go_home(struct real *real)
{
	struct uthread *u = &flexsc__self;

	void *function = find(real);

	if (real->forks)
		flexsc__fds_share();
	if (u->alive && !u->busy) {
		flexsc__enter(u);
		u->cause = real->cause;
		flexsc__come_home(u);
		flexsc__exit(u);
	}
	return function;
}

static bool is_inherited(uint16_t cause)
{
	switch (cause) {
	case CAUSE_pthread_setaffinity_np:
	case CAUSE_pthread_setschedparam:
	case CAUSE_pthread_setschedprio:
	case CAUSE_sched_setaffinity:
	case CAUSE_sched_setscheduler:
	case CAUSE_sched_setparam:
	case CAUSE_sched_setattr:
	case CAUSE_setpriority:
	case CAUSE_nice:
		return true;
	default:
		return false;
	}
}

struct at_home flexsc__stay_home(struct real *real)
{
	struct uthread *u = &flexsc__self;
	struct at_home there = { flexsc__go_home(real), 0 };

	if (is_inherited(real->cause))
		atomic_store(&flexsc__home_inherited, true);
	if (u->alive)
		there.outermost = flexsc__stay_begin(u, 0, 0).outermost;
	return there;
}

void flexsc__stayed_home(uint64_t outermost)
{
	flexsc__stay_end(&flexsc__self, (struct stay){ outermost });
}

/*
 * Jumping. Where libc keeps the stack pointer in a jmp_buf, and how it hides
 * it there, is what every debugger knows.
 */
static uintptr_t target_of(jmp_buf env)
{
	uintptr_t sp = (uintptr_t)env->__jmpbuf[6], guard;

	__asm__("mov %%fs:0x30, %0" : "=r"(guard));
	return (sp >> 17 | sp << 47) ^ guard;
}

/* Handlers, and libc's functions, that are jumped out of are left. */
#define JUMP(symbol)							\
	static struct real real_##symbol = { NULL, #symbol, 0, false };	\
									\
	EXPORT void jump_##symbol(jmp_buf env, int value)		\
		__asm__(#symbol) __attribute__((noreturn));		\
	EXPORT void jump_##symbol(jmp_buf env, int value)		\
	{								\
		struct uthread *u = &flexsc__self;			\
									\
		if (u->alive)						\
			flexsc__stay_left(u, target_of(env));		\
		((void (*)(jmp_buf, int))find(&real_##symbol))(env, value); \
		__builtin_unreachable();				\
	}

JUMP(longjmp)
JUMP(_longjmp)
JUMP(siglongjmp)
JUMP(__longjmp_chk)

/* A handler is no place to look for symbols. */
__attribute__((constructor)) static void find_jumps(void)
{
	find(&real_longjmp);
	find(&real__longjmp);
	find(&real_siglongjmp);
	find(&real___longjmp_chk);
}

/* Threads. */

static void come_home(void)
{
	struct uthread *u = &flexsc__self;

	if (!u->alive || u->busy)
		return;
	flexsc__enter(u);
	flexsc__come_home(u);
	flexsc__exit(u);
}

struct birth {
	void *(*start)(void *);
	void *arg;
	void *stack;
	sigmask_t mask;
	bool rooted;
};

static void end(void *arg)
{
	flexsc__uthread_end(arg);
}

/* Over other threads of the machine, which a carrier hasn't. */
static bool has_priority(void)
{
	long policy = raw_syscall(SYS_sched_getscheduler, 0, 0, 0, 0, 0, 0);

	return policy > 0 && policy != SCHED_BATCH && policy != SCHED_IDLE;
}

static void *thread_main(void *arg)
{
	struct birth birth = *(struct birth *)arg;
	struct uthread *u = &flexsc__self;
	void *ret;

	free(arg);
	flexsc__uthread_begin(u, birth.stack, birth.mask);
	pthread_cleanup_push(end, u);
	u->rooted = birth.rooted || has_priority();
	flexsc__enter(u);
	if (!u->rooted)
		flexsc__leave(u);
	flexsc__exit(u);
	ret = birth.start(birth.arg);
	pthread_cleanup_pop(1);
	return ret;
}

static sigmask_t inherited_mask(const pthread_attr_t *attr)
{
	struct uthread *u = &flexsc__self;
	sigmask_t mask = u->home.mask;
	sigset_t set;

	if (attr && !pthread_attr_getsigmask_np(attr, &set)) {
		memcpy(&mask, &set, sizeof(mask));
		return mask;
	}
	if (!u->home.masked)
		raw_syscall(SYS_rt_sigprocmask, SIG_SETMASK, 0, PTR(&mask),
			    sizeof(mask), 0, 0);
	return mask;
}

/* Under its lock nobody is moved home: the carrier would wait for the lock. */
static void *get_park(void)
{
	struct uthread *u = &flexsc__self;
	void *stack;

	flexsc__enter(u);
	stack = flexsc__park_get();
	flexsc__exit(u);
	return stack;
}

static void put_park(void *stack)
{
	struct uthread *u = &flexsc__self;

	flexsc__enter(u);
	flexsc__park_put(stack);
	flexsc__exit(u);
}

static int create(pthread_t *thread, const pthread_attr_t *attr,
		  void *(*start)(void *), void *arg)
{
	struct birth *birth = malloc(sizeof(*birth));
	int err = EAGAIN;

	if (!birth)
		return err;
	if (atomic_load(&flexsc__home_inherited))
		come_home();
	*birth = (struct birth){ start, arg, get_park(),
				 inherited_mask(attr),
				 flexsc__self.rooted };
	if (birth->stack)
		err = REAL(pthread_create)(thread, attr, thread_main, birth);
	if (err) {
		put_park(birth->stack);
		free(birth);
	}
	return err;
}

EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attr,
			  void *(*start)(void *), void *arg)
{
	if (flexsc__runtime_maker())
		return flexsc__runtime_thread(thread, attr, start, arg);
	if (!flexsc__runtime_start())
		return REAL(pthread_create)(thread, attr, start, arg);
	return create(thread, attr, start, arg);
}

/*
 * libc ends the process with its last thread. Those of the runtime don't
 * count; what counts them is there for debuggers.
 */
static void count_thread(int n)
{
	static _Atomic unsigned int *threads;

	if (!threads)
		threads = dlsym(RTLD_DEFAULT, "__nptl_nthreads");
	if (threads)
		atomic_fetch_add(threads, (unsigned int)n);
}

static void *runtime_main(void *arg)
{
	struct birth birth = *(struct birth *)arg;
	void *ret;

	free(arg);
	ret = birth.start(birth.arg);
	count_thread(1);
	return ret;
}

/* On a stack of the runtime's, unless everything is to be as libc has it. */
static int create_on_own(pthread_t *thread, const pthread_attr_t *attr,
			 struct birth *birth)
{
	pthread_attr_t own;
	size_t bytes;
	void *stack;
	int err;

	if (!attr)
		return REAL(pthread_create)(thread, NULL, runtime_main, birth);
	stack = flexsc__stack_get(&bytes);
	if (!stack)
		return EAGAIN;
	/* It isn't destroyed: what it refers to is the caller's. */
	own = *attr;
	pthread_attr_setstack(&own, stack, bytes);
	err = REAL(pthread_create)(thread, &own, runtime_main, birth);
	if (err)
		flexsc__stack_put(stack);
	return err;
}

int flexsc__runtime_thread(pthread_t *thread, const pthread_attr_t *attr,
			   void *(*start)(void *), void *arg)
{
	struct birth *birth = malloc(sizeof(*birth));
	int err;

	if (!birth)
		return EAGAIN;
	*birth = (struct birth){ .start = start, .arg = arg };
	count_thread(-1);
	err = create_on_own(thread, attr, birth);
	if (err) {
		count_thread(1);
		free(birth);
	}
	return err;
}

int flexsc__runtime_join(pthread_t thread, void **value)
{
	void *stack = flexsc__stack_of(thread);
	int err = pthread_join(thread, value);

	if (!err)
		flexsc__stack_put(stack);
	return err;
}

EXPORT void pthread_exit(void *value)
{
	struct uthread *u = &flexsc__self;

	if (u->alive) {
		flexsc__enter(u);
		u->cause = CAUSE_ENDS;
		flexsc__come_home(u);
		u->rooted = true;
		flexsc__exit(u);
	}
	REAL(pthread_exit)(value);
	__builtin_unreachable();
}

static _Noreturn void end_process(int status)
{
	flexsc__counters_show();
	for (;;)
		raw_syscall(SYS_exit_group, (uint64_t)status, 0, 0, 0, 0, 0);
}

EXPORT void _exit(int status)
{
	end_process(status);
}

EXPORT void _Exit(int status)
{
	end_process(status);
}

/*
 * What one does to another thread, which may end of it, but not before all is
 * done. False: it is the caller, or there is no runtime. In between are no
 * looking for symbols, which takes a lock, and no handlers.
 */
static bool begin_on(pthread_t thread)
{
	struct uthread *self = &flexsc__self;

	if (!flexsc__runtime_runs() || pthread_equal(thread, pthread_self()))
		return false;
	if (self->alive)
		flexsc__enter(self);
	flexsc__runtime_hold();
	return true;
}

static void end_on(bool begun, struct uthread *wanted)
{
	if (!begun)
		return;
	if (wanted)
		flexsc__want(wanted);
	flexsc__runtime_release();
	if (flexsc__self.alive)
		flexsc__exit(&flexsc__self);
}

EXPORT int pthread_cancel(pthread_t thread)
{
	int (*real)(pthread_t) = REAL(pthread_cancel);
	struct uthread *u = &flexsc__self;
	bool other = begin_on(thread);
	int err;

	if (other)
		u = flexsc__uthread_of(thread);
	/* C1: before it can have an effect. A new thread isn't one of ours yet. */
	atomic_store(u ? &u->cancelled : &anybody_cancelled, true);
	err = real(thread);
	end_on(other, err ? NULL : u);
	return err;
}

/* A signal to oneself arrives before these return. */
static void come_home_for(pthread_t thread)
{
	if (pthread_equal(thread, pthread_self()))
		come_home();
}

/*
 * The kernel has the signal, for the other's home. By whatever the caller does
 * next, the other may learn of it: no call of its that follows may be earlier.
 */
static struct uthread *to_learn(pthread_t thread, int signo, int err)
{
	if (err || !flexsc__signal_has_handler(signo))
		return NULL;
	return flexsc__uthread_of(thread);
}

EXPORT int pthread_kill(pthread_t thread, int signo)
{
	int (*real)(pthread_t, int) = REAL(pthread_kill);
	bool other;
	int err;

	come_home_for(thread);
	other = begin_on(thread);
	err = real(thread, signo);
	end_on(other, other ? to_learn(thread, signo, err) : NULL);
	return err;
}

EXPORT int pthread_sigqueue(pthread_t thread, int signo,
			    const union sigval value)
{
	int (*real)(pthread_t, int, const union sigval) =
		REAL(pthread_sigqueue);
	bool other;
	int err;

	come_home_for(thread);
	other = begin_on(thread);
	err = real(thread, signo, value);
	end_on(other, other ? to_learn(thread, signo, err) : NULL);
	return err;
}

/* Only then it may be for the caller itself. */
static void come_home_unless_blocked(int signo)
{
	struct uthread *u = &flexsc__self;

	if (u->alive && !u->busy && signo > 0 && signo <= 64 && !at_home() &&
	    u->home.mask >> (signo - 1) & 1)
		return;
	come_home();
}

EXPORT int kill(pid_t pid, int signo)
{
	come_home_unless_blocked(signo);
	return REAL(kill)(pid, signo);
}

EXPORT int sigqueue(pid_t pid, int signo, const union sigval value)
{
	come_home_unless_blocked(signo);
	return REAL(sigqueue)(pid, signo, value);
}

EXPORT pid_t gettid(void)
{
	return (pid_t)flexsc__hook(SYS_gettid, (uint64_t[6]){ 0 });
}

EXPORT long syscall(long nr, ...)
{
	uint64_t args[6];
	va_list list;

	va_start(list, nr);
	for (unsigned int i = 0; i < 6; i++)
		args[i] = va_arg(list, uint64_t);
	va_end(list);
	return flexsc__libc_call(false, nr, args);
}

/* Sleeping. */

EXPORT int clock_nanosleep(clockid_t clock, int flags,
			   const struct timespec *time, struct timespec *rest)
{
	const uint64_t args[6] = { (uint64_t)clock, (uint64_t)flags, PTR(time),
				   PTR(rest) };

	return (int)-call_point(SYS_clock_nanosleep, args);
}

EXPORT unsigned int sleep(unsigned int seconds)
{
	struct timespec time = { .tv_sec = seconds }, rest = { 0 };
	const uint64_t args[6] = { PTR(&time), PTR(&rest) };

	if (flexsc__libc_call(true, SYS_nanosleep, args))
		return (unsigned int)(rest.tv_sec + (rest.tv_nsec > 0));
	return 0;
}

EXPORT int usleep(useconds_t us)
{
	struct timespec time = { .tv_sec = us / 1000000,
				 .tv_nsec = us % 1000000 * 1000 };
	const uint64_t args[6] = { PTR(&time) };

	return (int)flexsc__libc_call(true, SYS_nanosleep, args);
}

/* The kernel would write the rest of the time to the caller's. */
EXPORT int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
		 const sigset_t *mask)
{
	struct timespec copy = timeout ? *timeout : (struct timespec){ 0 };
	const uint64_t args[6] = { PTR(fds), n, timeout ? PTR(&copy) : 0,
				   PTR(mask), sizeof(sigmask_t) };

	return (int)flexsc__libc_call(true, SYS_ppoll, args);
}

/* Checked forms. */

static void check(size_t wanted, size_t size)
{
	if (wanted > size) {
		fputs("*** buffer overflow detected ***: terminated\n", stderr);
		abort();
	}
}

EXPORT ssize_t __read_chk(int fd, void *buf, size_t n, size_t size);
EXPORT ssize_t __read_chk(int fd, void *buf, size_t n, size_t size)
{
	check(n, size);
	return read(fd, buf, n);
}

EXPORT ssize_t __pread_chk(int fd, void *buf, size_t n, off_t at, size_t size);
EXPORT ssize_t __pread_chk(int fd, void *buf, size_t n, off_t at, size_t size)
{
	check(n, size);
	return pread(fd, buf, n, at);
}

EXPORT ssize_t __pread64_chk(int fd, void *buf, size_t n, off_t at,
			     size_t size)
	__attribute__((alias("__pread_chk")));

EXPORT ssize_t __recv_chk(int fd, void *buf, size_t n, size_t size, int flags);
EXPORT ssize_t __recv_chk(int fd, void *buf, size_t n, size_t size, int flags)
{
	check(n, size);
	return recv(fd, buf, n, flags);
}

EXPORT ssize_t __recvfrom_chk(int fd, void *buf, size_t n, size_t size,
			      int flags, struct sockaddr *from,
			      socklen_t *length);
EXPORT ssize_t __recvfrom_chk(int fd, void *buf, size_t n, size_t size,
			      int flags, struct sockaddr *from,
			      socklen_t *length)
{
	check(n, size);
	return recvfrom(fd, buf, n, flags, from, length);
}

EXPORT int __poll_chk(struct pollfd *fds, nfds_t n, int timeout, size_t size);
EXPORT int __poll_chk(struct pollfd *fds, nfds_t n, int timeout, size_t size)
{
	check(n * sizeof(*fds), size);
	return poll(fds, n, timeout);
}

EXPORT int __ppoll_chk(struct pollfd *fds, nfds_t n,
		       const struct timespec *timeout, const sigset_t *mask,
		       size_t size);
EXPORT int __ppoll_chk(struct pollfd *fds, nfds_t n,
		       const struct timespec *timeout, const sigset_t *mask,
		       size_t size)
{
	check(n * sizeof(*fds), size);
	return ppoll(fds, n, timeout, mask);
}
