// SPDX-License-Identifier: MIT
/*
 * A malicious process. While its calls run, its threads write arbitrary values into
 * the memory that it shares with the kernel. They call every ioctl with arbitrary
 * arguments, unmap, protect, close and fork. They lock, pass, duplicate and replace
 * watched files. Beside them, the owner of a block executes a privileged program.
 * Only the process's own calls may suffer: the kernel doesn't complain, and the
 * process can always be ended. The privileged program isn't interrupted, and an
 * honest process beside it gets correct results only.
 *
 *	kmod-fuzz [seed=N] [rounds=N] [ms=N]
 *
 * A round is one such process, in a cell, because the kernel may make any call that
 * the process has written. Depending on its seed, the process is under a filter, has
 * all capabilities over its own user and pid namespaces, or has no syscall threads,
 * so that a waiting thread is alone. Runs in a guest, as root.
 */
#include "ecb.h"
#include "scribble.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <sys/timerfd.h>

#include "cell.h"
#include "chance.h"
#include "honest.h"
#include "system.h"

#define VICTIM	"/tmp/victim"

static uint64_t round_seed;
static __thread sigjmp_buf again;

/* The actions of its threads, repeated. */

static void post(void)
{
	const uint32_t index = (uint32_t)below(raw.args.ring_entries);
	struct flexsc_entry *entry = &raw.entries[index];

	scribble_call(entry);
	entry->nargs = (uint8_t)(6 | (number() & 0x78));
	raw_push(&raw, index);
	if (one_in(16))
		ioctl(raw.fd, FLEXSC_IOC_KICK);
	if (one_in(4))
		raw_reap(&raw);
}

static void wait_long(void)
{
	if (one_in(2))
		ioctl(raw.fd, FLEXSC_IOC_WAIT, 0);
	else
		lseek(raw.fd, (off_t)scribble_value(),
		      one_in(9) ? (int)below(5) : FLEXSC_WAIT_SEEK);
}

static void serve(void)
{
	static __thread struct flexsc_serve args = {
		.index = FLEXSC_NO_ENTRY,
		.core = -1,
	};
	const int result = ioctl(raw.fd, FLEXSC_IOC_SERVE, &args);
	const struct flexsc_entry *entry = &raw.entries[args.index];

	/* By now the entry may hold any call. */
	if (result == FLEXSC_SERVE_BOUNCE && one_in(2))
		args.ret = syscall(entry->nr, entry->args[0], entry->args[1],
				   entry->args[2], entry->args[3],
				   entry->args[4], entry->args[5]);
	args.flags = (uint32_t)(one_in(20) ? number() : below(8));
	if (one_in(9))
		args.core = (int32_t)(one_in(3) ? scribble_value() :
						  below(5)) - 1;
	if (one_in(3)) {
		args.ret = (int64_t)scribble_value();
		args.index = scribble_index();
	}
}

static void set_policy(void)
{
	struct flexsc_policy policy = {
		.cores = (uint32_t)(one_in(9) ? scribble_value() : below(5)),
		.spin = (uint32_t)below(4),
		.spin_us = (uint32_t)(one_in(4) ? scribble_value() :
						  below(200)),
		.idle_ms = (uint32_t)(one_in(4) ? scribble_value() : below(20)),
		.backlog = (uint32_t)scribble_value(),
	};

	for (uint32_t i = 0; i < policy.cores && i < FLEXSC_CORES_MAX; i++)
		policy.core[i] = (uint16_t)(one_in(30) ? number() : below(2));
	ioctl(raw.fd, FLEXSC_IOC_SET_POLICY, &policy);
	ioctl(raw.fd, FLEXSC_IOC_GET_POLICY, scribble_address());
}

