/* SPDX-License-Identifier: MIT */
/* Answers to requests: the way from a request's path to what is sent. */
#ifndef SERVE_ANSWER_H
#define SERVE_ANSWER_H

#include <stdbool.h>

struct exchange;

/*
 * Called once for an exchange, before its first request; what the exchange is
 * given is there.
 */
void answer_init(struct exchange *x);

/*
 * Answer the request, whose head begins at head, or refuse it with its status.
 * False: the answer has failed already, and done() won't be called.
 */
bool answer_request(struct exchange *x, const char *head, bool keep_alive);

/*
 * Answer status at once, and nothing after it. False: the answer has failed
 * already, and done() won't be called.
 */
bool answer_refuse(struct exchange *x, const char *head, int status);

#endif /* SERVE_ANSWER_H */
