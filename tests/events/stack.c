/* SPDX-License-Identifier: MIT */
/* A stack of the handler's own. */
#include "events.h"

#include <setjmp.h>
#include <sys/mman.h>
#include <ucontext.h>

#define SIZE	(256U << 10)

static char stack[SIZE] __attribute__((aligned(64)));

static bool is_on_stack(const void *frame)
{
	return (const char *)frame >= stack && (const char *)frame < stack + SIZE;
}

static volatile unsigned int handled;
static volatile uint32_t groups[4];

static void check_stack(struct flexsc_ecb *ecb, void *arg)
{
	struct flexsc_ecb_event event;

	CHECK(is_on_stack(__builtin_frame_address(0)));
	CHECK_EQ((uintptr_t)__builtin_frame_address(0) % 16, 0);
	while (flexsc_ecb_next(ecb, ALL, &event)) {
		groups[handled % 4] = event.group;
		handled++;
	}
}

static struct flexsc_ecb *stacked(void (*handler)(struct flexsc_ecb *, void *))
{
	struct flexsc_ecb *made = NEW_ECB(.stack = stack, .stack_size = SIZE);

	handled = 0;
	CHECK_EQ(flexsc_ecb_handler(made, handler, NULL), 0);
	CHECK_EQ(flexsc_ecb_notify(made, ALL), 0);
	return made;
}

#define STACK_TEST(id, handler)						\
	ECB_TEST_ENTRY(id, 20, ecb = stacked(handler))

/* Another thread posts to all sources in [0, n), the last one first. */
static struct flexsc_ecb *posted_to;

static void *post_all(void *n)
{
	for (intptr_t i = (intptr_t)n; i--;)
		CHECK_EQ(flexsc_ecb_post(posted_to, (unsigned int)i, 1), 0);
	return NULL;
}

static pthread_t poster(struct flexsc_ecb *ecb, intptr_t n)
{
	posted_to = ecb;
	return test_thread(post_all, (void *)n);
}

STACK_TEST(a_handler_that_preempts_has_its_stack, check_stack)
{
	pthread_t thread;

	CHECK_EQ(flexsc_ecb_user(ecb, 0, NULL), 0);
	for (unsigned int i = 1; i <= 100; i++) {
		thread = poster(ecb, 1);
		compute_until(&handled, i);
		pthread_join(thread, NULL);
	}
	CHECK(!is_on_stack(__builtin_frame_address(0)));
}

STACK_TEST(a_handler_that_is_called_has_its_stack, check_stack)
{
	CHECK_EQ(flexsc_ecb_user(ecb, 4, NULL), 0);
	CHECK_EQ(flexsc_ecb_user(ecb, 1, NULL), 1);
	/* At the end of a section, in the order of the groups. */
	flexsc_ecb_critical_begin(ecb);
	CHECK_EQ(flexsc_ecb_post(ecb, 0, 1), 0);
	CHECK_EQ(flexsc_ecb_post(ecb, 1, 1), 0);
	flexsc_ecb_critical_end(ecb);
	CHECK_EQ(handled, 2);
	CHECK_EQ(groups[0], 1);
	CHECK_EQ(groups[1], 4);
	/* In a wait for the other group. */
	flexsc_ecb_critical_begin(ecb);
	CHECK_EQ(flexsc_ecb_post(ecb, 0, 1), 0);
	CHECK_EQ(flexsc_ecb_post(ecb, 1, 1), 0);
	CHECK_EQ(flexsc_ecb_wait(ecb, 1U << 1, FLEXSC_FOREVER), 1);
	flexsc_ecb_critical_end(ecb);
	CHECK_EQ(handled, 4);
}

static __attribute__((noinline)) unsigned int use_stack(unsigned int depth)
{
	volatile char bytes[1024];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (char)depth;
	if (depth && use_stack(depth - 1) != depth - 1)
		return 0;
	for (size_t i = 0; i < sizeof(bytes); i++)
		if (bytes[i] != (char)depth)
			return 0;
	return depth;
}

static void use_much_stack(struct flexsc_ecb *ecb, void *arg)
{
	/* A sanitizer's frames are larger. */
	const unsigned int depth = SANITIZED ? 50 : 180;

	CHECK_EQ(use_stack(depth), depth);
	check_stack(ecb, arg);
}