/* Registers again, which is mostly refused. */
static void register_another(void)
{
	struct flexsc_register args = {
		.size = sizeof(args),
		.abi = FLEXSC_ABI_VERSION,
		.pages = (uint32_t)(one_in(3) ? scribble_value() :
						1U << below(12)),
	};
	int fd = open("/dev/flexsc", O_RDWR | O_CLOEXEC);
	void *at;

	if (one_in(2))
		((uint32_t *)&args)[below(16)] = (uint32_t)scribble_value();
	if (!ioctl(fd, FLEXSC_IOC_REGISTER, &args) && one_in(2)) {
		at = mmap(NULL, args.area, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		ioctl(fd, FLEXSC_IOC_WAIT, 0);
		if (at != MAP_FAILED)
			munmap(at, args.area);
	}
	ioctl(fd, FLEXSC_IOC_REGISTER, scribble_address());
	close(fd);
}

/* Interrupts executing entries, sometimes against the protocol. */
static void cancel(void)
{
	uint32_t index = scribble_index();

	for (int i = 0; i < 256; i++) {
		const uint32_t busy =
			(uint32_t)below(raw.args.ring_entries);

		if (raw.entries[busy].status != FLEXSC_BUSY)
			continue;
		index = busy;
		if (one_in(2))
			raw.entries[busy].status = FLEXSC_CANCEL;
		break;
	}
	ioctl(raw.fd, FLEXSC_IOC_CANCEL, index);
}

static void control(void)
{
	const unsigned long commands[] = {
		FLEXSC_IOC_WAKE, FLEXSC_IOC_SERVE, number(),
		_IOWR(FLEXSC_IOC_MAGIC, below(16), uint64_t),
	};

	switch (below(9)) {
	case 0:
		set_policy();
		break;
	case 1:
		register_another();
		break;
	case 2 ... 5:
		ioctl(raw.fd, commands[below(4)],
		      one_in(2) ? scribble_address() : scribble_value());
		break;
	default:
		cancel();
	}
}

/*
 * Events: one thread owns a block. The watched files change constantly, and other
 * threads write to the block's memory.
 */
static struct ecb block;
static atomic_bool block_open;
static int sources[16];

/* Creates another source, mostly with the same number. */
static void new_source(int *fd)
{
	const struct itimerspec often = { { 0, 100000 }, { 0, 100000 } };
	int both[2] = { -1, -1 };

	switch (below(5)) {
	case 0:
		both[0] = eventfd((unsigned int)below(2), EFD_NONBLOCK);
		break;
	case 1:
		both[0] = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
		timerfd_settime(both[0], 0, &often, NULL);
		break;
	case 2:
		if (pipe(both))
			return;
		break;
	default:
		socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, both);
	}
	if (*fd > 0 && one_in(2)) {
		dup2(both[0], *fd);
		close(both[0]);
	} else {
		close(*fd);
		*fd = both[0];
	}
	if (both[1] >= 0) {
		if (one_in(2))
			ioctl(both[1], 0x5421 /* FIONBIO */, &(int){ 1 });
		/* The replaced file is still watched, or it is closed at once. */
		dup2(both[1], sources[below(16)]);
		close(both[1]);
	}
}

static void listen_on(int *fd)
{
	const struct sockaddr any = { .sa_family = AF_UNIX };
	int fresh = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);

	/* The kernel chooses the name. */
	bind(fresh, &any, sizeof(any.sa_family));
	listen(fresh, 4);
	close(*fd);
	*fd = fresh;
}

static void call_somebody(int *fd)
{
	struct sockaddr_storage name;
	socklen_t size = sizeof(name);
	int caller = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);

	if (!getsockname(*fd, (struct sockaddr *)&name, &size))
		connect(caller, (struct sockaddr *)&name, size);
	if (one_in(2))
		close(caller);
	else
		sources[below(16)] = caller;
}

/* Locks watched files, such that the kernel merges, splits and removes locks. */
static void lock_something(int *fd)
{
	struct flock lock = {
		.l_type = (short)below(3),
		.l_whence = SEEK_SET,
		.l_start = one_in(2) ? INT64_MAX - (off_t)below(200) :
				       (off_t)below(100),
		.l_len = (off_t)below(8),
	};

	fcntl(*fd, one_in(3) ? F_OFD_SETLK : F_SETLK, &lock);
}

