// SPDX-License-Identifier: GPL-2.0-only
/*
 * debugfs: flexsc/registrations, one paragraph for each registration, for root.
 */
#include <linux/debugfs.h>
#include <linux/seq_file.h>

#include "debug.h"
#include "registration.h"
#include "slot.h"

static DEFINE_MUTEX(lock);
static LIST_HEAD(all);
static u32 last_id;
static struct dentry *folder;

static const char *const names[COUNTERS] = {
	[COUNT_EXECUTED] = "executed",
	[COUNT_INLINE] = "inline",
	[COUNT_BLOCKED] = "blocked",
	[COUNT_BOUNCED] = "bounced",
	[COUNT_ASIDE] = "aside",
	[COUNT_INTERRUPTED] = "interrupted",
	[COUNT_TAKEOVERS] = "takeovers",
	[COUNT_CANCELLED] = "cancelled",
	[COUNT_RESTARTED] = "restarted",
	[COUNT_WAKEUPS] = "wakeups",
	[COUNT_WAITS] = "waits",
	[COUNT_KICKS] = "kicks",
};

static const char *const slot_names[SLOT_COUNTERS] = {
	[SLOT_BATCHES] = "batches",
	[SLOT_TAKEN] = "taken",
	[SLOT_BLOCKED] = "blocked",
	[SLOT_BOUNCED] = "bounced",
};

static const char *const spins[] = {
	[FLEXSC_SPIN_OFF] = "off",
	[FLEXSC_SPIN_FIXED] = "fixed",
	[FLEXSC_SPIN_ADAPTIVE] = "adaptive",
};

static const char *const states[] = {
	[FLEXSC_FREE] = "free",
	[FLEXSC_SUBMITTED] = "submitted",
	[FLEXSC_BUSY] = "busy",
	[FLEXSC_DONE] = "done",
	[FLEXSC_CANCEL] = "cancel",
};

void debug_add(struct registration *reg)
{
	mutex_lock(&lock);
	reg->id = ++last_id;
	list_add_tail(&reg->all, &all);
	mutex_unlock(&lock);
}

void debug_remove(struct registration *reg)
{
	mutex_lock(&lock);
	list_del(&reg->all);
	mutex_unlock(&lock);
}

static void show_states(struct seq_file *file, struct registration *reg)
{
	u32 in[ARRAY_SIZE(states)] = { 0 };
	u32 i;

	for (i = 0; i < reg->entry_count; i++) {
		u8 status = READ_ONCE(reg->entries[i].status);

		if (status < ARRAY_SIZE(states))
			in[status]++;
	}
	for (i = 0; i < ARRAY_SIZE(states); i++)
		seq_printf(file, " %s %u", states[i], in[i]);
	seq_puts(file, "\n");
}

static void show_slot(struct seq_file *file, const struct slot *slot)
{
	const char *state = "free";
	int i;

	if (READ_ONCE(slot->active))
		state = READ_ONCE(slot->spins) ? "spins" : "active";
	seq_printf(file, " core %d %s", READ_ONCE(slot->core), state);
	for (i = 0; i < SLOT_COUNTERS; i++)
		seq_printf(file, " %s %lld", slot_names[i],
			   atomic64_read(&slot->counts[i]));
	seq_puts(file, "\n");
}

static void show_policy(struct seq_file *file, struct registration *reg)
{
	u32 i;

	seq_printf(file, " spin %s ns %u\n", spins[READ_ONCE(reg->policy.spin)],
		   READ_ONCE(reg->spin_ns));
	for (i = 0; i < READ_ONCE(reg->slot_count); i++)
		show_slot(file, &reg->slots[i]);
}

static int registrations_show(struct seq_file *file, void *unused)
{
	struct registration *reg;
	int i;

	mutex_lock(&lock);
	list_for_each_entry(reg, &all, all) {
		seq_printf(file, "registration %u pid %d entries %u idle %d\n",
			   reg->id, reg->pid, reg->entry_count,
			   atomic_read(&reg->idle_count));
		show_states(file, reg);
		show_policy(file, reg);
		for (i = 0; i < COUNTERS; i++)
			seq_printf(file, " %s %lld", names[i],
				   atomic64_read(&reg->counts[i]));
		seq_puts(file, "\n");
	}
	mutex_unlock(&lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(registrations);

void debug_init(void)
{
	folder = debugfs_create_dir("flexsc", NULL);
	debugfs_create_file("registrations", 0400, folder, NULL, &registrations_fops);
}

void debug_exit(void)
{
	debugfs_remove(folder);
}
