/* SPDX-License-Identifier: MIT */
/*
 * The arena grows in place, up to its limit, and reports failures by error codes
 * only.
 */
#include "tests/harness/harness.h"

#include "lib/loop/arena.h"

struct element {
	uint64_t words[3];
};

static struct element *element(const struct arena *arena, uint32_t i)
{
	return (struct element *)arena->base + i;
}

static void check_and_mark(struct arena *arena, uint32_t first)
{
	for (uint32_t i = 0; i < first; i++)
		CHECK_EQ(element(arena, i)->words[2], i + 1);
	for (uint32_t i = first; i < arena->count; i++) {
		CHECK_EQ(element(arena, i)->words[0], 0);
		CHECK_EQ(element(arena, i)->words[2], 0);
		element(arena, i)->words[2] = i + 1;
	}
}

TEST(an_arena_grows_in_place_and_keeps_its_contents)
{
	struct arena arena;
	void *base;

	CHECK_EQ(flexsc__arena_init(&arena, sizeof(struct element), 100000), 0);
	CHECK_EQ(arena.count, 0);
	CHECK_EQ(arena_bytes(&arena), 0);
	base = arena.base;
	while (arena.count < arena.max) {
		uint32_t before = arena.count;

		CHECK_EQ(flexsc__arena_grow(&arena), 0);
		CHECK(arena.count > before && arena.count <= arena.max);
		CHECK(arena.base == base);
		CHECK_EQ(arena_bytes(&arena),
			 arena.count * sizeof(struct element));
		check_and_mark(&arena, before);
	}
	CHECK_EQ(arena.count, 100000);
	CHECK_EQ(flexsc__arena_grow(&arena), -ENOSPC);
	check_and_mark(&arena, arena.count);
	flexsc__arena_fini(&arena);
	CHECK(!arena.base);
	flexsc__arena_fini(&arena);
}

/* Odd sizes and small limits, so that pages end within elements. */
TEST(every_size_and_limit)
{
	for (size_t size = 1; size <= 5000; size = size * 3 + 1)
		for (uint32_t max = 1; max <= 3000; max = max * 2 + 1) {
			unsigned int maps = count_maps();
			struct arena arena;

			CHECK_EQ(flexsc__arena_init(&arena, size, max), 0);
			while (!flexsc__arena_grow(&arena))
				memset((char *)arena.base, 1,
				       arena_bytes(&arena));
			CHECK_EQ(arena.count, max);
			flexsc__arena_fini(&arena);
			if (!SANITIZED)
				CHECK(count_maps() <= maps + 1);
		}
}

TEST(too_little_memory_is_an_error_code)
{
	static const int calls[] = { SYS_mprotect };
	struct arena arena;
	uint32_t count;

	CHECK_EQ(flexsc__arena_init(&arena, 64, 1 << 20), 0);
	CHECK_EQ(flexsc__arena_grow(&arena), 0);
	count = arena.count;
	forbid(calls, 1, ENOMEM);
	CHECK_EQ(flexsc__arena_grow(&arena), -ENOMEM);
	CHECK_EQ(arena.count, count);
	memset(arena.base, 1, arena_bytes(&arena));
	flexsc__arena_fini(&arena);
}

TEST(a_smaller_address_space_gives_a_smaller_arena)
{
	struct rlimit limit = { 1 << 30, RLIM_INFINITY };
	struct arena arena;

	if (SANITIZED)
		SKIP("a sanitizer reserves the address space");
	CHECK_EQ(setrlimit(RLIMIT_AS, &limit), 0);
	CHECK_EQ(flexsc__arena_init(&arena, 4096, 1 << 24), 0);
	CHECK(arena.max < 1 << 24 && arena.max >= 1 << 10);
	CHECK_EQ(flexsc__arena_grow(&arena), 0);
	flexsc__arena_fini(&arena);
	limit.rlim_cur = 1;
	CHECK_EQ(setrlimit(RLIMIT_AS, &limit), 0);
	CHECK_EQ(flexsc__arena_init(&arena, 4096, 1 << 24), -ENOMEM);
}

/*
 * The kernel may write to this memory on behalf of the parent, so a child doesn't
 * share it.
 */
TEST(a_child_does_not_inherit_the_arena)
{
	struct arena arena;
	unsigned char there;
	int pid;

	CHECK_EQ(flexsc__arena_init(&arena, 64, 1 << 10), 0);
	CHECK_EQ(flexsc__arena_grow(&arena), 0);
	CHECK_EQ(mincore(arena.base, 4096, &there), 0);
	pid = test_fork();
	if (pid == 0) {
		CHECK_EQ(mincore(arena.base, 4096, &there), -1);
		CHECK_EQ(errno, ENOMEM);
		test_leave();
	}
	test_reap(pid);
	flexsc__arena_fini(&arena);
}
