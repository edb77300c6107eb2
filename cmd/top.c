/* SPDX-License-Identifier: MIT */
/*
 * flexsc top: monitors all processes that publish counters, the busiest first.
 * Rates are averages since the previous update; in the first one, since the
 * process began to count.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "runtime/counters/report.h"
#include "command.h"
#include "process.h"

#define SECOND	1000000000ULL

static const char help[] =
"usage: flexsc top [OPTION]...\n"
"Monitor all processes under flexsc run or with loops of their own. Shows rates\n"
"per second: system calls, runs of user threads, returns to host threads with\n"
"their most frequent cause, and steals.\n"
"\n"
"  -b, --batch          plain text, one table after the other\n"
"  -n, --number N       exit after N tables (never)\n"
"  -d, --delay SECONDS  time between tables, 1 to 3600 (1)\n"
"  -h, --help           show this\n"
"\n"
"Only root sees other users' processes. q or Ctrl-C quits.\n";

static const struct option options[] = {
	{ "batch",	no_argument,		NULL, 'b' },
	{ "number",	required_argument,	NULL, 'n' },
	{ "delay",	required_argument,	NULL, 'd' },
	{ "help",	no_argument,		NULL, 'h' },
	{ }
};

struct settings {
	bool batch;
	unsigned long number;	/* number of updates; 0: unlimited */
	unsigned long delay;	/* seconds between updates */
};

/* A process at the time of an update. */
struct row {
	pid_t pid;
	/*
	 * when the runtime started: distinguishes processes that had the same
	 * id
	 */
	uint64_t begin;
	uint64_t time;
	char program[16];
	bool run;		/* it is under flexsc run */
	uint64_t alive;		/* number of user threads */
	uint64_t calls, switches, returns, steals;
	int64_t avoided;
	uint64_t causes[CAUSES];
	/* Counts per second since the previous update. */
	double rates[5];
	unsigned int top;	/* index in "causes" of the most frequent one */
};

enum rate { RATE_CALLS, RATE_AVOIDED, RATE_SWITCHES, RATE_RETURNS,
	    RATE_STEALS };

struct table {
	struct row *rows;
	unsigned int count;
};

static volatile sig_atomic_t ended;

static uint64_t time_now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * SECOND + (uint64_t)time.tv_nsec;
}

/* Collecting. */

static void program_of(pid_t pid, char name[16])
{
	char path[32];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	file = fopen(path, "re");
	if (!file || !fgets(name, 16, file))
		strcpy(name, "?");
	name[strcspn(name, "\n")] = '\0';
	if (file)
		fclose(file);
}

static void take_run(struct row *row, const struct process *process)
{
	const struct run_page *page = process->run;
	struct counters total = flexsc__report_total(page);

	row->run = true;
	row->begin = page->begin;
	row->alive = total.started - total.ended;
	row->calls = flexsc__report_calls(&total);
	row->switches = total.switches;
	row->returns = flexsc__report_returns(page);
	row->steals = total.steals;
	row->avoided = flexsc__report_avoided(page, &total,
					      process_loop_calls(process));
	memcpy(row->causes, page->causes, sizeof(row->causes));
}

static void take_loops(struct row *row, const struct process *process)
{
	for (unsigned int i = 0; i < process->loops_count; i++) {
		const struct flexsc_stats *stats = &process->loops[i].stats;

		row->calls += stats->posted;
		row->avoided += (int64_t)(stats->posted -
					  stats->mode_switches);
	}
}

static bool look_at(pid_t pid, struct row *row)
{
	struct process process;

	if (process_read(pid, &process))
		return false;
	*row = (struct row){ .pid = pid, .time = time_now() };
	if (process.run)
		take_run(row, &process);
	else
		take_loops(row, &process);
	process_free(&process);
	if (!row->run && !process.loops_count)
		return false;
	program_of(pid, row->program);
	return true;
}

