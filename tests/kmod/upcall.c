// SPDX-License-Identifier: MIT
/*
 * Upcalls by the kernel module. A thread raises events as fast as it can, at any
 * point of the owner's execution. Each event is handled once, and the interrupted
 * code isn't affected. Runs in a guest, as root.
 */
#include "ecb.h"
#include "system.h"

#include <liburing.h>
#include <linux/futex.h>
#include <sys/ptrace.h>
#include <sys/rseq.h>
#include <sys/user.h>
#include <ucontext.h>

#include "tests/events/upcall/leaf.h"

#define UPCALLS		200U	/* of a test, at least */
#define FLAG_TF		0x100

static struct flexsc_event_control *control;
static struct flexsc__upcall upcall;
static uint32_t posted, urgent;
static atomic_bool stop;

/* Raises an event of group 0, and counts it unless one is pending already. */
static void raise_event(void)
{
	if (__atomic_fetch_or(&control->pending, 1, __ATOMIC_SEQ_CST) & 1)
		return;
	__atomic_add_fetch(&posted, 1, __ATOMIC_RELAXED);
	CHECK_EQ(ioctl(ecb.fd, FLEXSC_ECB_KICK, 1), 0);
}

static void *source(void *arg)
{
	uint64_t random = 1;

	while (!atomic_load(&stop)) {
		raise_event();
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		for (uint64_t i = random % 4096; i; i--)
			__builtin_ia32_pause();
	}
	return NULL;
}

/* Handles the signal if an upcall isn't possible. */
static void on_urgent(int signo)
{
	int err = errno;

	urgent++;
	if (control->critical)
		return;
	do {
		control->critical = 1;
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		if (__atomic_exchange_n(&control->pending, 0,
					__ATOMIC_SEQ_CST)) {
			leaf_handled++;
			if (leaf_within)
				leaf_within();
		}
		ecb_store(&control->critical, 0);
	} while (control->pending & control->notify);
	errno = err;
}

static char alternate[65536] __attribute__((aligned(64)));

static void handle_signal(int signo, void (*handler)(int), int flags)
{
	const struct sigaction action = { .sa_handler = handler,
					  .sa_flags = flags };

	CHECK_EQ(sigaction(signo, &action, NULL), 0);
}

static bool begin(uint32_t flags, enum leaf_keep keep)
{
	const stack_t stack = { .ss_sp = alternate,
				.ss_size = sizeof(alternate) };

	posted = 0;
	urgent = 0;
	leaf_handled = 0;
	CHECK_EQ(sigaltstack(&stack, NULL), 0);
	handle_signal(SIGURG, on_urgent, SA_RESTART | SA_ONSTACK);
	ecb_open(&ecb, 128, flags);
	control = ecb.control;
	if (leaf_upcall(&upcall, control, keep))
		return true;
	ecb_close(&ecb);
	return false;
}

static pthread_t thread;

static void source_begin(void)
{
	atomic_store(&stop, false);
	thread = test_thread(source, NULL);
}

static void source_end(void)
{
	atomic_store(&stop, true);
	if (thread)
		CHECK_EQ(pthread_join(thread, NULL), 0);
	thread = 0;
}

/* All raised events have been handled. */
static void end(void)
{
	source_end();
	CHECK_EQ(control->pending, 0);
	CHECK_EQ(control->critical, 0);
	CHECK_EQ(leaf_handled, posted);
	test_note("%u events, %u signals", posted, urgent);
	ecb_close(&ecb);
}

static void begin_plainly(uint32_t flags)
{
	CHECK(begin(flags, KEEP_PLAIN));
	CHECK_EQ(pipe(fds), 0);
}

#define UPCALL_TEST(id, seconds, flags)					\
	TEST_BETWEEN(id, seconds, begin_plainly(flags), end())

/* All raised events have been handled by upcalls. */
static void end_quietly(void)
{
	source_end();
	CHECK_EQ(urgent, 0);
	end();
}

#define QUIET_TEST(id, seconds, flags)					\
	TEST_BETWEEN(id, seconds, begin_plainly(flags), end_quietly())

/* Places where upcalls are possible. */