STACK_TEST(a_handler_may_use_its_stack, use_much_stack)
{
	pthread_t thread;

	CHECK_EQ(flexsc_ecb_user(ecb, 0, NULL), 0);
	for (unsigned int i = 1; i <= 10; i++) {
		thread = poster(ecb, 1);
		compute_until(&handled, i);
		pthread_join(thread, NULL);
	}
}

/* The handler of another signal interrupts, and continues on the same stack. */

static const void *volatile outer_frame;
static volatile unsigned int inner;

static void on_inner(int signo)
{
	const void *frame = __builtin_frame_address(0);

	CHECK(is_on_stack(frame));
	CHECK(frame < outer_frame);
	inner++;
}

static void raise_inside(struct flexsc_ecb *ecb, void *arg)
{
	volatile uint64_t canary = 0x1122334455667788;

	outer_frame = __builtin_frame_address(0);
	raise(SIGUSR1);
	CHECK_EQ(canary, 0x1122334455667788);
	check_stack(ecb, arg);
}

STACK_TEST(a_nested_signal_continues_below, raise_inside)
{
	const struct sigaction action = {
		.sa_handler = on_inner,
		.sa_flags = SA_ONSTACK,
	};
	pthread_t thread;

	if (UNDER_TSAN)
		SKIP("TSan delays signals");
	CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
	CHECK_EQ(flexsc_ecb_user(ecb, 0, NULL), 0);
	thread = poster(ecb, 1);
	compute_until(&handled, 1);
	pthread_join(thread, NULL);
	/* Called, instead of interrupting: the stack is the same. */
	flexsc_ecb_critical_begin(ecb);
	flexsc_ecb_post(ecb, 0, 1);
	flexsc_ecb_critical_end(ecb);
	CHECK_EQ(inner, handled);
	CHECK(inner >= 2);
}

#ifdef __GLIBC__	/* musl lacks contexts */
/*
 * The owner computes on a stack that has no room for a signal's frame. The page below
 * is inaccessible.
 */

static ucontext_t usual, narrow;

static void compute_narrowly(void)
{
	char *room = __builtin_alloca((size_t)sysconf(_SC_PAGESIZE) - 1024);

	__asm__ volatile("" : : "r"(room) : "memory");
	while (!handled)
		;
}

STACK_TEST(an_owner_without_room_on_its_stack_is_interrupted, check_stack)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *area = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_t thread;

	if (SANITIZED)
		SKIP("sanitizers use more stack");
	CHECK(area != MAP_FAILED);
	CHECK_EQ(mprotect(area, page, PROT_NONE), 0);
	CHECK_EQ(flexsc_ecb_user(ecb, 0, NULL), 0);
	CHECK_EQ(getcontext(&narrow), 0);
	narrow.uc_stack.ss_sp = area + page;
	narrow.uc_stack.ss_size = page;
	narrow.uc_link = &usual;
	makecontext(&narrow, compute_narrowly, 0);
	thread = poster(ecb, 1);
	CHECK_EQ(swapcontext(&usual, &narrow), 0);
	pthread_join(thread, NULL);
	CHECK_EQ(handled, 1);
}
#endif

static sigjmp_buf landing;

static void leap(struct flexsc_ecb *ecb, void *arg)
{
	check_stack(ecb, arg);
	siglongjmp(landing, 1);
}

STACK_TEST(a_handler_may_leave_its_stack_by_a_jump, leap)
{
	volatile unsigned int leaps = 0;
	static pthread_t thread;

	CHECK_EQ(flexsc_ecb_user(ecb, 0, NULL), 0);
	if (sigsetjmp(landing, 1)) {
		pthread_join(thread, NULL);
		flexsc_ecb_critical_end(ecb);
		leaps++;
	}
	CHECK(!is_on_stack(__builtin_frame_address(0)));
	if (leaps < 3) {
		flexsc_ecb_critical_begin(ecb);
		thread = poster(ecb, 1);
		flexsc_ecb_critical_end(ecb);
		for (;;)
			now_ns();
	}
}

static volatile int child = -1;

static void fork_once(struct flexsc_ecb *ecb, void *arg)
{
	if (child < 0)
		child = test_fork();
	check_stack(ecb, arg);
	if (!child)
		handled = 100;
}

