/* SPDX-License-Identifier: MIT */
/*
 * Sending an answer, and posting loads of its file meanwhile: the stages LOAD and
 * SEND of answer.c. The callback of a load is in loading.c.
 */
#ifndef SERVE_TRANSFER_H
#define SERVE_TRANSFER_H

#include <stddef.h>
#include <stdint.h>

struct exchange;
struct flexsc_cb;

/* Files of at most this size, in bytes, are sent in one part. */
#define TRANSFER_WHOLE	32768
/*
 * Size of the first part of a larger file, in bytes. With a smaller part the
 * client's TCP window stays small for long: with 8 KiB, 1 MiB took twice the
 * time. With a larger part, more bytes are copied needlessly.
 */
#define TRANSFER_FIRST	16384

/* Continue to load the first part. */
void transfer_load(struct exchange *x);

/* Send the file's head and its first part, which was loaded; then the rest. */
void transfer_file(struct exchange *x);

/* Send the head and "length" bytes of the file's mapped contents. */
void transfer_mapped(struct exchange *x, uint64_t length);

/* Send only the head of a file whose body would have "length" bytes. */
void transfer_head(struct exchange *x, uint64_t length);

/*
 * Send the last "length" bytes of an answer, which begin at "out". The first
 * "head" bytes of them don't belong to the body.
 */
void transfer_last(struct exchange *x, const char *out, size_t head,
		   size_t length);

/* The callback of each send. */
void transfer_on_send(struct flexsc_cb *cb);

#endif /* SERVE_TRANSFER_H */
