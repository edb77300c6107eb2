/* SPDX-License-Identifier: MIT */
/* The program's sources of events. Owner only, except for flexsc_ecb_post(). */
#include "watch.h"

#include <errno.h>
#include <fcntl.h>
#include <flexsc/ecb.h>
#include <flexsc/fd.h>
#include <poll.h>
#include <sys/socket.h>

#include "events/event/backend.h"
#include "events/event/critical.h"
#include "events/event/memory.h"
#include "events/event/source.h"
#include "owner.h"

#define ACCEPT_FLAGS	(SOCK_NONBLOCK | SOCK_CLOEXEC)

int flexsc_ecb_group(struct flexsc_ecb *ecb, enum flexsc_event_type type,
		     unsigned int group)
{
	int err = flexsc__ecb_check(ecb);

	if (err)
		return err;
	if ((unsigned int)type >= FLEXSC_EVT_TYPES ||
	    group >= FLEXSC_ECB_GROUPS)
		return -EINVAL;
	ecb->groups[type] = (uint8_t)group;
	return 0;
}

/* Returns the group; for -1 the type's default. -EINVAL: no such group. */
static int watch_group(const struct flexsc_ecb *ecb,
		       enum flexsc_event_type type, int group)
{
	if (group < -1 || group >= FLEXSC_ECB_GROUPS)
		return -EINVAL;
	return group < 0 ? ecb->groups[type] : group;
}

/*
 * Assign a slot and watch it. Returns the slot's index, or -errno. "flags" are added to
 * the source's flags.
 */
static int watch_make(struct flexsc_ecb *ecb,
		      const struct flexsc_ecb_watch *watch, uint8_t flags)
{
	int index;

	critical_enter(ecb);
	index = ecb->backend->watch(ecb, watch);
	if (index >= 0) {
		struct source *source = &ecb->sources[index];

		source->want = watch->want;
		source->type = (uint8_t)watch->type;
		source->group = (uint8_t)watch->group;
		source->flags |= SOURCE_USED | flags;
		ecb->owns |= flags & SOURCE_OWN;
	}
	/*
	 * Leaving the section calls the handler, if the new source has an event
	 * already.
	 */
	flexsc__critical_leave(ecb);
	return index;
}

int flexsc__watch(struct flexsc_ecb *ecb, int fd, enum flexsc_event_type type,
		  uint32_t want, int group, uint8_t flags, void *data)
{
	struct flexsc_ecb_watch watch = {
		.fd = fd,
		.want = want | POLLERR | POLLHUP,
		.type = (uint16_t)type,
		.data = (uintptr_t)data,
	};
	int own;

	if (fd < 0)
		return -EBADF;
	own = watch_group(ecb, type, group);
	if (own < 0)
		return own;
	watch.group = (uint16_t)own;
	return watch_make(ecb, &watch, flags);
}

int flexsc_ecb_watch_as(struct flexsc_ecb *ecb, int fd,
			enum flexsc_event_type type, uint32_t want, int group,
			uint32_t flags, void *data)
{
	int err = flexsc__ecb_check(ecb);

	if (err)
		return err;
	if ((unsigned int)type >= FLEXSC_EVT_TYPES ||
	    type == FLEXSC_EVT_USER || type == FLEXSC_EVT_IPACCEPT ||
	    flags & ~FLEXSC_WATCH_CHECKED || want & ~FLEXSC_EVENT_POLL)
		return -EINVAL;
	return flexsc__watch(ecb, fd, type, want, group,
			     flags ? SOURCE_CHECKED : 0, data);
}

int flexsc_ecb_watch(struct flexsc_ecb *ecb, int fd, uint32_t want, int group,
		     void *data)
{
	return flexsc_ecb_watch_as(ecb, fd, FLEXSC_EVT_IOREADY, want, group, 0,
				   data);
}