static void leaf_under_fire(enum leaf_keep keep)
{
	if (!begin(0, keep))
		return;
	errno = EILSEQ;
	source_begin();
	while (leaf_handled < 4 * UPCALLS) {
		errno = EILSEQ;
		leaf_check(500);
		CHECK_EQ(errno, EILSEQ);
	}
	CHECK_EQ(urgent, 0);
	end();
}

TEST_LIMIT(a_leaf_does_not_notice, 100)
{
	for (enum leaf_keep keep = 0; keep < KEEPS; keep++) {
		leaf_on_stack = false;
		leaf_under_fire(keep);
		leaf_on_stack = true;
		leaf_under_fire(keep);
	}
}

static uint32_t alarms;

static void on_alarm(int signo)
{
	int err = errno;

	alarms++;
	leaf_clobber();
	errno = err;
}

static void alarms_every(long us)
{
	const struct itimerval time = { { 0, us }, { 0, us } };

	CHECK_EQ(setitimer(ITIMER_REAL, &time, NULL), 0);
}

TEST_LIMIT(signals_come_beside, 100)
{
	const int flags[] = { 0, SA_ONSTACK };

	for (int i = 0; i < 2; i++) {
		CHECK(begin(0, KEEP_PLAIN));
		handle_signal(SIGALRM, on_alarm, flags[i]);
		alarms = 0;
		alarms_every(300);
		source_begin();
		while (leaf_handled < UPCALLS || alarms < UPCALLS / 10)
			leaf_check(500);
		alarms_every(0);
		CHECK_EQ(urgent, 0);
		end();
	}
}

TEST_LIMIT(a_process_is_stopped_and_goes_on, 60)
{
	const pid_t pid = test_fork();

	if (!pid) {
		CHECK(begin(0, KEEP_PLAIN));
		source_begin();
		while (leaf_handled < UPCALLS)
			leaf_check(500);
		end();
		test_leave();
	}
	for (int i = 0; i < 30; i++) {
		usleep(1000);
		kill(pid, SIGSTOP);
		usleep(1000);
		kill(pid, SIGCONT);
	}
	test_reap(pid);
}

/* Set by the owner at the place where the event has to interrupt it. */
static uint32_t in_place;

/*
 * The owner stops inside a tail, whose frame this function creates, at a place where
 * the stack pointer is "above" bytes above the frame.
 */
static __attribute__((noinline)) void stand_in_tail(uint64_t above)
{
	uint64_t sum, sp, after;

	__asm__ volatile("movq	%%rsp, %[sp]\n"
			 "subq	$216, %%rsp\n"
			 "movq	$1, (%%rsp)\n"
			 "movq	$2, 8(%%rsp)\n"
			 "movq	$4, 16(%%rsp)\n"
			 "movq	$8, 24(%%rsp)\n"
			 "movq	$16, 32(%%rsp)\n"
			 "movq	$32, 40(%%rsp)\n"
			 "movq	$64, 48(%%rsp)\n"
			 "movq	$128, 56(%%rsp)\n"
			 "movq	$256, 64(%%rsp)\n"
			 "movq	$0x202, 72(%%rsp)\n"
			 "leaq	1f(%%rip), %%rax\n"
			 "movq	%%rax, 80(%%rsp)\n"
			 "addq	%[above], %%rsp\n"
			 "movl	$1, %[in_place]\n"
			 ".globl standing\n"
			 "standing: jmp standing\n"
			 "1:	addq	%%r11, %%rax\n"
			 "addq	%%r10, %%rax\n"
			 "addq	%%r9, %%rax\n"
			 "addq	%%r8, %%rax\n"
			 "addq	%%rdi, %%rax\n"
			 "addq	%%rsi, %%rax\n"
			 "addq	%%rdx, %%rax\n"
			 "addq	%%rcx, %%rax\n"
			 "movq	%%rsp, %[after]\n"
			 "movq	%[sp], %%rsp\n"
			 : "=&a"(sum), [sp] "=&b"(sp), [after] "=&r"(after),
			   [in_place] "=m"(in_place)
			 : [above] "r"(above)
			 : "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10",
			   "r11", "cc", "memory");
	CHECK_EQ(sum, 511);
	CHECK_EQ(after, sp);
	CHECK_EQ(control->regs, sp - 216);
}

extern const char standing[];

