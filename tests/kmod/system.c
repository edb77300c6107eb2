// SPDX-License-Identifier: MIT
#include <ctype.h>
#include <dirent.h>

#include "tests/harness/harness.h"
#include "system.h"

#define DEBUG	"/sys/kernel/debug/flexsc/registrations"
#define GROUPS	"/sys/fs/cgroup"

int system_set(const char *path, const char *value)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC | O_TRUNC);
	int err = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, value, strlen(value)) < 0)
		err = -errno;
	close(fd);
	return err;
}

void system_install(const char *program, const char *path)
{
	int from = open(program, O_RDONLY | O_CLOEXEC);
	int to = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
	char bytes[65536];
	ssize_t n;

	CHECK(from >= 0);
	CHECK(to >= 0);
	while ((n = read(from, bytes, sizeof(bytes))) > 0)
		CHECK_EQ(write(to, bytes, (size_t)n), n);
	CHECK_EQ(n, 0);
	CHECK_EQ(fchmod(to, 04755), 0);
	close(from);
	close(to);
}

/* Counts the lines that contain one word, but not another one. */
static unsigned int count_lines(const char *path, const char *with,
				const char *without)
{
	FILE *file = fopen(path, "re");
	unsigned int n = 0;
	char line[1024];

	CHECK(file);
	while (fgets(line, sizeof(line), file))
		n += strstr(line, with) && !(without && strstr(line, without));
	fclose(file);
	return n;
}

unsigned int system_registrations(void)
{
	return count_lines(DEBUG, "registration ", NULL);
}

/*
 * Returns the number behind this text, on the line that starts with the word; -1: no
 * such line.
 */
static long number_in(const char *path, const char *word, const char *text)
{
	FILE *file = fopen(path, "re");
	const size_t n = strlen(word), more = strlen(text);
	char line[1024];
	long found = -1;

	CHECK(file);
	while (fgets(line, sizeof(line), file))
		if (!strncmp(line, word, n) && !strncmp(line + n, text, more))
			found = strtol(line + n + more, NULL, 10);
	fclose(file);
	return found;
}

unsigned int system_module_references(void)
{
	FILE *file = fopen("/proc/modules", "re");
	unsigned int references = UINT32_MAX;
	char line[1024];

	CHECK(file);
	while (fgets(line, sizeof(line), file))
		sscanf(line, "flexsc %*u %u", &references);
	fclose(file);
	return references;
}

unsigned int system_mappings(void)
{
	return count_lines("/proc/vmallocinfo", "[flexsc]", "module");
}

/* Is this a process, perhaps ended, and not a kernel thread? */
static bool is_process(const char *pid)
{
	char path[300], line[512] = "";
	const char *after;
	FILE *file;
	int parent;

	snprintf(path, sizeof(path), "/proc/%.16s/stat", pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	after = fgets(line, sizeof(line), file) ? strrchr(line, ')') : NULL;
	fclose(file);
	/* Kernel threads have the parent kthreadd. */
	return after && sscanf(after, ") %*c %d", &parent) == 1 && parent != 2;
}

unsigned int system_processes(void)
{
	DIR *dir = opendir("/proc");
	unsigned int n = 0;

	CHECK(dir);
	for (struct dirent *entry; (entry = readdir(dir));)
		n += isdigit((unsigned char)entry->d_name[0]) &&
		     is_process(entry->d_name);
	closedir(dir);
	return n;
}

static void show(const char *path)
{
	FILE *file = fopen(path, "re");
	char line[512];

	if (!file)
		return;
	test_note("%s", path);
	while (fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = '\0';
		test_note("%s", line);
	}
	fclose(file);
}

void system_report(pid_t pid)
{
	char path[300];
	DIR *dir;

	show(DEBUG);
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	if (!dir)
		return;
	for (struct dirent *entry; (entry = readdir(dir));) {
		snprintf(path, sizeof(path), "/proc/%d/task/%.16s/stack", pid,
			 entry->d_name);
		show(path);
		snprintf(path, sizeof(path), "/proc/%d/task/%.16s/syscall", pid,
			 entry->d_name);
		show(path);
	}
	closedir(dir);
}

unsigned int system_objects(const char *cache)
{
	char path[256];
	long used;

	/* Objects that KASAN keeps in quarantine would count, too. */
	snprintf(path, sizeof(path), "/sys/kernel/slab/%s/shrink", cache);
	system_set(path, "1");
	used = number_in("/proc/slabinfo", cache, " ");
	return used < 0 ? 0 : (unsigned int)used;
}

long system_memory(const char *field)
{
	long found;

	CHECK_EQ(system_set("/proc/sys/vm/drop_caches", "3"), 0);
	found = number_in("/proc/meminfo", field, ":");
	CHECK(found >= 0);
	return found;
}

void *system_share(void)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	CHECK(page != MAP_FAILED);
	return page;
}


/* Control groups. */

static const char *file_of(char *path, const char *name, const char *file)
{
	snprintf(path, 256, GROUPS "/%s/%s", name, file);
	return path;
}

void system_stop(pid_t pid)
{
	int status;

	CHECK_EQ(kill(pid, SIGSTOP), 0);
	CHECK_EQ(waitpid(pid, &status, WUNTRACED), pid);
	CHECK(WIFSTOPPED(status));
}

void system_group_make(const char *name)
{
	char path[256];

	if (mkdir(file_of(path, name, ""), 0755) && errno != EEXIST)
		SKIP("%s: %s", path, strerror(errno));
}

void system_group_enter(const char *name, pid_t pid)
{
	char path[256], number[16];

	snprintf(number, sizeof(number), "%d", pid);
	CHECK_EQ(system_set(file_of(path, name, "cgroup.procs"), number), 0);
}

/* Waits until the group's events file contains this. */
static bool comes(const char *name, const char *event)
{
	char path[256];

	file_of(path, name, "cgroup.events");
	for (int i = 0; i < 5000; i++) {
		if (count_lines(path, event, NULL))
			return true;
		usleep(i < 1000 ? 200 : 2000);
	}
	return false;
}

bool system_group_freeze(const char *name, bool frozen)
{
	char path[256];

	CHECK_EQ(system_set(file_of(path, name, "cgroup.freeze"),
			    frozen ? "1" : "0"), 0);
	return comes(name, frozen ? "frozen 1" : "frozen 0");
}

void system_group_kill(const char *name)
{
	char path[256];

	CHECK_EQ(system_set(file_of(path, name, "cgroup.kill"), "1"), 0);
}

void system_group_remove(const char *name)
{
	char path[256];

	CHECK(comes(name, "populated 0"));
	CHECK_EQ(rmdir(file_of(path, name, "")), 0);
}
