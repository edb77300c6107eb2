/* SPDX-License-Identifier: MIT */
/*
 * The harness's main() runs each test in a child and prints TAP: see harness.h. The
 * parent never creates a loop or a thread, so every child is forked from a
 * single-threaded process.
 */
#include "harness.h"
#include "errors.h"

#include <dirent.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdarg.h>

#define STATUS_USAGE	2
#define STATUS_SKIP	77
#define STATUS_LIMIT	(-1)

static struct test *tests, **tests_end = &tests;
static char **arguments;
static bool restricted;		/* set by forbid() */
struct flexsc_loop *loop;

/* Shared with the children, which may end at any moment. */
static struct shared {
	char skip_reason[256];
	char scratch[64];	/* a directory to remove */
} *shared;

#if UNDER_TSAN
/*
 * Tests fork while a loop's threads run, as programs do. In the child, TSan would
 * report all of these threads as leaked.
 */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
	return "die_after_fork=0:report_thread_leaks=0";
}
#endif

void test_register(struct test *test)
{
	*tests_end = test;
	tests_end = &test->next;
}

/* Print a line with one write, so that the lines of several processes don't mix. */
static void print_line(int fd, const char *prefix, const char *format, va_list args)
{
	char line[512];
	int n = snprintf(line, sizeof(line) - 1, "# %s", prefix);

	n += vsnprintf(line + n, sizeof(line) - 1 - (size_t)n, format, args);
	if (n > (int)sizeof(line) - 2)
		n = sizeof(line) - 2;
	line[n] = '\n';
	if (write(fd, line, (size_t)n + 1) < 0)
		_exit(EXIT_FAILURE);
}

void test_note(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print_line(STDOUT_FILENO, "", format, args);
	va_end(args);
}

void test_fail(const char *file, int line, const char *format, ...)
{
	const char *base = strrchr(file, '/');
	char prefix[128];
	va_list args;

	snprintf(prefix, sizeof(prefix), "%s:%d: ", base ? base + 1 : file, line);
	va_start(args, format);
	print_line(STDERR_FILENO, prefix, format, args);
	va_end(args);
	_exit(EXIT_FAILURE);
}

/* "-2 (ENOENT)" */
static const char *value_text(char *text, size_t size, int64_t value)
{
	const char *name = NULL;

	if (value < 0 && value > -4096)
		name = error_name((int)-value);
	snprintf(text, size, name ? "%lld (%s)" : "%lld", (long long)value,
		 name);
	return text;
}

/* A separate function, because tests count the instructions of a check that passes. */
static __attribute__((noinline)) void
unequal(const char *file, int line, const char *got_text,
	const char *expected_text, int64_t got, int64_t expected)
{
	const char *error = error_name(errno);
	char got_value[48], value[48];

	/* The result of a library call is -1, that of a system call -EPERM. */
	if (got == -1 && error)
		snprintf(got_value, sizeof(got_value), "-1 (EPERM, or errno %s)",
			 error);
	else
		value_text(got_value, sizeof(got_value), got);
	value_text(value, sizeof(value), expected);
	if (strcmp(expected_text, value) == 0)
		test_fail(file, line, "%s == %s, expected %s", got_text,
			  got_value, value);
	test_fail(file, line, "%s == %s, expected %s == %s", got_text,
		  got_value, expected_text, value);
}

void test_equal(const char *file, int line, const char *got_text,
		const char *expected_text, int64_t got, int64_t expected)
{
	if (got != expected)
		unequal(file, line, got_text, expected_text, got, expected);
}

void test_skip(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(shared->skip_reason, sizeof(shared->skip_reason), format,
		  args);
	va_end(args);
	_exit(STATUS_SKIP);
}

const char *test_engine(void)
{
	const char *engine = getenv("FLEXSC_TEST_ENGINE");

	return engine && *engine ? engine : flexsc_engine_name(0);
}

unsigned long test_parameter(const char *key, unsigned long fallback)
{
	size_t n = strlen(key);

	for (char **arg = arguments; *arg; arg++)
		if (strncmp(*arg, key, n) == 0 && (*arg)[n] == '=')
			return strtoul(*arg + n + 1, NULL, 0);
	return fallback;
}

void test_need_waiting(void)
{
	if (strcmp(test_engine(), "sync") == 0)
		SKIP("no call waits with sync, which runs calls when they are submitted");
}

bool test_known_difference(const char *engine, const char *what)
{
	if (strcmp(test_engine(), engine) != 0)
		return false;
	test_note("known difference of %s: %s", engine, what);
	return true;
}

int test_fork(void)
{
	int pid = fork();

	CHECK(pid >= 0);
	return pid;
}

void test_leave(void)
{
	_exit(EXIT_SUCCESS);
}

