/* SPDX-License-Identifier: MIT */
/*
 * The head of an HTTP answer: the status line and the fields, to the empty
 * line. A head is bytes of a given size and may have any byte in it; names of
 * fields are looked for without regard to case (RFC 9110, 5.1). The functions
 * keep nothing, so any thread may call them.
 */
#ifndef FLEXSC_BENCH_HEAD_H
#define FLEXSC_BENCH_HEAD_H

#include <stdbool.h>
#include <stddef.h>

/* The size of the head that "data" begins with; 0: its end isn't there. */
size_t bench_head_size(const char *data, size_t size);

/* Is the answer HTTP/1.1 200? */
bool bench_head_is_right(const char *head, size_t size);

/* Content-Length; -1: there is none, or one that isn't a number. */
long bench_head_length(const char *head, size_t size);

/* Does the server say that it closes the connection? */
bool bench_head_closes(const char *head, size_t size);

#endif /* FLEXSC_BENCH_HEAD_H */
