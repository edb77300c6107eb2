/* SPDX-License-Identifier: MIT */
/*
 * Where libc can't be patched, its locks block kernel threads instead of suspending
 * user threads. So a user thread that would wait for other threads does so on its host.
 * Of the functions in base/symbols.def that may wait, those marked WAIT return to the
 * host first. Those marked TRY return only if they would wait. Then they call libc's
 * function, and the kernel makes the wake-up.
 *
 * Other calls of libc that the hook has to see have functions in front of them, too:
 * setting signal handlers (in handlers.c), changing masks by jumps and contexts,
 * closing descriptors.
 *
 * Locks inside libc remain: those of streams, of the loader, of the heap. A user thread
 * that waits for one blocks its carrier until the monitor moves it to its host.
 * Meanwhile the lock's holder may be suspended, in a constructor or after flockfile().
 * It continues when the carrier has run all user threads that were queued before it.
 *
 * Until the runtime starts, and for good if libc is patched, these functions only jump
 * to libc's. They run on the program's threads.
 */
#include "runtime/calls/descriptors.h"
#include "libc.h"

#include <aio.h>
#include <dirent.h>
#include <errno.h>
#include <mqueue.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <threads.h>

#include "lib/files/fds.h"
#include "runtime/base/interpose.h"
#include "runtime/sched/state.h"
#include "host_stub.h"

/* The code at "target" gets the address of this record in r11 or x16. */
struct wait_front {
	struct stub stub;
	const void *target;	/* libc's function, or this library's */
};

_Static_assert(offsetof(struct wait_front, target) == 8, "for the stub");

/*
 * The target of all fronts until libc's functions are known. Until then no user thread
 * exists, so flexsc__host_jump only jumps to libc's function.
 */
extern const char flexsc__host_jump[];

#define WAIT(symbol)							\
	__attribute__((used)) static struct wait_front front_##symbol = {	\
		{ REAL_##symbol, CAUSE_##symbol, false },		\
		flexsc__host_jump					\
	};								\
	STUB_TEXT(symbol, front_##symbol, STUB_JUMP_TARGET)
#define TRY(symbol)	WAIT(symbol)
#include "runtime/base/symbols.def"

/* libc's function, and how to return to the host for it. */
#define LIBC(symbol)	REAL(symbol)
#define GO_TO_HOST(symbol)	flexsc__go_to_host(&front_##symbol.stub, NULL)

/*
 * Mutexes. If a mutex has a priority protocol, the kernel has to see the thread that
 * locks it, so the host makes the call.
 */

/* Bits of __kind: libc's PTHREAD_MUTEX_PRIO_INHERIT_NP and _PRIO_PROTECT_NP. */
#define PRIORITIES	0x60

static bool has_priorities(const pthread_mutex_t *mutex)
{
	return mutex->__data.__kind & PRIORITIES;
}

static int try_pthread_mutex_lock(pthread_mutex_t *mutex)
{
	int err = EBUSY;

	if (!has_priorities(mutex))
		err = LIBC(pthread_mutex_trylock)(mutex);
	if (err != EBUSY)
		return err;
	GO_TO_HOST(pthread_mutex_lock);
	return LIBC(pthread_mutex_lock)(mutex);
}

static int try_pthread_mutex_trylock(pthread_mutex_t *mutex)
{
	if (has_priorities(mutex))
		GO_TO_HOST(pthread_mutex_trylock);
	return LIBC(pthread_mutex_trylock)(mutex);
}

static int try_pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	if (has_priorities(mutex))
		GO_TO_HOST(pthread_mutex_unlock);
	return LIBC(pthread_mutex_unlock)(mutex);
}

/* Other locks. */

#define LOCK(symbol, type, try, busy)					\
	static int try_##symbol(type *lock)				\
	{								\
		int err = try(lock);					\
									\
		if (err != (busy))					\
			return err;					\
		GO_TO_HOST(symbol);					\
		return LIBC(symbol)(lock);				\
	}

LOCK(pthread_rwlock_rdlock, pthread_rwlock_t, pthread_rwlock_tryrdlock, EBUSY)
LOCK(pthread_rwlock_wrlock, pthread_rwlock_t, pthread_rwlock_trywrlock, EBUSY)
LOCK(mtx_lock, mtx_t, mtx_trylock, thrd_busy)

