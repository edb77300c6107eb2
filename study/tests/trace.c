/* SPDX-License-Identifier: MIT */
/*
 * flexsc study --raw load trace=FILE: reading a trace, the files that it names,
 * and the agenda of thinking clients.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/harness/harness.h"
#include "study/load/agenda.h"
#include "study/load/fileset.h"
#include "study/load/trace.h"

#define MS	1000000ULL

/* The set's description: a page of each size that a trace may name here. */
static struct bench_fileset set;

static void add(const char *name, size_t size)
{
	static unsigned char body[1];
	struct bench_file *file = &set.files[set.count++];

	*file = (struct bench_file){ .size = size, .body = body };
	strcpy(file->name, name);
}

static void make_set(void)
{
	static struct bench_file files[8];

	set = (struct bench_fileset){ .files = files };
	add("dir00001/class0_1", 102);
	add("dir00002/class3_9", 921600);
	add("pages/1", 1);
	add("pages/2", 2);
	add("pages/3", 3);
	add("pages/4", 4);
	add("pages/64", 64);
	add("pages/8192", 8192);
}

/* Read a text as a trace. Returns the result of bench_trace_read(). */
static int read_text(struct bench_trace *trace, const char *text, long think)
{
	int fd = memfd_create("trace", 0), err;
	char path[32];

	make_set();
	CHECK(fd >= 0);
	CHECK_EQ(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	snprintf(path, sizeof(path), "/dev/fd/%d", fd);
	err = bench_trace_read(trace, path, &set, think);
	close(fd);
	return err;
}

static bool asks(const struct bench_page *page, const char *target)
{
	char line[64];

	snprintf(line, sizeof(line), "GET /%s HTTP/1.1\r\n", target);
	return !strncmp(page->get, line, strlen(line)) &&
	       strlen(page->get) == page->request_size;
}

TEST(a_trace_has_sessions_of_requests)
{
	struct bench_trace trace;
	struct bench_page *page;
	size_t left;

	CHECK_EQ(read_text(&trace, "# a comment\n\n\n"
			   "/dir00001/class0_1 think=0.5\n"
			   "/dir00002/class3_9\n"
			   "# between a session's lines\n"
			   "/pages/64   think=2\n"
			   " \t \n"
			   "/pages/8192", 100), 0);
	CHECK_EQ(trace.session_count, 2);
	CHECK_EQ(trace.page_count, 4);
	page = bench_trace_session(&trace, 0, &left);
	CHECK_EQ(left, 2);
	CHECK(asks(&page[0], "dir00001/class0_1"));
	CHECK_EQ(page[0].size, 102);
	CHECK_EQ(page[0].think, 500 * MS);
	CHECK(page[0].learned);
	CHECK_EQ(page[1].size, 921600);
	CHECK_EQ(page[1].think, 0);
	CHECK_EQ(page[2].think, 2000 * MS);
	page = bench_trace_session(&trace, 1, &left);
	CHECK_EQ(left, 0);
	CHECK(asks(page, "pages/8192"));
	/* After the last session the trace begins again. */
	CHECK(bench_trace_session(&trace, 2, &left) == trace.pages);
	bench_trace_fini(&trace);
}

TEST(what_is_no_trace_is_refused)
{
	static const char *const texts[] = {
		"", "\n# nothing\n", "pages/1\n", "/pages/5\n", "/\n",
		"/pages/1 think\n", "/pages/1 think=\n", "/pages/1 method=GET\n",
		"/pages/1 think=-1\n", "/pages/1 think=nan\n",
		"/pages/1 think=86401\n", "/pages/1 think=1s\n",
		"/pages/1 size=1\n",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct bench_trace trace;

		printf("# %s\n", strtok(strdupa(texts[i]), "\n") ?: "");
		CHECK_EQ(read_text(&trace, texts[i], 100), 1);
		bench_trace_fini(&trace);
	}
}

/* Visits are taken in the order of their due times, and none is lost. */
TEST(who_thinks_is_taken_in_order)
{
	enum { COUNT = 1000 };
	static struct bench_visit visits[COUNT];
	struct bench_agenda agenda = { };
	uint64_t last = 0, sum = 0, taken = 0;
	struct bench_visit *visit;

	CHECK_EQ(bench_agenda_due(&agenda), UINT64_MAX);
	CHECK(!bench_agenda_take(&agenda));
	for (uint64_t i = 0; i < COUNT; i++) {
		visits[i].due = (i * 7919) % 499;
		sum += visits[i].due;
		CHECK(bench_agenda_add(&agenda, &visits[i]));
	}
	while (agenda.count > COUNT / 2) {
		CHECK_EQ(bench_agenda_due(&agenda), agenda.heap[0]->due);
		visit = bench_agenda_take(&agenda);
		CHECK(visit->due >= last);
		last = visit->due;
		taken += last;
	}
	/* Some visits are added again, with a later time. */
	for (int i = 0; i < 100; i++) {
		visit = bench_agenda_take(&agenda);
		CHECK(visit->due >= last);
		last = visit->due;
		visit->due += 10;
		CHECK(bench_agenda_add(&agenda, visit));
		sum += 10;
	}
	while ((visit = bench_agenda_take(&agenda))) {
		CHECK(visit->due >= last);
		last = visit->due;
		taken += last;
	}
	CHECK_EQ(taken, sum);
	bench_agenda_fini(&agenda);
}