void test_reap(int pid)
{
	int status;

	CHECK_EQ(waitpid(pid, &status, 0), pid);
	if (WIFSIGNALED(status))
		test_note("process %d: %s", pid, strsignal(WTERMSIG(status)));
	CHECK_EQ(status, 0);
}

pthread_t test_thread(void *(*run)(void *arg), void *arg)
{
	pthread_t thread;

	CHECK_EQ(pthread_create(&thread, NULL, run, arg), 0);
	return thread;
}

uint64_t test_random(void)
{
	static __thread uint64_t state = 88172645463325252ULL;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

void enter_scratch(void)
{
	const char *base = getenv("TMPDIR");
	char *scratch = shared->scratch;

	snprintf(scratch, sizeof(shared->scratch), "%s/flexsc-test-XXXXXX",
		 base && *base && strlen(base) < 40 ? base : "/tmp");
	CHECK(mkdtemp(scratch));
	CHECK_EQ(chmod(scratch, 0777), 0);
	CHECK_EQ(chdir(scratch), 0);
}

static void remove_entry(const char *path)
{
	DIR *dir;

	if (unlink(path) == 0 || !(dir = opendir(path)))
		return;
	if (chdir(path) == 0) {
		for (struct dirent *entry; (entry = readdir(dir));)
			if (strcmp(entry->d_name, ".") &&
			    strcmp(entry->d_name, ".."))
				remove_entry(entry->d_name);
		CHECK_EQ(chdir(".."), 0);
	}
	closedir(dir);
	rmdir(path);
}

void leave_scratch(void)
{
	CHECK_EQ(chdir("/"), 0);
	if (shared->scratch[0])
		remove_entry(shared->scratch);
	shared->scratch[0] = '\0';
}

void become_nobody(void)
{
	const uint64_t nobody = 65534;

	if (geteuid() != 0)
		return;
	/* Plain system calls: glibc's functions would change every thread. */
	CHECK_EQ(PLAIN(SYS_setgroups, 0, NULL), 0);
	CHECK_EQ(PLAIN(SYS_setresgid, nobody, nobody, nobody), 0);
	CHECK_EQ(PLAIN(SYS_setresuid, nobody, nobody, nobody), 0);
	/* After a change of user, root owns the files in /proc/self. Undo that. */
	CHECK_EQ(prctl(PR_SET_DUMPABLE, 1), 0);
}

void forbid(const int *calls, unsigned int n, int error)
{
	filter_calls(calls, n, SECCOMP_RET_ERRNO | (uint32_t)error);
}

long filter_install(const int *calls, unsigned int n, uint32_t listed,
		    uint32_t other, unsigned int flags)
{
	struct sock_filter filter[2 * FILTERED_MOST + 2] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
	};
	struct sock_fprog program = { .len = 1, .filter = filter };

	CHECK(n <= FILTERED_MOST);
	for (unsigned int c = 0; c < n; c++) {
		filter[program.len++] = (struct sock_filter)BPF_JUMP(
			BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)calls[c], 0, 1);
		filter[program.len++] = (struct sock_filter)BPF_STMT(
			BPF_RET | BPF_K, listed);
	}
	filter[program.len++] =
		(struct sock_filter)BPF_STMT(BPF_RET | BPF_K, other);
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

void filter_calls(const int *calls, unsigned int n, uint32_t action)
{
	restricted = true;
	CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	if (filter_install(calls, n, action, SECCOMP_RET_ALLOW,
			   SECCOMP_FILTER_FLAG_TSYNC))
		SKIP("can't install a seccomp filter: %s", strerror(errno));
}

void filter_argument(int call, unsigned int arg, uint16_t compare, uint32_t value,
		     uint32_t action, uint32_t otherwise)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, 4),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 (uint32_t)offsetof(struct seccomp_data, args[arg])),
		BPF_JUMP((uint16_t)(BPF_JMP | BPF_K | compare), value, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, action),
		BPF_STMT(BPF_RET | BPF_K, otherwise),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };

	CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program))
		SKIP("can't install a seccomp filter: %s", strerror(errno));
}

void call_done(struct flexsc_cb *cb)
{
	((struct call *)cb)->runs++;
}

int64_t plain_call(unsigned int nr, uint64_t a, uint64_t b, uint64_t c,
		   uint64_t d, uint64_t e, uint64_t f)
{
	long ret = syscall(nr, a, b, c, d, e, f);

	return ret == -1 ? -errno : ret;
}

struct flexsc_loop *test_loop_with(const struct flexsc_options *options)
{
	struct flexsc_options own = FLEXSC_OPTIONS_INIT;
	struct flexsc_loop *loop = NULL;

