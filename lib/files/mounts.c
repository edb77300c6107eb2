/* SPDX-License-Identifier: MIT */
/*
 * /proc/self/mountinfo has a line per mount of the process: the mount's number comes
 * first, and the filesystem's type follows a lone "-". The cache is indexed by the
 * numbers of mount and device. The kernel may reuse both after an unmount. If a
 * filesystem with a server then gets the numbers of a local one, this code mistakes it
 * for local, and reports the attributes that the kernel has cached.
 */
#include "mounts.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "lib/base/ask.h"
#include "lib/base/statx.h"

#define KEPT		64U	/* cached mounts, a power of two */
#define ID_BITS		30
#define TYPE_MAX	16	/* bytes of a type's name that are compared */

/*
 * A cached mount. From the top bits down: its kind, its number, and its device's
 * number.
 */
static _Atomic uint64_t kept[KEPT];

static const char local[][TYPE_MAX] = {
	"bcachefs", "btrfs", "devtmpfs", "erofs", "exfat", "ext2", "ext3",
	"ext4", "f2fs", "hugetlbfs", "iso9660", "jfs", "proc", "ramfs",
	"rootfs", "squashfs", "sysfs", "tmpfs", "udf", "vfat", "xfs", "zfs",
};

/* Reads a file character by character. */
struct reader {
	int fd;
	long left;
	const char *at;
	char bytes[1024];
};

/* Returns the next character; -1 at the end of the file. */
static int reader_next(struct reader *reader)
{
	if (!reader->left) {
		reader->left = ask(SYS_read, (uint64_t)reader->fd,
				   PTR(reader->bytes), sizeof(reader->bytes), 0,
				   0, 0);
		reader->at = reader->bytes;
	}
	if (reader->left <= 0) {
		reader->left = 0;
		return -1;
	}
	reader->left--;
	return (unsigned char)*reader->at++;
}

/*
 * Reads the next word of a line, truncated to "size" bytes. Returns the character after
 * it: a blank, a newline, or -1.
 */
static int reader_word(struct reader *reader, char word[TYPE_MAX])
{
	size_t n = 0;
	int c;

	while ((c = reader_next(reader)) != ' ' && c != '\n' && c != -1)
		if (n < TYPE_MAX - 1)
			word[n++] = (char)c;
	word[n] = '\0';
	return c;
}

static uint64_t number_of(const char *word)
{
	uint64_t number = 0;

	for (; *word >= '0' && *word <= '9'; word++)
		number = 10 * number + (uint64_t)(*word - '0');
	return number;
}

/* Reads a line: the mount's number and its type. False: at the end of the file. */
static bool mount_read(struct reader *reader, uint64_t *id,
		       char type[TYPE_MAX])
{
	bool is_next = false;
	char word[TYPE_MAX];
	int c = reader_word(reader, word);

	*id = number_of(word);
	type[0] = '\0';
	while (c == ' ') {
		c = reader_word(reader, word);
		if (is_next)
			memcpy(type, word, TYPE_MAX);
		is_next = !type[0] && !strcmp(word, "-");
	}
	return c != -1;
}

static enum mount_kind kind_of(const char *type)
{
	if (!strcmp(type, "overlay"))
		return MOUNT_LAYERED;
	for (size_t i = 0; i < sizeof(local) / sizeof(local[0]); i++)
		if (!strcmp(type, local[i]))
			return MOUNT_LOCAL;
	return MOUNT_UNKNOWN;
}

static enum mount_kind mount_ask(uint64_t wanted)
{
	struct reader reader = { .left = 0 };
	enum mount_kind kind = MOUNT_UNKNOWN;
	char type[TYPE_MAX];
	uint64_t id;

	reader.fd = (int)ask(SYS_openat, (uint64_t)AT_FDCWD,
			     PTR("/proc/self/mountinfo"), O_RDONLY | O_CLOEXEC,
			     0, 0, 0);
	if (reader.fd < 0)
		return MOUNT_UNKNOWN;
	while (mount_read(&reader, &id, type))
		if (id == wanted)
			kind = kind_of(type);
	ask(SYS_close, (uint64_t)reader.fd, 0, 0, 0, 0, 0);
	return kind;
}

enum mount_kind flexsc__mount_kind(const struct statx *file)
{
	uint64_t device = (uint64_t)file->stx_dev_major << 20 |
			  file->stx_dev_minor;
	uint64_t id = file->stx_mnt_id, key, word;
	_Atomic uint64_t *place = &kept[(id ^ device) % KEPT];
	enum mount_kind kind;

	if (!(file->stx_mask & STATX_MNT_ID) || id >> ID_BITS)
		return MOUNT_UNKNOWN;
	key = id << 32 | (uint32_t)device;
	word = atomic_load_explicit(place, memory_order_relaxed);
	/* No mount has the number 0, so an empty slot matches no mount. */
	if (id && word << 2 == key << 2)
		return (enum mount_kind)(word >> (32 + ID_BITS));
	kind = mount_ask(id);
	atomic_store_explicit(place, key | (uint64_t)kind << (32 + ID_BITS),
			      memory_order_relaxed);
	return kind;
}
