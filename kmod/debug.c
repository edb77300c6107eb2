// SPDX-License-Identifier: GPL-2.0-only
/*
 * debugfs: flexsc/registrations, one paragraph per registration, readable by
 * root.
 */
#include <linux/debugfs.h>
#include <linux/seq_file.h>

#include "base/entry.h"
#include "base/registration.h"
#include "kmod.h"
#include "sched/permit.h"

static DEFINE_MUTEX(debug_lock);
static LIST_HEAD(debug_all);
static u32 debug_last_id;
static struct dentry *debug_folder;

static const char *const debug_names[] = {
	[COUNT_EXECUTED] = "executed",
	[COUNT_INLINE] = "inline",
	[COUNT_BLOCKED] = "blocked",
	[COUNT_BOUNCED] = "bounced",
	[COUNT_DEFERRED] = "deferred",
	[COUNT_INTERRUPTED] = "interrupted",
	[COUNT_TAKEOVERS] = "takeovers",
	[COUNT_CANCELLED] = "cancelled",
	[COUNT_RESTARTED] = "restarted",
	[COUNT_WAKEUPS] = "wakeups",
	[COUNT_WAITS] = "waits",
	[COUNT_KICKS] = "kicks",
};

/* A new counter needs a name in debug_names. */
static_assert(ARRAY_SIZE(debug_names) == COUNTERS);

static const char *const debug_permit_names[] = {
	[PERMIT_BATCHES] = "batches",
	[PERMIT_TAKEN] = "taken",
	[PERMIT_BLOCKED] = "blocked",
	[PERMIT_BOUNCED] = "bounced",
};

static_assert(ARRAY_SIZE(debug_permit_names) == PERMIT_COUNTERS);

static const char *const debug_spins[] = {
	[FLEXSC_SPIN_OFF] = "off",
	[FLEXSC_SPIN_FIXED] = "fixed",
	[FLEXSC_SPIN_ADAPTIVE] = "adaptive",
};

static const char *const debug_states[] = {
	[FLEXSC_FREE] = "free",
	[FLEXSC_SUBMITTED] = "submitted",
	[FLEXSC_BUSY] = "busy",
	[FLEXSC_DONE] = "done",
	[FLEXSC_CANCEL] = "cancel",
};

void debug_add(struct registration *reg)
{
	mutex_lock(&debug_lock);
	reg->id = ++debug_last_id;
	list_add_tail(&reg->all, &debug_all);
	mutex_unlock(&debug_lock);
}

void debug_remove(struct registration *reg)
{
	mutex_lock(&debug_lock);
	list_del(&reg->all);
	mutex_unlock(&debug_lock);
}

static void debug_show_states(struct seq_file *file, struct registration *reg)
{
	u32 in[ARRAY_SIZE(debug_states)] = { 0 };
	u32 i;

	for (i = 0; i < reg->entry_count; i++) {
		u8 status = entry_status(&reg->entries[i]);

		if (status < ARRAY_SIZE(debug_states))
			in[status]++;
	}
	for (i = 0; i < ARRAY_SIZE(debug_states); i++)
		seq_printf(file, " %s %u", debug_states[i], in[i]);
	seq_puts(file, "\n");
}

static void debug_show_permit(struct seq_file *file, const struct permit *permit)
{
	const char *state = "free";
	int i;

	if (READ_ONCE(permit->active))
		state = READ_ONCE(permit->spins) ? "spins" : "active";
	seq_printf(file, " core %d %s", READ_ONCE(permit->core), state);
	for (i = 0; i < PERMIT_COUNTERS; i++)
		seq_printf(file, " %s %lld", debug_permit_names[i],
			   atomic64_read(&permit->counts[i]));
	seq_puts(file, "\n");
}

static void debug_show_policy(struct seq_file *file, struct registration *reg)
{
	u32 i;

	seq_printf(file, " spin %s ns %u\n",
		   debug_spins[READ_ONCE(reg->policy.spin)],
		   READ_ONCE(reg->spin_ns));
	for (i = 0; i < READ_ONCE(reg->permit_count); i++)
		debug_show_permit(file, &reg->permits[i]);
}

static int debug_registrations_show(struct seq_file *file, void *unused)
{
	struct registration *reg;
	int i;

	mutex_lock(&debug_lock);
	list_for_each_entry(reg, &debug_all, all) {
		seq_printf(file, "registration %u pid %d entries %u idle %d\n",
			   reg->id, reg->pid, reg->entry_count,
			   atomic_read(&reg->idle_count));
		debug_show_states(file, reg);
		debug_show_policy(file, reg);
		for (i = 0; i < COUNTERS; i++)
			seq_printf(file, " %s %lld", debug_names[i],
				   atomic64_read(&reg->counts[i]));
		seq_puts(file, "\n");
		cond_resched();
	}
	mutex_unlock(&debug_lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(debug_registrations);

void debug_init(void)
{
	debug_folder = debugfs_create_dir("flexsc", NULL);
	debugfs_create_file("registrations", 0400, debug_folder, NULL,
			    &debug_registrations_fops);
}

void debug_exit(void)
{
	debugfs_remove(debug_folder);
}
