// SPDX-License-Identifier: MIT
/*
 * A process that means ill: while its calls run, its threads write anything
 * anywhere into the memory that it shares with the kernel, call every ioctl
 * with anything, unmap, protect, close and fork. Nothing but its own calls may
 * suffer: the kernel doesn't complain, the process can always be ended, and an
 * honest process beside it sees right results only.
 *
 *	kmod-fuzz [seed=N] [rounds=N] [ms=N]
 *
 * A round is one such process, in a cell, for the kernel makes any call that it
 * scribbles. By its seed it is under a filter, has all capabilities over a user
 * namespace and a pid namespace of its own, or has no syscall threads, so that
 * whoever waits is alone. Runs in a guest, as root.
 */
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <setjmp.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "cell.h"
#include "chance.h"
#include "honest.h"
#include "raw.h"
#include "system.h"

/* What every thread of the process knows. */
static struct raw raw;
static uint64_t round_seed;
static char *area;		/* where it was mapped at first */
static char scratch[65536] __attribute__((aligned(4096)));
static int things[8];		/* descriptors */
static const char *const names[] = {
	"file", "new", ".", "..", "", "/dev/null", "/dev/zero", "/dev/flexsc",
	"/proc/self/maps", "/proc/self/mem", "/nothing/there",
};

static __thread sigjmp_buf again;

/* What a call or an ioctl may take for an address. */
static uint64_t address(void)
{
	switch (below(8)) {
	case 0:
		return (uint64_t)area + below(raw.args.area);
	case 1:
		return 0xffff888000000000ULL + below(1ULL << 32);
	case 2:
		return below(65536);
	case 3:
		return 0x7ffffffff000ULL - 64 + below(128);
	case 4:
		return (uint64_t)names[below(sizeof(names) / sizeof(*names))];
	default:
		return (uint64_t)scratch + below(sizeof(scratch) - 4096);
	}
}

static uint64_t value(void)
{
	static const uint64_t limits[] = {
		0, 1, 2, 63, 64, 65, 127, 128, 255, 256, 4095, 4096, 65535,
		65536, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff,
		0x7fffffffffffffff, 0x8000000000000000, 0xfffffffffffffffe,
		0xffffffffffffffff,
	};

	switch (below(5)) {
	case 0:
		return limits[below(sizeof(limits) / sizeof(*limits))];
	case 1:
		return number();
	case 2:
		return below(128);
	case 3:
		return (uint64_t)things[below(8)];
	default:
		return address();
	}
}

static uint32_t some_index(void)
{
	if (one_in(8))
		return (uint32_t)value();
	return (uint32_t)below(raw.args.ring_entries + 2);
}

/* What is written where. */

/* Calls that do nothing unless they get numbers that chance doesn't find. */
static const struct magic {
	uint16_t nr;
	uint64_t args[4];
} magics[] = {
	{ SYS_reboot, { 0xfee1dead, 672274793, 0x4321fedc } },
	{ SYS_reboot, { 0xfee1dead, 85072278, 0x01234567 } },
	{ SYS_reboot, { 0xfee1dead, 369367448, 0xa1b2c3d4 } },
	{ SYS_reboot, { 0xfee1dead, 537993216, 0 } },
	{ SYS_keyctl, { 0, (uint64_t)-1, 1 } },
	{ SYS_keyctl, { 0, (uint64_t)-3, 1 } },
	{ SYS_unshare, { CLONE_FILES } },
	{ SYS_unshare, { CLONE_FS | CLONE_NEWNS } },
	{ SYS_setns, { 3, CLONE_NEWPID } },
	{ SYS_membarrier, { 1 << 4 } },
	{ SYS_membarrier, { 1 << 3 } },
	{ SYS_userfaultfd, { 1 } },
	{ SYS_futex, { (uint64_t)scratch, 6 | 128 } },
	{ SYS_futex, { (uint64_t)scratch, 7 | 128 } },
	{ SYS_futex, { (uint64_t)scratch, 11 | 128, 0, 0 } },
	{ SYS_clone, { CLONE_VM | CLONE_THREAD | CLONE_SIGHAND } },
	{ SYS_exit, { 0 } },
	{ SYS_restart_syscall, { 0 } },
	{ SYS_rt_sigreturn, { 0 } },
	{ SYS_ptrace, { 0 } },
	{ SYS_tgkill, { 0, 0, SIGSTOP } },
	{ SYS_io_uring_setup, { 4, (uint64_t)scratch } },
	{ SYS_mount, { (uint64_t)"none", (uint64_t)".", (uint64_t)"tmpfs" } },
	{ SYS_pidfd_open, { 1 } },
	{ SYS_seccomp, { 0 } },
};

static void magical(struct flexsc_entry *entry)
{
	const struct magic *magic =
		&magics[below(sizeof(magics) / sizeof(*magics))];

	entry->nr = magic->nr;
	memcpy(entry->args, magic->args, sizeof(magic->args));
}

