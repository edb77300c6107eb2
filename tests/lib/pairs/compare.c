/* SPDX-License-Identifier: MIT */
/*
 * Runs all pairs (pair.h) natively, and again in the way in which this test runs:
 * preloaded, or posted to a loop with "loop=1". With "few=1" it runs only the pairs
 * of some events: all of them take several minutes in a guest, whose processors are
 * emulated. A pair is a separate process, so a pair that hangs is one failure. The
 * results depend on the timely progress of threads. So pairs that differ are
 * repeated, fewer at a time and with longer waits, before they count.
 */
#include "beside.h"

#define PASSES		3U
#define RUNS		4096

struct run {
	char call[32], event[32];
	bool native;
	pid_t pid;
	int out;
	char seen[160];
};

static struct run runs[RUNS];
static unsigned int count, running, differ;
static bool posts;

/* Pairs that are documented to differ, for posted calls of an engine. */
static const struct {
	const char *engine, *call, *why;
} differences[] = {
	{ "uring", "open-fifo", "opening a FIFO doesn't wait" },
};

static bool is_different(const char *call)
{
	for (unsigned int i = 0;
	     posts && i < sizeof(differences) / sizeof(differences[0]); i++)
		if (!strcmp(differences[i].engine, test_engine()) &&
		    !strcmp(differences[i].call, call))
			return true;
	return false;
}

/* One event for each way to close descriptors or to end calls. */
static const char *const few[] = {
	"close-posted-elsewhere", "dup-over-posted", "close-second-posted",
	"shutdown-writing", "cancel", "deadline",
};

static bool is_wanted(const char *event)
{
	bool wanted = !test_parameter("few", 0);

	for (unsigned int i = 0; i < sizeof(few) / sizeof(few[0]); i++)
		wanted |= !strcmp(few[i], event);
	return wanted;
}

/*
 * The oracle has no loop. Instead of cancellations and deadlines, a signal
 * interrupts the call.
 */
static const char *event_of(const struct run *run)
{
	return posts && run->native && (!strcmp(run->event, "cancel") ||
					!strcmp(run->event, "deadline")) ?
		       "interrupt" : run->event;
}

static void begin(struct run *run, unsigned int slower)
{
	posix_spawn_file_actions_t actions;
	char times[16];
	char *argv[] = { "pair", run->call, (char *)event_of(run),
			 posts && !run->native ? "loop" : "plain", times,
			 NULL };
	int p[2];

	snprintf(times, sizeof(times), "%u", slower * test_slower());
	CHECK_EQ(pipe2(p, O_CLOEXEC), 0);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, p[1], 1);
	CHECK_EQ(posix_spawn(&run->pid, program, &actions, NULL, argv,
			     run->native ? native_environment() : environ), 0);
	posix_spawn_file_actions_destroy(&actions);
	close(p[1]);
	run->out = p[0];
	running++;
}

static void end_one(void)
{
	int status, pid = waitpid(-1, &status, 0);
	struct run *run = runs;
	ssize_t n;

	while (run < runs + count && run->pid != pid)
		run++;
	CHECK(pid > 0 && run < runs + count);
	/* A child of the pair may still hold the output open. */
	fcntl(run->out, F_SETFL, O_NONBLOCK);
	n = read(run->out, run->seen, sizeof(run->seen) - 1);
	run->seen[n > 0 ? n - 1 : 0] = 0;
	if (status)
		snprintf(run->seen + strlen(run->seen), 40, " (status %#x)",
			 status);
	close(run->out);
	run->pid = 0;
	running--;
}

static bool agrees(const struct run *native)
{
	return !strcmp(native[0].seen, native[1].seen) ==
	       !is_different(native->call);
}

static void note(const struct run *native)
{
	test_note("%s, %s: %s, natively %s", native->call, native->event,
		  native[1].seen, native[0].seen);
}

/*
 * The number of pairs that run at the same time. On a slow machine each pair has
 * longer waits and needs more processor time, so fewer run.
 */
static unsigned int at_once(unsigned int jobs)
{
	jobs /= test_slower() * test_slower();
	return jobs < 2 ? 2 : jobs;
}

/* Runs all pairs at first, and later those that differ, some at the same time. */
static void pass(unsigned int number)
{
	static const struct {
		unsigned int jobs, slower;
	} passes[PASSES] = { { 32, 1 }, { 12, 4 }, { 2, 12 } };
	unsigned int n = 0;
	bool again = true;

	for (unsigned int i = 0; i < count; i++) {
		/* Decided before the first of the two runs starts. */
		if (!(i & 1))
			again = !number || !agrees(&runs[i]);
		if (!again)
			continue;
		/* A pair that hangs may outlast the time limit of a guest. */
		if (number == PASSES - 1 && !(i & 1))
			note(&runs[i]);
		while (running >= at_once(passes[number].jobs))
			end_one();
		begin(&runs[i], passes[number].slower);
		n++;
	}
	while (running)
		end_one();
	test_note("%u pairs", n / 2);
}

static void add(const char *call, const char *event)
{
	for (unsigned int i = 0; i < 2; i++) {
		struct run *run = &runs[count++];

		CHECK(count <= RUNS);
		strcpy(run->call, call);
		strcpy(run->event, event);
		run->native = !i;
	}
}

static void add_all(void)
{
	char command[PATH_MAX + 32], call[32], event[32];
	FILE *list;

	snprintf(command, sizeof(command), "'%s' list all %s", program,
		 posts ? "loop" : "plain");
	list = popen(command, "r");
	CHECK(list);
	while (fscanf(list, "%31s %31s", call, event) == 2)
		if (is_wanted(event))
			add(call, event);
	CHECK_EQ(pclose(list), 0);
}

TEST_LIMIT(waiting_calls_end_as_natively, 200)
{
	posts = test_parameter("loop", 0);
	NEEDS_WAITING_ENGINE();
	find_program("pair");
	enter_scratch();
	add_all();
	for (unsigned int number = 0; number < PASSES; number++)
		pass(number);
	for (unsigned int i = 0; i < count; i += 2)
		if (!agrees(&runs[i])) {
			note(&runs[i]);
			differ++;
		}
	CHECK_EQ(differ, 0);
}
