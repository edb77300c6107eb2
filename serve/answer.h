/* SPDX-License-Identifier: MIT */
/* Answers to requests: from a request's path to the bytes that are sent. */
#ifndef SERVE_ANSWER_H
#define SERVE_ANSWER_H

#include <stdbool.h>

struct exchange;

/*
 * Initialise x, once, before its first request. The exchange's constant fields
 * must be set.
 */
void answer_init(struct exchange *x);

/*
 * Answer the request whose head begins at "head". If the request has an error
 * status, answer with that status. False: the answer has failed already, and
 * done() won't be called.
 */
bool answer_request(struct exchange *x, const char *head, bool keep_alive);

/*
 * Answer with this status at once, and close after it. False: the answer has
 * failed already, and done() won't be called.
 */
bool answer_refuse(struct exchange *x, const char *head, int status);

#endif /* SERVE_ANSWER_H */
