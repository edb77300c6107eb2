/* SPDX-License-Identifier: MIT */
/*
 * Effects of calls on descriptors: which facts (fds.h) a call establishes, changes or
 * drops. The table of calls lists each call's effects; these functions apply them. Any
 * thread.
 */
#ifndef FLEXSC_EFFECTS_H
#define FLEXSC_EFFECTS_H

#include <linux/flexsc.h>
#include <stdint.h>

/* Update the facts before a call that may change descriptors. */
void flexsc__fds_note(const struct flexsc_entry *entry);

/*
 * Bracket a call that sets a descriptor's flags. Begin before the call, after
 * flexsc__fds_note(). End after the call, with the results of begin and of the call.
 * The facts reflect the new flags only if no other call set flags at the same time.
 */
uint64_t flexsc__fds_set_begin(void);
void flexsc__fds_set_end(uint32_t fd, uint64_t flags, uint64_t begun, int64_t ret);

/* Called when an open through io_uring has returned: record FD_OPENED. */
void flexsc__fds_note_opened(const struct flexsc_entry *entry, int64_t ret);

/*
 * Called when an entry has returned: record the flags of the descriptors that it made.
 */
void flexsc__fds_note_made(const struct flexsc_entry *entry, int64_t ret);

/*
 * Called when a user thread's call that sends messages (enum call_passes) has returned.
 * Descriptors that its messages passed to another socket lose FD_ALONE.
 */
void flexsc__fds_note_sent(unsigned int passes, uint64_t messages, int64_t ret);

/* Record the kind of a descriptor's file, given its attributes. */
struct statx;
void flexsc__fds_note_regular(uint32_t fd, const struct statx *file);

/*
 * Record an accepted connection, which inherits SO_RCVLOWAT from its listening socket.
 */
void flexsc__fds_note_accepted(uint32_t listener, uint32_t fd);

/*
 * Called when a call has returned: update FD_SIGNALS only. flexsc__fds_note_made()
 * includes this.
 */
void flexsc__fds_note_signals(const struct flexsc_entry *entry, int64_t ret);

#endif /* FLEXSC_EFFECTS_H */