/* Passes any file in a socket. The block that is passed may watch this socket. */
static void pass_something(int *fd)
{
	const int files[] = { sources[below(16)], raw.fd, block.fd, block.fd };
	const int file = files[below(4)];

	if (file != block.fd || atomic_load(&block_open))
		pass_file(*fd, file);
}

static void take_something(int *fd)
{
	int taken = take_file(*fd), *source = &sources[below(16)];

	if (taken < 0)
		return;
	close(*source);
	*source = taken;
}

/* Gives a file the number of another one that was accepted, or is about to be. */
static void replace_something(int *fd)
{
	const int number = 3 + (int)below(61);

	if (number == raw.fd || number == block.fd)
		return;
	dup2(one_in(2) ? block.fd : sources[below(16)], number);
	if (one_in(2))
		close(number);
}

static void kick(int *fd)
{
	if (atomic_load(&block_open))
		ioctl(block.fd, FLEXSC_ECB_KICK, scribble_value());
}

static void write_or_read(int *fd)
{
	uint64_t one = 1;

	if (write(*fd, &one, 8) < 0 && one_in(2))
		read(*fd, &one, 8);
}

static void disturb(void)
{
	static void (*const ways[])(int *fd) = {
		new_source, listen_on, call_somebody, kick, lock_something,
		pass_something, take_something, replace_something,
	};
	const uint64_t way = below(14);

	(way < 8 ? ways[way] : write_or_read)(&sources[below(16)]);
}

static void watch_something(void)
{
	struct flexsc_ecb_watch watch = {
		.fd = sources[below(16)],
		.want = (uint32_t)below(65536),
		.type = (uint16_t)below(FLEXSC_EVT_TYPES),
		.group = (uint16_t)below(32),
		.flags = one_in(2),
		.accept_group = (uint16_t)below(2),
	};

	if (one_in(9))
		((uint32_t *)&watch)[below(16)] = (uint32_t)scribble_value();
	if (one_in(9))
		watch.fd = -1;
	ioctl(block.fd, FLEXSC_ECB_WATCH, one_in(30) ? scribble_address() :
						       (uint64_t)&watch);
}

static void own_events(void)
{
	/* One thread plays the owner. */
	if (!atomic_load(&block_open)) {
		signal(SIGURG, SIG_IGN);
		if (ecb_try_open(&block, 1 + (uint32_t)below(100), 0) < 0) {
			usleep(10000);
			return;
		}
		block.control = mmap(NULL, block.args.area,
				     PROT_READ | PROT_WRITE, MAP_SHARED,
				     block.fd, 0);
		atomic_store(&block_open, true);
	}
	switch (below(8)) {
	case 0:
		ioctl(block.fd, FLEXSC_ECB_FORGET, below(110));
		break;
	case 1:
		ioctl(block.fd, FLEXSC_ECB_FLUSH);
		break;
	case 2:
		if (!one_in(100))
			block.control->deadline = 0;
		lseek(block.fd, (off_t)scribble_value(), FLEXSC_ECB_WAIT_SEEK);
		break;
	case 3:
		ioctl(block.fd, _IO(0xe9, 16 + below(6)), scribble_value());
		break;
	case 4:
		disturb();
		break;
	default:
		watch_something();
	}
}

static void scribble_events(void)
{
	uint32_t *words = (void *)block.control;

	if (!atomic_load(&block_open))
		return (void)usleep(1000);
	for (int i = 0; i < 100; i++)
		words[below(one_in(2) ? 64 : block.args.area / 4)] =
			one_in(3) ? 0 : (uint32_t)scribble_value();
	if (one_in(2000))
		munmap(block.control, 4096 * below(3));
	if (one_in(2000))
		close(block.fd);
}

/*
 * The owner of a block becomes a privileged program. Meanwhile another process,
 * which keeps the memory in which the block was created, causes its events.
 */
static struct ecb own;
static char helper_stack[16384] __attribute__((aligned(16)));

