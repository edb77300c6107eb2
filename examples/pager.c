/* SPDX-License-Identifier: MIT */
/*
 * A cache of a file in a fixed amount of memory. Threads use the file as one large
 * array, and most of its pages are missing. The main thread completes their page faults:
 * it fetches the page, and for that drops the oldest one, which it writes back if a
 * thread has changed it.
 *
 *	pager FILE PAGES	adds THREADS to the first byte of each page of FILE, with
 *				at most PAGES pages in memory (at least THREADS)
 *
 * A page is filled write-protected, so its first write is an event, too. To write a page
 * back, the main thread protects it again. Threads that write to it meanwhile wait, and
 * no write is lost.
 */
#include <fcntl.h>
#include <flexsc/ecb.h>
#include <flexsc/loop.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { THREADS = 4 };

/* Groups; the lower one has priority: a thread that waits for a page comes first. */
enum { FAULTS, ENDS };

static struct flexsc_ecb *ecb;
static unsigned int faults;		/* the memory's event */
static unsigned int ends;		/* threads post their bits to this one */

static int file;
static size_t page, file_size, pages;
static char *memory;			/* the file's pages, most of them missing */
static bool *dirty;
static bool *present;
static size_t *cache;			/* the numbers of the present pages, in a ring */
static size_t room, oldest, count;
static char *buffer;
static unsigned long fetched, written;

static void fail(const char *what, const char *why)
{
	fprintf(stderr, "pager: %s: %s\n", what, why);
	exit(1);
}

/* Functions of libflexsc return -errno. */
static int check(const char *what, int ret)
{
	if (ret < 0)
		fail(what, strerror(-ret));
	return ret;
}

static size_t length_of(size_t n)
{
	return n + 1 < pages ? page : file_size - n * page;
}

static void write_back(size_t n)
{
	char *at = memory + n * page;

	/* From here on, threads that write to the page wait. */
	check("protect", flexsc_ecb_memory_allow(ecb, faults, at, page, 0));
	if (pwrite(file, at, length_of(n), (off_t)(n * page)) != (ssize_t)length_of(n))
		fail("write", "incomplete");
	dirty[n] = false;
	written++;
}

static void drop_oldest(void)
{
	size_t n = cache[oldest];

	if (dirty[n])
		write_back(n);
	/* The next access is a fault again. */
	if (madvise(memory + n * page, page, MADV_DONTNEED))
		fail("madvise", "failed");
	present[n] = false;
	oldest = (oldest + 1) % room;
	count--;
}

static void fetch(size_t n)
{
	if (count == room)
		drop_oldest();
	memset(buffer, 0, page);
	if (pread(file, buffer, length_of(n), (off_t)(n * page)) !=
	    (ssize_t)length_of(n))
		fail("read", "incomplete");
	cache[(oldest + count) % room] = n;
	count++;
	present[n] = true;
	fetched++;
	check("fill", flexsc_ecb_memory_fill(ecb, faults, memory + n * page, page,
					     buffer));
}

/*
 * Another thread's fault may have fetched the page already, which has woken this one,
 * too. Or the page was dropped while a thread waited to write to it: then waking the
 * thread is enough, because its next attempt is a fault of a missing page.
 */
static void complete(const struct flexsc_ecb_event *event)
{
	char *at = (char *)(uintptr_t)event->payload[0];
	size_t n = (size_t)(at - memory) / page;

	if (event->payload[1] & FLEXSC_MEMORY_PROTECTED) {
		dirty[n] = present[n];
		check("allow", flexsc_ecb_memory_allow(ecb, faults, at, page, 1));
	} else if (!present[n]) {
		fetch(n);
	}
}

/* Events until all threads have ended. */
static void serve(void)
{
	struct flexsc_ecb_event event;
	uint64_t ended = 0;

	while (ended != (1 << THREADS) - 1) {
		check("wait", flexsc_ecb_wait(ecb, UINT32_MAX, FLEXSC_FOREVER));
		while (flexsc_ecb_next(ecb, UINT32_MAX, &event)) {
			if (event.type == FLEXSC_EVT_MEMORY)
				complete(&event);
			else
				ended |= event.payload[0];
		}
	}
}

/* Threads see only memory. */
static void *add_to_pages(void *arg)
{
	size_t number = (size_t)(uintptr_t)arg;

	for (size_t i = 0; i < pages; i++) {
		size_t n = (i + number * pages / THREADS) % pages;

		__atomic_fetch_add(memory + n * page, 1, __ATOMIC_RELAXED);
	}
	flexsc_ecb_post(ecb, ends, 1ULL << number);
	return NULL;
}

static void *allocate(size_t n, size_t size)
{
	void *made = calloc(n, size);

	if (!made)
		fail("memory", "too little");
	return made;
}

static void prepare(const char *name)
{
	const uint32_t what = FLEXSC_MEMORY_MISSING | FLEXSC_MEMORY_PROTECTED;
	struct stat stat;
	char why[192];

	file = open(name, O_RDWR | O_CLOEXEC);
	if (file < 0 || fstat(file, &stat) || !stat.st_size)
		fail(name, "can't be opened for writing, or is empty");
	file_size = (size_t)stat.st_size;
	page = (size_t)sysconf(_SC_PAGESIZE);
	pages = (file_size + page - 1) / page;
	dirty = allocate(pages, sizeof(*dirty));
	present = allocate(pages, sizeof(*present));
	cache = allocate(room, sizeof(*cache));
	buffer = allocate(1, page);
	memory = mmap(NULL, pages * page, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		fail("memory", "too little");
	if (flexsc_ecb_memory_probe(what, why, sizeof(why)))
		fail("page faults can't be events here", why);
	check("event control block", flexsc_ecb_create(&ecb, NULL));
	faults = (unsigned int)check("memory", flexsc_ecb_memory(
		ecb, memory, pages * page, what, FAULTS, NULL));
	ends = (unsigned int)check("event", flexsc_ecb_user(ecb, ENDS, NULL));
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];

	room = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
	if (room < THREADS) {
		fputs("usage: pager FILE PAGES\n", stderr);
		return 2;
	}
	prepare(argv[1]);
	for (size_t i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, add_to_pages, (void *)i))
			fail("thread", "can't be created");
	serve();
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	while (count)
		drop_oldest();
	check("end", flexsc_ecb_destroy(ecb));
	printf("%zu pages, %zu in memory: %lu fetched, %lu written back\n", pages, room,
	       fetched, written);
	return 0;
}
