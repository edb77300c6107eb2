/* SPDX-License-Identifier: MIT */
#include "tests/harness/harness.h"

#include "leaf.h"

#define FLAGS_KEPT	0xcd5	/* CF, PF, AF, ZF, SF, DF, OF */
#define FLAG_DF		0x400
#define MXCSR		0x1f80
#define X87_CONTROL	0x37f

uint32_t leaf_level, leaf_traps, leaf_handled;
void (*leaf_within)(void);

static uint32_t handling;

static void fill(void *at, size_t size, uint8_t salt)
{
	uint8_t *byte = at;

	for (size_t i = 0; i < size; i++)
		byte[i] = (uint8_t)(i * 7 + i / 64 * 13 + salt);
}

void leaf_prepare(void)
{
	leaf_level = __builtin_cpu_supports("avx512f") ? 2 :
		     __builtin_cpu_supports("avx")     ? 1 :
							 0;
	fill(&leaf_want, sizeof(leaf_want), 1);
	leaf_want.flags = FLAGS_KEPT | 2;
	/* The values that the instructions of the leaf store there. */
	leaf_want.red[15] = leaf_want.regs[10];
	leaf_want.red[0] = leaf_want.regs[5];
	leaf_want.mxcsr = MXCSR | 0x6015;
	leaf_want.x87_control = 0xc7f;
	for (int i = 0; i < 3; i++)
		leaf_want.x87[i] = i + 0.5;
	for (int i = 0; i < 8; i++)
		leaf_want.masks[i] &= 0xffff;
}

static void check_vectors(void)
{
	static const struct { size_t count, size; } levels[] = {
		{ 16, 16 }, { 16, 32 }, { 32, 64 }
	};

	for (size_t i = 0; i < levels[leaf_level].count; i++)
		CHECK(!memcmp(leaf_got.vectors[i], leaf_want.vectors[i],
			      levels[leaf_level].size));
	if (leaf_level == 2)
		CHECK(!memcmp(leaf_got.masks, leaf_want.masks,
			      sizeof(leaf_got.masks)));
}

void leaf_check(uint64_t rounds)
{
	leaf_want.regs[2] = rounds;
	leaf();
	leaf_want.regs[2] = 0;
	for (int i = 0; i < 15; i++)
		CHECK_EQ(leaf_got.regs[i], leaf_want.regs[i]);
	for (int i = 0; i < 16; i++)
		CHECK_EQ(leaf_got.red[i], leaf_want.red[i]);
	CHECK_EQ(leaf_got.flags & FLAGS_KEPT, leaf_want.flags & FLAGS_KEPT);
	CHECK_EQ(leaf_got.mxcsr, leaf_want.mxcsr);
	CHECK_EQ(leaf_got.x87_control, leaf_want.x87_control);
	for (int i = 0; i < 3; i++)
		CHECK(leaf_got.x87[i] == leaf_want.x87[i]);
	check_vectors();
}

/* Checks what the ABI guarantees at a function's entry. */
static void check_entry(void)
{
	struct {
		uint16_t control, status;
		uint8_t tags, more[507];
	} x87 __attribute__((aligned(16)));
	uint64_t flags;

	__asm__ volatile("pushfq; popq %0" : "=r"(flags) : : "memory");
	CHECK_EQ(flags & FLAG_DF, 0);
	__asm__ volatile("fxsave64 %0" : "=m"(x87));
	CHECK_EQ(x87.control, X87_CONTROL);
	CHECK_EQ(x87.tags, 0);
	CHECK_EQ(__builtin_ia32_stmxcsr(), MXCSR);
	CHECK_EQ((uintptr_t)__builtin_frame_address(0) % 16, 0);
}

bool leaf_on_stack;

/* Its end isn't aligned. */
static char leaf_stack[65536 - 24];

static void check_stack(void)
{
	const uintptr_t frame = (uintptr_t)__builtin_frame_address(0);

	CHECK_EQ(frame - (uintptr_t)leaf_stack < sizeof(leaf_stack),
		 leaf_on_stack);
}

static bool due(const struct flexsc_event_control *control)
{
	return __atomic_load_n(&control->notify, __ATOMIC_RELAXED) &
	       __atomic_load_n(&control->pending, __ATOMIC_ACQUIRE);
}

static void handle(struct flexsc__upcall *upcall)
{
	struct flexsc_event_control *control = upcall->control;
	int err = errno;

	check_entry();
	check_stack();
	CHECK_EQ(handling++, 0);
	CHECK_EQ(control->critical, 1);
	while (due(control)) {
		leaf_handled++;
		__atomic_fetch_and(&control->pending, 0, __ATOMIC_SEQ_CST);
		if (leaf_within)
			leaf_within();
	}
	errno = ENOTTY;
	leaf_clobber();
	handling--;
	errno = err;
}

bool leaf_upcall(struct flexsc__upcall *upcall,
		 struct flexsc_event_control *control, enum leaf_keep keep)
{
	size_t size = flexsc__upcall_probe(upcall);

	CHECK(size >= 576);
	if (keep == KEEP_COMPACT && !upcall->compact)
		return false;
	if (keep == KEEP_PLAIN) {
		upcall->compact = 0;
		size = 16384;
	}
	upcall->control = control;
	upcall->run = keep == KEEP_NOTHING ? leaf_handle_plainly : handle;
	upcall->room = keep == KEEP_NOTHING ? 0 : size;
	if (leaf_on_stack) {
		upcall->stack = (uintptr_t)leaf_stack;
		upcall->stack_size = sizeof(leaf_stack);
	}
	control->entry = (uintptr_t)flexsc__upcall_entry;
	control->tail_begin = (uintptr_t)flexsc__upcall_tail;
	control->tail_end = (uintptr_t)flexsc__upcall_tail_end;
	control->arg = (uintptr_t)upcall;
	control->notify = 1;
	leaf_prepare();
	return true;
}