static void *raise_in_place(void *arg)
{
	while (!__atomic_exchange_n(&in_place, 0, __ATOMIC_SEQ_CST))
		usleep(1000);
	raise_event();
	return arg;
}

TEST(the_tail_continues_from_each_place)
{
	const struct { uint64_t before, behind, above; } places[] = {
		{ 0, 8, 0 }, { 10, 5, 0 }, { 10, 4, 72 }, { 10, 3, 80 },
	};

	for (int i = 0; i < 4; i++) {
		CHECK(begin(0, KEEP_PLAIN));
		control->tail_begin = (uintptr_t)standing - places[i].before;
		control->tail_end = (uintptr_t)standing + places[i].behind;
		thread = test_thread(raise_in_place, NULL);
		stand_in_tail(places[i].above);
		CHECK_EQ(leaf_handled, 1);
		CHECK_EQ(urgent, 0);
		end();
	}
}

QUIET_TEST(clocks_are_read, 60, 0)
{
	time_t (*vsyscall)(time_t *) = (void *)0xffffffffff600400;
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[256];
	bool mapped = false;
	uint64_t last = 0;

	CHECK(maps);
	while (fgets(line, sizeof(line), maps))
		mapped |= !!strstr(line, "[vsyscall]");
	fclose(maps);
	source_begin();
	while (leaf_handled < UPCALLS) {
		const uint64_t ns = now_ns();

		CHECK(ns >= last);
		last = ns;
		if (mapped)
			CHECK(labs(vsyscall(NULL) - time(NULL)) <= 1);
	}
	test_note("vsyscall: %d", mapped);
}

/* System calls. */

/* The owner is the first thread of this process. */
static void await_sleep_in(long nr)
{
	await_sleep(getpid(), nr);
}

static void *raise_in_call(void *nr)
{
	await_sleep_in(*(long *)nr);
	raise_event();
	return NULL;
}

QUIET_TEST(calls_have_their_results, 60, 0)
{
	const pid_t parent = getppid();
	char byte;

	source_begin();
	while (leaf_handled < UPCALLS) {
		const struct timespec time = { 0, 1000 };

		CHECK_EQ(syscall(SYS_getppid), parent);
		CHECK_EQ(write(fds[1], "x", 1), 1);
		CHECK_EQ(read(fds[0], &byte, 1), 1);
		CHECK_EQ(nanosleep(&time, NULL), 0);
		CHECK_EQ(read(-1, &byte, 1), -1);
		CHECK_EQ(errno, EBADF);
	}
}

static void *raise_and_write(void *arg)
{
	await_sleep_in(SYS_read);
	raise_event();
	CHECK_EQ(leaf_handled, 0);
	usleep(20000);
	CHECK_EQ(leaf_handled, 0);
	CHECK_EQ(write(*(int *)arg, "x", 1), 1);
	return NULL;
}

QUIET_TEST(a_call_that_sleeps_is_not_interrupted, 20, 0)
{
	char byte;

	thread = test_thread(raise_and_write, &fds[1]);
	CHECK_EQ(read(fds[0], &byte, 1), 1);
	CHECK_EQ(leaf_handled, 1);
}

static void sleep_within(void)
{
	usleep(1000);
}

static void sleep_and_be_stopped(int fd)
{
	const struct timespec time = { 0, 300000000 };
	uint64_t since;
	int ret;

	CHECK(begin(0, KEEP_PLAIN));
	ecb_watch(&ecb, fd, POLLIN, 0);
	posted = 1;
	leaf_within = sleep_within;
	since = now_ns();
	ret = nanosleep(&time, NULL);
	CHECK(ret ? errno == EINTR : now_ns() - since >= 300000000);
	CHECK_EQ(urgent, 1);
	CHECK_EQ(leaf_handled, 1);
	ecb_close(&ecb);
	test_leave();
}

/* A call of the handler would overwrite the data for restarting the stopped call. */
TEST(a_stopped_call_that_continues_gets_a_signal)
{
	int fds[2];
	pid_t pid;

	CHECK_EQ(pipe(fds), 0);
	pid = test_fork();
	if (!pid)
		sleep_and_be_stopped(fds[0]);
	await_sleep(pid, SYS_clock_nanosleep);
	system_stop(pid);
	CHECK_EQ(write(fds[1], "x", 1), 1);
	kill(pid, SIGCONT);
	test_reap(pid);
}

