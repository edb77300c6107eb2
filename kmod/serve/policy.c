// SPDX-License-Identifier: GPL-2.0-only
/*
 * The policy: on which cores syscall threads run, and how long they poll for
 * work before they sleep (OSDI 2010, section 3.6). Any thread of the process
 * may set it at any time. A running thread follows a new policy when it takes a
 * permit, looks for work, or sees that its permit belongs to another core now.
 */
#include <linux/cpumask.h>
#include <linux/ktime.h>
#include <linux/sched.h>
#include <linux/uaccess.h>

#include "base/checks.h"
#include "base/compat.h"
#include "base/entry.h"
#include "base/registration.h"
#include "sched/idle.h"
#include "sched/permit.h"
#include "sched/record.h"
#include "serve/serve.h"

#define SPIN_LEAST	1000	/* shortest adaptive polling, in ns */
#define PROGRESS_PERIOD	NSEC_PER_MSEC	/* interval of progress checks, in ns */

/*
 * Progress checks. A slow call keeps its permit, and the owner may be busy in
 * user mode. So while syscall threads execute, and the policy has another core,
 * a timer checks that entries are still taken. If entries were pending for a
 * whole period but none was taken, the timer wakes a thread for another core.
 * The checks end when no thread executes entries.
 */

static bool policy_any_executes(struct registration *reg)
{
	u32 i;

	for (i = 0; i < FLEXSC_CORES_MAX; i++)
		if (READ_ONCE(reg->permits[i].active) &&
		    !READ_ONCE(reg->permits[i].spins))
			return true;
	return false;
}

/*
 * Check progress at the end of a period. The timer's function, in timer
 * context.
 */
static enum hrtimer_restart policy_check_progress(struct hrtimer *timer)
{
	struct registration *reg =
		container_of(timer, struct registration, progress);
	u32 head = (u32)atomic_read(&reg->head);

	if (head == reg->progress_head && entries_pending(reg) &&
	    permit_any_free(reg))
		idle_wake(reg);
	reg->progress_head = head;
	if (!policy_any_executes(reg)) {
		WRITE_ONCE(reg->progress_checks, 0);
		/*
		 * Pairs with policy_progress_begin(): either that function sees
		 * that the checks end, or this one sees the permit of the
		 * thread that executes.
		 */
		smp_mb();
		if (!policy_any_executes(reg) ||
		    cmpxchg(&reg->progress_checks, 0, 1))
			return HRTIMER_NORESTART;
	}
	hrtimer_forward_now(timer, PROGRESS_PERIOD);
	return HRTIMER_RESTART;
}

/*
 * Start the checks. Called when a thread may be executing, and the policy has
 * another core.
 */
static void policy_progress_begin(struct registration *reg)
{
	/*
	 * Pairs with policy_check_progress(): either that function sees the
	 * permit of the thread that executes, or this one sees that the checks
	 * end.
	 */
	smp_mb();
	if (!READ_ONCE(reg->progress_checks) &&
	    !cmpxchg(&reg->progress_checks, 0, 1))
		hrtimer_start(&reg->progress, PROGRESS_PERIOD, HRTIMER_MODE_REL);
}

void policy_init(struct registration *reg)
{
	reg->permit_count = 1;
	reg->policy.backlog = 64;
	reg->policy.idle_ms = 0;
	timer_setup_hr(&reg->progress, policy_check_progress);
}

/* Setting and getting. */

static bool policy_named_twice(const struct flexsc_policy *policy, u32 i)
{
	u32 j;

	for (j = 0; j < i; j++)
		if (policy->core[j] == policy->core[i])
			return true;
	return false;
}

static int policy_check_cores(const struct flexsc_policy *policy)
{
	u32 i;

	for (i = 0; i < FLEXSC_CORES_MAX; i++) {
		u16 core = policy->core[i];

		if (i >= policy->cores) {
			if (core)
				return -EINVAL;
			continue;
		}
		if (core >= nr_cpu_ids)
			return -EINVAL;
		core = array_index_nospec(core, nr_cpu_ids);
		if (!cpu_possible(core) || policy_named_twice(policy, i))
			return -EINVAL;
	}
	for (i = 0; i < policy->cores; i++)
		if (!cpu_online(array_index_nospec(policy->core[i], nr_cpu_ids)))
			return -ENODEV;
	return 0;
}

static int policy_check(const struct flexsc_policy *policy)
{
	if (policy->cores > FLEXSC_CORES_MAX ||
	    policy->spin > FLEXSC_SPIN_ADAPTIVE ||
	    policy->spin_us > FLEXSC_SPIN_US_MAX || policy->reserved[0] ||
	    policy->reserved[1] || policy->reserved[2])
		return -EINVAL;
	return policy_check_cores(policy);
}