static void table_add(struct table *table, const struct row *row)
{
	size_t size = (table->count + 1) * sizeof(*row);
	struct row *rows = realloc(table->rows, size);

	if (!rows)
		return;
	table->rows = rows;
	rows[table->count++] = *row;
}

static const struct row *table_find(const struct table *table,
				    const struct row *row)
{
	for (unsigned int i = 0; i < table->count; i++)
		if (table->rows[i].pid == row->pid &&
		    table->rows[i].begin == row->begin)
			return &table->rows[i];
	return NULL;
}

static double rate(int64_t n, double seconds)
{
	return seconds > 0 ? (double)n / seconds : 0;
}

/* Counts may decrease, because a process may destroy loops. */
static double up(uint64_t now, uint64_t then, double seconds)
{
	return rate(now > then ? (int64_t)(now - then) : 0, seconds);
}

static void compare(struct row *row, const struct row *then)
{
	const struct row nothing = { .time = row->begin };
	uint64_t causes[CAUSES];
	double seconds;

	if (!then)
		then = &nothing;
	/*
	 * 0: the interval is unknown, because the time when a loop was made
	 * isn't published.
	 */
	seconds = then->time ? (double)(row->time - then->time) / SECOND : 0;
	row->rates[RATE_CALLS] = up(row->calls, then->calls, seconds);
	row->rates[RATE_AVOIDED] = rate(row->avoided - then->avoided, seconds);
	row->rates[RATE_SWITCHES] = up(row->switches, then->switches, seconds);
	row->rates[RATE_RETURNS] = up(row->returns, then->returns,
					seconds);
	row->rates[RATE_STEALS] = up(row->steals, then->steals, seconds);
	for (unsigned int i = 0; i < CAUSES; i++)
		causes[i] = row->causes[i] - then->causes[i];
	row->top = flexsc__report_top(causes);
}

static int by_calls(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	double first = x->rates[RATE_CALLS], second = y->rates[RATE_CALLS];

	if (first != second)
		return first < second ? 1 : -1;
	return x->pid < y->pid ? -1 : x->pid > y->pid;
}

static struct table look(const struct table *before)
{
	struct table table = { 0 };
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	struct row row;

	while (dir && (entry = readdir(dir))) {
		int pid = atoi(entry->d_name);

		if (pid <= 0 || !look_at(pid, &row))
			continue;
		compare(&row, table_find(before, &row));
		table_add(&table, &row);
	}
	if (dir)
		closedir(dir);
	if (table.count)
		qsort(table.rows, table.count, sizeof(row), by_calls);
	return table;
}

/* Showing. */

static const char *clear_line = "";

static void show_row(const struct row *row)
{
	const double *rates = row->rates;

	printf("%7d ", (int)row->pid);
	if (row->run)
		printf("%6" PRIu64 " %8.0f %8.0f %8.0f %6.0f %6.0f %-12.12s ",
		       row->alive, rates[RATE_CALLS], rates[RATE_AVOIDED],
		       rates[RATE_SWITCHES], rates[RATE_RETURNS],
		       rates[RATE_STEALS], flexsc__report_cause(row->top));
	else
		printf("%6s %8.0f %8.0f %8s %6s %6s %-12s ", "-",
		       rates[RATE_CALLS], rates[RATE_AVOIDED], "-", "-", "-",
		       "-");
	printf("%s%s\n", row->program, clear_line);
}

static unsigned int rows_of_screen(void)
{
	struct winsize size;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || size.ws_row < 4)
		return 21;
	return size.ws_row - 3U;
}

static void show(const struct table *table, const struct settings *settings)
{
	unsigned int n = table->count;
	time_t now = time(NULL);
	struct tm tm;
	char clock[16];

	localtime_r(&now, &tm);
	strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
	if (!settings->batch && n > rows_of_screen())
		n = rows_of_screen();
	printf("flexsc top  %s  processes: %u, rates per second%s\n", clock,
	       table->count, clear_line);
	printf("%7s %6s %8s %8s %8s %6s %6s %-12s %s%s\n", "PID", "ALIVE",
	       "CALLS", "AVOIDED", "SWITCHES", "RETURN", "STEALS",
	       "MOSTLY FOR", "PROGRAM", clear_line);
	for (unsigned int i = 0; i < n; i++)
		show_row(&table->rows[i]);
}