/* Calls that one would make: most of them have something to do. */
static void plausible(struct flexsc_entry *entry)
{
	static const struct timespec times[] = {
		{ 0, 1000 }, { 0, 3000000 }, { 1, 0 }, { 0, 1000000000 },
	};
	const uint64_t fd = (uint64_t)things[below(8)];
	const uint64_t to = (uint64_t)scratch + below(32768);

	switch (below(10)) {
	case 0:
		entry->nr = SYS_getppid;
		break;
	case 8:
		magical(entry);
		break;
	case 1:
		entry->nr = SYS_read;
		entry->args[0] = fd;
		entry->args[1] = to;
		entry->args[2] = below(8192);
		break;
	case 2:
		entry->nr = SYS_write;
		entry->args[0] = fd;
		entry->args[1] = to;
		entry->args[2] = below(8192);
		break;
	case 3:
		entry->nr = SYS_nanosleep;
		entry->args[0] = (uint64_t)&times[below(4)];
		entry->args[1] = one_in(2) ? to : 0;
		break;
	case 4:
		entry->nr = SYS_openat;
		entry->args[0] = (uint64_t)AT_FDCWD;
		entry->args[1] = (uint64_t)names[below(11)];
		entry->args[2] = one_in(2) ? O_RDWR : O_CREAT | O_RDWR;
		entry->args[3] = 0600;
		break;
	case 5:
		entry->nr = SYS_close;
		entry->args[0] = below(40);
		break;
	case 6:
		entry->nr = SYS_ioctl;
		entry->args[0] = (uint64_t)raw.fd;
		entry->args[1] = _IO(FLEXSC_IOC_MAGIC, below(10));
		entry->args[2] = value();
		break;
	case 7:
		entry->nr = SYS_poll;
		entry->args[0] = to;
		entry->args[1] = below(4);
		entry->args[2] = below(20);
		break;
	default:
		entry->nr = one_in(2) ? SYS_munmap : SYS_mprotect;
		entry->args[0] = (uint64_t)area + below(4) * 4096;
		entry->args[1] = below(3) * 4096;
		entry->args[2] = below(8);
	}
}

static void scribble_entry(void)
{
	struct flexsc_entry *entry =
		&raw.entries[below(raw.args.ring_entries)];

	switch (below(6)) {
	case 0:
		entry->status = (uint8_t)(one_in(9) ? number() : below(6));
		break;
	case 1:
		entry->nargs = (uint8_t)number();
		break;
	case 2:
		entry->nr = (uint16_t)(one_in(9) ? number() : below(480));
		break;
	case 3:
		entry->link = some_index();
		break;
	case 4:
		entry->args[below(6)] = value();
		break;
	default:
		plausible(entry);
	}
}

static void scribble_shared(void)
{
	struct flexsc_shared *shared = raw.shared;

	switch (below(8)) {
	case 0:
		shared->tail = one_in(4) ? (uint32_t)value() :
				(uint32_t)(shared->head + below(200) - 50);
		break;
	case 1:
		shared->wait_flags = (uint32_t)below(4);
		break;
	case 2:
		shared->seen = value();
		break;
	case 3:
		shared->timeout = one_in(2) ? value() : below(3000000);
		break;
	case 4:
		shared->head = (uint32_t)value();
		break;
	case 5:
		shared->needs_kick = (uint32_t)below(2);
		break;
	case 6:
		shared->completions.head = some_index();
		break;
	default:
		((uint64_t *)shared)[below(512)] = value();
	}
}

static void scribble(void)
{
	switch (below(8)) {
	case 0:
		scribble_shared();
		break;
	case 1:
		raw.ring[below(raw.args.ring_entries)] = some_index();
		break;
	case 2:
		area[below(raw.args.area)] = (char)number();
		break;
	default:
		scribble_entry();
	}
}

/* What its threads do, over and over. */