/* Store single words: running threads read the policy without the lock. */
static void policy_store(struct registration *reg,
			 const struct flexsc_policy *from)
{
	struct flexsc_policy *to = &reg->policy;

	lockdep_assert_held(&reg->setup);
	WRITE_ONCE(to->spin, from->spin);
	WRITE_ONCE(to->spin_us, from->spin_us);
	WRITE_ONCE(to->idle_ms, from->idle_ms);
	WRITE_ONCE(to->backlog, from->backlog);
	to->cores = from->cores;
	memcpy(to->core, from->core, sizeof(to->core));
}

/* FLEXSC_IOC_SET_POLICY */
long policy_set(struct registration *reg, struct flexsc_policy __user *user)
{
	struct flexsc_policy policy;
	int err;
	u32 i;

	if (copy_from_user(&policy, user, sizeof(policy)))
		return -EFAULT;
	err = policy_check(&policy);
	if (err)
		return err;
	mutex_lock(&reg->setup);
	policy_store(reg, &policy);
	for (i = 0; i < FLEXSC_CORES_MAX; i++)
		WRITE_ONCE(reg->permits[i].core,
			   i < policy.cores ? policy.core[i] : -1);
	WRITE_ONCE(reg->permit_count, max(policy.cores, 1U));
	WRITE_ONCE(reg->spin_ns, policy.spin_us * NSEC_PER_USEC);
	mutex_unlock(&reg->setup);
	/*
	 * Start the checks here: a thread that began to execute entries under a
	 * single-core policy hasn't started them.
	 */
	if (policy.cores > 1)
		policy_progress_begin(reg);
	/*
	 * Wake an idle thread, because a permit may be free now, and idle
	 * threads don't check for that.
	 */
	if (entries_pending(reg))
		idle_wake(reg);
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

/* Looking for work. */

/* Called when work came after "gap" ns without work: adapt how long to poll. */
static void policy_adapt(struct registration *reg, u64 gap)
{
	u32 most = READ_ONCE(reg->policy.spin_us) * NSEC_PER_USEC;
	u32 ns = READ_ONCE(reg->spin_ns);

	if (READ_ONCE(reg->policy.spin) != FLEXSC_SPIN_ADAPTIVE)
		return;
	ns = gap <= most ? min(2 * ns, most) : max_t(u32, ns / 2, SPIN_LEAST);
	WRITE_ONCE(reg->spin_ns, ns);
}

/* Called before the current thread, which has the permit, executes entries. */
void policy_begin(struct registration *reg, struct permit *permit)
{
	u64 since = READ_ONCE(reg->idle_since);

	RULE(READ_ONCE(permit->active)->task == current);
	if (unlikely(since)) {
		WRITE_ONCE(reg->idle_since, 0);
		policy_adapt(reg, ktime_get_mono_fast_ns() - since);
	}
	if (READ_ONCE(reg->permit_count) == 1)
		return;
	WRITE_ONCE(permit->spins, false);
	policy_progress_begin(reg);
}

/*
 * Poll until work comes (true), or until "until" has passed or the thread has
 * to stop (false).
 */
static bool policy_spin_until(struct registration *reg, struct thread *thread,
			      u64 until)
{
	while (!entries_pending(reg)) {
		if (need_resched() || thread_must_leave() || slot_is_wanted(thread) ||
		    READ_ONCE(reg->ended) ||
		    READ_ONCE(thread->permit->core) != thread->core ||
		    ktime_get_mono_fast_ns() > until)
			return false;
		cpu_relax();
	}
	return true;
}

/*
 * Called when the current thread has a permit but no work: poll as long as the
 * policy allows. True: work has come.
 */
bool policy_spin(struct registration *reg, struct thread *thread)
{
	u32 kind = READ_ONCE(reg->policy.spin);
	u32 ns = READ_ONCE(reg->spin_ns);
	u64 begin;
	bool came;

	RULE(thread->task == current && thread->permit);
	if (kind == FLEXSC_SPIN_OFF || !ns)
		return false;
	begin = ktime_get_mono_fast_ns();
	WRITE_ONCE(thread->permit->spins, true);
	came = policy_spin_until(reg, thread, begin + ns);
	WRITE_ONCE(thread->permit->spins, false);
	if (kind == FLEXSC_SPIN_ADAPTIVE) {
		if (came)
			policy_adapt(reg, 0);
		else
			WRITE_ONCE(reg->idle_since, begin);
	}
	return came;
}