static void try_flockfile(FILE *file)
{
	if (!ftrylockfile(file))
		return;
	GO_TO_HOST(flockfile);
	LIBC(flockfile)(file);
}

static int try_sem_wait(sem_t *sem)
{
	const int original = errno;

	pthread_testcancel();
	if (!sem_trywait(sem))
		return 0;
	errno = original;
	GO_TO_HOST(sem_wait);
	return LIBC(sem_wait)(sem);
}

/* libc's value of a pthread_once_t whose function has run. */
#define ONCE_DONE	2

static int try_pthread_once(pthread_once_t *once, void (*function)(void))
{
	if (__atomic_load_n(once, __ATOMIC_ACQUIRE) == ONCE_DONE)
		return 0;
	GO_TO_HOST(pthread_once);
	return LIBC(pthread_once)(once, function);
}

static void try_call_once(once_flag *once, void (*function)(void))
{
	try_pthread_once((pthread_once_t *)once, function);
}

/* Closing. libc closes the descriptor by a call that the hook doesn't see. */

static int try_fclose(FILE *file)
{
	flexsc__descriptors_closing((uint32_t)fileno(file));
	return LIBC(fclose)(file);
}

static int try_pclose(FILE *file)
{
	flexsc__descriptors_closing((uint32_t)fileno(file));
	return LIBC(pclose)(file);
}

static FILE *try_freopen(const char *path, const char *mode, FILE *file)
{
	flexsc__descriptors_closing((uint32_t)fileno(file));
	return LIBC(freopen)(path, mode, file);
}

static FILE *try_freopen64(const char *path, const char *mode, FILE *file)
{
	flexsc__descriptors_closing((uint32_t)fileno(file));
	return LIBC(freopen64)(path, mode, file);
}

static int try_closedir(DIR *dir)
{
	flexsc__descriptors_closing((uint32_t)dirfd(dir));
	return LIBC(closedir)(dir);
}

static int try_mq_close(mqd_t queue)
{
	flexsc__descriptors_closing((uint32_t)queue);
	return LIBC(mq_close)(queue);
}

/* The table of all fronts. */

static const struct {
	struct wait_front *front;
	const void *unpatched;
} fronts[] = {
#define WAIT(symbol)	{ &front_##symbol, flexsc__host_jump },
#define TRY(symbol)	{ &front_##symbol, (const void *)try_##symbol },
#include "runtime/base/symbols.def"
};

#define FRONTS	(sizeof(fronts) / sizeof(*fronts))

/*
 * Look the functions up at the start: later, a suspended thread may hold the lock that
 * a look-up takes.
 */
__attribute__((constructor)) static void find_all(void)
{
	for (unsigned int i = 0; i < FRONTS; i++) {
		struct wait_front *front = fronts[i].front;
		void *own = flexsc__real_if_any((enum real)front->stub.which);

		if (own)
			front->target = own;
	}
}

static bool is_lock(enum real which)
{
	return which >= REAL_pthread_mutex_lock && which <= REAL_flockfile;
}

void flexsc__unpatched_begin(void)
{
	for (unsigned int i = 0; i < FRONTS; i++) {
		enum real which = fronts[i].front->stub.which;

		/*
		 * If another library defines the function, call that function, on the
		 * host: trying libc's lock would bypass the library.
		 */
		if (is_lock(which) && flexsc__real_foreign(which))
			fronts[i].front->target = flexsc__host_jump;
		else
			fronts[i].front->target = fronts[i].unpatched;
	}
}

static bool changes_fds(long nr)
{
	return flexsc__sites_need(nr) && nr != SYS_gettid && nr != SYS_tgkill;
}

const char *flexsc__unpatched_obstacle(void)
{
	/* The functions that set signal handlers. */
	for (unsigned int i = REAL_sigaction; i <= REAL___sysv_signal; i++)
		if (flexsc__real_foreign((enum real)i))
			return "sigaction";
	return flexsc__real_foreign_call(changes_fds);
}
