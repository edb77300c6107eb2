/* SPDX-License-Identifier: MIT */
/*
 * What calls do to descriptors: which facts (fds.h) a call makes, changes or drops. The
 * table of calls has each call's effects; these functions carry them out. Any thread.
 */
#ifndef FLEXSC_EFFECTS_H
#define FLEXSC_EFFECTS_H

#include <linux/flexsc.h>
#include <stdint.h>

/* Update the facts: this call may change descriptors. */
void flexsc__fds_note(const struct flexsc_entry *entry);

/*
 * A call sets a descriptor's flags. Begin before the call, after flexsc__fds_note(); end
 * after the call, with the result of begin and of the call. The facts are those that the
 * call has set if no other call has set flags at the same time.
 */
uint64_t flexsc__fds_set_begin(void);
void flexsc__fds_set_end(uint32_t fd, uint64_t flags, uint64_t begun, int64_t ret);

/* An open by io_uring has returned: see FD_OPENED. */
void flexsc__fds_note_opened(const struct flexsc_entry *entry, int64_t ret);

/* An entry has returned: if it made descriptors, their flags are known. */
void flexsc__fds_note_made(const struct flexsc_entry *entry, int64_t ret);

/*
 * A user thread's call has returned that sent one message, or many (enum call_passes).
 * If a message passed descriptors to another socket, they aren't alone any more.
 */
void flexsc__fds_note_sent(unsigned int passes, uint64_t messages, int64_t ret);

/* A descriptor was looked at: its file has these attributes. */
struct statx;
void flexsc__fds_note_regular(uint32_t fd, const struct statx *file);

/* A connection was accepted: SO_RCVLOWAT is its listener's. */
void flexsc__fds_note_accepted(uint32_t listener, uint32_t fd);

/*
 * A call has returned. Update FD_SIGNALS only. (flexsc__fds_note_made() includes
 * this.)
 */
void flexsc__fds_note_signals(const struct flexsc_entry *entry, int64_t ret);

#endif /* FLEXSC_EFFECTS_H */
