/* SPDX-License-Identifier: MIT */
/* Lists of cores, such as "0,2-3". */
#include "tests/harness/harness.h"

#include "lib/base/cores.h"

static cpu_set_t usable;

/* Finds the cores on which a thread can run, by trying each of them. */
static int find_usable(void)
{
	cpu_set_t mine, one;
	int first = -1;

	CHECK_EQ(sched_getaffinity(0, sizeof(mine), &mine), 0);
	CPU_ZERO(&usable);
	for (int core = 0; core < CORES_MAX; core++) {
		CPU_ZERO(&one);
		CPU_SET(core, &one);
		if (sched_setaffinity(0, sizeof(one), &one))
			continue;
		CPU_SET(core, &usable);
		if (first < 0)
			first = core;
	}
	CHECK_EQ(sched_setaffinity(0, sizeof(mine), &mine), 0);
	CHECK(first >= 0);
	return first;
}

/*
 * The list selects the usable cores from "first" to "last", the core "also", and no
 * others.
 */
static void check_list(const char *list, int first, int last, int also)
{
	cpu_set_t cores;

	if (flexsc__cores_parse(list, &cores))
		test_fail(__FILE__, __LINE__, "\"%s\" was refused", list);
	for (int core = 0; core < CORES_MAX; core++) {
		bool in = CPU_ISSET(core, &usable) &&
			  ((core >= first && core <= last) || core == also);

		if (in != !!CPU_ISSET(core, &cores))
			test_fail(__FILE__, __LINE__, "\"%s\": core %d", list,
				  core);
	}
}

TEST(lists_and_ranges)
{
	int core = find_usable();
	char list[64];

	snprintf(list, sizeof(list), "%d", core);
	check_list(list, core, core, core);
	snprintf(list, sizeof(list), "%d-%d", core, core);
	check_list(list, core, core, core);
	snprintf(list, sizeof(list), "%d-%d", core, core + 3);
	check_list(list, core, core + 3, core);
	snprintf(list, sizeof(list), "1000,%d-%d", core, core + 1);
	check_list(list, core, core + 1, 1000);
	snprintf(list, sizeof(list), "%d,%d,%d", core, core, core);
	check_list(list, core, core, core);
	snprintf(list, sizeof(list), "%03d", core);
	check_list(list, core, core, core);
	check_list("0-1023", 0, 1023, 0);
}

/* The cores come in the list's order, each once, without the unusable ones. */
TEST(the_order_of_a_list)
{
	int first = find_usable(), second;
	struct cores cores;
	char list[64];

	for (second = first + 1; second < CORES_MAX; second++)
		if (CPU_ISSET(second, &usable))
			break;
	if (second == CORES_MAX)
		SKIP("needs two cores");
	snprintf(list, sizeof(list), "%d,1023,%d-%d,%d", second, first, second,
		 second);
	CHECK_EQ(flexsc__cores_list(list, &cores), 0);
	CHECK(cores.count >= 2);
	CHECK_EQ(cores.core[0], second);
	CHECK_EQ(cores.core[1], first);
	for (unsigned int i = 0; i < cores.count; i++)
		CHECK(CPU_ISSET(cores.core[i], &usable));
}

TEST(anything_else_is_refused)
{
	static const char *const bad[] = {
		"", ",", "-", "x", "1x", "x1", "1-", "-1", "3-1", "0,,1", "0,",
		",0", "0-", "0-1-2", "0--1", "0 ", " 0", "0x1", "+1", "1e3",
		"0;1", "0.5", "1024", "0-1024", "99999", "4294967296",
		"18446744073709551616", "99999999999999999999999999", "0\n",
	};
	cpu_set_t cores;

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		if (flexsc__cores_parse(bad[i], &cores) != -EINVAL)
			test_fail(__FILE__, __LINE__, "\"%s\" was accepted", bad[i]);
}

/* A list of cores that the process may not use. */
TEST(unusable_cores_are_refused)
{
	cpu_set_t cores;

	if (sysconf(_SC_NPROCESSORS_CONF) > 1023)
		SKIP("no core number is unused");
	CHECK_EQ(flexsc__cores_parse("1023", &cores), -EINVAL);
}

/*
 * Another thread may run on cores that the calling thread may not use. The caller's
 * affinity doesn't change.
 */
TEST(the_callers_own_affinity_is_no_limit)
{
	cpu_set_t only, cores, after;
	int core = find_usable(), other;
	char list[16];

	for (other = core + 1; other < CORES_MAX; other++)
		if (CPU_ISSET(other, &usable))
			break;
	if (other == CORES_MAX)
		SKIP("needs two cores");
	CPU_ZERO(&only);
	CPU_SET(core, &only);
	CHECK_EQ(sched_setaffinity(0, sizeof(only), &only), 0);
	snprintf(list, sizeof(list), "%d", other);
	CHECK_EQ(flexsc__cores_parse(list, &cores), 0);
	CHECK(CPU_ISSET(other, &cores));
	CHECK_EQ(sched_getaffinity(0, sizeof(after), &after), 0);
	CHECK(CPU_EQUAL(&only, &after));
}

/*
 * Other than flexsc__cores_parse(), flexsc__cores_split() refuses a list with any
 * unusable core, and one that leaves no core.
 */
TEST(the_rest_of_the_cores)
{
	int first = find_usable(), second;
	char list[64], why[120] = "";
	cpu_set_t mine, rest;

	for (second = first + 1; second < CORES_MAX; second++)
		if (CPU_ISSET(second, &usable))
			break;
	if (second == CORES_MAX || CPU_ISSET(1023, &usable))
		SKIP("needs two cores, and an unused number");
	CPU_ZERO(&mine);
	CPU_SET(first, &mine);
	CPU_SET(second, &mine);
	CHECK_EQ(sched_setaffinity(0, sizeof(mine), &mine), 0);
	snprintf(list, sizeof(list), "%d", second);
	CHECK_EQ(flexsc__cores_split(list, &rest, why, sizeof(why)), 0);
	CHECK(CPU_ISSET(first, &rest) && CPU_COUNT(&rest) == 1);
	snprintf(list, sizeof(list), "%d,1023", second);
	CHECK_EQ(flexsc__cores_split(list, &rest, why, sizeof(why)), -EINVAL);
	CHECK(strstr(why, "core 1023"));
	snprintf(list, sizeof(list), "%d,%d", second, first);
	CHECK_EQ(flexsc__cores_split(list, &rest, why, sizeof(why)), -EINVAL);
	CHECK(strstr(why, "no core"));
	CHECK_EQ(flexsc__cores_split("1,", &rest, why, sizeof(why)), -EINVAL);
	CHECK(strstr(why, "give a list"));
}

/* No list of up to five of these characters crashes the parser. */
TEST(every_short_list)
{
	static const char characters[] = "01-, ";
	unsigned int n = 5 * 5 * 5 * 5 * 5, good = 0;
	cpu_set_t cores;

	for (unsigned int i = 0; i < n; i++) {
		char list[6] = "";
		int ret;

		for (unsigned int c = 0, left = i; c < 5; c++, left /= 5)
			list[c] = characters[left % 5];
		ret = flexsc__cores_parse(list, &cores);
		CHECK(ret == 0 || ret == -EINVAL);
		good += ret == 0;
	}
	CHECK(good > 0 && good < n / 2);
}
