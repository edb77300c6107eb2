/* SPDX-License-Identifier: MIT */
#include "payload.h"

#include <errno.h>
#include <flexsc/ecb.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/syscall.h"
#include "backend.h"
#include "ecb.h"
#include "memory.h"
#include "source.h"

/* Returns the descriptor's current state, from poll(2). */
static uint32_t payload_polled(int fd, uint32_t want)
{
	struct pollfd poll = { .fd = fd, .events = (short)want };

	raw_syscall(SYS_ppoll, PTR(&poll), 1, PTR(&(struct timespec){ 0 }), 0,
		    0, 0);
	return (uint32_t)poll.revents & FLEXSC_EVENT_POLL;
}

static bool payload_io(const struct source *source,
		       struct flexsc_ecb_event *event, uint32_t state)
{
	if (state & FLEXSC_EVENT_CHECK)
		event->ready |= source->want & (POLLIN | POLLOUT);
	if (!(source->flags & SOURCE_CHECKED))
		return true;
	event->ready = payload_polled(event->fd, source->want);
	return event->ready;
}

static bool payload_post(struct source *source, struct flexsc_ecb_event *event)
{
	event->ready = 0;
	event->payload[0] = __atomic_exchange_n(&source->word, 0,
						__ATOMIC_RELAXED);
	/*
	 * 0: there is no event to hand out. A post stores its word, and then marks the
	 * slot. If an earlier event took the word in between, only the mark is left.
	 */
	return event->payload[0];
}

/* Read one signal, and put the slot on its list again for the next one. */
static bool payload_signal(struct flexsc_ecb *ecb,
			   struct flexsc_ecb_event *event)
{
	struct signalfd_siginfo info;

	if (read(event->fd, &info, sizeof(info)) != sizeof(info))
		return false;
	event->ready = POLLIN;
	event->payload[0] = info.ssi_signo | (uint64_t)info.ssi_code << 32;
	event->payload[1] = info.ssi_pid | (uint64_t)info.ssi_uid << 32;
	event->payload[2] = info.ssi_ptr;
	/* Add what fcntl(2) F_SETSIG reports: the signal was sent for a descriptor. */
	if (info.ssi_band) {
		event->payload[1] = info.ssi_band;
		event->payload[2] = (uint32_t)info.ssi_fd;
	}
	flexsc__source_again(ecb, event->event);
	return true;
}

static bool payload_timer(struct flexsc_ecb_event *event)
{
	return read(event->fd, &event->payload[0], sizeof(uint64_t)) ==
	       sizeof(uint64_t);
}

static bool payload_child(struct flexsc_ecb_event *event)
{
	siginfo_t info = { 0 };

	if (waitid((idtype_t)P_PIDFD, (id_t)event->fd, &info,
		   WEXITED | WNOHANG) || !info.si_pid)
		return false;
	event->payload[0] = (uint64_t)info.si_code;
	event->payload[1] = (uint64_t)info.si_status;
	event->payload[2] = (uint64_t)info.si_pid;
	return true;
}

static bool payload_file(struct flexsc_ecb_event *event)
{
	char buffer[4096] __attribute__((aligned(8)));
	ssize_t size;

	while ((size = read(event->fd, buffer, sizeof(buffer))) > 0) {
		for (char *at = buffer; at < buffer + size;) {
			const struct inotify_event *one = (void *)at;

			event->payload[0] |= one->mask;
			at += sizeof(*one) + one->len;
		}
	}
	return event->payload[0];
}

/* Make an accepted connection an ordinary source. */
static void payload_accepted(const struct flexsc_ecb *ecb,
			     struct source *source)
{
	/* If the kernel assigned the slot, the source isn't initialised yet. */
	if (!ecb->backend->collect)
		*source = (struct source){ .flags = SOURCE_USED };
	source->type = FLEXSC_EVT_IOREADY;
	source->group = source->later;
}

/*
 * Complete an event of the listening socket itself. Either connections can't be
 * accepted, or only the program can accept them (-EPERM), because its calls are
 * traced or the socket lacks O_NONBLOCK.
 */
static bool payload_not_accepted(struct flexsc_ecb_event *event)
{
	event->type = FLEXSC_EVT_OVERFLOW;
	if (!event->error)
		event->error = -EPERM;
	return true;
}

/* Read the data of the library's own descriptors. The program reads its own. */
static bool payload_own(struct flexsc_ecb *ecb, struct flexsc_ecb_event *event)
{
	switch (event->type) {
	case FLEXSC_EVT_SIGNAL:
		return payload_signal(ecb, event);
	case FLEXSC_EVT_TIMER:
		return payload_timer(event);
	case FLEXSC_EVT_CHILD:
		return payload_child(event);
	case FLEXSC_EVT_FILE:
		return payload_file(event);
	case FLEXSC_EVT_MEMORY:
		return flexsc__memory_take(ecb, event);
	default:
		return true;
	}
}

bool flexsc__payload_complete(struct flexsc_ecb *ecb,
			      struct flexsc_ecb_event *event, uint32_t state)
{
	struct source *source = &ecb->sources[event->event];

	event->ready = state & (FLEXSC_EVENT_POLL | FLEXSC_EVENT_CHECK);
	if (event->type == FLEXSC_EVT_USER)
		return payload_post(source, event);
	if (event->type == FLEXSC_EVT_IPACCEPT &&
	    source->flags & SOURCE_ACCEPTS)
		return payload_not_accepted(event);
	if (event->type == FLEXSC_EVT_IPACCEPT)
		payload_accepted(ecb, source);
	/* Hand out the last event: the poll has failed. */
	if (source->error)
		return true;
	if (source->flags & SOURCE_OWN)
		return payload_own(ecb, event);
	return payload_io(source, event, state);
}