static int help(void *arg)
{
	const uint64_t one = 1, end = now_ns() + 40 * MS;

	while (now_ns() < end) {
		for (uint32_t i = 0; i < 16; i++)
			own.slots[i].state = 0;
		own.control->critical = 0;
		own.control->notify = (uint32_t)number();
		own.control->waiting = one_in(4) ? (uint32_t)number() : 0;
		ioctl(own.fd, FLEXSC_ECB_KICK, number());
		if (write(sources[below(16)], &one, 8) < 0)
			sched_yield();
	}
	_exit(arg != NULL);
}

/* The program sleeps until a timer expires, and may inherit watched files. */
static void prepare_files(void)
{
	const struct itimerspec soon = { .it_value = { 0, 30000000 } };
	int end = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);

	timerfd_settime(end, 0, &soon, NULL);
	dup2(end, 0);
	for (int i = 0; i < 16; i++)
		fcntl(sources[i], F_SETFD, one_in(2) ? FD_CLOEXEC : 0);
	fcntl(own.fd, F_SETFD, one_in(2) ? FD_CLOEXEC : 0);
}

static void become_privileged(void)
{
	for (int i = 0; i < 16; i++)
		new_source(&sources[i]);
	ecb_open(&own, 16, FLEXSC_ECB_INTERRUPTS_CALLS);
	for (int i = 0; i < 16; i++)
		ecb_try_watch(&own, sources[i], POLLIN | POLLOUT, 0);
	if (clone(help, helper_stack + sizeof(helper_stack),
		  CLONE_VM | (one_in(2) ? CLONE_FILES : 0), NULL) < 0)
		return;
	prepare_files();
	execl(VICTIM, VICTIM, NULL);
}

/*
 * Runs in a child: uses the area, if it is mapped, and a file that belongs to the
 * parent.
 */
static void haunt(void)
{
	signal(SIGSEGV, SIG_DFL);
	signal(SIGBUS, SIG_DFL);
	ioctl(raw.fd, FLEXSC_IOC_WAIT, 0);
	ioctl(raw.fd, FLEXSC_IOC_KICK);
	for (int i = 0; i < 1000; i++)
		scribble();
	_exit(0);
}

/* A separate process with the same memory and other permissions. */

static int be_twin(void *arg)
{
	if (!sigsetjmp(again, 1)) {
		post();
		wait_long();
		ioctl(raw.fd, FLEXSC_IOC_KICK);
		serve();
	}
	_exit(arg != NULL);
}

/* One thread plays this role, and waits for the twin, which uses its "again". */
static void twin(void)
{
	static char stack[65536] __attribute__((aligned(16)));
	static __thread sigjmp_buf mine;
	pid_t pid;

	memcpy(mine, again, sizeof(again));
	pid = clone(be_twin, stack + sizeof(stack),
		    CLONE_VM | CLONE_VFORK | CLONE_FILES | SIGCHLD |
			    (one_in(2) ? CLONE_NEWUSER | CLONE_NEWPID : 0),
		    NULL);
	memcpy(again, mine, sizeof(again));
	if (pid > 0)
		waitpid(pid, NULL, 0);
	usleep((useconds_t)below(5000));
}

static void map(void)
{
	const size_t offset = below(raw.args.area / 4096 + 1) * 4096;
	const size_t size = (1 + below(4)) * 4096;

	switch (below(9)) {
	case 0:
		munmap(area + offset, size);
		break;
	case 1:
		mprotect(area + offset, size, (int)below(8));
		break;
	case 2:
		madvise(area + offset, size, (int)below(26));
		break;
	case 3:
		mremap(area + offset, size, size * below(3), (int)below(8),
		       (void *)scribble_address());
		break;
	case 4:
		madvise(area, raw.args.area, MADV_DOFORK);
		if (!fork())
			haunt();
		break;
	case 5:
		mmap(area + offset, size, (int)below(8),
		     (one_in(4) ? MAP_PRIVATE : MAP_SHARED) | MAP_FIXED,
		     raw.fd, (off_t)offset);
		break;
	default:	/* without a change */
		mmap(area, raw.args.area, PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_FIXED, raw.fd, 0);
	}
	usleep((useconds_t)below(1000));
}

/* The process and its roles. */