static void *raise_too_late(void *arg)
{
	await_sleep_in(SYS_read);
	raise_event();
	control->critical = 1;
	CHECK_EQ(write(*(int *)arg, "x", 1), 1);
	return NULL;
}

/*
 * The critical section begins after the kick, and before the owner returns to user
 * mode.
 */
QUIET_TEST(a_critical_section_is_not_interrupted, 20, 0)
{
	char byte;

	thread = test_thread(raise_too_late, &fds[1]);
	CHECK_EQ(read(fds[0], &byte, 1), 1);
	CHECK_EQ(leaf_handled, 0);
	ecb_store(&control->critical, 0);
	CHECK_EQ(ioctl(ecb.fd, FLEXSC_ECB_KICK, 1), 0);
	CHECK_EQ(leaf_handled, 1);
}

TEST(a_call_that_sleeps_is_interrupted_if_asked)
{
	static long calls[] = { SYS_read, SYS_clock_nanosleep, SYS_pause };
	const struct timespec time = { 10, 0 };
	char byte;
	int fds[2];

	CHECK_EQ(pipe(fds), 0);
	for (int i = 0; i < 3; i++) {
		CHECK(begin(FLEXSC_ECB_INTERRUPTS_CALLS, KEEP_PLAIN));
		thread = test_thread(raise_in_call, &calls[i]);
		/* -ERESTARTSYS, _RESTARTBLOCK, and NOHAND, in the kernel. */
		CHECK_EQ(i == 0	? read(fds[0], &byte, 1) :
			 i == 1 ? nanosleep(&time, NULL) :
				  pause(), -1);
		CHECK_EQ(errno, EINTR);
		CHECK_EQ(leaf_handled, 1);
		CHECK_EQ(urgent, 0);
		end();
	}
}

static uint32_t word;

/* Holds the lock until the owner, which waits for it, has handled an event. */
static void *hold(void *arg)
{
	__atomic_store_n(&word, (uint32_t)syscall(SYS_gettid), __ATOMIC_SEQ_CST);
	while (!(__atomic_load_n(&word, __ATOMIC_SEQ_CST) & FUTEX_WAITERS))
		usleep(1000);
	await_sleep_in(SYS_futex);
	raise_event();
	while (!__atomic_load_n(&leaf_handled, __ATOMIC_SEQ_CST))
		usleep(1000);
	CHECK_EQ(syscall(SYS_futex, &word, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0), 0);
	return arg;
}

/* -ERESTARTNOINTR, in the kernel. */
QUIET_TEST(a_call_that_is_always_restarted_is_restarted, 20, FLEXSC_ECB_INTERRUPTS_CALLS)
{
	thread = test_thread(hold, NULL);
	while (!__atomic_load_n(&word, __ATOMIC_SEQ_CST))
		;
	CHECK_EQ(syscall(SYS_futex, &word, FUTEX_LOCK_PI, 0, NULL, NULL, 0), 0);
	CHECK_EQ(leaf_handled, 1);
}

static atomic_int rounds;
static pid_t owner;

static void *raise_and_signal(void *arg)
{
	int round = 0;

	while (!atomic_load(&stop)) {
		if (atomic_load(&rounds) == round)
			continue;
		round = atomic_load(&rounds);
		usleep(300);
		syscall(SYS_tgkill, getpid(), owner, SIGUSR1);
		raise_event();
	}
	return arg;
}

/* A signal ends the call, although an event arrives at the same time. */
UPCALL_TEST(a_signal_interrupts_a_call_as_usual, 60, 0)
{
	char byte;

	handle_signal(SIGUSR1, on_alarm, 0);
	owner = (pid_t)syscall(SYS_gettid);
	atomic_store(&stop, false);
	atomic_store(&rounds, 0);
	thread = test_thread(raise_and_signal, NULL);
	for (int i = 1; i <= 200; i++) {
		atomic_store(&rounds, i);
		CHECK_EQ(read(fds[0], &byte, 1), -1);
		CHECK_EQ(errno, EINTR);
	}
}

