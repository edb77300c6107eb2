/* SPDX-License-Identifier: MIT */
/*
 * Resolves a path by one call for each of its parts; no call follows a symbolic
 * link. Instead the link's target replaces the link in the rest of the path.
 * For ".." the walk starts again from the root, along the path walked so far
 * ("done") without its last part. So even if other processes rename folders
 * meanwhile, each step leads from a folder below the root to something in that
 * folder.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include <sys/syscall.h>

#include <linux/openat2.h>

#include "beneath.h"

#define LINKS_MOST	40
#define FOLDER		(O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

struct walk {
	int root;
	int fd;			/* the folder that has been reached */
	unsigned int links;	/* number of links followed */
	size_t done_length;
	char done[PATH_MAX];	/* its path from the root: "a/b/", without links */
	char left[PATH_MAX];	/* the rest of the path */
};

int beneath_needed(int root)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH,
	};
	long fd = syscall(SYS_openat2, root, ".", &how, sizeof(how));

	if (fd < 0)
		return errno;
	close((int)fd);
	return 0;
}

static void reach(struct walk *w, int fd)
{
	if (w->fd != w->root)
		close(w->fd);
	w->fd = fd;
}

static int step(struct walk *w, const char *name)
{
	int fd = openat(w->fd, name, FOLDER);

	if (fd < 0)
		return -errno;
	reach(w, fd);
	return 0;
}

static int go_down(struct walk *w, const char *name)
{
	size_t length = strlen(name);
	int err;

	if (w->done_length + length + 2 > sizeof(w->done))
		return -ENAMETOOLONG;
	err = step(w, name);
	if (err)
		return err;
	memcpy(w->done + w->done_length, name, length);
	w->done_length += length;
	w->done[w->done_length++] = '/';
	w->done[w->done_length] = '\0';
	return 0;
}

static int go_up(struct walk *w)
{
	char *name = w->done, *slash;
	int err = 0;

	if (!w->done_length)
		return -EXDEV;
	do
		w->done_length--;
	while (w->done_length && w->done[w->done_length - 1] != '/');
	w->done[w->done_length] = '\0';
	reach(w, w->root);
	for (; *name && !err; name = slash + 1) {
		slash = strchr(name, '/');
		*slash = '\0';
		err = step(w, name);
		*slash = '/';
	}
	return err;
}

/* Put the link's target in front of the rest. Returns 0 or -errno. */
static int follow(struct walk *w, const char *name)
{
	char target[PATH_MAX];
	ssize_t length = readlinkat(w->fd, name, target, sizeof(target));
	size_t left = strlen(w->left);

	if (length < 0)
		return errno == EINVAL ? -ENOTDIR : -errno;
	if (++w->links > LINKS_MOST)
		return -ELOOP;
	if (*target == '/')
		return -EXDEV;
	if ((size_t)length + left + 2 > sizeof(w->left))
		return -ENAMETOOLONG;
	memmove(w->left + length + 1, w->left, left + 1);
	memcpy(w->left, target, (size_t)length);
	w->left[length] = '/';
	if (!left)
		w->left[length] = '\0';
	return 0;
}

/* Take the next part from the rest. False: the rest is empty. */
static bool next_part(struct walk *w, char *name)
{
	size_t from = strspn(w->left, "/");
	size_t length = strcspn(w->left + from, "/");

	memcpy(name, w->left + from, length);
	name[length] = '\0';
	memmove(w->left, w->left + from + length,
		strlen(w->left + from + length) + 1);
	return length;
}

static int walk(struct walk *w, int flags)
{
	char name[PATH_MAX];
	int err = 0;

	while (!err && next_part(w, name)) {
		if (strcmp(name, ".") == 0)
			continue;
		if (strcmp(name, "..") == 0) {
			err = go_up(w);
			continue;
		}
		if (*w->left) {
			err = go_down(w, name);
		} else {
			int fd = openat(w->fd, name, flags | O_NOFOLLOW);

			if (fd >= 0)
				return fd;
			err = -errno;
		}
		/*
		 * The name may be that of a link: O_NOFOLLOW makes opening a
		 * link fail with ELOOP, or with ENOTDIR if O_DIRECTORY is set,
		 * too.
		 */
		if (err == -ELOOP || err == -ENOTDIR)
			err = follow(w, name);
	}
	if (err)
		return err;
	err = openat(w->fd, ".", flags);
	return err < 0 ? -errno : err;
}

int beneath_open(int root, const char *path, int flags)
{
	size_t length = strlen(path);
	struct walk w;
	int result;

	if (*path == '/')
		return -EXDEV;
	if (length >= sizeof(w.left))
		return -ENAMETOOLONG;
	w.root = w.fd = root;
	w.links = 0;
	w.done_length = 0;
	memcpy(w.left, path, length + 1);
	/* O_NONBLOCK: opening a pipe must not wait for its other end. */
	result = walk(&w, flags | O_NONBLOCK);
	reach(&w, root);
	return result;
}
