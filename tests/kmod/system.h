/* SPDX-License-Identifier: MIT */
/*
 * What a test asks of the guest's system, and does to it, as root.
 */
#ifndef FLEXSC_TESTS_SYSTEM_H
#define FLEXSC_TESTS_SYSTEM_H

#include <stdbool.h>
#include <sys/types.h>

/* Write to a file in /proc, /sys or the like; -errno. */
int system_set(const char *path, const char *value);

/* Copy a program and make the copy set-user-ID root. */
void system_install(const char *program, const char *path);

/* How many registrations the module knows of. */
unsigned int system_registrations(void);
/* How many references the module has: files, and what they keep. */
unsigned int system_module_references(void);
/* How many pieces of kernel memory are mapped for it, but for itself. */
unsigned int system_mappings(void);
/* But for the kernel's own. */
unsigned int system_processes(void);
/* Say all that is known of registrations, and of a process's threads. */
void system_report(pid_t pid);
/* Used objects of a slab cache; 0 if there is no such cache. */
unsigned int system_objects(const char *cache);
/* Of /proc/meminfo, in KiB, with nothing cached. */
long system_memory(const char *field);

/* A page that a test shares with its children. */
void *system_share(void);

/* Stop a child, and wait until it is. */
void system_stop(pid_t pid);

/* A control group of the second version; "" is the root's. */
void system_group_make(const char *name);
void system_group_enter(const char *name, pid_t pid);
/* Freeze or thaw it, and wait until it is; false after ten seconds. */
bool system_group_freeze(const char *name, bool frozen);
void system_group_kill(const char *name);
void system_group_remove(const char *name);

#endif /* FLEXSC_TESTS_SYSTEM_H */