/* Task work runs inside io_uring_enter(). */
UPCALL_TEST(io_uring_waits_beside, 60, 0)
{
	struct io_uring ring;
	uint32_t turns = 0;

	if (io_uring_queue_init(8, &ring, 0))
		SKIP("io_uring doesn't work here");
	source_begin();
	while (leaf_handled < UPCALLS) {
		struct __kernel_timespec time = { 0, 100000 };
		struct io_uring_cqe *cqe;
		int ret;

		io_uring_prep_timeout(io_uring_get_sqe(&ring), &time, 0, 0);
		do {
			ret = io_uring_submit_and_wait(&ring, 1);
			CHECK(ret == -EINTR || ret == 0 || ret == 1);
		} while (io_uring_peek_cqe(&ring, &cqe));
		CHECK_EQ(cqe->res, -ETIME);
		io_uring_cqe_seen(&ring, cqe);
		turns++;
	}
	io_uring_queue_exit(&ring);
	test_note("%u turns", turns);
}

/* Places where upcalls aren't possible. */

UPCALL_TEST(bad_words_mean_signals, 20, 0)
{
	const uint64_t bad[] = { 0, 1ULL << 56, 1ULL << 63, 0xffffffff81000000,
				 UINT64_MAX };

	for (int i = 0; i < 5; i++) {
		control->notify = 0;
		control->entry = bad[i];
		control->notify = 1;
		raise_event();
		CHECK_EQ(urgent, i + 1);
		CHECK_EQ(leaf_handled, i + 1);
	}
}

TEST(other_protection_keys_mean_a_signal)
{
	int key = pkey_alloc(0, 0);

	if (key < 0)
		test_skip("the processor has no protection keys");
	CHECK(begin(0, KEEP_PLAIN));
	CHECK_EQ(pkey_set(key, PKEY_DISABLE_WRITE), 0);
	raise_event();
	CHECK_EQ(urgent, 1);
	CHECK_EQ(pkey_set(key, 0), 0);
	raise_event();
	CHECK_EQ(urgent, 1);
	end();
}

/* Waits for an event with this stack pointer. */
static void wait_at(uint64_t sp)
{
	__asm__ volatile("movq	%%rsp, %%rbx\n"
			 "movq	%[sp], %%rsp\n"
			 "movl	$1, %[in_place]\n"
			 "1:	cmpl	$0, %[handled]\n"
			 "je	1b\n"
			 "movq	%%rbx, %%rsp\n"
			 : [in_place] "=m"(in_place)
			 : [sp] "r"(sp), [handled] "m"(leaf_handled)
			 : "rbx", "cc", "memory");
}

TEST(a_stack_without_room_means_a_signal)
{
	char *page = mmap(NULL, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);
	const uint64_t sps[] = { (uint64_t)page + 4096 + 215, 0, 215, 1ULL << 47,
				 1ULL << 63, 0xffffffff82000000 };

	CHECK(page != MAP_FAILED);
	CHECK_EQ(mprotect(page + 4096, 4096, PROT_READ | PROT_WRITE), 0);
	for (int i = 0; i < 6; i++) {
		CHECK(begin(0, KEEP_PLAIN));
		thread = test_thread(raise_in_place, NULL);
		wait_at(sps[i]);
		CHECK_EQ(urgent, 1);
		end();
	}
}

/* An invalid tail, and a stack pointer with any value, harm only the program. */
TEST(a_bad_tail_is_the_programs_fault)
{
	const uint64_t sps[] = { 0, 1ULL << 47, 0xffffffff82000000 };

	for (int i = 0; i < 3; i++) {
		const pid_t pid = test_fork();
		int status;

		if (!pid) {
			begin(0, KEEP_PLAIN);
			signal(SIGSEGV, SIG_DFL);
			control->tail_begin = 0;
			control->tail_end = UINT64_MAX;
			pthread_create(&thread, NULL, raise_in_place, NULL);
			wait_at(sps[i]);
			_exit(0);
		}
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK(WIFSIGNALED(status));
		CHECK(WTERMSIG(status) == SIGSEGV || WTERMSIG(status) == SIGBUS);
	}
}

static struct rseq *rseq_area(void)
{
	return (void *)((char *)__builtin_thread_pointer() + __rseq_offset);
}

static uint64_t shared_value;

static void add_to_shared(void)
{
	shared_value++;
}

