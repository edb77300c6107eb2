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

/* A file of so many bytes at most is sent in one part. */
#define TRANSFER_WHOLE	32768
/*
 * Bytes of the first part of any other. Less keeps the client's window small
 * for long: 8 KiB took twice the time for 1 MiB. More is copied for nothing.
 */
#define TRANSFER_FIRST	16384

/* Go on loading the first part. */
void transfer_load(struct exchange *x);

/* Send the file's head and its first part, which is loaded; then the rest. */
void transfer_file(struct exchange *x);

/* Send the head, and length bytes of the file's contents, which are mapped. */
void transfer_mapped(struct exchange *x, uint64_t length);

/* Send the head alone, of a file of which length bytes would follow. */
void transfer_head(struct exchange *x, uint64_t length);

/* Send length bytes at out, the last ones, of which head are no body. */
void transfer_last(struct exchange *x, const char *out, size_t head,
		   size_t length);

/* The callback of a send. */
void transfer_on_send(struct flexsc_cb *cb);

#endif /* SERVE_TRANSFER_H */