static void post(void)
{
	const uint32_t index = (uint32_t)below(raw.args.ring_entries);
	struct flexsc_entry *entry = &raw.entries[index];

	plausible(entry);
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
		lseek(raw.fd, (off_t)value(),
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

	/* Whatever call it is by now. */
	if (result == FLEXSC_SERVE_BOUNCE && one_in(2))
		args.ret = syscall(entry->nr, entry->args[0], entry->args[1],
				   entry->args[2], entry->args[3],
				   entry->args[4], entry->args[5]);
	args.flags = (uint32_t)(one_in(20) ? number() : below(8));
	if (one_in(9))
		args.core = (int32_t)(one_in(3) ? value() : below(5)) - 1;
	if (one_in(3)) {
		args.ret = (int64_t)value();
		args.index = some_index();
	}
}

static void set_policy(void)
{
	struct flexsc_policy policy = {
		.cores = (uint32_t)(one_in(9) ? value() : below(5)),
		.spin = (uint32_t)below(4),
		.spin_us = (uint32_t)(one_in(4) ? value() : below(200)),
		.idle_ms = (uint32_t)(one_in(4) ? value() : below(20)),
		.backlog = (uint32_t)value(),
	};

	for (uint32_t i = 0; i < policy.cores && i < FLEXSC_CORES_MAX; i++)
		policy.core[i] = (uint16_t)(one_in(30) ? number() : below(2));
	ioctl(raw.fd, FLEXSC_IOC_SET_POLICY, &policy);
	ioctl(raw.fd, FLEXSC_IOC_GET_POLICY, address());
}

/* A registration that is refused, most of the time. */
static void register_another(void)
{
	struct flexsc_register args = {
		.size = sizeof(args),
		.abi = FLEXSC_ABI_VERSION,
		.pages = (uint32_t)(one_in(3) ? value() : 1U << below(12)),
	};
	int fd = open("/dev/flexsc", O_RDWR | O_CLOEXEC);
	void *at;

	if (one_in(2))
		((uint32_t *)&args)[below(16)] = (uint32_t)value();
	if (!ioctl(fd, FLEXSC_IOC_REGISTER, &args) && one_in(2)) {
		at = mmap(NULL, args.area, PROT_READ | PROT_WRITE, MAP_SHARED,
			  fd, 0);
		ioctl(fd, FLEXSC_IOC_WAIT, 0);
		if (at != MAP_FAILED)
			munmap(at, args.area);
	}
	ioctl(fd, FLEXSC_IOC_REGISTER, address());
	close(fd);
}

/* Interrupt what is executed, if not by the rules. */
static void cancel(void)
{
	uint32_t index = some_index();

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
	switch (below(9)) {
	case 0:
		set_policy();
		break;
	case 1:
		register_another();
		break;
	case 2:
		ioctl(raw.fd, FLEXSC_IOC_WAKE);
		break;
	case 3:
		ioctl(raw.fd, _IOWR(FLEXSC_IOC_MAGIC, below(16), uint64_t),
		      value());
		break;
	case 4:
		ioctl(raw.fd, number(), value());
		break;
	case 5:
		ioctl(raw.fd, FLEXSC_IOC_SERVE, address());
		break;
	default:
		cancel();
	}
}

/* In a child: the area, if it is there, and a file that isn't the child's. */
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

/* A process of its own, with the same memory and other rights. */
static void twin(void)
{
	static __thread sigjmp_buf mine;
	pid_t pid;

	memcpy(mine, again, sizeof(again));
	pid = (pid_t)syscall(SYS_clone,
			     CLONE_VM | CLONE_VFORK | CLONE_FILES | SIGCHLD |
				     (one_in(2) ? CLONE_NEWUSER | CLONE_NEWPID :
						  0),
			     0, 0, 0, 0);
	if (!pid) {
		if (!sigsetjmp(again, 1)) {
			post();
			wait_long();
			ioctl(raw.fd, FLEXSC_IOC_KICK);
			serve();
		}
		_exit(0);
	}
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
		       (void *)address());
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
	default:	/* as it was */
		mmap(area, raw.args.area, PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_FIXED, raw.fd, 0);
	}
	usleep((useconds_t)below(1000));
}

/* The process. */

static const struct role {
	void (*run)(void);
	unsigned int threads;
} roles[] = {
	{ scribble, 2 }, { post, 2 }, { wait_long, 2 }, { serve, 4 },
	{ control, 1 }, { map, 1 }, { twin, 1 },
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

/* A filter that forbids nothing: all calls bounce. */
static void filter(void)
{
	struct sock_filter allow =
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	const struct sock_fprog program = { 1, &allow };

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* A few to play with. */
static void open_things(void)
{
	things[0] = open("file", O_RDWR | O_CREAT, 0600);
	things[1] = open("/dev/zero", O_RDWR);
	if (pipe(&things[2]) || pipe(&things[4]))
		_exit(1);
	things[6] = 3;
	things[7] = -1;
}

/* The first of a pid namespace, over which it has all capabilities. */
static void reign(void)
{
	int status;
	pid_t pid;

	if (unshare(CLONE_NEWUSER | CLONE_NEWPID))
		_exit(1);
	pid = fork();
	if (!pid)
		return;
	waitpid(pid, &status, 0);
	_exit(0);
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

TEST_LIMIT(scribbling_harms_nobody_else, 3600)
{
	const unsigned long seed = test_parameter("seed", (unsigned long)now_ns());
	const unsigned long rounds = test_parameter("rounds", 10);
	struct honest honest;

	test_note("seed=%lu rounds=%lu", seed, rounds);
	cell_init();
	honest_start(&honest);
	for (unsigned int i = 0; i < rounds; i++) {
		round_seed = seed + i;
		cell_run(attack);
		honest_check(&honest);
		for (int n = 0; system_registrations() > 1; n++) {
			CHECK(n < 5000);
			usleep(1000);
		}
	}
	honest_end(&honest);
	CHECK_EQ(system_registrations(), 0);
	CHECK_EQ(system_mappings(), 0);
}