/* Increments by one, in a restartable sequence. */
static void add_in_sequence(void)
{
	uint64_t value, turns;

	__asm__ volatile(
		".pushsection __rseq_cs, \"aw\"\n"
		".balign 32\n"
		"9:	.long 0, 0\n"
		".quad	1f, 2f - 1f, 4f\n"
		".popsection\n"
		"0:	leaq	9b(%%rip), %[value]\n"
		"movq	%[value], %[cs]\n"
		"1:	movq	%[shared], %[value]\n"
		"movl	$200, %k[turns]\n"
		"3:	decl	%k[turns]\n"
		"jnz	3b\n"
		"incq	%[value]\n"
		"movq	%[value], %[shared]\n"
		"2:	jmp	5f\n"
		".byte	0x0f, 0xb9, 0x3d\n"
		".long	0x53053053\n"
		"4:	jmp	0b\n"
		"5:	movq	$0, %[cs]\n"
		: [value] "=&r"(value), [turns] "=&r"(turns),
		  [shared] "+m"(shared_value), [cs] "=m"(rseq_area()->rseq_cs)
		:
		: "cc", "memory");
}

TEST_LIMIT(a_restartable_sequence_is_restarted, 60)
{
	uint64_t added = 0;

	if (!__rseq_size)
		SKIP("the kernel has no restartable sequences");
	CHECK(begin(0, KEEP_PLAIN));
	leaf_within = add_to_shared;
	source_begin();
	while (leaf_handled < UPCALLS) {
		add_in_sequence();
		added++;
	}
	source_end();
	CHECK(urgent > 0);
	CHECK_EQ(shared_value, added + leaf_handled);
	end();
}

static uint64_t traps;

static void on_trap(int signo)
{
	traps++;
}

/* Single-stepping by the processor. */
UPCALL_TEST(a_stepping_program_gets_signals, 60, 0)
{
	uint32_t before;

	handle_signal(SIGTRAP, on_trap, 0);
	leaf_prepare();
	source_begin();
	leaf_want.flags |= FLAG_TF;
	while (traps < 5000) {
		before = leaf_handled;
		leaf_want.regs[2] = 100;
		leaf();
		__asm__ volatile("pushfq; andl %0, (%%rsp); popfq"
				 : : "i"(~FLAG_TF) : "memory", "cc");
		CHECK(leaf_handled >= before);
	}
	CHECK(urgent > 0);
}

/* Runs under a tracer that only observes. */
static void traced(void)
{
	CHECK(begin(0, KEEP_PLAIN));
	CHECK_EQ(ptrace(PTRACE_TRACEME, 0, NULL, NULL), 0);
	raise(SIGSTOP);
	source_begin();
	while (leaf_handled < UPCALLS / 10)
		leaf_check(500);
	/* An upcall may have preceded the tracer. Later events are signals. */
	CHECK(urgent > 0);
	end();
	test_leave();
}

TEST_LIMIT(a_traced_program_gets_signals, 60)
{
	const pid_t pid = test_fork();
	uint32_t signals = 0;
	int status;

	if (!pid)
		traced();
	for (;;) {
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		if (!WIFSTOPPED(status))
			break;
		signals += WSTOPSIG(status) == SIGURG;
		CHECK_EQ(ptrace(PTRACE_CONT, pid, NULL,
				WSTOPSIG(status) == SIGSTOP ? 0 :
							      WSTOPSIG(status)),
			 0);
	}
	CHECK_EQ(status, 0);
	CHECK(signals > UPCALLS / 10 / 2);
}

static volatile sig_atomic_t signalled;

static void on_signal(int signo)
{
	signalled = signo;
}

static void stepped(void)
{
	CHECK(begin(0, KEEP_PLAIN));
	handle_signal(SIGUSR1, on_signal, 0);
	source_begin();
	/* Upcalls unless the program is single-stepped, and signals otherwise. */
	while (!signalled || leaf_handled < urgent + UPCALLS)
		leaf_check(500);
	end();
	test_leave();
}

/*
 * Once a tracer has stepped over a POPF, Linux takes the trap flag for the program's
 * own. The flag would then outlive the tracer, and SIGTRAP would end the program.
 */