	if (options)
		own = *options;
	if (getenv("FLEXSC_TEST_SQPOLL") && !own.kernel_cores)
		own.kernel_cores = "0-1023";
	CHECK_EQ(flexsc_loop_create(&loop, &own), 0);
	CHECK(loop);
	return loop;
}

struct flexsc_loop *test_loop(void)
{
	return test_loop_with(NULL);
}

int post_after(struct flexsc_loop *loop, struct call *before,
	       unsigned int chain, struct call *call, unsigned int nr,
	       uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
	       uint64_t f)
{
	const uint64_t args[6] = { a, b, c, d, e, f };

	if (!before)
		return flexsc_loop_call(loop, &call->cb, nr, a, b, c, d, e, f);
	return flexsc_loop_call_after(loop, &call->cb, &before->cb, chain, nr,
				      args);
}

int64_t await_call(struct flexsc_loop *loop, struct call *call)
{
	CHECK(run_until(loop, &call->runs, 1, 10000));
	CHECK_EQ(call->runs, 1);
	return call->cb.ret;
}

int64_t do_call(struct flexsc_loop *loop, unsigned int nr, uint64_t a,
		uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f)
{
	struct call call = CALL_INIT;

	CHECK_EQ(flexsc_loop_call(loop, &call.cb, nr, a, b, c, d, e, f), 0);
	return await_call(loop, &call);
}

unsigned int test_slower(void)
{
	const char *slower = getenv("FLEXSC_TEST_SLOWER");

	return slower ? (unsigned int)atoi(slower) : 1;
}

/*
 * A machine may stand still for longer than a test's limit, while its clock goes on.
 * So a limit counts slices of time: a standstill uses up one slice at most.
 */
#define SLICE	SECOND

static bool run_some(struct flexsc_loop *loop, const unsigned int *count,
		     unsigned int n, uint64_t left)
{
	while (*count < n && left) {
		const uint64_t slice = left < SLICE ? left : SLICE;
		uint64_t took = now_ns();

		CHECK(flexsc_loop_wait(loop, slice) >= 0);
		CHECK(flexsc_loop_dispatch(loop) >= 0);
		took = now_ns() - took;
		left -= took < slice ? took : slice;
	}
	return *count >= n;
}

bool run_until(struct flexsc_loop *loop, const unsigned int *count,
	       unsigned int n, unsigned int ms)
{
	return run_some(loop, count, n, ms * MS * test_slower());
}

void run_for(struct flexsc_loop *loop, unsigned int ms)
{
	static const unsigned int never;

	run_some(loop, &never, 1, ms * MS);
}

/* A poller that lacks a processor runs, and hasn't taken all requests. */
void run_until_idle(struct flexsc_loop *loop)
{
	CHECK(flexsc_loop_dispatch(loop) >= 0);
	for (unsigned int i = 0; i < 500 && (!is_idle() || pollers_run()); i++)
		CHECK(flexsc_loop_dispatch(loop) >= 0);
	CHECK(flexsc_loop_dispatch(loop) >= 0);
}

void run_until_readable(struct flexsc_loop *loop, int fd)
{
	struct pollfd input = { .fd = fd, .events = POLLIN };

	do
		run_for(loop, 20);
	while (!poll(&input, 1, 0));
}

struct flexsc_stats stats_of(const struct flexsc_loop *loop)
{
	struct flexsc_stats stats;

	CHECK_EQ(flexsc_loop_stats(loop, &stats, sizeof(stats)), 0);
	return stats;
}

void test_end_loop(void)
{
	CHECK_EQ(flexsc_loop_destroy(loop), 0);
	loop = NULL;
}

/* The kernel may still be executing cancelled calls whose callbacks have run. */
static void await_calls(void)
{
	const uint64_t end = now_ns() + 5 * SECOND * test_slower();

	while (stats_of(loop).outstanding) {
		CHECK(now_ns() < end);
		run_for(loop, 1);
	}
}

static void run_with_loop(const struct test *test)
{
	if (test->kind == LOOP_WAITING)
		NEEDS_WAITING_ENGINE();
	if (test->kind != LOOP_NONE)
		loop = test_loop_with(test->options);
	test->run();
	if (loop)
		await_calls();
	test_end_loop();
}

/* Runs in the child; never returns. */
static void run_child(const struct test *test)
{
	const char *engine = getenv("FLEXSC_TEST_ENGINE");
	char why[256] = "";

	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (engine && *engine) {
		setenv("FLEXSC_ENGINE", engine, 1);
		if (flexsc_engine_probe(engine, why, sizeof(why)))
			SKIP("engine %s: %s", engine, why);
	}
	run_with_loop(test);
	/* A sanitizer's own threads compute. The plain build has checked this test. */
	if (!restricted && !SANITIZED)
		CHECK(is_idle());
	/* The filter may forbid system calls that a sanitizer's last checks need. */
	if (SANITIZED && restricted)
		_exit(EXIT_SUCCESS);
	exit(EXIT_SUCCESS);
}

