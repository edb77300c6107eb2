// SPDX-License-Identifier: MIT
/* The values that the fuzzer's threads write, and the addresses. */
#include "scribble.h"

#include "chance.h"

char *area;
static char scratch[65536] __attribute__((aligned(4096)));
int things[8];
static const char *const names[] = {
	"file", "new", ".", "..", "", "/dev/null", "/dev/zero", "/dev/flexsc",
	"/proc/self/maps", "/proc/self/mem", "/nothing/there",
};

uint64_t scribble_address(void)
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

uint64_t scribble_value(void)
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
		return scribble_address();
	}
}

uint32_t scribble_index(void)
{
	if (one_in(8))
		return (uint32_t)scribble_value();
	return (uint32_t)below(raw.args.ring_entries + 2);
}

/* Calls that only do something with numbers that are never chosen at random. */
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

static void scribble_magic(struct flexsc_entry *entry)
{
	const struct magic *magic =
		&magics[below(sizeof(magics) / sizeof(*magics))];

	entry->nr = magic->nr;
	memcpy(entry->args, magic->args, sizeof(magic->args));
}

void scribble_call(struct flexsc_entry *entry)
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
		scribble_magic(entry);
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
		entry->args[2] = scribble_value();
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
		entry->link = scribble_index();
		break;
	case 4:
		entry->args[below(6)] = scribble_value();
		break;
	default:
		scribble_call(entry);
	}
}

static void scribble_shared(void)
{
	struct flexsc_shared *shared = raw.shared;

	switch (below(8)) {
	case 0:
		shared->tail = one_in(4) ? (uint32_t)scribble_value() :
				(uint32_t)(shared->head + below(200) - 50);
		break;
	case 1:
		shared->wait_flags = (uint32_t)below(4);
		break;
	case 2:
		shared->seen = scribble_value();
		break;
	case 3:
		shared->timeout = one_in(2) ? scribble_value() : below(3000000);
		break;
	case 4:
		shared->head = (uint32_t)scribble_value();
		break;
	case 5:
		shared->needs_kick = (uint32_t)below(2);
		break;
	case 6:
		shared->completions.head = scribble_index();
		break;
	default:
		((uint64_t *)shared)[below(512)] = scribble_value();
	}
}

void scribble(void)
{
	switch (below(8)) {
	case 0:
		scribble_shared();
		break;
	case 1:
		raw.ring[below(raw.args.ring_entries)] = scribble_index();
		break;
	case 2:
		area[below(raw.args.area)] = (char)number();
		break;
	default:
		scribble_entry();
	}
}
