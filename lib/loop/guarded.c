/* SPDX-License-Identifier: MIT */
#include "guarded.h"

#include "lib/calls/call_info.h"
#include "lib/files/closing.h"
#include "lib/files/fds.h"
#include "lib/files/guard.h"
#include "loop.h"

/*
 * An iteration over the descriptors among an entry's arguments: the current argument,
 * and the index of its guard.
 */
struct named {
	unsigned int arg, guard;
	unsigned int rest;	/* remaining descriptors: bit n is argument n */
};

static bool next_named(struct named *named)
{
	if (!named->rest)
		return false;
	named->arg = (unsigned int)__builtin_ctz(named->rest);
	named->rest &= named->rest - 1;
	named->guard++;
	return named->guard < CALL_GUARDS;
}

/* Begin an iteration, before the entry's first descriptor. */
static struct named names_of(const struct flexsc_entry *entry)
{
	return (struct named){ .guard = -1U,
			       .rest = flexsc__call_info(entry->nr)->fds };
}

static bool has_guard(const struct call *call, unsigned int guard)
{
	/* G1: acquires the guard that G2 has published. */
	return __atomic_load_n(&call->guarded, __ATOMIC_ACQUIRE) >> guard & 1;
}

static void set_guard(struct call *call, unsigned int which,
		      struct guard *guard)
{
	call->by_entry.guards[which] = guard;
	/* G2: publishes the guard; pairs with G1. */
	__atomic_store_n(&call->guarded,
			 (uint8_t)(call->guarded | 1U << which),
			 __ATOMIC_RELEASE);
}

/* Atomic, because another thread may read the argument in flexsc__call_names(). */
static void set_argument(struct flexsc_entry *entry, unsigned int arg, int fd)
{
	__atomic_store_n(&entry->args[arg], (uint64_t)fd, __ATOMIC_RELAXED);
}

void flexsc__call_guard(struct flexsc_loop *loop, uint32_t index)
{
	struct flexsc_entry *entry = entry_of(loop, index);
	struct call *call = call_of(loop, index);
	struct named named = names_of(entry);

	if (closes(entry))
		return;
	while (next_named(&named)) {
		struct guard *guard;

		if (has_guard(call, named.guard))
			continue;
		guard = flexsc__guard_begin((uint32_t)entry->args[named.arg]);
		if (guard)
			set_guard(call, named.guard, guard);
	}
}

bool flexsc__call_join(struct flexsc_loop *loop, uint32_t index, uint32_t fd,
		       struct guard *guard)
{
	struct flexsc_entry *entry = entry_of(loop, index);
	struct call *call = call_of(loop, index);
	struct named named = names_of(entry);
	bool joined = false;

	if (closes(entry))
		return false;
	while (next_named(&named)) {
		if ((uint32_t)entry->args[named.arg] != fd)
			continue;
		joined = true;
		if (has_guard(call, named.guard))
			continue;
		flexsc__guard_join(guard);
		set_guard(call, named.guard, guard);
	}
	return joined;
}

/*
 * May the guard's descriptor be duplicated? Not that of a file on a disk: see
 * files/guard.h.
 */
static bool can_copy(const struct guard *guard)
{
	return flexsc__fds_kind((uint32_t)guard_fd(guard)) &
	       ~(uint32_t)FD_PLACED;
}

bool flexsc__call_keep(struct flexsc_loop *loop, uint32_t index)
{
	const struct flexsc_entry *entry = entry_of(loop, index);
	struct call *call = call_of(loop, index);
	struct named named = names_of(entry);
	bool all = true;

	while (next_named(&named)) {
		struct guard **guard = &call->by_entry.guards[named.guard];

		if (!has_guard(call, named.guard) || !can_copy(*guard) ||
		    flexsc__guard_copy(guard))
			all = false;
	}
	flexsc__call_renew(loop, index);
	return all;
}

bool flexsc__call_renew(struct flexsc_loop *loop, uint32_t index)
{
	struct flexsc_entry *entry = entry_of(loop, index);
	const struct call *call = call_of(loop, index);
	struct named named = names_of(entry);
	bool changes = false;

	while (call->guarded && next_named(&named)) {
		int fd;

		if (!has_guard(call, named.guard))
			continue;
		fd = guard_fd(call->by_entry.guards[named.guard]);
		changes |= (int)entry->args[named.arg] != fd;
		set_argument(entry, named.arg, fd);
	}
	return changes;
}

void flexsc__call_unguard(struct flexsc_loop *loop, uint32_t index)
{
	struct call *call = call_of(loop, index);
	unsigned int guarded = call->guarded;

	__atomic_store_n(&call->guarded, 0, __ATOMIC_RELAXED);
	for (; guarded; guarded &= guarded - 1)
		flexsc__guard_end(
			call->by_entry.guards[__builtin_ctz(guarded)]);
}

bool flexsc__call_names(const struct flexsc_loop *loop, uint32_t index, int fd)
{
	const struct flexsc_entry *entry = entry_of(loop, index);
	const struct call *call = call_of(loop, index);
	struct named named = names_of(entry);

	while (next_named(&named)) {
		uint64_t arg = __atomic_load_n(&entry->args[named.arg],
					       __ATOMIC_RELAXED);

		if (has_guard(call, named.guard) ?
			    guard_is_named(call->by_entry.guards[named.guard], fd) :
			    (int)arg == fd)
			return true;
	}
	return false;
}
