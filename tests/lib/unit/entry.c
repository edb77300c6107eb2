/* SPDX-License-Identifier: MIT */
/* The transitions ("arrows") of an entry's state, each taken from every state. */
#include "tests/harness/harness.h"

#include "lib/loop/entry.h"

#define STATUSES	5

static void finish(struct flexsc_entry *entry)
{
	entry_finish(entry, 0);
}

static void refuse(struct flexsc_entry *entry)
{
	entry_refuse(entry, 0);
}

static void begin(struct flexsc_entry *entry)
{
	entry_begin(entry);
}

static void cancel_submitted(struct flexsc_entry *entry)
{
	entry_cancel_submitted(entry);
}

static void cancel_busy(struct flexsc_entry *entry)
{
	entry_cancel_busy(entry);
}

/*
 * asks: the arrow is a compare-and-swap, which elsewhere has no effect and isn't an
 * error.
 */
static const struct arrow {
	void (*take)(struct flexsc_entry *entry);
	unsigned int from;
	uint8_t to;
	bool asks;
} arrows[] = {
	{ entry_submit, AT(FREE), FLEXSC_SUBMITTED, false },
	{ entry_submit_again, AT(DONE), FLEXSC_SUBMITTED, false },
	{ refuse, AT(SUBMITTED) | AT(CANCEL), FLEXSC_DONE, false },
	{ cancel_submitted, AT(SUBMITTED), FLEXSC_CANCEL, true },
	{ cancel_busy, AT(BUSY), FLEXSC_CANCEL, true },
	{ entry_free, AT(DONE), FLEXSC_FREE, false },
	{ begin, AT(SUBMITTED), FLEXSC_BUSY, true },
	{ entry_begin_alone, AT(SUBMITTED), FLEXSC_BUSY, false },
	{ finish, AT(BUSY) | AT(CANCEL), FLEXSC_DONE, false },
};

#define ARROWS	(sizeof(arrows) / sizeof(arrows[0]))

/* Returns how a process ends that takes the arrow in this state. */
static int end_of(const struct arrow *arrow, uint8_t status)
{
	const struct rlimit none = { 0, 0 };
	int pid = test_fork(), end;

	if (!pid) {
		struct flexsc_entry entry = { .status = status };

		setrlimit(RLIMIT_CORE, &none);
		close(2);
		arrow->take(&entry);
		_exit(entry.status);
	}
	CHECK_EQ(waitpid(pid, &end, 0), pid);
	return end;
}

TEST(each_arrow_leads_to_its_state)
{
	for (unsigned int i = 0; i < ARROWS; i++)
		for (uint8_t status = 0; status < STATUSES; status++)
			if (arrows[i].from & 1U << status) {
				int end = end_of(&arrows[i], status);

				CHECK(WIFEXITED(end));
				CHECK_EQ(WEXITSTATUS(end), arrows[i].to);
			}
}

TEST(an_undocumented_arrow_aborts_a_test_build)
{
	for (unsigned int i = 0; i < ARROWS; i++)
		for (uint8_t status = 0; status < STATUSES; status++) {
			int end;

			if (arrows[i].from & 1U << status)
				continue;
			end = end_of(&arrows[i], status);
			if (arrows[i].asks) {
				CHECK(WIFEXITED(end));
				CHECK_EQ(WEXITSTATUS(end), status);
				continue;
			}
#ifdef FLEXSC_CHECKS
			CHECK(WIFSIGNALED(end));
			CHECK_EQ(WTERMSIG(end), SIGABRT);
#endif
		}
}
