/* SPDX-License-Identifier: MIT */
/*
 * An allocator that initializes itself at its first use, with its lock held, as
 * tcmalloc does. For that it calls functions that the runtime interposes. It never
 * reuses memory.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define HEAP	(64UL << 20)
#define HEAD	alignof(max_align_t)

static alignas(max_align_t) char heap[HEAP];
static size_t used;
static bool made;
static atomic_flag lock = ATOMIC_FLAG_INIT;
static __thread bool inside __attribute__((tls_model("initial-exec")));
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void nothing(void)
{
}

static void make(void)
{
	struct timespec time;

	pthread_once(&once, nothing);
	pthread_mutex_lock(&mutex);
	pthread_mutex_unlock(&mutex);
	clock_gettime(CLOCK_MONOTONIC, &time);
	made = true;
}

static void *take(size_t n)
{
	char *place = heap + used + HEAD;

	if (n > HEAP - used - 2 * HEAD)
		return NULL;
	used += (n + 2 * HEAD - 1) / HEAD * HEAD;
	memcpy(place - HEAD, &n, sizeof(n));
	return place;
}

void *malloc(size_t n)
{
	static const char message[] = "# the allocator waits for itself\n";
	void *place;

	if (inside) {
		(void)!write(2, message, sizeof(message) - 1);
		_exit(99);
	}
	while (atomic_flag_test_and_set(&lock))
		;
	inside = true;
	if (!made)
		make();
	place = take(n);
	inside = false;
	atomic_flag_clear(&lock);
	return place;
}

void free(void *place)
{
	(void)place;
}

void *calloc(size_t n, size_t size)
{
	return malloc(n * size);
}

void *realloc(void *old, size_t n)
{
	void *new = malloc(n);
	size_t was;

	if (!old || !new)
		return new;
	memcpy(&was, (char *)old - HEAD, sizeof(was));
	return memcpy(new, old, was < n ? was : n);
}

/* Runs before the runtime's constructors. */
__attribute__((constructor)) static void use_early(void)
{
	malloc(1);
}