static void take_trap_flag(pid_t pid)
{
	const size_t at = offsetof(struct user_regs_struct, eflags);
	const long flags = ptrace(PTRACE_PEEKUSER, pid, at, NULL);

	if (flags & FLAG_TF)
		CHECK_EQ(ptrace(PTRACE_POKEUSER, pid, at, flags & ~FLAG_TF), 0);
}

/*
 * Suppose that a program is stepped over a POPF, and then into a signal handler. The
 * signal's frame holds the trap flag, and the handler's return restores it, perhaps
 * after the tracer has left. So signals are delivered without a step.
 */
static void resume(pid_t pid, int signo)
{
	if (signo) {
		CHECK_EQ(ptrace(PTRACE_CONT, pid, NULL, signo), 0);
		CHECK_EQ(ptrace(PTRACE_INTERRUPT, pid, NULL, NULL), 0);
	} else {
		CHECK_EQ(ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL), 0);
	}
}

/* Steps through the program at any place, as a debugger does, and detaches. */
static void step(pid_t pid, int steps)
{
	int status, signo = 0;

	CHECK_EQ(ptrace(PTRACE_SEIZE, pid, NULL, NULL), 0);
	CHECK_EQ(ptrace(PTRACE_INTERRUPT, pid, NULL, NULL), 0);
	for (;;) {
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK_EQ(WIFSTOPPED(status) ? 0 : status, 0);
		take_trap_flag(pid);
		signo = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
		if (!steps--)
			break;
		resume(pid, signo);
	}
	CHECK_EQ(ptrace(PTRACE_DETACH, pid, NULL, signo), 0);
}

TEST_LIMIT(a_debugger_steps_through_upcalls, 60)
{
	const pid_t pid = test_fork();

	if (!pid)
		stepped();
	usleep(100000);
	for (int i = 0; i < 50; i++) {
		step(pid, 40);
		usleep(2000);
	}
	CHECK_EQ(kill(pid, SIGUSR1), 0);
	test_reap(pid);
}

/* Enters and leaves 32-bit code by a change of the code segment. */
static void change_mode(greg_t *regs, long long segment, uint64_t ip)
{
	regs[REG_CSGSFS] = (regs[REG_CSGSFS] & ~0xffffLL) | segment;
	regs[REG_RIP] = (greg_t)ip;
}

/*
 * 32-bit code, which pushes 1 on its stack at the end of the page, and then jumps to
 * itself. It stores by SS, because the other data segments of a 64-bit program are
 * null.
 */
#define ENTERED	"\x6a\x01\xeb\xfe"

static unsigned char *code;
static uint64_t before, stack_before;

static void *raise_when_entered(void *arg)
{
	const uint32_t *pushed = (void *)(code + 4096 - sizeof(*pushed));

	while (!__atomic_load_n(pushed, __ATOMIC_SEQ_CST))
		usleep(1000);
	raise_event();
	return arg;
}

static void on_signal_enter(int signo, siginfo_t *info, void *context)
{
	greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;

	before = (uint64_t)regs[REG_RIP];
	stack_before = (uint64_t)regs[REG_RSP];
	regs[REG_RSP] = (greg_t)(code + 4096);
	change_mode(regs, 0x23, (uint64_t)code);
}

static void on_urgent_leave(int signo, siginfo_t *info, void *context)
{
	greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;

	on_urgent(signo);
	regs[REG_RSP] = (greg_t)stack_before;
	change_mode(regs, 0x33, before);
}

TEST(a_program_in_32_bit_mode_gets_a_signal)
{
	const struct sigaction enter = {
		.sa_sigaction = on_signal_enter,
		.sa_flags = SA_SIGINFO,
	}, leave = {
		.sa_sigaction = on_urgent_leave,
		.sa_flags = SA_SIGINFO | SA_ONSTACK,
	};

	code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	CHECK(code != MAP_FAILED);
	memcpy(code, ENTERED, sizeof(ENTERED));
	CHECK(begin(0, KEEP_PLAIN));
	CHECK_EQ(sigaction(SIGUSR1, &enter, NULL), 0);
	CHECK_EQ(sigaction(SIGURG, &leave, NULL), 0);
	thread = test_thread(raise_when_entered, NULL);
	raise(SIGUSR1);
	CHECK_EQ(urgent, 1);
	end();
}