static unsigned int time_limit(const struct test *test)
{
	unsigned int factor = test_slower();

	if (SANITIZED)
		factor *= 4;
	return (test->limit + (unsigned int)test_parameter("seconds", 0)) *
	       factor;
}

/* The signals that the parent waits for: SIGCHLD, and those that end the parent. */
static void awaited_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGCHLD);
	sigaddset(set, SIGHUP);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
}

/*
 * Returns the child's wait status, or STATUS_LIMIT. The child is reaped only after
 * its group was killed: until then no other process can get its number. If an
 * awaited signal ends the parent, the parent kills the test, too, and leaves no
 * process.
 */
static int await_child(pid_t pid, unsigned int seconds)
{
	const struct timespec slice = { .tv_nsec = SLICE / 2 };
	unsigned int slices = 2 * seconds;
	siginfo_t info = { .si_pid = 0 };
	int status, signo = 0;
	sigset_t set;

	awaited_signals(&set);
	while (slices && !info.si_pid) {
		waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT | WNOHANG);
		if (!info.si_pid)
			signo = sigtimedwait(&set, NULL, &slice);
		slices -= signo < 0;
		if (signo > 0 && signo != SIGCHLD)
			break;
	}
	kill(-pid, SIGKILL);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	leave_scratch();
	if (signo > 0 && signo != SIGCHLD)
		exit(128 + signo);
	return info.si_pid ? status : STATUS_LIMIT;
}

static bool report(unsigned int number, const struct test *test, int status)
{
	bool skipped = WIFEXITED(status) && WEXITSTATUS(status) == STATUS_SKIP;
	bool ok = status == 0 || skipped;

	if (status == STATUS_LIMIT)
		fprintf(stderr, "# %s: timed out after %u s\n", test->name,
			time_limit(test));
	else if (WIFSIGNALED(status))
		fprintf(stderr, "# %s: %s\n", test->name,
			strsignal(WTERMSIG(status)));
	else if (!ok)
		fprintf(stderr, "# %s: exit status %d\n", test->name,
			WEXITSTATUS(status));
	printf("%sok %u - %s%s%s\n", ok ? "" : "not ", number, test->name,
	       skipped ? " # SKIP " : "", skipped ? shared->skip_reason : "");
	return ok;
}

static bool run_test(unsigned int number, const struct test *test)
{
	pid_t pid;

	fflush(stdout);
	shared->skip_reason[0] = '\0';
	pid = fork();
	if (pid < 0)
		return report(number, test, EXIT_FAILURE << 8);
	if (pid == 0) {
		sigset_t none;

		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		run_child(test);
	}
	setpgid(pid, pid);
	return report(number, test, await_child(pid, time_limit(test)));
}

static bool is_selected(const struct test *test)
{
	bool any = false;

	for (char **arg = arguments; *arg; arg++) {
		if (strchr(*arg, '='))
			continue;
		if (strstr(test->name, *arg))
			return true;
		any = true;
	}
	return !any;
}

static bool is_a_test(const char *name)
{
	for (const struct test *test = tests; test; test = test->next)
		if (strstr(test->name, name))
			return true;
	return false;
}

static bool is_an_engine(const char *name)
{
	const char *engine;

	for (unsigned int i = 0; (engine = flexsc_engine_name(i)); i++)
		if (strcmp(engine, name) == 0)
			return true;
	return false;
}

/* A misspelled name would select no test, and the run would pass. */
static bool are_names_right(const char *program)
{
	const char *engine = test_engine();

	if (!is_an_engine(engine)) {
		fprintf(stderr, "%s: no such engine: %s\n", program, engine);
		return false;
	}
	for (char **arg = arguments; *arg; arg++) {
		if (!strchr(*arg, '=') && !is_a_test(*arg)) {
			fprintf(stderr, "%s: no such test: %s\n", program, *arg);
			return false;
		}
	}
	return true;
}

int main(int argc, char **argv)
{
	unsigned int number = 0, failed = 0;
	sigset_t set;

	(void)argc;
	arguments = argv + 1;
	if (!are_names_right(argv[0]))
		return STATUS_USAGE;
	/* Tests count descriptors, so close those that the harness inherited. */
	syscall(SYS_close_range, 3, ~0U, 0);
	awaited_signals(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return EXIT_FAILURE;
	for (const struct test *test = tests; test; test = test->next)
		if (is_selected(test))
			failed += !run_test(++number, test);
	printf("1..%u\n", number);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