/* The screen. */

static struct termios cooked;
static bool is_raw;

static void end(int signo)
{
	ended = 1;
}

static void screen_begin(void)
{
	const struct sigaction action = { .sa_handler = end };
	struct termios raw;

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	if (!tcgetattr(STDIN_FILENO, &cooked)) {
		raw = cooked;
		raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
		is_raw = !tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	}
	/* Switch to the alternate screen, and hide the cursor. */
	fputs("\033[?1049h\033[?25l", stdout);
	clear_line = "\033[K";
}

static void screen_end(void)
{
	fputs("\033[?25h\033[?1049l", stdout);
	fflush(stdout);
	if (is_raw)
		tcsetattr(STDIN_FILENO, TCSANOW, &cooked);
}

/* Pause until the next update, or the end. */
static void pause_for(const struct settings *settings)
{
	struct pollfd fd = { .fd = is_raw ? STDIN_FILENO : -1,
			     .events = POLLIN };
	uint64_t until = time_now() + settings->delay * SECOND;
	uint64_t now;
	char key;

	for (now = time_now(); now < until && !ended; now = time_now()) {
		if (poll(&fd, 1, (int)((until - now + 999999) / 1000000)) <= 0)
			continue;
		if (read(STDIN_FILENO, &key, 1) <= 0)
			fd.fd = -1;
		else if (key == 'q' || key == 'Q')
			ended = 1;
	}
}

static int top(const struct settings *settings)
{
	struct table before = { 0 }, now;

	if (!settings->batch)
		screen_begin();
	for (unsigned long i = 0; !ended; ) {
		now = look(&before);
		free(before.rows);
		before = now;
		if (!settings->batch)
			fputs("\033[H", stdout);
		else if (i)
			putchar('\n');
		show(&now, settings);
		if (!settings->batch)
			fputs("\033[J", stdout);
		if (fflush(stdout))
			break;
		if (++i == settings->number)
			break;
		pause_for(settings);
	}
	free(before.rows);
	if (!settings->batch)
		screen_end();
	return ferror(stdout) ? 1 : 0;
}

/* The command line. */

static bool number(const char *option, const char *text, unsigned long max,
		   unsigned long *value)
{
	char *end_of;

	errno = 0;
	*value = strtoul(text, &end_of, 10);
	if (!errno && end_of != text && !*end_of && *text != '-' && *value &&
	    *value <= max)
		return true;
	fprintf(stderr, "flexsc: top: %s %s: give a number from 1 to %lu\n",
		option, text, max);
	return false;
}

int command_top(int argc, char **argv)
{
	struct settings settings = { .delay = 1 };
	bool right = true;
	int option;

	while (right && (option = getopt_long(argc, argv, "bn:d:h", options,
					      NULL)) >= 0) {
		switch (option) {
		case 'b':
			settings.batch = true;
			break;
		case 'n':
			right = number("--number", optarg, 1000000000,
				       &settings.number);
			break;
		case 'd':
			right = number("--delay", optarg, 3600,
				       &settings.delay);
			break;
		case 'h':
			fputs(help, stdout);
			return 0;
		default:
			right = false;
			fputs("see flexsc top --help\n", stderr);
		}
	}
	if (right && optind < argc) {
		fprintf(stderr, "flexsc: top: unexpected argument \"%s\"; see "
				"flexsc top --help\n", argv[optind]);
		right = false;
	}
	if (right && !settings.batch && !isatty(STDOUT_FILENO)) {
		fputs("flexsc: top: standard output isn't a terminal; use "
		      "--batch\n", stderr);
		right = false;
	}
	return right ? top(&settings) : 2;
}