STACK_TEST(a_handler_may_fork_on_its_stack, fork_once)
{
	pthread_t thread;
	stack_t now;

	CHECK_EQ(flexsc_ecb_user(ecb, 0, NULL), 0);
	CHECK_EQ(flexsc_ecb_post(ecb, 0, 1), 0);
	compute_until(&handled, 1);
	CHECK(!is_on_stack(__builtin_frame_address(0)));
	if (child) {
		test_reap(child);
		return;
	}
	CHECK_EQ(flexsc_ecb_destroy(ecb), 0);
	CHECK_EQ(sigaltstack(NULL, &now), 0);
	CHECK(now.ss_sp != stack);
	/* The child may use the stack for an ECB of its own. */
	ecb = stacked(check_stack);
	CHECK_EQ(flexsc_ecb_user(ecb, 0, NULL), 0);
	thread = poster(ecb, 1);
	compute_until(&handled, 1);
	pthread_join(thread, NULL);
	CHECK_EQ(flexsc_ecb_destroy(ecb), 0);
	test_leave();
}

TEST(the_former_signal_stack_is_restored)
{
	static char own[65536];
	const stack_t mine = { .ss_sp = own, .ss_size = sizeof(own) };
	stack_t now;

	CHECK_EQ(sigaltstack(&mine, NULL), 0);
	ecb = stacked(check_stack);
	CHECK_EQ(sigaltstack(NULL, &now), 0);
	CHECK(now.ss_sp == stack);
	CHECK_EQ(flexsc_ecb_destroy(ecb), 0);
	CHECK_EQ(sigaltstack(NULL, &now), 0);
	CHECK(now.ss_sp == own);
	/* The program's later choice stays. */
	ecb = stacked(check_stack);
	CHECK_EQ(sigaltstack(&mine, NULL), 0);
	CHECK_EQ(flexsc_ecb_destroy(ecb), 0);
	CHECK_EQ(sigaltstack(NULL, &now), 0);
	CHECK(now.ss_sp == own);
}

/* Another owner has no stack of its own. Its handler runs where it interrupts. */

static void check_no_stack(struct flexsc_ecb *ecb, void *arg)
{
	struct flexsc_ecb_event event;

	CHECK(!is_on_stack(__builtin_frame_address(0)));
	while (flexsc_ecb_next(ecb, ALL, &event))
		++*(volatile unsigned int *)arg;
}

static void *own_without_stack(void *arg)
{
	volatile unsigned int seen = 0;
	struct flexsc_ecb *ecb = NEW_ECB();
	pthread_t thread;

	CHECK_EQ(flexsc_ecb_handler(ecb, check_no_stack, (void *)&seen), 0);
	CHECK_EQ(flexsc_ecb_user(ecb, 0, NULL), 0);
	CHECK_EQ(flexsc_ecb_notify(ecb, ALL), 0);
	thread = poster(ecb, 1);
	compute_until(&seen, 1);
	pthread_join(thread, NULL);
	CHECK_EQ(flexsc_ecb_destroy(ecb), 0);
	return NULL;
}

STACK_TEST(other_owners_keep_their_stacks, check_stack)
{
	pthread_t thread = test_thread(own_without_stack, NULL);

	pthread_join(thread, NULL);
	CHECK_EQ(flexsc_ecb_user(ecb, 0, NULL), 0);
	thread = poster(ecb, 1);
	compute_until(&handled, 1);
	pthread_join(thread, NULL);
}

TEST(a_stack_that_is_too_small_is_refused)
{
	struct flexsc_ecb_options options = FLEXSC_ECB_OPTIONS_INIT;
	struct flexsc_ecb *ecb;

	options.stack = stack;
	CHECK_EQ(flexsc_ecb_create(&ecb, &options), -EINVAL);
	options.stack_size = FLEXSC_ECB_STACK_MIN - 1;
	CHECK_EQ(flexsc_ecb_create(&ecb, &options), -EINVAL);
	options.stack = NULL;
	options.stack_size = SIZE;
	CHECK_EQ(flexsc_ecb_create(&ecb, &options), -EINVAL);
	/* A program that was compiled before the option existed. */
	options.size = offsetof(struct flexsc_ecb_options, stack);
	options.stack_size = 1;
	ecb = test_ecb_with(&options);
	CHECK_EQ(flexsc_ecb_destroy(ecb), 0);
}