int flexsc_ecb_user(struct flexsc_ecb *ecb, int group, void *data)
{
	struct flexsc_ecb_watch watch = {
		.fd = -1,
		.type = FLEXSC_EVT_USER,
		.data = (uintptr_t)data,
	};
	int err = flexsc__ecb_check(ecb);

	if (err)
		return err;
	err = watch_group(ecb, FLEXSC_EVT_USER, group);
	if (err < 0)
		return err;
	watch.group = (uint16_t)err;
	return watch_make(ecb, &watch, 0);
}

/* Is the descriptor a listening socket with O_NONBLOCK? 0 or -errno. */
static int watch_listener(int fd)
{
	socklen_t size = sizeof(int);
	int flags = fcntl(fd, F_GETFL), listens = 0;

	if (flags < 0)
		return -errno;
	if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size))
		return -errno;
	return listens && flags & O_NONBLOCK ? 0 : -EINVAL;
}

int flexsc_ecb_autoaccept(struct flexsc_ecb *ecb, int listener, int group,
			  const struct flexsc_ecb_inherit *inherit, void *data)
{
	struct flexsc_ecb_watch watch = {
		.fd = listener,
		.want = POLLIN | POLLERR | POLLHUP,
		.type = FLEXSC_EVT_IPACCEPT,
		.flags = FLEXSC_WATCH_ACCEPT,
		.data = (uintptr_t)data,
	};
	int err = flexsc__ecb_check(ecb);
	int later;

	if (err)
		return err;
	if (!inherit || inherit->flags & ~(uint32_t)ACCEPT_FLAGS ||
	    inherit->want & ~FLEXSC_EVENT_POLL)
		return -EINVAL;
	err = watch_listener(listener);
	if (err)
		return err;
	err = watch_group(ecb, FLEXSC_EVT_IPACCEPT, group);
	later = watch_group(ecb, FLEXSC_EVT_IOREADY, inherit->group);
	if (err < 0 || later < 0)
		return -EINVAL;
	watch.group = (uint16_t)err;
	watch.accept_want = inherit->want | POLLERR | POLLHUP;
	watch.accept_group = (uint16_t)later;
	watch.accept_flags = inherit->flags;
	watch.accept_data = (uintptr_t)inherit->data;
	return watch_make(ecb, &watch, 0);
}

static int watch_end(struct flexsc_ecb *ecb, unsigned int event, bool close)
{
	int err = flexsc__ecb_check(ecb);
	struct memory *memory;
	uint8_t flags;

	if (err)
		return err;
	if (event >= ecb->events)
		return -EINVAL;
	critical_enter(ecb);
	flags = ecb->sources[event].flags;
	memory = flags & SOURCE_MEMORY ? ecb->sources[event].own : NULL;
	if (memory)
		flexsc__memory_end(memory);
	err = flags & SOURCE_USED ?
		      ecb->backend->forget(ecb, event,
					   close || flags & SOURCE_OWN) :
		      -ENOENT;
	if (memory)
		flexsc__memory_drop(ecb, memory);
	flexsc__critical_leave(ecb);
	return err;
}

int flexsc_ecb_forget(struct flexsc_ecb *ecb, unsigned int event)
{
	return watch_end(ecb, event, false);
}

int flexsc_ecb_close(struct flexsc_ecb *ecb, unsigned int event)
{
	const int fd = ecb && event < ecb->events ? ecb->slots[event].fd : -1;
	int err = watch_end(ecb, event, true);

	/*
	 * Forget the descriptor's facts, because the number may belong to another
	 * file now. No lock is used, because handlers call this.
	 */
	if (!err && fd >= 0)
		flexsc_fd_forget(fd);
	return err;
}

int flexsc_ecb_post(struct flexsc_ecb *ecb, unsigned int event, uint64_t word)
{
	if (!ecb || event >= ecb->events || !word)
		return -EINVAL;
	if (ecb->stale)
		return -ESTALE;
	if (!(ecb->sources[event].flags & SOURCE_USED))
		return -ENOENT;
	if (ecb->sources[event].type != FLEXSC_EVT_USER)
		return -EINVAL;
	flexsc__source_post(ecb, event, word);
	return 0;
}
