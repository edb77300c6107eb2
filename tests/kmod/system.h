/* SPDX-License-Identifier: MIT */
/* Queries and changes of the guest's system, as root. */
#ifndef FLEXSC_TESTS_SYSTEM_H
#define FLEXSC_TESTS_SYSTEM_H

#include <stdbool.h>
#include <sys/types.h>

#define TRACING	"/sys/kernel/tracing/"

/* Writes to a file in /proc, /sys or similar; returns -errno for an error. */
int system_set(const char *path, const char *value);

/* Copies a program, and makes the copy set-user-ID root. */
void system_install(const char *program, const char *path);

/* The number of registrations in the module. */
unsigned int system_registrations(void);
/* The number of references to the module: files, and what keeps them. */
unsigned int system_module_references(void);
/* The number of kernel mappings made for the module, except those of its own code. */
unsigned int system_mappings(void);
/* The number of processes, without kernel threads. */
unsigned int system_processes(void);
/* Prints what is known about registrations, and about a process's threads. */
void system_report(pid_t pid);
/* The number of used objects in a slab cache; 0: there is no such cache. */
unsigned int system_objects(const char *cache);
/* A field of /proc/meminfo, in KiB, with empty caches. */
long system_memory(const char *field);

/* A page that a test shares with its children. */
void *system_share(void);

/* Stops a child, and waits until it has stopped. */
void system_stop(pid_t pid);

/* A control group (version 2); "" is the root group. */
void system_group_make(const char *name);
void system_group_enter(const char *name, pid_t pid);
/* Freezes or thaws the group, and waits for that; false after ten seconds. */
bool system_group_freeze(const char *name, bool frozen);
void system_group_kill(const char *name);
void system_group_remove(const char *name);

#endif /* FLEXSC_TESTS_SYSTEM_H */
