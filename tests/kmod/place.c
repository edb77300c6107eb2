// SPDX-License-Identifier: MIT
/* The processor on which a call executes, and calls that take long. */
#include "place.h"

char marks[2][32];

int place_set(const struct flexsc_policy *policy)
{
	return ioctl(raw.fd, FLEXSC_IOC_SET_POLICY, policy) ? -errno : 0;
}

struct flexsc_policy place_on(int first, int second)
{
	struct flexsc_policy policy = { .backlog = 64 };

	if (first >= 0)
		policy.core[policy.cores++] = (uint16_t)first;
	if (second >= 0)
		policy.core[policy.cores++] = (uint16_t)second;
	return policy;
}

void place_begin_with(uint32_t pages, int first, int second)
{
	struct flexsc_policy policy = place_on(first, second);

	if (sysconf(_SC_NPROCESSORS_ONLN) < 4)
		SKIP("needs four processors");
	raw_begin(pages, 0);
	CHECK(raw_move(0));
	CHECK_EQ(place_set(&policy), 0);
}

void place_begin(int first, int second)
{
	place_begin_with(8, first, second);
}

void place_mark(uint32_t index, uint8_t flags, int which)
{
	static int fd = -1, count;
	char *text = marks[which];

	if (fd < 0)
		fd = open(TRACING "trace_marker", O_WRONLY | O_CLOEXEC);
	CHECK(fd >= 0);
	snprintf(text, sizeof(marks[0]), "flexsc %d %d\n", getpid(), count++);
	raw_post(&raw, index, flags, SYS_write, fd, text, strlen(text));
}

int place_marked(int which)
{
	char *line = NULL, *cpu;
	size_t size = 0;
	int found = -1;
	FILE *trace = fopen(TRACING "trace", "re");

	CHECK(trace);
	while (found < 0 && getline(&line, &size, trace) > 0) {
		cpu = strchr(line, '[');
		if (strstr(line, marks[which]) && cpu)
			found = atoi(cpu + 1);
	}
	free(line);
	fclose(trace);
	return found;
}

int place_where(uint8_t flags)
{
	place_mark(0, flags, 0);
	raw_collect(&raw, 1);
	CHECK(raw.entries[0].ret > 0);
	return place_marked(0);
}

void place_call(void)
{
	raw_post(&raw, 0, 0, SYS_getppid);
	raw_collect(&raw, 1);
}

uint8_t place_status(uint32_t index)
{
	return __atomic_load_n(&raw.entries[index].status, __ATOMIC_ACQUIRE);
}

bool place_becomes(uint32_t index, uint8_t wanted, int ms)
{
	for (; place_status(index) != wanted && ms > 0; ms--)
		usleep(1000);
	return place_status(index) == wanted;
}

bool place_returns_to(int core)
{
	for (int i = 0; i < 100; i++)
		if (place_where(0) == core)
			return true;
	return false;
}

bool place_prefers(int core)
{
	for (int tries = 0; tries < 20; tries++) {
		int there = 0;

		for (int i = 0; i < 10; i++)
			there += place_where(0) == core;
		if (there >= 9)
			return true;
	}
	return false;
}

struct iovec *place_slow_parts(void)
{
	static struct iovec parts[SLOW_PARTS];
	static char bytes[1 << 20];

	/* Present pages, so that the call doesn't wait for one. */
	memset(bytes, 1, sizeof(bytes));
	for (int i = 0; i < SLOW_PARTS; i++)
		parts[i] = (struct iovec){ bytes, sizeof(bytes) };
	return parts;
}

void place_post_slow(uint32_t index)
{
	int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);

	CHECK(fd >= 0);
	raw_post(&raw, index, DEFER, SYS_readv, fd, place_slow_parts(), SLOW_PARTS);
	/* By then each requested thread exists and is idle. */
	raw_kick(&raw);
	CHECK(place_becomes(index, FLEXSC_BUSY, 10000));
}