static const struct role {
	void (*run)(void);
	unsigned int threads;
} roles[] = {
	{ scribble, 2 }, { post, 2 }, { wait_long, 2 }, { serve, 4 },
	{ control, 1 }, { map, 1 }, { twin, 1 }, { own_events, 1 },
	{ disturb, 2 }, { scribble_events, 1 },
};

static void fault(int signo)
{
	siglongjmp(again, signo);
}

struct start {
	void (*run)(void);
	uint64_t seed;
};

static void *thread(void *arg)
{
	const struct start start = *(struct start *)arg;

	chance_seed(start.seed);
	sigsetjmp(again, 1);
	for (;;)
		start.run();
	return NULL;
}

/* A filter that permits everything: all calls bounce. */
static void filter(void)
{
	struct sock_filter allow =
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	const struct sock_fprog program = { 1, &allow };

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* Opens some files for the calls. */
static void open_things(void)
{
	things[0] = open("file", O_RDWR | O_CREAT, 0600);
	things[1] = open("/dev/zero", O_RDWR);
	if (pipe(&things[2]) || pipe(&things[4]))
		_exit(1);
	things[6] = 3;
	things[7] = -1;
}

/* The first process of a pid namespace, with all capabilities over it. */
static void reign(void)
{
	int status;
	pid_t pid;

	if (unshare(CLONE_NEWUSER | CLONE_NEWPID))
		_exit(1);
	pid = fork();
	if (!pid)
		return;
	if (pid > 0)
		waitpid(pid, &status, 0);
	_exit(pid < 0);
}

static void attack(void)
{
	const struct sigaction action = { .sa_handler = fault,
					  .sa_flags = SA_NODEFER };
	const bool filtered = !(round_seed & 3);
	struct start starts[sizeof(roles) / sizeof(*roles) * 4], *next = starts;
	pthread_attr_t attr;
	pthread_t id;

	chance_seed(round_seed);
	if (round_seed & 8)
		reign();
	open_things();
	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGBUS, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	if (filtered)
		filter();
	if (!fork()) {
		become_privileged();
		_exit(0);
	}
	raw_open(&raw, 1U << below(5), filtered ? FLEXSC_REGISTER_FILTERED : 0);
	area = (char *)raw.shared;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 65536);
	for (size_t i = 0; i < sizeof(roles) / sizeof(*roles); i++) {
		if (roles[i].run == serve && round_seed & 4)
			continue;
		for (unsigned int n = 0; n < roles[i].threads; n++, next++) {
			*next = (struct start){ roles[i].run, number() };
			pthread_create(&id, &attr, thread, next);
		}
	}
	sleep_ms((unsigned int)(1 + below(test_parameter("ms", 300))));
	switch (below(4)) {
	case 0:
		close(raw.fd);
		break;
	case 1:
		ioctl(raw.fd, FLEXSC_IOC_END);
		break;
	default:
		_exit(0);
	}
	sleep_ms(20);
	raise(SIGKILL);
}

TEST_LIMIT(scribbling_harms_no_other_process, 3600)
{
	const unsigned long seed = test_parameter("seed", (unsigned long)now_ns());
	const unsigned long rounds = test_parameter("rounds", 10);
	struct flexsc_event_slot event;
	struct honest honest;

	test_note("seed=%lu rounds=%lu", seed, rounds);
	cell_init();
	system_install("/bin/kmod-victim", VICTIM);
	honest_start(&honest);
	/* An honest event control block. */
	ecb_begin(8, 0, ALL_GROUPS);
	ecb_watch(&ecb, fds[0], POLLIN, 0);
	for (unsigned int i = 0; i < rounds; i++) {
		round_seed = seed + i;
		cell_run(attack);
		honest_check(&honest);
		send_byte(fds[1]);
		CHECK(ecb_next(&ecb, ALL_GROUPS, &event));
		for (int n = 0; system_registrations() > 1; n++) {
			CHECK(n < 5000);
			usleep(1000);
		}
	}
	honest_end(&honest);
	ecb_close(&ecb);
	CHECK_EQ(system_registrations(), 0);
	CHECK_EQ(system_mappings(), 0);
}
