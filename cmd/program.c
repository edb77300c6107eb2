/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "program.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#if defined(__x86_64__)
#define MACHINE	EM_X86_64
#elif defined(__aarch64__)
#define MACHINE	EM_AARCH64
#endif

/* A mapped file. Every access is checked against its size. */
struct image {
	const char *data;
	size_t size;
};

int program_find(const char *name, char *path, size_t size)
{
	const char *dirs = getenv("PATH"), *end;

	if (strchr(name, '/')) {
		snprintf(path, size, "%s", name);
		return access(path, X_OK);
	}
	for (; dirs && *dirs; dirs = *end ? end + 1 : end) {
		struct stat file;

		end = strchrnul(dirs, ':');
		snprintf(path, size, "%.*s/%s", (int)(end - dirs), dirs, name);
		if (!access(path, X_OK) && !stat(path, &file) &&
		    S_ISREG(file.st_mode))
			return 0;
	}
	errno = ENOENT;
	return -1;
}

static const void *part(const struct image *image, size_t offset, size_t size)
{
	if (offset > image->size || size > image->size - offset)
		return NULL;
	return image->data + offset;
}

static const Elf64_Phdr *segment(const struct image *image,
				 const Elf64_Ehdr *header, Elf64_Word type)
{
	for (unsigned int i = 0; i < header->e_phnum; i++) {
		const Elf64_Phdr *ph = part(
			image, header->e_phoff + i * sizeof(*ph), sizeof(*ph));

		if (ph && ph->p_type == type)
			return ph;
	}
	return NULL;
}

/*
 * Was the program built with a sanitizer? A sanitizer's records of stacks and
 * locks don't survive a switch of user threads. Sanitized programs contain the
 * symbols below, with two underscores in front. The strings here lack the
 * underscores, so that this command itself doesn't match.
 */
static bool is_sanitized(const struct image *image)
{
	static const char *const marks[] = { "asan_init", "tsan_init",
					     "msan_init" };

	for (size_t i = 0; i < sizeof(marks) / sizeof(*marks); i++) {
		const char *at = memmem(image->data, image->size, marks[i],
					strlen(marks[i]) + 1);

		if (at && at - image->data >= 2 && at[-1] == '_' &&
		    at[-2] == '_')
			return true;
	}
	return false;
}

/*
 * The runtime needs glibc. Each other libc has a dynamic loader with another
 * name.
 */
static bool has_other_libc(const struct image *image, const Elf64_Phdr *interp)
{
	const char *loader = part(image, interp->p_offset, interp->p_filesz);
	static const char glibc[] = "/ld-linux";

	return loader && !memmem(loader, interp->p_filesz, glibc,
				 sizeof(glibc) - 1);
}

static const char *obstacle(const struct image *image)
{
	const Elf64_Ehdr *header = part(image, 0, sizeof(*header));
	const Elf64_Phdr *interp;

	if (!header || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0)
		return NULL;
	if (header->e_ident[EI_CLASS] != ELFCLASS64 ||
	    header->e_machine != MACHINE)
		return "is built for another architecture";
	interp = segment(image, header, PT_INTERP);
	if (!interp)
		return "is statically linked, so nothing can be preloaded; "
		       "link it dynamically";
	if (has_other_libc(image, interp))
		return "is linked with another libc (musl, for example), which "
		       "can't load the runtime; link it with glibc";
	if (is_sanitized(image))
		return "is built with a sanitizer, which doesn't support user "
		       "threads; build it without";
	return NULL;
}

/*
 * The dynamic loader preloads nothing into a program that gains rights when
 * executed. The auxiliary vector has this process's ids, without a system call.
 */
static bool gains_rights(const char *path, const struct stat *file)
{
	const unsigned long user = getauxval(AT_EUID), group = getauxval(AT_EGID);

	return (file->st_mode & S_ISUID && file->st_uid != user) ||
	       (file->st_mode & S_ISGID && file->st_gid != group) ||
	       (user != 0 &&
		getxattr(path, "security.capability", NULL, 0) > 0);
}

const char *program_obstacle(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	const char *why = NULL;
	struct image image;
	struct stat file;
	void *data;

	if (fd < 0)
		return NULL;
	if (!fstat(fd, &file) && file.st_size > 0) {
		image.size = (size_t)file.st_size;
		data = mmap(NULL, image.size, PROT_READ, MAP_PRIVATE, fd, 0);
		image.data = data;
		if (gains_rights(path, &file))
			why = "is set-user-ID, set-group-ID or has "
			      "capabilities, so the dynamic loader preloads "
			      "nothing";
		else if (data != MAP_FAILED)
			why = obstacle(&image);
		if (data != MAP_FAILED)
			munmap(data, image.size);
	}
	close(fd);
	return why;
}
