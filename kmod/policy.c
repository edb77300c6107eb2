// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which cores syscall threads run on, and how long they look for work before
 * they sleep (OSDI 2010, section 3.6). Set at any time, by any thread of the
 * process; who is running finds out when it takes a slot or looks for work.
 */
#include <linux/cpumask.h>
#include <linux/ktime.h>
#include <linux/sched.h>
#include <linux/uaccess.h>

#include "registration.h"

#define SPIN_US_MAX	10000
#define SPIN_LEAST	1000	/* ns */

void policy_init(struct registration *reg)
{
	reg->slot_count = 1;
	reg->policy.backlog = 64;
	reg->policy.idle_ms = 0;
}

static int check(const struct flexsc_policy *policy)
{
	u32 i;

	if (policy->cores > FLEXSC_CORES_MAX || policy->spin > FLEXSC_SPIN_ADAPTIVE ||
	    policy->spin_us > SPIN_US_MAX || policy->reserved[0] ||
	    policy->reserved[1] || policy->reserved[2])
		return -EINVAL;
	for (i = 0; i < FLEXSC_CORES_MAX; i++) {
		u16 core = policy->core[i];

		if (i >= policy->cores ? core : core >= nr_cpu_ids || !cpu_online(core))
			return -EINVAL;
	}
	return 0;
}

/* FLEXSC_IOC_SET_POLICY */
long policy_set(struct registration *reg, struct flexsc_policy __user *user)
{
	struct flexsc_policy policy;
	int err;
	u32 i;

	if (copy_from_user(&policy, user, sizeof(policy)))
		return -EFAULT;
	err = check(&policy);
	if (err)
		return err;
	mutex_lock(&reg->setup);
	reg->policy = policy;
	for (i = 0; i < FLEXSC_CORES_MAX; i++)
		WRITE_ONCE(reg->slots[i].core,
			   i < policy.cores ? policy.core[i] : -1);
	WRITE_ONCE(reg->slot_count, max(policy.cores, 1U));
	WRITE_ONCE(reg->spin_ns, policy.spin_us * NSEC_PER_USEC);
	mutex_unlock(&reg->setup);
	/* Whoever is idle sees what has changed. */
	if (entries_pending(reg))
		thread_wake(reg);
	return 0;
}

/* FLEXSC_IOC_GET_POLICY */
long policy_get(struct registration *reg, struct flexsc_policy __user *user)
{
	struct flexsc_policy policy;

	mutex_lock(&reg->setup);
	policy = reg->policy;
	mutex_unlock(&reg->setup);
	return copy_to_user(user, &policy, sizeof(policy)) ? -EFAULT : 0;
}

/* Longer when it paid, shorter when not. */
static void adapt(struct registration *reg, u32 ns, bool paid)
{
	u32 most = READ_ONCE(reg->policy.spin_us) * NSEC_PER_USEC;

	if (READ_ONCE(reg->policy.spin) != FLEXSC_SPIN_ADAPTIVE)
		return;
	ns = paid ? min(2 * ns, most) : max_t(u32, ns / 2, SPIN_LEAST);
	WRITE_ONCE(reg->spin_ns, ns);
}

/* An active thread has nothing to do: look for work. Is there some? */
bool policy_spin(struct registration *reg)
{
	u32 ns = READ_ONCE(reg->spin_ns);
	u64 until;

	if (READ_ONCE(reg->policy.spin) == FLEXSC_SPIN_OFF || !ns)
		return false;
	until = ktime_get_mono_fast_ns() + ns;
	while (!entries_pending(reg)) {
		if (need_resched() || thread_must_leave() ||
		    READ_ONCE(reg->ended))
			return false;
		if (ktime_get_mono_fast_ns() > until) {
			adapt(reg, ns, false);
			return false;
		}
		cpu_relax();
	}
	adapt(reg, ns, true);
	return true;
}
